//! Processes that jobs leave behind live on after a run that ended by itself, and are named. They
//! die with a run that was killed.
#![cfg(any(target_os = "linux", windows))]

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::process::Signal;

use super::{Run, minder, pids, run_to_end};
use crate::support::{end, lives};

/// Shows the output of a job at once, on Windows, where a test reads the pids from that output.
const SHOWN: &str = if cfg!(windows) { "-u" } else { "" };

/// Returns the report of a survivor. On Windows it counts jobs, since nothing lists the processes
/// that a job left behind.
fn named(daemon: u32) -> String {
    if cfg!(windows) {
        "still running: processes of 1 job".to_owned()
    } else {
        format!("still running: test_child ({daemon})")
    }
}

/// Returns the pid of the daemon of `session-stray`, which leaves the console of its job when it
/// starts.
#[cfg(windows)]
fn stray(live: &mut Run) -> u32 {
    live.wait_until("numbers", |record| record.outs[0].ends_with(b"\n"));
    *pids(&super::text(&live.record().outs[0])).last().expect("find pid of the daemon")
}

/// Returns the pid of the daemon of `session-stray`, once it has left the session of its job.
#[cfg(target_os = "linux")]
fn stray(live: &mut Run) -> u32 {
    let outer = live.pid();
    let find = || -> Option<u32> {
        let job = *super::children(super::runner(outer)?).first()?;
        let stray = *super::children(job).first()?;
        let pid = nix::unistd::Pid::from_raw(stray.cast_signed());
        (nix::unistd::getsid(Some(pid)).ok()? == pid).then_some(stray)
    };
    live.wait_until_true("a daemon", || find().is_some());
    find().expect("find pid of the daemon")
}

/// Returns the pids of the process that runs the jobs, and of its only job.
#[cfg(target_os = "linux")]
fn family(live: &Run) -> [u32; 2] {
    let runner = super::runner(live.pid()).expect("find runner");
    [runner, super::children(runner)[0]]
}

/// Returns the pids of the process that runs the jobs, and of its only job.
#[cfg(windows)]
fn family(live: &Run) -> [u32; 2] {
    [live.pid(), crate::support::children_of(live.pid())[0]]
}

fn gone(live: Option<&mut Run>, pid: u32) -> bool {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut live = live;
    while lives(pid) && Instant::now() < deadline {
        match &mut live {
            Some(live) => live.read_for(Duration::from_millis(5)),
            None => std::thread::yield_now(),
        }
    }
    !lives(pid)
}

#[test]
fn daemon_outlives_a_normal_run_and_is_reported() {
    let ended = run_to_end("run -j1 CHILD session-stray 10 ::: 1").exit_code(0);
    let [_, daemon] = pids(&ended.text())[..] else { panic!("{ended:?}") };
    assert!(lives(daemon), "the daemon died with the run");
    end(daemon);
    ended.stderr_contains("left its output open: ").stderr_contains(&named(daemon));
}

#[test]
fn process_left_in_the_group_is_reported() {
    let ended = run_to_end("run -j1 CHILD leave-group 60000 ::: 1").exit_code(0);
    let [daemon] = pids(&ended.text())[..] else { panic!("{ended:?}") };
    assert!(lives(daemon), "it died with the run");
    end(daemon);
    assert!(!ended.err.contains("left its output open"), "{}", ended.err);
    ended.stderr_contains(&named(daemon));
}

#[cfg(target_os = "linux")] // Signals; `console` has Ctrl-C.
#[test]
fn daemon_dies_with_an_interrupted_run() {
    for signal in [Signal::INT, Signal::TERM] {
        let mut live = Run::start(&minder("run -j1 CHILD session-stray 600000 ::: 1"));
        let daemon = stray(&mut live);
        live.signal(signal);
        let ended = live.wait().killed_by(signal);
        assert!(!lives(daemon), "the daemon lives on after {signal:?}");
        assert!(!ended.err.contains("live on"), "they do not: {}", ended.err);
    }
}

#[test]
fn every_process_dies_with_a_killed_run() {
    let victims = if cfg!(windows) { &["outer"][..] } else { &["outer", "runner"] };
    for victim in victims.iter().copied() {
        let mut live = Run::start(&minder(&format!("run {SHOWN} -j1 CHILD session-stray 600000 ::: 1")));
        let daemon = stray(&mut live);
        let (outer, [runner, job]) = (live.pid(), family(&live));
        end(if victim == "outer" { outer } else { runner });
        for pid in [daemon, job, runner, outer] {
            assert!(gone(Some(&mut live), pid), "{victim}: process {pid} lives on");
        }
        live.wait().killed();
    }
}
