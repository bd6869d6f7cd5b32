//! What jobs leave behind: it lives on after a run that ended by itself, is named, and dies with one that was killed.
#![cfg(target_os = "linux")]

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use super::{Live, ended, minder, pids};
use crate::kit::lives;

fn kill(pid: u32) {
    let pid = Pid::from_raw(pid.cast_signed()).expect("a pid");
    let _ = kill_process(pid, Signal::KILL);
}

/// The daemon of a run of `session-stray`, once it has left its job's session.
fn stray(live: &mut Live) -> u32 {
    let outer = live.pid();
    let find = || -> Option<u32> {
        let job = *super::children(super::runner(outer)?).first()?;
        let stray = *super::children(job).first()?;
        let pid = nix::unistd::Pid::from_raw(stray.cast_signed());
        (nix::unistd::getsid(Some(pid)).ok()? == pid).then_some(stray)
    };
    live.until_true("a daemon", || find().is_some());
    find().expect("a daemon")
}

fn gone(live: Option<&mut Live>, pid: u32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut live = live;
    while lives(pid) && Instant::now() < deadline {
        match &mut live {
            Some(live) => live.listen(Duration::from_millis(5)),
            None => std::thread::yield_now(),
        }
    }
    !lives(pid)
}

#[test]
fn a_daemon_outlives_a_run_that_ends_by_itself_and_is_named() {
    let ended = ended("run -j1 KID session-stray 10 ::: 1").code(0);
    let [_, daemon] = pids(&ended.text())[..] else { panic!("{ended:?}") };
    let alive = lives(daemon);
    kill(daemon);
    assert!(alive, "the daemon died with the run");
    ended.mentions("left its output open: ").mentions(&format!("left running: testkid ({daemon})"));
}

#[test]
fn what_stays_in_the_group_is_named_as_well() {
    let ended = ended("run -j1 KID leave-group 60000 ::: 1").code(0);
    let [daemon] = pids(&ended.text())[..] else { panic!("{ended:?}") };
    let alive = lives(daemon);
    kill(daemon);
    assert!(alive, "it died with the run");
    assert!(!ended.err.contains("left its output open"), "{}", ended.err);
    ended.mentions(&format!("left running: testkid ({daemon})"));
}

#[test]
fn a_daemon_dies_with_a_run_that_is_interrupted() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut live = Live::start(&minder("run -j1 KID session-stray 600000 ::: 1"));
        let daemon = stray(&mut live);
        live.signal(signal);
        let ended = live.finish().by(signal);
        assert!(!lives(daemon), "the daemon lives on after {signal:?}");
        assert!(!ended.err.contains("live on"), "they do not: {}", ended.err);
    }
}

#[test]
fn everything_dies_with_a_run_that_is_killed() {
    for victim in ["outer", "runner"] {
        let mut live = Live::start(&minder("run -j1 KID session-stray 600000 ::: 1"));
        let daemon = stray(&mut live);
        let (outer, runner) = (live.pid(), super::runner(live.pid()).expect("a runner"));
        let job = super::children(runner)[0];
        kill(if victim == "outer" { outer } else { runner });
        for pid in [daemon, job, runner, outer] {
            assert!(gone(Some(&mut live), pid), "{victim}: process {pid} lives on");
        }
        live.finish().by(Signal::KILL);
    }
}
