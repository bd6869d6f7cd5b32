//! Where the kernel, or a sandbox, refuses a mechanism: what stands beneath it does the same.
//!
//! These tests run others of this binary, and the command, behind a filter of system calls.

use std::process::{Command, Output};

const SECCOMP_RUN: &str = env!("CARGO_BIN_EXE_seccomp_run");
const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");

/// Runs tests of this binary whose names begin like one of these, without the calls.
fn rerun(calls: &str, tests: &[&str]) {
    rerun_with(calls, tests, &[]);
}

fn rerun_with(calls: &str, tests: &[&str], options: &[&str]) {
    let own = std::env::current_exe().expect("this binary");
    let output = Command::new(SECCOMP_RUN)
        .arg(calls)
        .arg(own)
        .args(tests)
        .args(options)
        .args(["--test-threads", "2"])
        .output();
    let output = output.expect("seccomp_run runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "without {calls}:\n{text}\n{}", String::from_utf8_lossy(&output.stderr));
    let ran = text.lines().filter(|line| line.ends_with("... ok")).count();
    assert!(ran >= tests.len(), "only {ran} tests ran:\n{text}");
}

fn minder(calls: &str, args: &[&str]) -> Output {
    Command::new(SECCOMP_RUN)
        .args([calls, MINDER])
        .args(args)
        .env("MINDER_STATE_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/state"))
        .output()
        .expect("seccomp_run runs")
}

const PLAIN: &[&str] = &[
    "child::wait_tells_the_status_once_and_again",
    "child::a_wait_with_a_bound_never_ends_early",
    "set::feeds_ten_megabytes_through_cat",
    "set::kill::now_kills_the_group_and_the_stray_before_done_is_told",
    "set::kill::one_who_is_asked_may_end_by_itself",
    "set::suspend::",
    "set::output::",
];

#[test]
fn without_clone3_children_come_from_posix_spawn() {
    rerun("clone3", PLAIN);
    rerun("clone3", &["spawn::unix::a_child_keeps_the_descriptors"]);
}

#[test]
fn without_pidfds_ends_are_found_by_the_sweep() {
    rerun("clone3,pidfd_open", PLAIN);
    rerun(
        "clone3,pidfd_open",
        &["poller::processes::", "poller::foreign_loop::the_end_of_a_process_is_news"],
    );
}

#[test]
fn without_io_uring_all_else_waits() {
    rerun_with("io_uring_setup", &["poller::limits::a_backend_that_is_forbidden"], &["--ignored"]);
    rerun("io_uring_setup", &["set::kill::", "set::foreign_loop::", "poller::readiness::", "doctor::"]);
}

#[test]
fn without_close_range_the_table_is_copied() {
    rerun("close_range", PLAIN);
}

#[test]
fn the_command_runs_all_jobs_without_any_of_them() {
    for calls in ["clone3", "pidfd_open", "clone3,pidfd_open", "close_range", "clone3,pidfd_open,close_range"]
    {
        let mut args = vec!["run", "-j4", "echo", "{}", ":::"];
        let words: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        args.extend(words.iter().map(String::as_str));
        let output = minder(calls, &args);
        assert!(output.status.success(), "without {calls}: {output:?}");
        let mut lines: Vec<u32> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| line.parse().expect("a number"))
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..50).collect::<Vec<_>>(), "without {calls}");
    }
}

/// A job whose input ends early takes what it has for all of it. Only a pipe that it closed itself
/// is its own affair.
#[test]
fn an_input_that_cannot_be_written_is_no_end_of_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (lines, joblog) = (folder.path().join("lines"), folder.path().join("joblog"));
    std::fs::write(&lines, "line\n".repeat(100_000)).expect("a file");
    let minder = |calls: &str, command: &str| {
        Command::new(SECCOMP_RUN)
            .args([calls, MINDER, "run", "--no-record", "--joblog"])
            .arg(&joblog)
            .args(["--pipe", "--block", "1M", command])
            .stdin(std::fs::File::open(&lines).expect("a file"))
            .output()
            .expect("seccomp_run runs")
    };
    let output = minder("write-64k", "wc -c");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    assert!(said.contains("failed to write to the input of") && said.contains("space"), "{said}");
    assert_eq!(std::fs::read_to_string(&joblog).expect("a joblog").lines().count(), 1, "a row of half a job");
    let output = minder("io_uring_setup", "head -n 1");
    assert!(output.status.success() && output.stdout == b"line\n", "{output:?}");
}

/// Where our session began outside of our PID namespace it is 0, and so may be parents: in
/// containers.
#[test]
fn in_a_namespace_of_processes_all_is_the_same() {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").output().is_ok_and(|output| output.status.success()) {
        crate::support::skip(format_args!("a namespace needs unshare(1) and the right to use it"));
        return;
    }
    let own = std::env::current_exe().expect("this binary");
    let tests = ["set::kill::", "cli::daemons::", "cli::signals::", "groups_and_sessions"];
    let output = unshare().arg(own).args(tests).args(["--test-threads", "2"]).output().expect("unshare runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.lines().filter(|line| line.ends_with("... ok")).count() > tests.len(), "{text}");
}

#[test]
fn doctor_names_what_is_refused() {
    let output = minder("clone3,pidfd_open", &["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("ENOSYS"), "{text}");
}

/// Containers often forbid io_uring: whoever asks for it is told why, and waits by something else.
#[test]
fn without_io_uring_the_command_says_so_and_goes_on() {
    let output =
        minder("io_uring_setup", &["run", "--backend", "io_uring", "-j4", "echo", "{}", ":::", "a", "b"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(output.stdout.len(), "a\nb\n".len());
    let why = "minder: the wait mechanism `io_uring` is refused here: ENOSYS (old kernel, or a sandbox); \
               the best of the others is used\n";
    assert!(said.starts_with(why), "{said}");
    let output = minder("io_uring_setup", &["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = "io_uring ✗ refused: ENOSYS (old kernel, or a sandbox)";
    assert!(text.contains(line) || text.contains(&line.replace('✗', "no")), "{text}");
}

#[test]
fn without_clone3_a_niceness_is_refused() {
    rerun_with("clone3", &["spawn::unix::a_niceness_is_refused"], &["--ignored"]);
}
