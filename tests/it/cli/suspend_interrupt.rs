//! Ctrl-Z and Ctrl-C at any moment of a run of tiny jobs, and what is suspended with it.
//!
//! `MINDER_KEYS` sets how many keys are pressed; `MINDER_SEED` repeats the moments of the
//! interrupts.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use minder::{ChildId, ChildSet, ChildSetOptions, Command, ExitStatus, SpawnOptions, Stdio};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::resume::Random;
use super::{PATIENCE, file, minder, path, temp_dir};
use crate::support::{CHILD, EventLog, TEST_CHILD};

/// A run as the foreground job of a shell: it leads its own group, and its stops are reported.
struct Job {
    set: ChildSet,
    event_log: EventLog,
    token: ChildId,
}

impl Job {
    fn start(command: &Command) -> Self {
        let limits = ChildSetOptions::default().stop_poll_interval(Some(Duration::from_millis(1)));
        let mut set = ChildSet::new(limits).expect("create set");
        let token = set.spawn(command, SpawnOptions::default()).expect("start command");
        Self { set, event_log: EventLog::default(), token }
    }

    fn press(&self, signal: Signal) {
        let group =
            Pid::from_raw(self.set.pid(self.token).expect("get pid").cast_signed()).expect("valid pid");
        kill_process_group(group, signal).expect("signal process group");
    }

    fn read_for(&mut self, time: Duration) {
        self.event_log.read_until(&mut self.set, Instant::now() + time, |_| false);
    }

    /// Stops the run. A stop right behind a continuation may be thrown away, so it is asked for
    /// again.
    fn stop(&mut self, what: &str) {
        let before = self.event_log.child(self.token).stops.len();
        let token = self.token;
        for _ in 0..10 {
            self.press(Signal::TSTP);
            let until = Instant::now() + Duration::from_secs(2);
            if self
                .event_log
                .read_until(&mut self.set, until, |event_log| event_log.child(token).stops.len() > before)
            {
                return;
            }
        }
        panic!("{what}: the run does not stop: {}", self.states());
    }

    /// Returns the states of the run's processes and of the runner's threads.
    fn states(&self) -> String {
        let outer = self.set.pid(self.token).expect("get pid");
        let inner = super::children(outer);
        let workers = inner.iter().flat_map(|pid| super::children(*pid));
        let all: Vec<u32> = [outer].into_iter().chain(inner.iter().copied()).chain(workers).collect();
        let tasks =
            all.iter().flat_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten());
        let state = |task: std::fs::DirEntry| {
            let stat = file(&task.path().join("stat"));
            let wait = file(&task.path().join("wchan"));
            format!("{} in {wait}", stat.split(' ').take(5).collect::<Vec<_>>().join(" "))
        };
        tasks.flatten().map(state).collect::<Vec<_>>().join("; ")
    }

    fn end(mut self, what: &str) -> ExitStatus {
        let token = self.token;
        let until = Instant::now() + PATIENCE;
        let ended = self
            .event_log
            .read_until(&mut self.set, until, |event_log| event_log.child(token).done.is_some());
        assert!(ended, "{what}: the run does not end");
        self.event_log.outcome(token).exit.status
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if !self.set.is_empty() {
            self.press(Signal::KILL);
        }
    }
}

/// Returns how many keys are pressed.
fn keys() -> usize {
    std::env::var("MINDER_KEYS").ok().and_then(|text| text.parse().ok()).unwrap_or(30)
}

