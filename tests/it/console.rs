//! The command in a Windows console: what Ctrl-C and Ctrl-Break do. Each test creates a separate
//! console without a window.

use std::fs;
use std::process::Output;

use minder::{Command, Group};

use crate::support::output_of;

const MINDER: &str = env!("CARGO_BIN_EXE_minder-dup");
const CONSOLE_CHILD: &str = env!("CARGO_BIN_EXE_console_child");

/// Runs two jobs that sleep, of three, and presses the key when both run. Gives the journal as
/// well.
fn press(key: &str) -> (Output, String) {
    let dir = tempfile::tempdir().expect("create temporary directory");
    let marker = dir.path().join("marker");
    let state = dir.path().join("state");
    let mut command = Command::new(CONSOLE_CHILD);
    command.args(["press", key, "2"]).arg(&marker).arg(MINDER);
    command.args(["run", "-j2", CONSOLE_CHILD, "sleep"]).arg(&marker).args([":::", "a", "b", "c"]);
    // A group leader and its children ignore Ctrl-C.
    let output = output_of(command.env("MINDER_STATE_DIR", &state).group(Group::Inherit));
    let mut runs = fs::read_dir(state.join("runs")).expect("list runs");
    let run = runs.next().expect("find run").expect("read directory entry");
    (output, fs::read_to_string(run.path().join("attempt-1.jsonl")).expect("read file"))
}

/// Windows ends programs without a handler for these keys with this exit status.
fn ends_the_jobs_and_the_run(key: &str, why: &str) {
    let (output, journal) = press(key);
    let out = String::from_utf8_lossy(&output.stdout);
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(out.trim_end(), "c000013a 0", "{key}: {err}");
    assert!(err.contains(&format!("minder: {why}: killed 2 running jobs")), "{key}: {err}");
    let last = journal.lines().last().unwrap_or_default();
    assert!(last.contains("\"over\"") && last.contains("\"why\""), "{key}: {journal}");
}

#[test]
fn ctrl_c_ends_the_jobs_and_the_run() {
    ends_the_jobs_and_the_run("c", "interrupted");
}

#[test]
#[ignore = "Wine 8 refuses to press Ctrl-Break in a console without a window"]
fn ctrl_break_ends_the_jobs_and_the_run() {
    ends_the_jobs_and_the_run("break", "terminating");
}
