//! Runs that end before their time: by a key, by a signal, by `kill -9`.

use std::path::Path;
use std::time::Duration;

use minder::Stdio;
use rustix::process::Signal;

use super::{Run, SOON, file, minder, minder_as, path, pipe, temp_dir};
use crate::support::CHILD;

const IGNORE: &str = "trap '' TERM;";

/// Starts a run with two running jobs that sleep, one finished job, and more that wait. Each job
/// sets its SIGTERM trap, then writes a line to the log.
fn sleepers(log: &Path, flags: &str, trap: &str) -> Run {
    let mut command = minder(&format!("run -j2 {flags}"));
    let sleep = format!("exec {CHILD} sleep-ms 600000");
    let line = format!("{trap} echo {{}} >>{}; case {{}} in quick) echo done;; *) {sleep};; esac", path(log));
    command.arg(line).args([":::", "quick"]).args(["slow"; 20]);
    let mut live = Run::start(&command);
    live.wait_until("the finished output", |record| record.outs[0] == b"done\n");
    let log = log.to_owned();
    live.wait_until_true("three starts", || file(&log).lines().count() == 3);
    live
}

#[test]
fn first_signal_ends_the_run_in_order() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let dir = temp_dir();
        let log = dir.path().join("log");
        let live = sleepers(&log, "--grace 100", "");
        live.signal(signal);
        let ended = live.wait().killed_by(signal);
        assert!(ended.wall < SOON, "{:?}", ended.wall);
        assert_eq!(ended.text(), "done\n");
        assert_eq!(file(&log).lines().count(), 3, "something was started afterwards");
        let ended = ended.stderr_contains("asked 2 jobs to stop; ").stderr_contains("killed by TERM");
        ended.stderr_contains("1 of 21 done · 0 failed · 2 cut off · 18 not started");
    }
}

#[test]
fn quiet_run_ends_without_a_message() {
    let dir = temp_dir();
    let live = sleepers(&dir.path().join("log"), "--quiet", "");
    live.signal(Signal::INT);
    live.wait().killed_by(Signal::INT).stderr("");
}

#[test]
fn job_that_ignores_term_is_killed_after_the_grace() {
    let dir = temp_dir();
    let live = sleepers(&dir.path().join("log"), "--grace 1", IGNORE);
    live.signal(Signal::TERM);
    let ended = live.wait().killed_by(Signal::TERM).stderr_contains("killed by KILL");
    assert!(ended.wall >= Duration::from_secs(1) && ended.wall < SOON, "{:?}", ended.wall);
    assert!(ended.text().starts_with("done\n"), "{:?}", ended.text());
}

#[test]
fn second_signal_kills_at_once() {
    let dir = temp_dir();
    let mut live = sleepers(&dir.path().join("log"), "--grace 600", IGNORE);
    live.signal(Signal::INT);
    live.wait_until("an answer", |record| record.outs[1].ends_with(b"Ctrl-C again kills them\n"));
    // The same wish within 200 ms is taken for the same key.
    live.read_for(Duration::from_millis(300));
    assert!(live.record().done.is_none());
    live.signal(Signal::INT);
    let ended = live.wait().killed_by(Signal::INT).stderr_contains("killed by KILL");
    assert!(ended.wall < SOON, "{:?}", ended.wall);
}

/// A run whose reader, though there, does not read: a pager. It hangs in a write, and ends
/// nevertheless.
fn unread(flags: &str, wishes: u32) {
    let (reader, writer) = pipe();
    let mut command = minder(&format!("run -j2 {flags} CHILD spew 700000 ::: 1 2 3 4 5 6 7 8"));
    let mut live = Run::start(command.stdout(writer));
    drop(command);
    // A pipe holds 1 MiB at most.
    live.wait_until_true("output of the first job", || {
        rustix::io::ioctl_fionread(&reader).is_ok_and(|len| len > 0)
    });
    live.read_for(Duration::from_millis(1000));
    for _ in 0..wishes {
        live.signal(Signal::TERM);
        live.read_for(Duration::from_millis(300));
    }
    let ended = live.wait();
    assert!(!ended.status.success() && ended.wall < SOON, "{ended:?}");
    drop(reader);
}

#[test]
fn blocked_output_does_not_keep_a_run_alive() {
    unread("--grace 0", 1);
}

