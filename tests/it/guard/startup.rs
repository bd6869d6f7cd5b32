//! The first milliseconds: killed while the guardians get ready.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use super::harness::{Run, group_of, kill, note, race_seconds, send_group, start};
use crate::support::nap;

/// Kills that many starts at a random moment, from the first to a while after the runner was ready.
fn race(words: &[&str], count: u32) {
    let ready_after = {
        let began = Instant::now();
        let run = start(words);
        run.ready();
        began.elapsed()
    };
    let latest = (ready_after * 3 / 2).min(Duration::from_millis(30));
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
        let by_group = started.is_multiple_of(2);
        let killed = Instant::now();
        strike(&run, by_group);
        worst = worst.max(run.expect_gone(killed, &format!("start {started}, group {by_group}")));
        assert_eq!(run.shell_status(), 137);
        started += 1;
    }
    note(&format!("{started} starts {words:?}, ready after {ready_after:?}, worst {worst:?}"));
}

fn strike(run: &Run, by_group: bool) {
    let pid = i32::try_from(run.child.id()).ok().and_then(Pid::from_raw).expect("valid pid");
    // Before it made its session, its group is still ours.
    if by_group && group_of(pid) == Some(pid) {
        send_group(pid, Signal::KILL);
    }
    kill(pid);
}

#[test]
fn kill_during_startup_ends_the_tree() {
    race(&["plain", "setsid", "daemon"], 100);
}

#[test]
fn kill_before_the_inner_guardian_starts_ends_the_tree() {
    race(&["plain", "setsid", "daemon", "late=3000"], 100);
}
