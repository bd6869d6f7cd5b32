//! Runs of 10,000 jobs on agents of this machine, whose agents or coordinators are killed or stopped.

use std::fs;

use super::super::checked_jobs::{
    CheckedRun, arguments, end, family, kill_coordinators, script, signal_all, wait_for_starts,
    waits_for_coordinators,
};
use super::*;
use crate::support::nap;

/// The jobs that each agent runs at once.
pub(super) const SLOTS: u64 = 2;
/// What is lost has at most these jobs without a result: those that run, and as many that have just ended.
pub(super) const LOST_MAX: u64 = 2 * SLOTS;

/// Starts a run of 10,000 jobs on three agents.
pub(super) fn start(on: &OnAgents, flags: &str, does: &str) -> Run {
    let jobs = arguments();
    let mut command = on.command(&format!("run --on local:3 -j{SLOTS} --quiet {flags}"));
    Run::start(command.arg(script(on.dir.path(), does)).arg(":::").args(jobs))
}

/// Checks a run that has ended: see [`CheckedRun::check`].
pub(super) fn check(on: &OnAgents, shown: &str, shown_max: u64, again_max: u64) {
    let run = on.run_dir();
    let id = run.file_name().expect("a name").to_str().expect("decode name");
    let log = Run::start(&on.command(&format!("log {id} --json"))).wait().exit_code(0);
    CheckedRun { dir: on.dir.path(), run: &run, shown, shown_max, again_max }.check(&log.text());
}

#[test]
#[ignore = "10,000 jobs, and waits until an agent is lost: cargo xtask cluster"]
fn ten_thousand_jobs_survive_a_killed_and_a_stopped_agent() {
    let on = OnAgents::new();
    let run = start(&on, "--lost-after 4", "");
    wait_for_starts(on.dir.path(), 1000);
    let agents: Vec<u32> =
        on.working().into_iter().map(|pid| pid.as_raw_nonzero().get().cast_unsigned()).collect();
    signal_all(&agents[..1], Signal::KILL);
    wait_for_starts(on.dir.path(), 2000);
    // Its guardians, too: nothing kills it before it continues.
    let stopped = family(agents[1]);
    signal_all(&stopped, Signal::STOP);
    nap(Duration::from_secs(6));
    signal_all(&stopped, Signal::CONT);
    let ended = end(run).exit_code(0);
    check(&on, &ended.text(), 0, 2 * LOST_MAX);
}

#[test]
#[ignore = "10,000 jobs: cargo xtask cluster"]
fn ten_thousand_jobs_survive_two_killed_coordinators_and_two_at_once() {
    let on = OnAgents::new();
    let run = start(&on, "", &waits_for_coordinators(on.dir.path()));
    let shown = kill_coordinators(run, on.dir.path(), &|line| on.command(line));
    // A coordinator shows output before it records that: see `commit.rs`. It counts the slots of all agents.
    check(&on, &shown, 2 * 3 * SLOTS, 0);
}

#[test]
#[ignore = "10,000 jobs: cargo xtask cluster"]
fn ten_thousand_jobs_need_one_claim_for_each_range() {
    let on = OnAgents::new();
    let ended = end(start(&on, "", "")).exit_code(0);
    check(&on, &ended.text(), 0, 0);
    let mut ranges = Vec::new();
    for entry in fs::read_dir(on.run_dir().join("rounds/1/claims")).expect("read claims") {
        let path = entry.expect("read entry").path();
        assert_eq!(path.extension().and_then(|epoch| epoch.to_str()), Some("1"), "no range is taken over");
        let text = file(&path);
        let bounds: Vec<u64> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        ranges.push((bounds[bounds.len() - 2], bounds[bounds.len() - 1]));
    }
    ranges.sort_unstable();
    assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0), "{ranges:?}");
    assert_eq!((ranges[0].0, ranges[ranges.len() - 1].1), (1, 10_000));
}
