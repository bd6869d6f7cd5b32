//! Mechanisms that the kernel, or a sandbox, refuses: their substitutes do the same.
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
    let own = std::env::current_exe().expect("find test binary");
    let output = Command::new(SECCOMP_RUN)
        .arg(calls)
        .arg(own)
        .args(tests)
        .args(options)
        .args(["--test-threads", "2"])
        .output();
    let output = output.expect("run seccomp_run");
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
        .expect("run seccomp_run")
}

const PLAIN: &[&str] = &[
    "child::wait_returns_the_same_status_again",
    "child::wait_timeout_never_returns_early",
    "set::ten_megabytes_pass_through_cat",
    "set::kill::immediate_kill_ends_group_and_stray_before_done",
    "set::kill::graceful_kill_lets_a_tree_exit",
    "set::suspend::",
    "set::output::",
];

/// Tests that start children: their terminals, limits and signals, and the ends of their trees. `clone` and
/// `clone3` differ in the first steps of a child only, so one test of each kind is enough of the others.
const CHILDREN: &[&str] = &[
    "spawn::",
    "child::",
    "pipeline::bytes_pass_through_every_command",
    "capture::output_has_both_streams_and_the_status",
    "capture::calls_leave_no_descriptor_and_no_zombie",
    "reports::output_of_short_programs_in_terminals",
    "set::kill::die_with_parent_",
    "set::kill::graceful_kill_lets_a_tree_exit",
    "set::kill::immediate_kill_ends_group_and_stray_before_done",
    "set::output::at_exit_output_is_delivered_contiguously",
    "set::restart::many_restarts_leave_no_descriptor_and_no_zombie",
    "set::suspend::only_own_stops_are_reported",
    "set::suspend::suspend_stops_and_resume_continues_the_whole_tree",
    "jobs::control::",
    "guard::kill::killing_one_or_two_guard_processes_ends_the_tree",
    "clock::slack::",
    "cli::descriptors::close_fds_keeps_",
    "cli::descriptors::jobs_",
    "cli::descriptors::guardians_close_inherited_descriptors",
    "cli::signals::first_signal_ends_the_run_in_order",
    "cli::signals::ignored_hangup_stays_ignored",
    "cli::signals::inherited_blocked_signals_are_received",
    "cli::signals::signal_ends_the_whole_tree_of_a_job",
    "cli::terminal::ctrl_c_counts_as_one_interrupt",
    "cli::terminal::ctrl_c_goes_to_a_job_that_has_the_terminal",
    "cli::terminal::job_that_reads_the_terminal_is_reported_and_ended",
    "cli::terminal::jobs_have_no_terminal",
    "cli::terminal::terminals_of_jobs_follow_the_size_of_the_terminal",
];

/// What is tried with `MINDER_LONG=1`.
const ALL_CHILDREN: &[&str] = &[
    "spawn::",
    "child::",
    "pipeline::",
    "capture::",
    "reports::",
    "set::kill::",
    "set::output::",
    "set::restart::",
    "set::suspend::",
    "jobs::",
    "guard::kill::",
    "clock::slack::",
    "cli::descriptors::",
    "cli::signals::",
    "cli::terminal::",
];

#[test]
fn nothing_is_missing_without_clone3() {
    // A filter needs PR_SET_NO_NEW_PRIVS, so that no child becomes another user.
    let mut options = vec!["--skip", "another_user"];
    if !crate::support::is_long() {
        // Races about the variables of this process, which it reads before it starts a child.
        options.extend(["--skip", "while_another_thread_changes_variables"]);
    }
    rerun_with("clone3", if crate::support::is_long() { ALL_CHILDREN } else { CHILDREN }, &options);
    rerun("clone3", &["set::ten_megabytes_pass_through_cat"]);
}

#[test]
fn examples_do_the_same_without_clone3() {
    rerun("clone3", &["examples::programs::"]);
}

#[test]
fn nothing_is_missing_without_clone3_and_pidfds() {
    rerun("clone3,pidfd_open", &["spawn::unix::", "spawn::terminal_keys::", "clock::slack::"]);
}

#[test]
fn only_requested_descriptors_are_inherited_without_close_range() {
    rerun(
        "clone3,close_range",
        &["spawn::unix::child_inherits_the_descriptors", "spawn::unix::null_streams_are"],
    );
}

/// Tests of the promises of a guardian that hold on every kernel. Others look at the descriptors of
/// its program.
const GUARDIAN: &[&str] = &[
    "guardian::api::guarded_children_run_as_others_do",
    "guardian::api::killed_program_is_an_error_of_the_next_start",
    "guardian::api::stopped_program_",
    "guardian::host::killed_host_leaves_",
    "guardian::host::fork_of_the_host_",
    "guardian::host::dropped_guardian_",
];

