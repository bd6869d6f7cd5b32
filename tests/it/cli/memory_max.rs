//! `--memory-max`: the memory of each job where minder may make cgroups, and the address space of each
//! process elsewhere.
//!
//! Only root may make a cgroup with the controller of memory, and only where that belongs to version 2. A
//! test that finds none shows the other limit and its message, and prints that.

use std::fs;
use std::time::Duration;

use minder::Command;
use minder_os::cgroup::{Cgroup, Place};
use rustix::process::Signal;

use super::record::Place as RecordPlace;
use super::{MINDER, Run, RunOutput, SOON, is_public, is_root, minder, minder_as, temp_dir};
use crate::support::{CHILD, TEST_CHILD, tell};

const MESSAGE: &str = "minder: --memory-max limits the address space of each process: ";
const HINT: &str =
    "(`systemd-run --user --scope -p Delegate=yes minder run …` limits the memory of each job)";

/// A cgroup in which minder is alone. A run has to leave it as it was.
struct Delegated {
    root: Cgroup,
    name: String,
    cgroup: Cgroup,
}

impl Delegated {
    fn new() -> Option<Self> {
        let root = Place::find().ok()??.root;
        if !root.read("cgroup.controllers").ok()?.split_whitespace().any(|name| name == "memory") {
            return None;
        }
        root.write("cgroup.subtree_control", "+memory").ok()?;
        let name = format!("minder-test-{}-{:?}", std::process::id(), std::thread::current().id());
        let name: String = name.chars().filter(|character| !"()".contains(*character)).collect();
        let cgroup = root.create(&name).ok()?;
        Some(Self { root, name, cgroup })
    }

    /// Runs a command in the cgroup.
    fn run(&self, command: &mut Command) -> RunOutput {
        Run::start(command.cgroup(self.cgroup.dir())).wait()
    }

    /// Fails unless nothing is left in the cgroup.
    #[track_caller]
    fn assert_clean(&self) {
        assert!(self.cgroup.wait_empty(Duration::from_secs(10)).expect("wait for processes"));
        assert_eq!(self.cgroup.names().expect("list cgroups"), [""; 0]);
        assert_eq!(self.cgroup.read("cgroup.subtree_control").expect("read controllers").trim(), "");
    }
}

impl Drop for Delegated {
    fn drop(&mut self) {
        let _ = self.cgroup.write("cgroup.kill", "1");
        let _ = self.cgroup.wait_empty(Duration::from_secs(10));
        remove_tree(&self.root, &self.name);
    }
}

fn remove_tree(parent: &Cgroup, name: &str) {
    let Ok(cgroup) = parent.open(name) else { return };
    for name in cgroup.names().unwrap_or_default() {
        remove_tree(&cgroup, &name);
    }
    let _ = parent.remove(name);
}

/// Returns a delegated cgroup. Without one, checks what minder does then.
#[track_caller]
fn delegated() -> Option<Delegated> {
    if let Some(delegated) = Delegated::new() {
        return Some(delegated);
    }
    tell(
        "no cgroup with the controller of memory can be made here: the limit of the address space is checked",
    );
    let ended =
        run(&minder("run --no-record --no-status --memory-max 2G"), "ulimit -v; : {}", "a").exit_code(0);
    assert_eq!(ended.text(), "2097152\n");
    assert_eq!(ended.err.matches(MESSAGE).count(), 1, "{}", ended.err);
    None
}

fn run(command: &Command, line: &str, jobs: &str) -> RunOutput {
    Run::start(&with(command, line, jobs)).wait()
}

/// Adds a shell line and the jobs.
fn with(command: &Command, line: &str, jobs: &str) -> Command {
    let mut command = command.clone();
    command.arg(line.replace("CHILD", CHILD)).arg(":::").args(jobs.split(' '));
    command
}

