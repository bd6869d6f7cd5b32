//! `minder status`: the runs that run now, and their running jobs.

use std::io::Write;

use anyhow::Result;
use minder_cluster::holder::Who;
use minder_record::event::{OsBytes, now};
use minder_record::reader::last_started;
use minder_record::store::{self, RunEntry};
use serde_json::json;

use super::log::{RunCounts, find, print_running, run_id, run_text, seconds};
use crate::flags::StatusFlags;
use crate::run_agents::{RunAgent, RunAgents};
use crate::running::{RunningJob, Unseen, remove_ended, running_jobs, total};
use crate::ui::{message, time};
use minder_ui::symbols::Symbols;
use minder_ui::table::{Column, Table, escape};

/// A run that a process works on.
struct ActiveRun {
    id: String,
    /// Its command and first arguments for people, if its manifest can be read.
    command: Option<String>,
    words: Vec<OsBytes>,
    /// The process, if its journal can be read.
    pid: Option<u32>,
    /// The start of the attempt, in seconds since 1970.
    at: Option<f64>,
    /// The number of jobs, if it is known.
    total: Option<u64>,
    done: u64,
    failed: u64,
    /// The running jobs, or why they cannot be seen.
    jobs: Result<Vec<RunningJob>, Unseen>,
    /// The agents that run the jobs, if agents do.
    agents: Option<RunAgents>,
}

/// Shows the selected run, or all that run now.
pub(crate) fn run(out: &mut dyn Write, flags: &StatusFlags) -> Result<()> {
    let root = store::state_root()?;
    let found = match &flags.run {
        Some(name) => {
            let dir = find(&root, name)?;
            store::list(&root)?.into_iter().filter(|run| run.dir == dir).collect()
        }
        None => store::list(&root)?,
    };
    let runs: Vec<ActiveRun> = found.into_iter().filter_map(ActiveRun::of).collect();
    if runs.is_empty() && !flags.json {
        match &flags.run {
            Some(name) => {
                let id = run_id(&find(&root, name)?);
                message(&format!("run {id} is not running: `minder log {id}` shows its jobs"));
            }
            None => message("no run is running here: `minder log last` shows the last one"),
        }
    }
    for (index, run) in runs.iter().enumerate() {
        if flags.json {
            writeln!(out, "{}", run.document())?;
            continue;
        }
        if index > 0 {
            writeln!(out)?;
        }
        run.write(out)?;
    }
    Ok(())
}

impl ActiveRun {
    /// Reads a run; `None` if no process works on it.
    fn of(entry: RunEntry) -> Option<Self> {
        let is_alive = store::is_alive(&entry.dir);
        let agents = RunAgents::of(&entry.dir, is_alive).ok().flatten();
        if !is_alive && !agents.as_ref().is_some_and(RunAgents::seem_to_work) {
            return None;
        }
        let manifest = entry.manifest.ok();
        let started = last_started(&entry.dir);
        let mut jobs = match &started {
            // They are children of the agents.
            _ if agents.is_some() => Ok(Vec::new()),
            Some(started) => running_jobs(&entry.dir, manifest.as_ref(), started),
            None => {
                let text = "running jobs cannot be seen: the journal of the run has no beginning";
                Err(Unseen::Here(text.to_owned()))
            }
        };
        // Read after the processes: a job that ended meanwhile counts once, as one that has ended.
        let counts = RunCounts::with_jobs(&entry.dir, true, |ended| {
            if let Ok(jobs) = &mut jobs {
                remove_ended(jobs, |job| job.has_ended(ended));
            }
        });
        let counts = counts.0;
        Some(Self {
            id: entry.id,
            command: manifest.as_ref().map(|manifest| run_text(manifest, &entry.dir, counts.jobs)),
            words: manifest.as_ref().map(|manifest| manifest.words.clone()).unwrap_or_default(),
            total: match &agents {
                Some(agents) => agents.total,
                None => manifest.as_ref().and_then(total),
            },
            pid: started.as_ref().map(|started| started.pid),
            at: started.map(|started| started.at),
            done: counts.jobs,
            failed: counts.failed,
            jobs,
            agents,
        })
    }

    fn elapsed(&self) -> f64 {
        self.at.map_or(0.0, |at| (now() - at).max(0.0))
    }

