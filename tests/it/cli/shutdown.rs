//! One signal to all processes at once, as when a machine stops: a job that it ended did not fail,
//! and runs again.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::time::Duration;

use minder::{ExitStatus, Stdio};
use rustix::process::{Pid, Signal, kill_process};

use super::resume::Random;
use super::{MINDER, Run, children, file, has_exited, minder, path, runner, temp_dir, tree};
use crate::support::{CHILD, TEST_CHILD};

/// A run of five jobs, three at once. Each lasts until it is killed, or notes its end where `go` is
/// there.
struct ShutdownRun {
    dir: tempfile::TempDir,
    live: Run,
    outer: u32,
    inner: u32,
    runner: u32,
    jobs: Vec<u32>,
}

fn send(pids: &[u32], signal: Signal) {
    for pid in pids {
        // It may have ended by what was sent before.
        let _ = kill_process(Pid::from_raw(pid.cast_signed()).expect("valid pid"), signal);
    }
}

fn ends(dir: &Path) -> Vec<String> {
    let mut lines: Vec<String> = file(&dir.join("ends")).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

impl ShutdownRun {
    fn start(flags: &str) -> Self {
        let dir = temp_dir();
        let [ends, go] = ["ends", "go"].map(|name| path(&dir.path().join(name)).to_owned());
        let mut command = minder(&format!("run -j3 {flags}"));
        command.env("MINDER_STATE_DIR", dir.path().join("state"));
        command.arg(format!("test -e {go} || exec {CHILD} sleep-ms 600000; echo {{}} >>{ends}"));
        command.args([":::", "1", "2", "3", "4", "5"]);
        // A worker that sweeps outlives the process that was started, and would hold its outputs.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut live = Run::start(&command);
        let outer = live.pid();
        live.wait_until_true("three jobs", || {
            let runner = runner(outer).map(children).unwrap_or_default();
            let is_child =
                |pid: &u32| file(Path::new(&format!("/proc/{pid}/comm"))).starts_with("test_child");
            runner.iter().filter(|pid| is_child(pid)).count() == 3
        });
        let runner = runner(outer).expect("find runner");
        let inner = children(outer)[0];
        let jobs = children(runner);
        Self { dir, live, outer, inner, runner, jobs }
    }

    fn wait(&mut self, ms: u64) {
        self.live.read_for(Duration::from_millis(ms));
    }

    /// Nothing of what was cut off has a row: all of it runs again, once.
    fn resume_runs_all(self, what: &str) {
        let Self { dir, mut live, runner, .. } = self;
        live.wait_until_true("the worker's end", || has_exited(runner));
        let ended = live.wait();
        assert!(matches!(ended.status, ExitStatus::Signaled { .. }), "{what}: {ended:?}");
        assert!(ends(dir.path()).is_empty());
        std::fs::write(dir.path().join("go"), "").expect("write file");
        let mut command = minder("run --resume last");
        command.env("MINDER_STATE_DIR", dir.path().join("state"));
        let again = Run::start(&command).wait().exit_code(0);
        let said = format!("{what}\nfirst: {}\nthen: {}", ended.err, again.err);
        assert_eq!(ends(dir.path()), ["1", "2", "3", "4", "5"], "{said}");
    }
}

const WISHES: [Signal; 4] = [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT];

#[test]
fn jobs_that_die_first_are_cut_off_with_the_run() {
    for (signal, pause) in WISHES.into_iter().zip([0, 2, 100, 400]) {
        let mut run = ShutdownRun::start("");
        send(&run.jobs, signal);
        run.wait(pause);
        send(&[run.inner, run.runner, run.outer], signal);
        run.resume_runs_all(&format!("{signal:?}, jobs {pause} ms before"));
    }
}

#[test]
fn jobs_that_die_last_or_between_are_cut_off_with_the_run() {
    for (at, signal) in WISHES.into_iter().enumerate() {
        let run = ShutdownRun::start(["", "-k", "--lb", "--halt soon,fail=1"][at]);
        let mut all = vec![run.outer, run.jobs[0], run.inner, run.runner, run.jobs[1], run.jobs[2]];
        all.rotate_left(at);
        send(&all, signal);
        run.resume_runs_all(&format!("{signal:?}, {at}"));
    }
}

#[test]
fn jobs_killed_before_the_run_are_cut_off_with_it() {
    for victim in 0..3 {
        let mut run = ShutdownRun::start("");
        send(&run.jobs, Signal::KILL);
        run.wait(200);
        send(&[[run.outer, run.inner, run.runner][victim]], Signal::KILL);
        run.resume_runs_all(&format!("KILL of {victim}"));
    }
}

/// The runner sees its jobs die by its own sweep.
#[test]
fn jobs_swept_without_guardians_are_cut_off_with_the_run() {
    for _ in 0..3 {
        let run = ShutdownRun::start("");
        send(&[run.outer, run.inner], Signal::KILL);
        run.resume_runs_all("KILL of both guardians");
    }
}

/// A shell continues after its command was killed, and exits with 0. Such a job did not do its work.
#[test]
fn jobs_whose_command_was_killed_before_the_run_are_cut_off_with_it() {
    let mut random = Random::new("each process");
    let trials = std::env::var("MINDER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(6);
    let mut trial = 0;
    let mut late_trials = 0;
    while trial < trials {
        let signal = if trial % 3 == 2 { Signal::KILL } else { Signal::TERM };
        let variable = ["SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "INVOCATION_ID"][trial % 4];
        let is_nested = trial % 2 == 1;
        let dir = temp_dir();
        let [done, go] = ["done", "go"].map(|name| path(&dir.path().join(name)).to_owned());
        let line = format!("test -e {go} || {CHILD} sleep-ms 600000; echo {{}} >>{done}");
        let command = |flags: &str| {
            let mut command = minder(flags);
            command.env("MINDER_STATE_DIR", dir.path().join("state")).env(variable, "1").env("LINE", &line);
            // The guardians outlive the process that was started, and would hold its outputs.
            command.stdout(Stdio::null()).stderr(Stdio::null());
            command
        };
        let mut start = command("run -j4");
        if is_nested {
            // The inner run is one job of the outer one.
            let inner = path(Path::new(MINDER)).to_owned();
            start.args([
                &format!("{inner} run -j2 --no-record \"$LINE\" ::: {{}}1 {{}}2; echo"),
                ":::",
                "1",
                "2",
            ]);
        } else {
            start.args([&line, ":::", "1", "2", "3", "4"]);
        }
        let mut live = Run::start(&start);
        let outer = live.pid();
        let is_child = |pid: &u32| file(Path::new(&format!("/proc/{pid}/comm"))).starts_with("test_child");
        live.wait_until_true("four jobs", || tree(outer).iter().filter(|pid| is_child(pid)).count() == 4);
        let runner = runner(outer).expect("find runner");
        let mut all = tree(outer);
        for at in (1..all.len()).rev() {
            all.swap(at, random.below(at + 1));
        }
        let begin = std::time::Instant::now();
        for (at, pid) in all.iter().enumerate() {
            let due = Duration::from_millis(250) * u32::try_from(at).expect("few processes")
                / u32::try_from(all.len()).expect("few processes");
            live.read_for(due.saturating_sub(begin.elapsed()));
            send(&[*pid], signal);
        }
        let took = begin.elapsed();
        live.wait_until_true("the worker's end", || has_exited(runner));
        live.wait();
        std::fs::write(&go, "").expect("write file");
        let _ = std::fs::remove_file(&done);
        Run::start(&command("run --resume last")).wait().exit_code(0);
        let mut jobs: Vec<String> = file(Path::new(&done)).lines().map(str::to_owned).collect();
        jobs.sort();
        let expected: &[&str] = if is_nested { &["11", "12", "21", "22"] } else { &["1", "2", "3", "4"] };
        // Results are held back for 300 ms. If this process was not scheduled and sent the last signal later,
        // a job may have a result.
        if took > Duration::from_millis(270) && jobs != expected {
            late_trials += 1;
            assert!(late_trials < 50, "no signals were sent in time");
            continue;
        }
        assert_eq!(jobs, expected, "{signal:?}, {variable}, order {all:?}, runner {runner}, {took:?}");
        trial += 1;
    }
}

/// No signal follows: the job failed, its row is written, and so is its output.
#[test]
fn job_killed_alone_has_failed() {
    for flags in ["", "-k", "--lb", "--halt now,fail=1", "--spool", "--tag"] {
        // The wait for a signal is a second long. A busy machine delays some jobs for as long.
        let is_short = (0..20).any(|_| job_killed_alone(flags) < 0.9);
        assert!(is_short, "{flags}: the wait counts");
    }
}

/// Runs a job that is killed alone, checks its results, and returns its recorded time in seconds.
fn job_killed_alone(flags: &str) -> f64 {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    let mut command = minder(&format!("run -j2 --joblog {} {flags}", path(&joblog)));
    command.env("MINDER_STATE_DIR", dir.path().join("state"));
    command.args(["echo said; kill -9 $$; : {}", ":::", "1"]);
    let ended = Run::start(&command).wait();
    assert!(ended.text().ends_with("said\n"), "{flags}: {ended:?}");
    assert!(matches!(ended.status, ExitStatus::Exited(1 | 137)), "{flags}: {ended:?}");
    let row = file(&joblog).lines().nth(1).unwrap_or_default().to_owned();
    let fields: Vec<&str> = row.split('\t').collect();
    assert_eq!(fields[6..8], ["0", "9"], "{flags}: {row}");
    let mut command = minder("run --resume last");
    command.env("MINDER_STATE_DIR", dir.path().join("state"));
    assert_eq!(Run::start(&command).wait().text(), "", "{flags}: it ran again");
    fields[3].trim().parse().expect("parse seconds")
}

#[test]
fn many_jobs_killed_alone_have_failed() {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    let mut command = minder(&format!("run -k -j8 --quiet --joblog {}", path(&joblog)));
    command.args([TEST_CHILD, "kill-self", "9", "{}", ":::"]).args((0..700).map(|job| job.to_string()));
    let ended = Run::start(&command).wait();
    assert_eq!(file(&joblog).lines().count(), 701, "{}", ended.err);
}

/// The decision at the end of such a job does not wait for its row.
#[test]
fn halt_does_not_wait_for_a_held_event() {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    let mut command = minder(&format!("run -j2 --no-record --halt now,fail=1 --joblog {}", path(&joblog)));
    command.arg(format!("case {{}} in 1) kill -9 $$;; *) exec {CHILD} sleep-ms 600000;; esac"));
    command.args([":::", "1", "2", "3"]);
    let ended = Run::start(&command).wait();
    assert!(matches!(ended.status, ExitStatus::Exited(137)), "{ended:?}");
    let log = file(&joblog);
    let rows: Vec<Vec<&str>> = log.lines().skip(1).map(|row| row.split('\t').collect()).collect();
    // The one that halted the run has a row; the one that it ended has one with the time until then, or
    // none.
    assert!(rows.iter().any(|row| row[0] == "1" && row[7] == "9"), "{log}");
    assert!(
        rows.iter().all(|row| row[0] != "3" && row[3].trim().parse::<f64>().is_ok_and(|took| took < 60.0))
    );
}

#[test]
fn retry_does_not_wait_for_a_held_event() {
    let dir = temp_dir();
    let log = dir.path().join("joblog");
    let tries = dir.path().join("tries");
    let mut command = minder(&format!("run -j1 --no-record --retries 4 --joblog {}", path(&log)));
    command.arg(format!("echo {{}} >>{}; echo said {{}}; kill -9 $$", path(&tries)));
    command.args([":::", "1", "2"]);
    let ended = Run::start(&command).wait().exit_code(2);
    // The output of the last attempt of each, once.
    assert_eq!(ended.text(), "said 1\nsaid 2\n");
    let tries = file(&tries);
    assert_eq!(["1", "2"].map(|job| tries.lines().filter(|line| *line == job).count()), [4, 4]);
    assert_eq!(file(&log).lines().count(), 3, "one row each");
}

/// The next job is seen as it writes, once the row of the one before it is written.
#[test]
fn job_after_a_killed_one_is_streamed() {
    let mut command = minder("run -j1 --no-record --quiet");
    command.arg(format!("case {{}} in 1) kill -9 $$;; *) echo early; exec {CHILD} sleep-ms 600000;; esac"));
    command.args([":::", "1", "2"]);
    let mut live = Run::start(&command);
    live.wait_until("what the second has written", |record| record.outs[0] == b"early\n");
    live.signal(Signal::TERM);
    live.wait().killed_by(Signal::TERM);
}

/// Held outputs are bounded together: what is too much is written at once, and all of it comes.
#[test]
fn held_output_of_killed_jobs_is_complete() {
    for flags in ["-k", "", "--tag", "--files"] {
        let mut command = minder(&format!("run -j4 --no-record --quiet {flags}"));
        command.arg(format!("{CHILD} spew 200000; echo end {{}}; kill -9 $$"));
        command.args([":::"]).args((0..40).map(|job| job.to_string()));
        let ended = Run::start(&command).wait().exit_code(40);
        let text = match flags {
            "--files" => ended
                .text()
                .lines()
                .map(|name| {
                    let text = file(Path::new(name));
                    std::fs::remove_file(name).expect("remove file");
                    text
                })
                .collect(),
            _ => ended.text().to_owned(),
        };
        assert!(text.len() >= 40 * 200_000, "{flags}: {} bytes", text.len());
        // The pattern ends without a newline.
        assert_eq!(text.matches("end ").count(), 40, "{flags}");
    }
}

#[test]
fn job_that_signals_its_parent_ends_the_run() {
    let dir = temp_dir();
    let log = dir.path().join("log");
    let mut command = minder("run -j1");
    command.arg(format!("echo {{}} >>{}; kill -TERM $PPID; exec {CHILD} sleep-ms 600000", path(&log)));
    command.args([":::", "1", "2", "3"]);
    Run::start(&command)
        .wait()
        .killed_by(Signal::TERM)
        .stderr_contains("asked 1 job to stop; a second signal kills them");
    assert_eq!(file(&log), "1\n");
}
