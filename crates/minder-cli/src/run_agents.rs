//! The agents of a run, and its coordinator, as the record shows them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use minder_cluster::agents::{AgentState, RoundAgents};
use minder_cluster::beat::{BEAT, LOST_AFTER};
use minder_cluster::holder::{self, Who};
use minder_cluster::round;
use minder_cluster::spool::SpoolReader;
use minder_record::agents::AgentKey;
use minder_record::merge::Rounds;
use serde_json::json;

/// The agents of the newest round of a run.
#[derive(Debug)]
pub(crate) struct RunAgents {
    /// The coordinator. `None` if none works on the run.
    pub(crate) coordinator: Option<Who>,
    pub(crate) agents: Vec<RunAgent>,
    /// The number of jobs, once the input was read to its end.
    pub(crate) total: Option<u64>,
}

/// One agent.
#[derive(Debug)]
pub(crate) struct RunAgent {
    pub(crate) node: Option<String>,
    pid: Option<u32>,
    pub(crate) jobs: u64,
    pub(crate) failed: u64,
    pub(crate) running: u64,
    /// The time since its last beat, by the clocks of this machine and of the file server.
    pub(crate) beat_age: Option<Duration>,
    pub(crate) is_over: bool,
}

impl RunAgents {
    /// Reads the agents of a run. `None` if it has none. `is_locked`: a process of this machine works on the
    /// run.
    ///
    /// # Errors
    /// A file or directory cannot be read.
    pub(crate) fn of(run: &Path, is_locked: bool) -> Result<Option<Self>> {
        let Some(attempt) = round::newest(run)? else { return Ok(None) };
        let mut observed = RoundAgents::new(run, attempt, LOST_AFTER);
        observed.look(Instant::now())?;
        let mut counts: BTreeMap<AgentKey, (u64, u64)> = BTreeMap::new();
        let mut slots: BTreeMap<AgentKey, u64> = BTreeMap::new();
        if let Some(mut round) = Rounds::read(run)?.take(attempt) {
            round.visit(|event| {
                if event.counts && !event.is_tried {
                    let (jobs, failed) = counts.entry(event.agent).or_default();
                    *jobs += 1;
                    *failed += u64::from(!event.ended.succeeded());
                }
            });
            let hosts =
                round.agents().iter().filter_map(|agent| Some((agent.key, agent.host.as_ref()?.slots)));
            slots.extend(hosts);
        }
        let agents = observed.iter().map(|(key, agent)| {
            let (jobs, failed) = counts.get(&key).copied().unwrap_or_default();
            let is_over = agent.state == AgentState::Over;
            let open = if is_over { 0 } else { agent.beat.map_or(0, |beat| beat.open) };
            RunAgent {
                node: agent.started.as_ref().and_then(|started| started.node.clone()),
                pid: agent.started.as_ref().map(|started| started.pid),
                jobs,
                failed,
                // It has claimed these, and runs as many at once as it has slots.
                running: open.min(slots.get(&key).copied().unwrap_or(open)),
                beat_age: beat_age(&key.dir(run)),
                is_over,
            }
        });
        let agents = agents.collect();
        let spooled = SpoolReader::open(run).and_then(|spool| spool.count()).unwrap_or_default();
        let coordinator = coordinator(run, is_locked)?;
        Ok(Some(Self { coordinator, agents, total: spooled.has_ended.then_some(spooled.jobs) }))
    }

    /// Returns whether any agent seems to work: one look cannot be sure.
    pub(crate) fn seem_to_work(&self) -> bool {
        self.agents.iter().any(RunAgent::seems_to_work)
    }

    /// Returns the number of running jobs.
    pub(crate) fn running(&self) -> u64 {
        self.agents.iter().filter(|agent| agent.seems_to_work()).map(|agent| agent.running).sum()
    }

    /// Returns the same as data.
    pub(crate) fn documents(&self) -> Vec<serde_json::Value> {
        let document = |agent: &RunAgent| {
            json!({
                "node": agent.node,
                "pid": agent.pid,
                "jobs": agent.jobs,
                "failed": agent.failed,
                "running": agent.running,
                "beat": agent.beat_age.map(|age| age.as_secs_f64()),
                "over": agent.is_over,
            })
        };
        self.agents.iter().map(document).collect()
    }
}

impl RunAgent {
    pub(crate) fn seems_to_work(&self) -> bool {
        !self.is_over && self.beat_age.is_some_and(|age| age < LOST_AFTER)
    }
}

/// Returns whether agents seem to work on a run that no process of this machine coordinates.
pub(crate) fn is_detached(run: &Path) -> bool {
    RunAgents::of(run, false).is_ok_and(|agents| agents.is_some_and(|agents| agents.seem_to_work()))
}

/// Returns the coordinator that works on a run.
fn coordinator(run: &Path, is_locked: bool) -> Result<Option<Who>> {
    let Some((number, false)) = holder::newest(run)? else { return Ok(None) };
    let Some(who) = holder::who(run, number)? else { return Ok(None) };
    let is_here = who.is_same_boot(&Who::this_process(""));
    let age = || beat_age(&holder::dir(run, number));
    let works = if is_here { is_locked } else { age().is_some_and(|age| age < LOST_AFTER) };
    Ok(if works { Some(who) } else { None })
}

/// Returns the time since a beat was written.
fn beat_age(dir: &Path) -> Option<Duration> {
    let written = std::fs::symlink_metadata(dir.join(BEAT)).and_then(|file| file.modified()).ok()?;
    // One from the future is new.
    Some(SystemTime::now().duration_since(written).unwrap_or_default())
}
