//! What jobs leave behind: it lives on after a run that ended by itself, is named, and dies with
//! one that was killed.
#![cfg(any(target_os = "linux", windows))]

use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::process::Signal;

use super::{Run, minder, pids, run_to_end};
use crate::support::{end, lives};

/// Shows what a job writes at once, where its numbers are to be had in no other way.
const SHOWN: &str = if cfg!(windows) { "-u" } else { "" };

/// How survivors are reported: on Windows nothing lists what is left of a job.
fn named(daemon: u32) -> String {
    match cfg!(windows) {
        true => "left running by 1 job: they live on".to_owned(),
        false => format!("left running: test_child ({daemon})"),
    }
}

/// The daemon of a run of `session-stray`, which leaves the job's console when it is started.
#[cfg(windows)]
fn stray(live: &mut Run) -> u32 {
    live.wait_until("numbers", |record| record.outs[0].ends_with(b"\n"));
    *pids(&super::text(&live.record().outs[0])).last().expect("a daemon")
}

/// The daemon of a run of `session-stray`, once it has left its job's session.
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
    find().expect("a daemon")
}

/// The process that runs the jobs, and the one job.
fn family(live: &Run) -> [u32; 2] {
    #[cfg(target_os = "linux")]
    let (runner, children) = (super::runner(live.pid()).expect("a runner"), super::children);
    #[cfg(windows)]
    let (runner, children) = (live.pid(), crate::support::children_of);
    [runner, children(runner)[0]]
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
    let ended = run_to_end("run -j1 KID session-stray 10 ::: 1").exit_code(0);
    let [_, daemon] = pids(&ended.text())[..] else { panic!("{ended:?}") };
    assert!(lives(daemon), "the daemon died with the run");
    end(daemon);
    ended.stderr_contains("left its output open: ").stderr_contains(&named(daemon));
}

#[test]
fn process_left_in_the_group_is_reported() {
    let ended = run_to_end("run -j1 KID leave-group 60000 ::: 1").exit_code(0);
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
        let mut live = Run::start(&minder("run -j1 KID session-stray 600000 ::: 1"));
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
        let mut live = Run::start(&minder(&format!("run {SHOWN} -j1 KID session-stray 600000 ::: 1")));
        let daemon = stray(&mut live);
        let (outer, [runner, job]) = (live.pid(), family(&live));
        end(if victim == "outer" { outer } else { runner });
        for pid in [daemon, job, runner, outer] {
            assert!(gone(Some(&mut live), pid), "{victim}: process {pid} lives on");
        }
        live.wait().killed();
    }
}
