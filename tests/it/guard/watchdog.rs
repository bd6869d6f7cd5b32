//! Deadlines of a runner, which the inner guardian watches.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::harness::{MIX, MIX_ALIVE, Run, kill, send, start};
use crate::support::nap;

/// Longer than the inner guardian sleeps.
const WHILE: Duration = Duration::from_millis(2500);

fn start_with(setting: &str) -> Run {
    start(&[&[setting], &MIX[..]].concat())
}

/// Returns how often a process has waited.
fn waits(pid: Pid) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("read status");
    let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    line.and_then(|line| line.trim().parse().ok()).expect("read number of waits")
}

#[test]
fn tree_of_a_stopped_runner_is_killed_after_its_deadline() {
    for stopped in [false, true] {
        let mut run = start_with("deadline=2000");
        let pids = run.ready();
        run.expect_line("deadline", 1);
        let begun = Instant::now();
        run.expect_alive(MIX_ALIVE);
        if stopped {
            // Only the inner guardian is needed.
            send(pids.runner, Signal::STOP);
        }
        run.expect_gone(begun, &format!("a deadline of two seconds, stopped: {stopped}"));
        assert!(begun.elapsed() > Duration::from_secs(1), "it was killed before its deadline");
        assert_eq!(run.shell_status(), 137);
    }
}

#[test]
fn runner_whose_deadline_is_moved_lives() {
    let mut run = start_with("deadline=moved-2000");
    let pids = run.ready();
    run.expect_line("no deadline", 1);
    nap(WHILE);
    assert!(run.alive().contains(&pids.runner), "it was killed");
    kill(pids.outer);
    run.status();
}

#[test]
fn runner_without_a_deadline_lives_while_it_is_stopped() {
    let mut run = start_with("deadline=none");
    let pids = run.ready();
    send(pids.runner, Signal::STOP);
    let before = waits(pids.inner);
    nap(WHILE);
    assert!(waits(pids.inner) > before, "it looks at the deadline");
    assert!(run.alive().contains(&pids.runner), "it was killed");
    kill(pids.outer);
    run.status();
}

#[test]
fn guardian_that_watches_no_deadline_sleeps() {
    let mut run = start(&["plain"]);
    let pids = run.ready();
    run.expect_alive(4);
    // It starts up beside the runner.
    nap(Duration::from_millis(500));
    let before = waits(pids.inner);
    nap(WHILE);
    assert_eq!(waits(pids.inner), before, "it has woken up");
    kill(pids.outer);
    run.status();
}
