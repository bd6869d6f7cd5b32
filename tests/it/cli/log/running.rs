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

/// Returns whether a line is not about a job that runs. Those are shown when they have run for a second.
fn is_result(line: &str) -> bool {
    !line.contains("  running (slot ")
}

/// Waits until that many jobs were shown.
fn shown(follower: &mut Run, jobs: usize) {
    let is_row = |line: &str| is_result(line) && line.trim_start().starts_with(|c: char| c.is_ascii_digit());
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
    assert!(listed.lines().nth(1).is_some_and(|row| row.contains("  running")), "{listed}");
    assert!(
        waiting
            .state
            .log("--json")
            .exit_code(0)
            .text()
            .contains("\"state\":\"running\",\"note\":\"running\"")
    );
    let jobs = waiting.state.log("last").exit_code(0).text();
    assert_eq!(jobs.lines().take_while(|line| !line.is_empty()).count(), 2, "{jobs}");
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
    let results: Vec<&str> = out.lines().filter(|line| is_result(line)).collect();
    let results = results.join("\n");
    let rows: Vec<Vec<&str>> = super::table(&results);
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
    assert_eq!(out.lines().filter(|line| is_result(line)).count(), 2, "{out}");
    waiting.run.wait().killed();
    let listed = waiting.state.log("").exit_code(0).stderr("").text();
    assert!(listed.contains("killed · 2 left · minder resume "), "{listed}");
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

/// Waits until the first job of a run is seen.
#[cfg(target_os = "linux")]
fn first_job_is_seen(waiting: &mut Waiting) {
    let state = &waiting.state;
    let status = || Run::start(&state.command("status")).wait().exit_code(0).text();
    waiting.run.wait_until_true("the first job", || status().contains("await"));
}

#[cfg(target_os = "linux")] // Where running jobs are seen.
#[test]
fn running_jobs_are_shown_with_slot_and_command() {
    let mut waiting = Waiting::new(3);
    first_job_is_seen(&mut waiting);
    let shown = waiting.state.log("last").exit_code(0).text();
    let rows = super::table(&shown);
    assert_eq!(rows[0], ["job", "slot", "running", "for", "command"], "{shown}");
    assert_eq!((rows.len(), &rows[1][..2]), (2, &["1", "1"][..]), "{shown}");
    assert!(shown.ends_with(&format!("await {}\n", path(&waiting.state.file("go1")))), "{shown}");
    // Of the running jobs, those with the text; none has failed.
    assert_eq!(waiting.state.log("last --match go1").exit_code(0).text().lines().count(), 2);
    for line in ["last --match go2", "last --failed", "last --slow 3", "last --json"] {
        assert_eq!(waiting.state.log(line).exit_code(0).text(), "", "{line}");
    }
    let mut follower = waiting.follow("");
    follower.wait_until("a running job", |record| text(&record.outs[0]).contains("running (slot 1)"));
    for job in 1..=3 {
        waiting.go(job);
    }
    follower.wait().exit_code(0).stderr("");
    waiting.run.wait().exit_code(0);
    assert_eq!(waiting.state.log("last").exit_code(0).text().lines().count(), 4);
}

#[cfg(target_os = "linux")] // Where running jobs are seen.
#[test]
fn status_counts_the_jobs_of_runs_that_run_now() {
    let mut waiting = Waiting::new(4);
    let status = |waiting: &Waiting, flags: &str| {
        Run::start(&waiting.state.command(&format!("status {flags}"))).wait().exit_code(0)
    };
    waiting.go(1);
    let second = || {
        let shown = Run::start(&waiting.state.command("status")).wait().exit_code(0).text();
        shown.contains("1 of 4 done · 0 failed · 1 running · 2 left · ")
    };
    waiting.run.wait_until_true("the second job", second);
    let shown = status(&waiting, "").stderr("").text();
    let id = waiting.state.ids().remove(0);
    assert!(shown.starts_with(&format!("run {id} (pid ")) && shown.contains("await ::: "), "{shown}");
    assert_eq!(super::table(&shown)[3][..2], ["2", "1"], "{shown}");
    assert_eq!(status(&waiting, "last").text().lines().count(), 4);
    let json = status(&waiting, "--json").stderr("").text();
    for part in [r#""done":1,"#, r#""failed":0,"#, r#""running":1,"#, r#""left":2,"#, r#""job":2,"#] {
        assert!(json.contains(part), "{part}: {json}");
    }
    // A run that was killed is not running.
    waiting.run.kill();
    waiting.run.wait().killed();
    let hint = format!("minder: run {id} is not running: `minder log {id}` shows its jobs\n");
    let command = |flags: &str| Run::start(&waiting.state.command(&format!("status {flags}"))).wait();
    assert_eq!(command(&id).exit_code(0).stderr(&hint).text(), "");
    let none = "minder: no run is running here: `minder log last` shows the last one\n";
    assert_eq!(command("").exit_code(0).stderr(none).text(), "");
    assert_eq!(command("--json").exit_code(0).stderr("").text(), "");
}

#[cfg(target_os = "linux")] // Where running jobs are seen.
#[test]
fn job_of_an_outer_run_is_not_taken_for_one_of_the_run() {
    let state = State::new();
    let go = state.file("go");
    // The command of --limit is a child of minder as well, and inherits the number of the outer job.
    let limit = format!("{} sleep-ms 300", crate::support::TEST_CHILD);
    for line in ["run -j1 --limit LIMIT CHILD await", "parallel -j1 CHILD await"] {
        let words = line.replace("--limit LIMIT ", "");
        let mut command = state.command(words.split_once(" CHILD").expect("find command").0);
        if line.contains("LIMIT") {
            command.args(["--limit", &limit]);
        }
        command.args([crate::support::TEST_CHILD, "await", path(&go), ":::", "x"]);
        for (name, value) in [("MINDER_JOB", "77"), ("MINDER_SLOT", "9"), ("PARALLEL_SEQ", "78")] {
            command.env(name, value);
        }
        let mut run = Run::start(&command);
        let shown = || Run::start(&state.command("status --json")).wait().exit_code(0).text();
        run.wait_until_true("the job", || {
            let shown = shown();
            assert!(!shown.contains(r#""job":7"#), "{line}: {shown}");
            shown.contains(r#""job":1,"#) && shown.contains(r#""slot":1"#)
        });
        fs::write(&go, "").expect("write file");
        run.wait().exit_code(0);
        fs::remove_file(&go).expect("remove file");
    }
}

/// Jobs that clear the number in their environment, or take that of another job, run nevertheless.
#[cfg(target_os = "linux")] // Where running jobs are seen.
#[test]
fn status_counts_jobs_that_changed_their_environment() {
    let cannot = |text: &str| format!("minder: {text}\n");
    let two = "2 running jobs cannot be told apart: their numbers (MINDER_JOB) are missing, unreadable or \
               those of other jobs";
    let one = "1 running job cannot be told apart: its number (MINDER_JOB) is missing, unreadable or that of \
               another job";
    for (flags, changes, done, wanted, said) in [
        ("-j2", "-i", 0, "0 of 4 done · 0 failed · 2 running · 2 left", two),
        ("-j2", "MINDER_JOB=3", 0, "0 of 4 done · 0 failed · 2 running · 2 left", two),
        ("-j1", "MINDER_JOB=5", 0, "0 of 4 done · 0 failed · 1 running · 3 left", one),
        // The number of a job that has ended.
        ("-j1", "MINDER_JOB=1", 1, "1 of 4 done · 0 failed · 1 running · 2 left", one),
    ] {
        let state = State::new();
        let mut command = state.command(&format!("run {flags} env {changes} CHILD await :::"));
        command.args((1..=4).map(|job| state.file(&format!("go{job}"))));
        let mut run = Run::start(&command);
        let status = |flags: &str| Run::start(&state.command(&format!("status {flags}"))).wait().exit_code(0);
        for job in 1..=done {
            fs::write(state.file(&format!("go{job}")), "").expect("write file");
        }
        run.wait_until_true("running jobs", || status("").text().contains(&format!("{wanted} · ")));
        let shown = status("").stderr(&cannot(said)).text();
        let rows = super::table(&shown);
        assert_eq!(rows[3][0], "?", "{shown}");
        assert!(
            shown.contains(&format!("await {}", path(&state.file(&format!("go{}", done + 1))))),
            "{shown}"
        );
        let json = status("--json").stderr("").text();
        assert!(json.contains(r#""job":null,"#) && json.contains(r#""slot":null"#), "{json}");
        let listed = state.log("last").exit_code(0);
        assert!(listed.err.ends_with(&cannot(said)) && listed.text().contains("\n   ?  "), "{listed:?}");
        for job in 1..=4 {
            fs::write(state.file(&format!("go{job}")), "").expect("write file");
        }
        run.wait().exit_code(0);
    }
}
