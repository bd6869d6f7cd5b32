//! Runs that are still running: how they are listed, and followed to their end.

use std::fs;

use super::{State, path};
use crate::cli::{Run, text, with_script};

/// A run of jobs that each wait for a file.
struct Waiting {
    state: State,
    run: Run,
}

impl Waiting {
    fn new(jobs: usize) -> Self {
        let state = State::new();
        let mut command = state.command("run -j1 CHILD await :::");
        command.args((1..=jobs).map(|job| state.file(&format!("go{job}"))));
        let mut run = Run::start(&command);
        run.wait_until_true("the first line", || state.has_begun());
        Self { state, run }
    }

    fn go(&self, job: usize) {
        fs::write(self.state.file(&format!("go{job}")), "").expect("write file");
    }

    fn follow(&self, flags: &str) -> Run {
        Run::start(&self.state.command(&format!("log --follow {flags}")))
    }
}

/// Waits until that many jobs were shown.
fn shown(follower: &mut Run, jobs: usize) {
    let is_row = |line: &str| line.trim_start().starts_with(|c: char| c.is_ascii_digit());
    follower.wait_until("row", |record| {
        text(&record.outs[0]).lines().filter(|line| is_row(line)).count() >= jobs
    });
}

#[test]
fn running_run_is_listed_as_running() {
    let mut waiting = Waiting::new(2);
    waiting.go(1);
    // Its events are visible before its exit.
    let state = &waiting.state;
    let listed = || state.log("").exit_code(0).stderr("").text();
    let ended = || listed().lines().nth(1).is_some_and(|row| row.contains(" 1 "));
    waiting.run.wait_until_true("the first job's end", ended);
    let listed = listed();
    assert!(listed.lines().nth(1).is_some_and(|row| row.ends_with("(running)")), "{listed}");
    assert!(
        waiting
            .state
            .log("--json")
            .exit_code(0)
            .text()
            .contains("\"state\":\"running\",\"note\":\"running\"")
    );
    assert_eq!(waiting.state.log("last").exit_code(0).stderr("").text().lines().count(), 2);
    waiting.go(2);
    waiting.run.wait().exit_code(0);
    assert!(!waiting.state.log("").exit_code(0).text().contains("running"));
}

#[test]
fn follow_shows_jobs_until_the_run_exits() {
    let waiting = Waiting::new(3);
    let mut follower = waiting.follow("");
    follower.wait_until("head", |record| text(&record.outs[0]).contains("arguments"));
    waiting.go(1);
    shown(&mut follower, 1);
    waiting.go(2);
    shown(&mut follower, 2);
    assert!(follower.record().done.is_none(), "it does not wait for the run");
    waiting.go(3);
    let out = follower.wait().exit_code(0).stderr("").text();
    waiting.run.wait().exit_code(0);
    let rows: Vec<Vec<&str>> = super::table(&out);
    assert_eq!(rows[1..].iter().map(|row| row[0]).collect::<Vec<_>>(), ["1", "2", "3"], "{out}");
    // Of a run that has ended: all of it at once.
    assert_eq!(waiting.state.log("--follow").exit_code(0).stderr("").text().lines().count(), 4);
    let json = waiting.state.log("last --follow --json").exit_code(0).text();
    assert_eq!(json, waiting.state.log("last --json").exit_code(0).text());
}

#[test]
fn follow_ends_when_the_run_is_killed() {
    let waiting = Waiting::new(3);
    let mut follower = waiting.follow("");
    waiting.go(1);
    shown(&mut follower, 1);
    waiting.run.kill();
    let out = follower.wait().exit_code(0).text();
    assert_eq!(out.lines().count(), 2, "{out}");
    waiting.run.wait().killed();
    let listed = waiting.state.log("").exit_code(0).stderr("").text();
    assert!(listed.contains("(killed, 2 not run: minder resume "), "{listed}");
}

#[cfg(unix)] // A signal.
#[test]
fn ctrl_c_ends_only_the_follower() {
    let waiting = Waiting::new(2);
    let mut follower = waiting.follow("--csv");
    waiting.go(1);
    follower.wait_until("row", |record| text(&record.outs[0]).contains(",1,"));
    follower.signal(rustix::process::Signal::INT);
    let ended = follower.wait().killed_by(rustix::process::Signal::INT).stderr("");
    assert_eq!(ended.text().lines().count(), 2, "{}", ended.text());
    waiting.go(2);
    waiting.run.wait().exit_code(0);
}

#[test]
fn follow_shows_last_lines_of_failed_jobs() {
    let state = State::new();
    let go = state.file("go");
    let line = format!("[ {{}} = a ] || CHILD await {} x >&2; echo why {{}} >&2; exit 3", path(&go));
    let mut command = state.command("run -j1");
    let mut run = Run::start(with_script(&mut command, &line).args([":::", "a", "b"]));
    run.wait_until_true("the first line", || state.has_begun());
    let mut follower = Run::start(&state.command("log --follow --failed"));
    follower.wait_until("reason", |record| text(&record.outs[0]).contains("    why a\n"));
    assert!(follower.record().done.is_none(), "`--follow` ended before the run");
    fs::write(&go, "").expect("write file");
    let out = follower.wait().exit_code(0).stderr("").text();
    assert!(out.ends_with("    why b\n") && out.lines().count() == 6, "{out}");
    run.wait().exit_code(2);
}
