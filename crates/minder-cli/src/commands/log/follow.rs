//! `--follow`: shows jobs as they finish.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder::poll::{Events, Poller};

use super::jobs::{Filter, Printer};
use super::request::Request;
use super::select::{damage_text, run_id};
use crate::run_agents::is_detached;
use crate::running::{RunningJob, remove_ended, running_jobs};
use crate::ui::message;
use minder_record::agents::AGENTS;
use minder_record::event::{JobFinished, JournalEvent};
use minder_record::job_set::JobSet;
use minder_record::manifest::Manifest;
use minder_record::merge::{AgentEvent, Rounds};
use minder_record::reader::{last_started, tail_from};
use minder_record::store::{attempt_name, attempts, is_alive};
use minder_ui::rows::Format;

/// The interval between two reads of the journals.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// The interval between two looks at the processes. A job that ran for less is shown when it has ended.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Prints the jobs of a run as they finish, until no process works on the run.
pub(super) fn run(
    out: &mut dyn Write,
    dir: &Path,
    format: Option<Format>,
    filter: &Filter<'_>,
) -> Result<()> {
    let manifest = Manifest::read(dir).ok();
    let request = manifest.as_ref().map(|manifest| Request::of(manifest, dir));
    let mut printer = Printer::new(out, &run_id(dir), format, (filter.failed, false))?;
    let poller = Poller::new()?;
    let mut events = Events::new();
    let mut offsets = BTreeMap::new();
    let mut rounds = Rounds::default();
    let mut running = RunningJobs::default();
    loop {
        // Checked before reading: everything written before the lock was released is then read.
        let has_agents = dir.join(AGENTS).is_dir();
        let alive = is_alive(dir) || has_agents && is_detached(dir);
        let mut print_error = None;
        let result = read_new_events(dir, &mut offsets, &mut |attempt, job| {
            running.note_end(attempt, job.job);
            if print_error.is_none() && filter.accepts(&job, request.as_ref()) {
                print_error = printer.print(&job, None).err();
            }
        });
        read_agents(dir, &mut rounds, &mut |event| {
            if print_error.is_none() && filter.accepts(&event.ended, request.as_ref()) {
                print_error = printer.print(&event.ended, Some((event.agent, event.node))).err();
            }
        })?;
        if let Some(error) = print_error {
            return Err(error.into());
        }
        result?;
        if !alive {
            return Ok(printer.finish()?);
        }
        // Those of agents are children of other processes.
        if format.is_none() && !filter.failed && !has_agents {
            for job in running.new_ones(dir, manifest.as_ref()) {
                if filter.accepts_running(&job) {
                    printer.print_running(&job)?;
                }
            }
        }
        printer.flush()?;
        // No source is registered: this is a sleep that Ctrl-C interrupts.
        poller.wait(&mut events, Some(POLL_INTERVAL))?;
    }
}

/// The running jobs that were shown.
#[derive(Debug, Default)]
struct RunningJobs {
    /// The attempt, and its jobs that have ended.
    ended: (u32, JobSet),
    /// The jobs that were shown, with their processes: each try is shown.
    shown: BTreeSet<(Option<u64>, u32)>,
    looked_at: Option<Instant>,
    /// `true` once a message said that they cannot be seen.
    is_unseen: bool,
}

impl RunningJobs {
    fn note_end(&mut self, attempt: u32, job: u64) {
        if self.ended.0 != attempt {
            self.ended = (attempt, JobSet::default());
        }
        self.ended.1.insert(job);
    }

    /// Returns the jobs that have run for a while and were not shown. Looks at the processes once in a while.
    fn new_ones(&mut self, dir: &Path, manifest: Option<&Manifest>) -> Vec<RunningJob> {
        let now = Instant::now();
        if self.is_unseen || self.looked_at.is_some_and(|at| now.duration_since(at) < LOOK_INTERVAL) {
            return Vec::new();
        }
        self.looked_at = Some(now);
        let Some(started) = last_started(dir) else { return Vec::new() };
        let mut jobs = match running_jobs(dir, manifest, &started) {
            Ok(jobs) => jobs,
            // The run may just have ended.
            Err(_) if !is_alive(dir) => return Vec::new(),
            Err(why) => {
                self.is_unseen = true;
                why.print_below_list();
                return Vec::new();
            }
        };
        if self.ended.0 == started.attempt {
            remove_ended(&mut jobs, |job| job.job.is_some_and(|job| self.ended.1.contains(job)));
        }
        jobs.retain(|job| job.age >= LOOK_INTERVAL);
        let there: BTreeSet<_> = jobs.iter().map(|job| (job.job, job.pid)).collect();
        jobs.retain(|job| !self.shown.contains(&(job.job, job.pid)));
        self.shown = there;
        jobs
    }
}

/// Reads the events that were appended to the journals of a run since the last call.
fn read_new_events(
    dir: &Path,
    offsets: &mut BTreeMap<u32, u64>,
    print: &mut dyn FnMut(u32, JobFinished),
) -> Result<()> {
    let context = || format!("cannot read the record of run {}", run_id(dir));
    for number in attempts(dir).with_context(context)? {
        let path = dir.join(attempt_name(number));
        let offset = offsets.entry(number).or_insert(0);
        let read = tail_from(&path, *offset, |event| {
            if let JournalEvent::JobFinished(job) = event {
                print(number, job);
            }
        });
        let (next, damage) = read.with_context(context)?;
        // Line numbers are known only when reading from the start.
        if let Some(why) = damage_text(number, &damage, None, true) {
            match *offset {
                0 => message(&format!("run {} is damaged: {why}", run_id(dir))),
                _ => message(&format!("run {} is damaged: {}", run_id(dir), attempt_name(number))),
            }
        }
        *offset = next;
    }
    Ok(())
}

/// Reads the results that were appended to the journals of agents since the last call.
fn read_agents(dir: &Path, rounds: &mut Rounds, print: &mut dyn FnMut(AgentEvent<'_>)) -> Result<()> {
    rounds.add_agents(dir).with_context(|| format!("cannot read the record of run {}", run_id(dir)))?;
    rounds.read_more(&|_| 0);
    for (_, round) in rounds.rounds_mut() {
        round.visit(|event| {
            if event.counts && !event.is_tried {
                print(event);
            }
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use minder_record::codec::encode;

    #[test]
    fn read_new_events_reports_each_complete_event_once() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let mut file = std::fs::File::create(dir.path().join(attempt_name(1))).expect("create journal");
        let line = |job| {
            let mut line = Vec::new();
            encode(&JournalEvent::JobFinished(JobFinished { job, ..JobFinished::default() }), &mut line);
            line
        };
        let mut offsets = BTreeMap::new();
        let new_jobs = |offsets: &mut BTreeMap<u32, u64>| {
            let mut jobs = Vec::new();
            read_new_events(dir.path(), offsets, &mut |_, job| jobs.push(job.job)).expect("read journal");
            jobs
        };
        assert_eq!(new_jobs(&mut offsets), [0; 0]);
        let one = line(1);
        let two = line(2);
        file.write_all(&[&one[..], &two[..10]].concat()).expect("append to journal");
        assert_eq!(new_jobs(&mut offsets), [1]);
        file.write_all(&two[10..]).expect("append to journal");
        std::fs::write(dir.path().join(attempt_name(2)), line(3)).expect("write journal");
        assert_eq!(new_jobs(&mut offsets), [2, 3]);
        assert_eq!(new_jobs(&mut offsets), [0; 0]);
    }
}