#[test]
fn job_over_its_limit_is_killed_and_others_run() {
    let Some(delegated) = delegated() else { return };
    let place = RecordPlace::new();
    let line = "test {} != 7 || CHILD use-memory 200000000; echo {} $(ulimit -v)";
    let jobs: Vec<String> = (1..=20).map(|job| job.to_string()).collect();
    let ended = delegated
        .run(&mut with(&place.command("run -j4 --memory-max 50M"), line, &jobs.join(" ")))
        .exit_code(1)
        .stderr_contains("(killed at its memory limit of 50 MiB, ")
        .stderr_contains("1 killed for memory");
    assert!(!ended.err.contains(MESSAGE), "{}", ended.err);
    let mut expected: Vec<String> =
        (1..=20).filter(|job| *job != 7).map(|job| format!("{job} unlimited")).collect();
    expected.sort();
    assert_eq!(ended.sorted(), expected);
    delegated.assert_clean();
    let listed = place.ended("log last --failed").exit_code(0).text();
    assert!(listed.contains("KILL (memory limit)"), "{listed}");
    let shown = place.ended("log last 7").exit_code(0).text();
    assert!(shown.contains("killed by KILL because it used more memory than --memory-max"), "{shown}");
    let journal = fs::read_to_string(place.run().join("attempt-1.jsonl")).expect("read journal");
    assert_eq!(journal.matches(r#""cause":"memory limit""#).count(), 1, "{journal}");
    // The job fails again, in another cgroup.
    delegated
        .run(&mut place.command("retry last"))
        .exit_code(1)
        .stderr_contains("(killed at its memory limit");
    delegated.assert_clean();
}

#[test]
fn processes_of_a_job_are_counted_together() {
    let Some(delegated) = delegated() else { return };
    let one = "CHILD use-memory 30000000 1000";
    let line =
        format!("test {{}} = a && {{ {one}; echo ok; exit; }}; {one} & {one} & {one} & wait; echo all");
    let command = minder("run --no-record --no-status -j1 --memory-max 60M");
    let ended = delegated.run(&mut with(&command, &line, "a b")).exit_code(1);
    assert_eq!(ended.text(), "ok\n");
    assert_eq!(ended.err.matches("killed at its memory limit of 60 MiB").count(), 1, "{}", ended.err);
    delegated.assert_clean();
}

#[test]
fn each_attempt_has_a_cgroup() {
    let Some(delegated) = delegated() else { return };
    let dir = temp_dir();
    let line = "cat /proc/self/cgroup >>seen; test $(wc -l <seen) = 3 || CHILD use-memory 200000000; echo {}";
    let mut command = with(&minder("run --no-record --retries 4 --memory-max 50M"), line, "a");
    let ended = delegated.run(command.current_dir(dir.path())).exit_code(0);
    assert_eq!(ended.text(), "a\n");
    let seen = super::file(&dir.path().join("seen"));
    let cgroups: std::collections::BTreeSet<&str> = seen.lines().collect();
    assert_eq!(cgroups.len(), 3, "{seen}");
    assert!(seen.lines().all(|line| line.contains(&format!("/{}/minder-", delegated.name))), "{seen}");
    delegated.assert_clean();
}

#[test]
fn other_ends_of_jobs_are_named_as_before() {
    let Some(delegated) = delegated() else { return };
    let line = "case {} in a) exit 3;; b) kill -9 $$;; c) CHILD sleep-ms 60000;; esac";
    for flags in ["", "-u", "--lb", "--pty"] {
        let command = minder(&format!("run --no-record {flags} -j3 --timeout 2 --memory-max 50M"));
        delegated
            .run(&mut with(&command, line, "a b c d"))
            .exit_code(3)
            .stderr_contains("(exit 3, ")
            .stderr_contains("(killed by KILL, ")
            .stderr_contains("(timed out after 2.0 s)");
        delegated.assert_clean();
    }
    let command = minder("run --no-record --memory-max 50M no-such-program");
    delegated.run(command.clone().args([":::", "a"])).exit_code(255).error_line(&["not found in PATH"]);
    delegated.assert_clean();
}

/// The kernel would never kill a job that has not executed its program.
#[test]
fn least_limit_lets_a_program_start() {
    let Some(delegated) = delegated() else { return };
    let command = minder("run --no-record --memory-max 1");
    let ended = delegated.run(&mut with(&command, "CHILD use-memory 9000000; echo {}", "a")).exit_code(1);
    assert!(ended.err.contains("killed at its memory limit of 1.0 MiB"), "{}", ended.err);
    delegated.assert_clean();
}

#[test]
fn many_jobs_at_once_leave_no_cgroup() {
    let Some(delegated) = delegated() else { return };
    let command = minder("run --no-record -j40 --memory-max 50M CHILD exit 0 {}");
    let ended = delegated.run(command.clone().arg(":::").args((0..300).map(|job| job.to_string())));
    ended.exit_code(0).stderr("");
    delegated.assert_clean();
}

#[test]
fn killed_run_leaves_empty_cgroups() {
    let Some(delegated) = delegated() else { return };
    let command = minder("run --no-record -j3 --memory-max 50M CHILD sleep-ms 600000 {}");
    let mut run = Run::start(command.clone().args([":::", "a", "b", "c"]).cgroup(delegated.cgroup.dir()));
    let started = || {
        let run = delegated.cgroup.names().ok()?.into_iter().next()?;
        Some(delegated.cgroup.open(&run).ok()?.names().ok()?.len())
    };
    run.wait_until_true("four cgroups", || started() == Some(4));
    run.signal(Signal::KILL);
    run.wait().killed_by(Signal::KILL);
    assert!(delegated.cgroup.wait_empty(SOON).expect("wait for processes"));
    assert_eq!(started(), Some(4));
}

#[test]
fn interrupted_run_leaves_no_cgroup() {
    let Some(delegated) = delegated() else { return };
    let command = minder("run --no-record -j3 --memory-max 50M CHILD sleep-ms 600000 {}");
    let mut run = Run::start(command.clone().args([":::", "a", "b", "c"]).cgroup(delegated.cgroup.dir()));
    let is_running = || {
        let name = delegated.cgroup.names().ok()?.into_iter().next()?;
        Some(delegated.cgroup.open(&name).ok()?.names().ok()?.len() == 4)
    };
    run.wait_until_true("four cgroups", || is_running() == Some(true));
    run.signal(Signal::INT);
    run.wait();
    delegated.assert_clean();
}

#[test]
fn process_that_a_job_leaves_keeps_its_cgroup() {
    let Some(delegated) = delegated() else { return };
    let line = "setsid CHILD sleep-ms 600000 </dev/null >/dev/null 2>&1 & echo {}";
    let ended = delegated.run(&mut with(&minder("run --no-record --memory-max 50M"), line, "a")).exit_code(0);
    assert!(ended.text() == "a\n" && ended.err.contains("still running: test_child"), "{ended:?}");
    assert!(!delegated.cgroup.wait_empty(Duration::ZERO).expect("look for processes"));
}

#[test]
fn other_processes_are_not_moved() {
    let Some(delegated) = delegated() else { return };
    let other = Run::start(super::from(TEST_CHILD, "sleep-ms 600000").cgroup(delegated.cgroup.dir()));
    let command = minder("run --no-record --memory-max 2G");
    let ended = delegated.run(&mut with(&command, "ulimit -v; : {}", "a")).exit_code(0);
    assert_eq!(ended.text(), "2097152\n");
    let said = format!("{MESSAGE}other processes are in the cgroup of minder {HINT}\n");
    assert_eq!(ended.err, said);
    assert_eq!(
        delegated.cgroup.read("cgroup.procs").expect("read processes").trim(),
        other.pid().to_string()
    );
    drop(other);
    delegated.assert_clean();
}

#[test]
fn cgroup_without_the_controller_is_not_enough() {
    let Some(delegated) = delegated() else { return };
    let inner = delegated.cgroup.create("inner").expect("create cgroup");
    let command = with(&minder("run --no-record --memory-max 2G"), "ulimit -v; : {}", "a");
    let ended = Run::start(command.clone().cgroup(inner.dir())).wait().exit_code(0);
    assert_eq!(ended.text(), "2097152\n");
    assert_eq!(ended.err, format!("{MESSAGE}the cgroup of minder has no controller of memory {HINT}\n"));
    assert!(inner.wait_empty(SOON).expect("wait for processes"));
    delegated.cgroup.remove("inner").expect("remove cgroup");
    delegated.assert_clean();
}

#[test]
fn cgroup_of_another_user_is_not_delegated() {
    let Some(delegated) = delegated() else { return };
    if !is_root() || !is_public(MINDER) {
        crate::support::skip(format_args!("another user needs root, and a directory that all may enter"));
        return;
    }
    let command = minder_as("user=54321", "run --no-record --memory-max 2G");
    let ended = delegated.run(&mut with(&command, "ulimit -v; : {}", "a")).exit_code(0);
    assert_eq!(ended.text(), "2097152\n");
    let said = format!("{MESSAGE}its cgroup is not delegated: permission denied {HINT}\n");
    assert_eq!(ended.err, said);
    delegated.assert_clean();
}

#[test]
fn cgroup_that_belongs_to_a_user_is_delegated() {
    let Some(delegated) = delegated() else { return };
    if !is_root() || !is_public(MINDER) {
        crate::support::skip(format_args!("another user needs root, and a directory that all may enter"));
        return;
    }
    let dir = delegated.cgroup.dir();
    let number = std::os::fd::AsRawFd::as_raw_fd(&*dir);
    for name in ["", "cgroup.procs", "cgroup.subtree_control"] {
        let path = format!("/proc/self/fd/{number}/{name}");
        std::os::unix::fs::chown(path, Some(54321), None).expect("change owner");
    }
    let command = minder_as("user=54321", "run --no-record --memory-max 50M");
    let line = "test {} = a || CHILD use-memory 200000000; ulimit -v";
    let ended = delegated.run(&mut with(&command, line, "a b")).exit_code(1);
    assert_eq!(ended.text(), "unlimited\n");
    assert!(ended.err.contains("(killed at its memory limit of 50 MiB, "), "{}", ended.err);
    delegated.assert_clean();
}

#[test]
fn message_about_the_address_space_is_printed_once() {
    // The tests are in the same cgroup.
    let command = minder("run --no-record -j3 --retries 2 --memory-max 2G");
    let ended = run(&command, "ulimit -v; test {} != b", "a b c").exit_code(1);
    assert_eq!(ended.text(), "2097152\n".repeat(3));
    assert_eq!(ended.err.matches(MESSAGE).count(), 1, "{}", ended.err);
    assert!(ended.err.starts_with(MESSAGE), "{}", ended.err);
    let ended = run(&minder("run --no-record --quiet --memory-max 2G"), "ulimit -v; : {}", "a").exit_code(0);
    assert_eq!((ended.text().as_str(), ended.err.as_str()), ("2097152\n", ""));
    // Without the flag nothing is said.
    run(&minder("run --no-record"), ": {}", "a").exit_code(0).stderr("");
}
