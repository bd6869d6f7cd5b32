//! Kills at random moments: while the host starts its guardian, and while it starts and reaps children.

use std::time::{Duration, Instant};

use rustix::process::Pid;

use super::host::{ready, start};
use crate::guard::harness::{kill, note, race_seconds};
use crate::support::nap;

/// Kills that many hosts at a random moment, from the first to a while after they were ready.
fn race(words: &[&str], count: u32) {
    let ready_after = {
        let began = Instant::now();
        let run = start(words);
        let (_, host) = ready(&run);
        kill(host);
        began.elapsed()
    };
    let latest = (ready_after * 3 / 2).min(Duration::from_millis(60));
    let until = Instant::now() + Duration::from_secs(race_seconds());
    let mut random = u64::from(std::process::id()) << 20 | 1;
    let mut started = 0_u32;
    let mut worst = Duration::ZERO;
    while started < count || Instant::now() < until {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let mut run = start(words);
        nap(latest.mul_f64((random % 1024) as f64 / 1024.0));
        let pid = i32::try_from(run.child.id()).ok().and_then(Pid::from_raw).expect("valid pid");
        let killed = Instant::now();
        kill(pid);
        worst = worst.max(run.expect_gone(killed, &format!("start {started}")));
        assert_eq!(run.shell_status(), 137, "{:?}", run.lines());
        started += 1;
    }
    note(&format!("{started} starts {words:?}, ready after {ready_after:?}, worst {worst:?}"));
}

#[test]
fn kill_during_startup_leaves_no_child() {
    race(&["copies=20", "plain", "ignore"], 100);
}

#[test]
fn kill_while_children_start_and_end_leaves_no_child() {
    race(&["churn=1", "plain"], 50);
}

#[test]
fn kill_while_processes_are_forked_and_guarded_leaves_none() {
    race(&["forked=guarded", "copies=20", "plain", "ignore"], 50);
}

#[test]
fn kill_between_clone_and_exec_leaves_no_child() {
    // Each child waits before it joins its group.
    race(&["late=2000", "copies=10", "ignore"], 50);
}
