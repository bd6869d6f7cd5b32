//! Runs that go on: how they are listed, and followed to their end.

use std::fs;

use super::{State, path};
use crate::cli::{Live, scripted, text};

/// A run of jobs that each wait for a file.
struct Waiting {
    state: State,
    run: Live,
}

impl Waiting {
    fn new(jobs: usize) -> Self {
        let state = State::new();
        let mut command = state.command("run -j1 KID await :::");
        command.args((1..=jobs).map(|job| state.file(&format!("go{job}"))));
        let mut run = Live::start(&command);
        run.until_true("the first line", || state.has_begun());
        Self { state, run }
    }

    fn go(&self, job: usize) {
        fs::write(self.state.file(&format!("go{job}")), "").expect("room");
    }

    fn follow(&self, flags: &str) -> Live {
        Live::start(&self.state.command(&format!("log --follow {flags}")))
    }
}

/// Waits until so many jobs were shown.
fn shown(follower: &mut Live, jobs: usize) {
    let is_row = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    follower.until("row", |record| text(&record.outs[0]).lines().filter(|line| is_row(line)).count() >= jobs);
}

#[test]
fn running_run_is_listed_as_running() {
    let mut waiting = Waiting::new(2);
    waiting.go(1);
    // What it writes is seen before its end.
    let state = &waiting.state;
    let listed = || state.log("").code(0).says("").text();
    let ended = || listed().lines().nth(1).is_some_and(|row| row.contains(" 1 "));
    waiting.run.until_true("the first job's end", ended);
    let listed = listed();
    assert!(listed.lines().nth(1).is_some_and(|row| row.ends_with("(running)")), "{listed}");
    assert!(
        waiting.state.log("--json").code(0).text().contains("\"state\":\"running\",\"note\":\"running\"")
    );
    assert_eq!(waiting.state.log("last").code(0).says("").text().lines().count(), 2);
    waiting.go(2);
    waiting.run.finish().code(0);
    assert!(!waiting.state.log("").code(0).text().contains("running"));
}

#[test]
fn follow_shows_jobs_until_the_run_exits() {
    let waiting = Waiting::new(3);
    let mut follower = waiting.follow("");
    follower.until("head", |record| text(&record.outs[0]).contains("arguments"));
    waiting.go(1);
    shown(&mut follower, 1);
    waiting.go(2);
    shown(&mut follower, 2);
    assert!(follower.record().done.is_none(), "it does not wait for the run");
    waiting.go(3);
    let out = follower.finish().code(0).says("").text();
    waiting.run.finish().code(0);
    let rows: Vec<Vec<&str>> = super::table(&out);
    assert_eq!(rows[1..].iter().map(|row| row[0]).collect::<Vec<_>>(), ["1", "2", "3"], "{out}");
    // Of a run that is over: all of it at once.
    assert_eq!(waiting.state.log("--follow").code(0).says("").text().lines().count(), 4);
    let json = waiting.state.log("last --follow --json").code(0).text();
    assert_eq!(json, waiting.state.log("last --json").code(0).text());
}

#[test]
fn follow_ends_when_the_run_is_killed() {
    let waiting = Waiting::new(3);
    let mut follower = waiting.follow("");
    waiting.go(1);
    shown(&mut follower, 1);
    waiting.run.kill();
    let out = follower.finish().code(0).text();
    assert_eq!(out.lines().count(), 2, "{out}");
    waiting.run.finish().killed();
    let listed = waiting.state.log("").code(0).says("").text();
    assert!(listed.contains("(killed, 2 not run: minder run --resume "), "{listed}");
}

#[cfg(unix)] // A signal.
#[test]
fn ctrl_c_ends_only_the_follower() {
    let waiting = Waiting::new(2);
    let mut follower = waiting.follow("--csv");
    waiting.go(1);
    follower.until("row", |record| text(&record.outs[0]).contains(",1,"));
    follower.signal(rustix::process::Signal::INT);
    let ended = follower.finish().by(rustix::process::Signal::INT).says("");
    assert_eq!(ended.text().lines().count(), 2, "{}", ended.text());
    waiting.go(2);
    waiting.run.finish().code(0);
}

#[test]
fn follow_shows_last_lines_of_failed_jobs() {
    let state = State::new();
    let go = state.file("go");
    let line = format!("[ {{}} = a ] || KID await {} x >&2; echo why {{}} >&2; exit 3", path(&go));
    let mut command = state.command("run -j1");
    let mut run = Live::start(scripted(&mut command, &line).args([":::", "a", "b"]));
    run.until_true("the first line", || state.has_begun());
    let mut follower = Live::start(&state.command("log --follow --failed"));
    follower.until("reason", |record| text(&record.outs[0]).contains("    why a\n"));
    assert!(follower.record().done.is_none(), "the run goes on");
    fs::write(&go, "").expect("room");
    let out = follower.finish().code(0).says("").text();
    assert!(out.ends_with("    why b\n") && out.lines().count() == 6, "{out}");
    run.finish().code(2);
}