#[test]
fn third_signal_waits_for_nothing() {
    unread("--grace 600", 3);
}

#[test]
fn signal_before_the_first_job_ends_the_run() {
    let mut live = Run::start(minder("run -j2 CHILD echo-args").stdin(Stdio::piped()));
    live.read_for(Duration::from_millis(100));
    live.signal(Signal::INT);
    live.wait().killed_by(Signal::INT);
}

#[cfg(target_os = "linux")]
#[test]
fn signal_ends_the_whole_tree_of_a_job() {
    for (verb, grace) in [("tree 3", 100), ("stubborn-tree", 0)] {
        let mut live = Run::start(&minder(&format!("run -j2 --grace {grace} CHILD {verb} ::: 1 2")));
        // The jobs' own outputs are not shown before their end, so their numbers are found from outside.
        let outer = live.pid();
        let tree = || {
            let mut found = super::runner(outer).map(super::children).unwrap_or_default();
            let mut at = 0;
            while at < found.len() {
                found.extend(super::children(found[at]));
                at += 1;
            }
            found
        };
        live.wait_until_true("two trees of three", || tree().len() == 6);
        let all = tree();
        live.read_for(Duration::from_millis(200));
        live.signal(Signal::INT);
        let ended = live.wait().killed_by(Signal::INT);
        let alive: Vec<&u32> = all.iter().filter(|pid| crate::support::lives(**pid)).collect();
        assert!(alive.is_empty(), "{verb}: {alive:?} of {all:?} live on\n{}", ended.err);
    }
}

#[test]
fn ignored_hangup_stays_ignored() {
    let mut command = minder_as("ignore=1", "run -j1 CHILD echo-args");
    let mut live = Run::start(command.stdin(Stdio::piped()));
    live.write(b"a\n");
    live.wait_until("the first job", |record| !record.outs[0].is_empty());
    live.signal(Signal::HUP);
    live.write(b"b\n");
    live.wait_until("the second job", |record| record.outs[0].ends_with(b"\"b\"\n"));
    live.close();
    live.wait().exit_code(0).stderr("");
    if cfg!(target_os = "linux") {
        let mut line = minder_as("ignore=1", "run -j1");
        line.arg("grep SigIgn /proc/self/status; : {}").args([":::", "1"]);
        assert_eq!(
            Run::start(&line).wait().exit_code(0).text(),
            format!("SigIgn:\t{:016x}\n", super::inherited_ignored_signals() | 1),
            "jobs of nohup ignore it, too"
        );
    }
}

#[test]
fn inherited_blocked_signals_are_received() {
    let mut command = minder_as("block=2,block=15", "run -j1 CHILD sleep-ms ::: 600000");
    for signal in [Signal::INT, Signal::TERM] {
        let mut live = Run::start(command.stdin(Stdio::null()));
        live.read_for(Duration::from_millis(200));
        live.signal(signal);
        let ended = live.wait().killed_by(signal);
        assert!(ended.wall < SOON, "{:?}", ended.wall);
    }
}

#[test]
fn signals_work_without_guardians() {
    let dir = temp_dir();
    let live = sleepers(&dir.path().join("log"), "--no-guard", "");
    live.signal(Signal::TERM);
    let ended = live.wait().killed_by(Signal::TERM).stderr_contains("killed by TERM");
    assert!(ended.wall < SOON && ended.text() == "done\n", "{ended:?}");
}

#[test]
fn signal_ends_a_run_that_waits_for_the_reader_of_a_pipe() {
    let dir = temp_dir();
    for (flag, name) in [("--joblog", "log"), ("--results", "table.csv")] {
        let fifo = dir.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().expect("run mkfifo");
        assert!(made.success());
        for signal in [Signal::INT, Signal::TERM] {
            let mut live = Run::start(&minder(&format!("run {flag} {} CHILD exit ::: 0", path(&fifo))));
            live.read_for(Duration::from_millis(300));
            assert!(live.record().done.is_none(), "{flag}");
            live.signal(signal);
            assert!(live.wait().killed_by(signal).wall < SOON);
        }
        // With a reader it runs.
        let live = Run::start(&minder(&format!("run {flag} {} CHILD exit ::: 0", path(&fifo))));
        assert!(std::fs::read_to_string(&fifo).expect("read pipe").lines().count() >= 2, "{flag}");
        live.wait().exit_code(0);
    }
}
