//! `minder cancel`: ends a run whose jobs run on agents.

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use minder_cluster::agents::{AgentState, RoundAgents};
use minder_cluster::round::{self, Round};
use minder_cluster::spool::SpoolReader;
use minder_os::grouped;
use minder_record::agents::{AgentKey, JOURNAL};
use minder_record::manifest::Manifest;
use minder_record::reader::attempt_finished;
use minder_record::run_state::{ComparedArgs, RunState};
use minder_record::store;
use minder_runner::exit_status;
use minder_runner::text::count;

use super::log::{find, run_id};
use crate::flags::{CancelFlags, RunFlags};
use crate::recorded;
use crate::ui::message;

/// The time between two looks at the agents.
const PAUSE: Duration = Duration::from_millis(100);
/// The time that agents have to end beyond that of their jobs.
const END_EXTRA: Duration = Duration::from_secs(10);

/// Ends the newest round of a run, and waits until its agents have ended.
pub(crate) fn run(flags: &CancelFlags) -> Result<ExitCode> {
    let dir = find(&store::state_root()?, &flags.run)?;
    let id = run_id(&dir);
    let attempt = round::newest(&dir)?.with_context(|| format!("no agent has worked on run {id}"))?;
    let (grace, lost_after) = times(&dir);
    let mut agents = RoundAgents::new(&dir, attempt, lost_after);
    agents.look(Instant::now())?;
    let ending: Vec<AgentKey> =
        agents.iter().filter(|(_, agent)| agent.state.may_work()).map(|(key, _)| key).collect();
    Round::open(&dir, attempt)?.cancel()?;
    let until = Instant::now() + grace.max(lost_after) + END_EXTRA;
    while agents.may_work() && Instant::now() < until {
        minder_os::time::pause(PAUSE, Some(until));
        agents.look(Instant::now())?;
    }
    let left = agents.iter().filter(|(_, agent)| agent.state.may_work()).count() as u64;
    let lost =
        agents.iter().filter(|(key, agent)| agent.state == AgentState::Lost && ending.contains(key)).count();
    let ends = ending.iter().filter_map(|key| attempt_finished(&key.dir(&dir).join(JOURNAL)));
    let stopped = ends.map(|end| end.cut).sum();
    let (state, _) = RunState::of_run(&dir, ComparedArgs::None)?;
    let done = state.done.len();
    let mut line = format!("run {id}: ");
    match (left, ending.is_empty()) {
        (0, true) => line += "no agent works on it",
        (0, false) => line += &format!("{} stopped", count(stopped, "running job")),
        (left, _) => line += &format!("{} may still work", count(left, "agent")),
    }
    if lost > 0 {
        line += &format!(", {} lost", count(lost as u64, "agent"));
    }
    let spooled = SpoolReader::open(&dir).and_then(|spool| spool.count()).unwrap_or_default();
    let verb = if done < spooled.jobs { "resume" } else { "attach" };
    line += &format!(", {} of {} done (minder {verb} {id})", grouped(done), grouped(spooled.jobs));
    message(&line);
    Ok(if left == 0 { ExitCode::SUCCESS } else { ExitCode::from(exit_status::OTHER) })
}

/// Returns the time between TERM and KILL of the jobs, and that after which an agent counts as lost.
fn times(dir: &Path) -> (Duration, Duration) {
    let flags = recorded_flags(dir);
    let (grace, lost_after) = flags.map_or((10, 60), |flags| (flags.grace, flags.machines.lost_after));
    (Duration::from_secs(grace), Duration::from_secs(lost_after))
}

/// Returns the flags of a run, if this version can read them.
pub(super) fn recorded_flags(dir: &Path) -> Option<Box<RunFlags>> {
    let manifest = Manifest::read(dir).ok()?;
    recorded::parse(&manifest, &[&recorded::typed_flags(&manifest).ok()?], &[]).ok()
}

#[cfg(test)]
mod tests {
    use minder_os::grouped;

    #[test]
    fn numbers_are_grouped() {
        let texts = [0, 999, 1_000, 12_000, 1_234_567].map(grouped);
        assert_eq!(texts, ["0", "999", "1,000", "12,000", "1,234,567"]);
    }
}