#[test]
fn guardian_needs_neither_clone3_nor_pidfds() {
    rerun("clone3", GUARDIAN);
    rerun("clone3", &["guardian::api::reaped_", "guardian::api::killed_program_is_started_"]);
    rerun("clone3,pidfd_open,pidfd_send_signal", &[&GUARDIAN[..2], &GUARDIAN[3..]].concat());
    rerun("pidfd_send_signal", &GUARDIAN[..4]);
}

#[test]
fn exits_are_found_by_polling_without_pidfds() {
    rerun("clone3,pidfd_open", PLAIN);
    rerun("clone3,pidfd_open", &["poller::processes::", "poller::foreign_loop::process_exit_is_announced"]);
}

#[test]
fn other_backends_work_without_io_uring() {
    rerun_with("io_uring_setup", &["poller::limits::forbidden_backend"], &["--ignored"]);
    rerun("io_uring_setup", &["set::kill::", "set::foreign_loop::", "poller::readiness::", "doctor::"]);
}

#[test]
fn next_backend_is_used_without_epoll() {
    const DEFAULT: &[&str] = &["background::wait_all_hands_over", "set::restart::stable_run_ends_the_row"];
    rerun("epoll_create1", DEFAULT);
    rerun("epoll_create1,io_uring_setup", DEFAULT);
}

#[test]
fn descriptor_table_is_copied_without_close_range() {
    const STARTS: &[&str] = &[
        "set::ten_megabytes_pass_through_cat",
        "set::kill::immediate_kill_ends_group_and_stray_before_done",
        "spawn::unix::child_inherits_",
        "spawn::unix::children_of_many_threads_share_no_descriptors",
        "spawn::unix::failed_spawn_leaves_no_process_and_no_descriptor",
    ];
    rerun("close_range", if crate::support::is_long() { PLAIN } else { STARTS });
}

#[test]
fn run_succeeds_without_any_of_these_calls() {
    for calls in ["clone3", "pidfd_open", "clone3,pidfd_open", "close_range", "clone3,pidfd_open,close_range"]
    {
        let mut args = vec!["run", "-j4", "echo", "{}", ":::"];
        let words: Vec<String> = (0..50).map(|number| number.to_string()).collect();
        args.extend(words.iter().map(String::as_str));
        let output = minder(calls, &args);
        assert!(output.status.success(), "without {calls}: {output:?}");
        let mut lines: Vec<u32> = String::from_utf8_lossy(&output.stdout)
            .lines()
            .map(|line| line.parse().expect("parse number"))
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..50).collect::<Vec<_>>(), "without {calls}");
    }
}

/// A job whose input ends early takes it for complete. Only a pipe that the job itself closed
/// is its own affair.
#[test]
fn failed_write_is_not_an_end_of_input() {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let lines = dir.path().join("lines");
    let joblog = dir.path().join("joblog");
    std::fs::write(&lines, "line\n".repeat(100_000)).expect("write file");
    let minder = |calls: &str, command: &str| {
        Command::new(SECCOMP_RUN)
            .args([calls, MINDER, "run", "--no-record", "--joblog"])
            .arg(&joblog)
            .args(["--pipe", "--block", "1M", command])
            .stdin(std::fs::File::open(&lines).expect("open file"))
            .output()
            .expect("run seccomp_run")
    };
    let output = minder("write-64k", "wc -c");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(255), "{output:?}");
    assert!(said.contains("failed to write to the input of") && said.contains("space"), "{said}");
    assert_eq!(
        std::fs::read_to_string(&joblog).expect("read joblog").lines().count(),
        1,
        "a row of half a job"
    );
    let output = minder("io_uring_setup", "head -n 1");
    assert!(output.status.success() && output.stdout == b"line\n", "{output:?}");
}

/// The session and parents of a process are 0 inside of a PID namespace if they began outside, as
/// in containers.
#[test]
fn pid_namespace_changes_nothing() {
    let unshare = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--mount-proc"]);
        command
    };
    if !unshare().arg("true").output().is_ok_and(|output| output.status.success()) {
        crate::support::skip(format_args!("a namespace needs unshare(1) and the right to use it"));
        return;
    }
    let own = std::env::current_exe().expect("find test binary");
    let tests = ["set::kill::", "cli::daemons::", "cli::signals::", "groups_and_sessions"];
    let output = unshare().arg(own).args(tests).args(["--test-threads", "2"]).output().expect("run unshare");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.lines().filter(|line| line.ends_with("... ok")).count() > tests.len(), "{text}");
}

#[test]
fn doctor_names_refused_calls() {
    let output = minder("clone3,pidfd_open", &["doctor"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && text.contains("ENOSYS"), "{text}");
}

/// Containers often forbid io_uring: a request for it reports the reason, and another backend is
/// used.
#[test]
fn run_reports_refused_io_uring_and_continues() {
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
fn sleeper_is_exact_enough_without_timerfd() {
    rerun_with("timerfd_create", &["clock::sleeper_without_a_timer"], &["--ignored"]);
}