/// `-j8` of the tiniest job with these numbers as its input.
fn tiny(dir: &Path, jobs: std::ops::RangeInclusive<usize>) -> Command {
    let lines: String = jobs.map(|job| format!("{job}\n")).collect();
    let mut command = minder("run -j8 --quiet --joblog");
    command.arg(dir.join("joblog")).args([TEST_CHILD, "exit", "0", "{}"]);
    command.env("MINDER_STATE_DIR", dir.join("state"));
    command.stdin(super::input(lines.as_bytes())).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

/// Returns the joblog's rows: job, exit, signal.
fn rows(dir: &Path) -> Vec<(usize, String, String)> {
    let text = file(&dir.join("joblog"));
    let row = |line: &str| {
        let fields: Vec<&str> = line.split('\t').collect();
        (fields[0].parse().expect("parse number"), fields[6].to_owned(), fields[7].to_owned())
    };
    text.lines().skip(1).map(row).collect()
}

#[test]
fn stops_at_random_moments_neither_hang_nor_lose_a_job() {
    let dir = temp_dir();
    // More than can end meanwhile; the rest is cut off.
    let mut job = Job::start(&tiny(dir.path(), 1..=keys() * 400));
    for stop in 0..keys() {
        job.stop(&format!("stop {stop}"));
        job.press(Signal::CONT);
        job.read_for(Duration::from_millis(12));
    }
    job.press(Signal::TERM);
    job.end("after the stops");
    let rows = rows(dir.path());
    assert!(rows.iter().all(|(_, exit, signal)| exit == "0" && signal == "0"), "{rows:?}");
    none_lost(&rows);
}

/// Fails if more jobs lack a row than may run at the end.
fn none_lost(rows: &[(usize, String, String)]) {
    let found: BTreeSet<usize> = rows.iter().map(|row| row.0).collect();
    assert_eq!(found.len(), rows.len(), "a job has two rows");
    let lost: Vec<usize> =
        (1..found.last().copied().unwrap_or(0)).filter(|job| !found.contains(job)).collect();
    assert!(lost.len() <= 8, "jobs without a row: {lost:?}");
}

#[test]
fn interrupts_at_random_moments_record_only_jobs_that_ran() {
    let mut random = Random::new("interrupts");
    for interrupt in 0..keys() {
        let dir = temp_dir();
        let mut job = Job::start(&tiny(dir.path(), 1..=4000));
        job.read_for(Duration::from_micros(20_000 + random.below(60_000) as u64));
        job.press(Signal::INT);
        job.end(&format!("interrupt {interrupt}"));
        let rows = rows(dir.path());
        let failed: Vec<_> = rows.iter().filter(|(_, exit, signal)| exit != "0" || signal != "0").collect();
        assert!(failed.is_empty(), "interrupt {interrupt}: {failed:?}");
        none_lost(&rows);
    }
}

/// `kill -TSTP` and `kill -CONT` of the process that was started, and of no other.
#[test]
fn stop_and_continue_of_one_process_apply_to_the_run() {
    let dir = temp_dir();
    let go = dir.path().join("go");
    let mut command = minder("run -j2 --no-record");
    command.args([TEST_CHILD, "await", path(&go), "{}", ":::", "a", "b"]).env("MINDER_STATE_DIR", dir.path());
    let mut job = Job::start(&command);
    let pid = Pid::from_raw(job.set.pid(job.token).expect("get pid").cast_signed()).expect("valid pid");
    for stop in 1..=3 {
        job.read_for(Duration::from_millis(100));
        kill_process(pid, Signal::TSTP).expect("signal process");
        let token = job.token;
        let until = Instant::now() + PATIENCE;
        let stopped = job.event_log.read_until(&mut job.set, until, |l| l.child(token).stops.len() >= stop);
        assert!(stopped, "stop {stop}: {}", job.states());
        kill_process(pid, Signal::CONT).expect("signal process");
    }
    std::fs::write(go, "").expect("create a file");
    assert_eq!(job.end("a run that was continued by its pid"), ExitStatus::Exited(0));
}

/// `kill -STOP` of the runner, then Ctrl-Z. One `fg` continues the run, although the runner reads the key
/// only then.
#[test]
fn run_whose_runner_was_stopped_alone_continues_at_once() {
    let dir = temp_dir();
    let go = dir.path().join("go");
    let mut command = minder("run -j2 --no-record");
    command.args([TEST_CHILD, "await", path(&go), "{}", ":::", "a", "b"]).env("MINDER_STATE_DIR", dir.path());
    let mut job = Job::start(&command);
    job.read_for(Duration::from_millis(300));
    let outer = job.set.pid(job.token).expect("get pid");
    let runner = super::runner(outer).expect("find the runner");
    kill_process(Pid::from_raw(runner.cast_signed()).expect("valid pid"), Signal::STOP)
        .expect("signal process");
    for stop in 1..=2 {
        job.press(Signal::TSTP);
        let token = job.token;
        let until = Instant::now() + PATIENCE;
        let stopped = job.event_log.read_until(&mut job.set, until, |l| l.child(token).stops.len() >= stop);
        assert!(stopped, "stop {stop}: {}", job.states());
        job.press(Signal::CONT);
        job.read_for(Duration::from_secs(1));
        assert_eq!(job.event_log.child(token).stops.len(), stop, "it stopped again: {}", job.states());
    }
    std::fs::write(go, "").expect("create a file");
    assert_eq!(job.end("a run that was continued once"), ExitStatus::Exited(0));
}

#[test]
fn failure_after_a_stop_is_not_a_timeout() {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    let mut command = minder(&format!("run --timeout 4 --joblog {}", path(&joblog)));
    command.arg(format!("{CHILD} lines 60 10; exit 7; : {{}}")).args([":::", "x"]);
    let mut job = Job::start(&command);
    job.read_for(Duration::from_millis(300));
    job.stop("a run with a time-out");
    job.read_for(Duration::from_millis(4200));
    job.press(Signal::CONT);
    assert_eq!(job.end("a run with a time-out"), ExitStatus::Exited(1));
    assert_eq!(rows(dir.path()), [(1, "7".to_owned(), "0".to_owned())]);
}

#[test]
fn stop_does_not_count_for_a_median_timeout() {
    let dir = temp_dir();
    let joblog = dir.path().join("joblog");
    let mut command = minder(&format!("run -j2 --timeout 400% --joblog {}", path(&joblog)));
    command.args([
        TEST_CHILD, "lines", "{}", "10", ":::", "20", "20", "20", "20", "30", "40", "30", "40", "30", "40",
    ]);
    command.stdout(Stdio::null());
    let mut job = Job::start(&command);
    let until = Instant::now() + PATIENCE;
    while rows(dir.path()).len() < 4 {
        assert!(Instant::now() < until, "no four jobs end");
        job.read_for(Duration::from_millis(2));
    }
    job.stop("a run with a time-out");
    job.read_for(Duration::from_secs(4));
    job.press(Signal::CONT);
    assert_eq!(job.end("a run with a time-out"), ExitStatus::Exited(0));
    assert!(rows(dir.path()).iter().all(|(_, exit, signal)| exit == "0" && signal == "0"));
}