    fn running(&self) -> Option<u64> {
        if let Some(agents) = &self.agents {
            return Some(agents.running());
        }
        self.jobs.as_ref().ok().map(|jobs| jobs.len() as u64)
    }

    /// Returns how many jobs have no result, if it is known how many there are.
    fn without_result(&self) -> Option<u64> {
        Some(self.total?.saturating_sub(self.done))
    }

    /// Returns how many jobs have not started, if that is known.
    fn left(&self) -> Option<u64> {
        Some(self.without_result()?.saturating_sub(self.running()?))
    }

    /// Writes a page for people.
    fn write(&self, out: &mut dyn Write) -> Result<()> {
        let symbols = Symbols::of_locale();
        let pid = match &self.agents {
            Some(RunAgents { coordinator: None, .. }) => " (detached)".to_owned(),
            Some(RunAgents { coordinator: Some(Who { node, pid, .. }), .. }) => {
                format!(" (pid {pid} on {node})")
            }
            None => self.pid.map_or_else(String::new, |pid| format!(" (pid {pid})")),
        };
        let command = self.command.as_ref().map_or_else(String::new, |command| format!(": {command}"));
        writeln!(out, "run {}{pid}{}", self.id, escape(command.as_bytes()))?;
        let mut parts = vec![match self.total {
            Some(total) => format!("{} of {total} done", self.done),
            None => format!("{} done", self.done),
        }];
        parts.push(format!("{} failed", self.failed));
        parts.extend(self.running().map(|running| format!("{running} running")));
        parts.extend(match (self.running(), self.without_result()) {
            (None, Some(count)) => Some(format!("{count} running or left")),
            _ => self.left().map(|left| format!("{left} left")),
        });
        parts.push(format!("{} elapsed", time(seconds(self.elapsed()))));
        writeln!(out, "{}", parts.join(symbols.pick(" · ", ", ")))?;
        if let Some(agents) = &self.agents {
            print_agents(out, &agents.agents)?;
        }
        match &self.jobs {
            Ok(jobs) if jobs.is_empty() => (),
            Ok(jobs) => print_running(out, jobs)?,
            Err(why) => message(&why.to_string()),
        }
        Ok(())
    }

    /// Returns the same as data.
    fn document(&self) -> serde_json::Value {
        let job = |job: &RunningJob| {
            json!({
                "job": job.job,
                "slot": job.slot,
                "pid": job.pid,
                "elapsed": job.elapsed().map(|time| time.as_secs_f64()),
                "command": job.words(),
            })
        };
        let jobs: Vec<_> = self.jobs.iter().flatten().map(job).collect();
        let mut document = json!({
            "run": self.id,
            "pid": self.pid,
            "at": self.at,
            "elapsed": self.elapsed(),
            "command": self.words,
            "total": self.total,
            "done": self.done,
            "failed": self.failed,
            "running": self.running(),
            "left": self.left(),
            "jobs": jobs,
        });
        if let (Some(agents), Some(document)) = (&self.agents, document.as_object_mut()) {
            let coordinator = agents.coordinator.as_ref();
            let coordinator = coordinator.map(|who| json!({ "node": who.node, "pid": who.pid }));
            document.insert("coordinator".to_owned(), json!(coordinator));
            document.insert("agents".to_owned(), json!(agents.documents()));
        }
        document
    }
}

/// Prints agents as a table.
fn print_agents(out: &mut dyn Write, agents: &[RunAgent]) -> Result<()> {
    let columns = vec![
        Column::left("agent on").at_least(8),
        Column::right("jobs"),
        Column::right("failed"),
        Column::right("running"),
        Column::left("last beat"),
    ];
    let mut table = Table::new(out, columns);
    for agent in agents {
        let beat = match agent.beat_age {
            _ if agent.is_over => "ended".to_owned(),
            Some(age) => format!("{} ago", time(age)),
            None => "none".to_owned(),
        };
        let node = agent.node.clone().unwrap_or_default();
        let [jobs, failed, running] = [agent.jobs, agent.failed, agent.running].map(|it| it.to_string());
        table.row(&[node, jobs, failed, running, beat])?;
    }
    Ok(table.finish()?)
}
