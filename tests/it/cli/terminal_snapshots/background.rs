//! Job control: a run in the background, and keys while the status line is shown.

use std::time::Duration;

use super::{Terminal, even, state};
use crate::cli::file;
use crate::support::nap;

/// Longer than it takes until a status line is shown.
const STATUS_SHOWN: Duration = Duration::from_secs(3);

#[test]
fn run_in_the_background_leaves_the_terminal_to_other_programs() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -j1 --bar 'child await go {}' ::: one & echo $! > pid");
    terminal.wait_until_true("a pid", || file(&terminal.work("pid")).ends_with('\n'));
    terminal.clear();
    terminal.line("cat");
    terminal.tmux(&["send-keys", "-l", "typed text"]);
    let wanted = "$ cat\ntyped text";
    terminal.wait_until("what was typed", |screen| screen.trim_end() == wanted);
    // That nothing comes is the point.
    nap(STATUS_SHOWN);
    assert_eq!(terminal.screen().trim_end(), wanted);
    let pid = file(&terminal.work("pid"));
    assert_ne!(state(&pid), "T", "it is stopped by SIGTTOU");
    terminal.key("Enter");
    terminal.key("C-d");
    terminal.line("fg");
    terminal.wait_for_text("0/1 done · 1 running");
    std::fs::write(terminal.work("go"), "").expect("write file");
    let screen = terminal.wait_for_prompt("1 job");
    assert!(screen.contains("\none\nminder: 1 job") && !screen.contains("running"), "{screen}");
}

#[test]
fn run_that_is_stopped_and_put_into_the_background_draws_nothing() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -j1 'child await go {}' ::: one");
    terminal.wait_for_text("0/1 done · 1 running");
    terminal.key("C-z");
    terminal.wait_for_prompt("Stopped");
    insta::assert_snapshot!("stopped-status", even(&terminal.screen()));
    terminal.clear();
    terminal.line("bg");
    terminal.wait_for_prompt("&");
    nap(STATUS_SHOWN);
    let screen = terminal.screen();
    assert!(!screen.contains("running"), "{screen}");
    terminal.line("fg");
    terminal.wait_for_text("0/1 done · 1 running");
    std::fs::write(terminal.work("go"), "").expect("write file");
    terminal.wait_for_prompt("1 job");
    assert_eq!(terminal.status(), "[0]");
}

#[test]
fn ctrl_c_erases_the_status_line() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -j1 'child await go {}' ::: one two");
    terminal.wait_for_text("0/2 done · 1 running");
    terminal.key("C-c");
    terminal.wait_for_prompt("to resume:");
    insta::assert_snapshot!("interrupted-status", even(&terminal.whole_lines()));
    assert_eq!(terminal.status(), "[130]");
}

#[test]
fn benchmark_in_the_background_draws_no_progress() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder bench wait --rounds 3 --objects 2 --mechanism poll > table &");
    terminal.line("echo");
    let screen = terminal.wait_until("the end", |screen| {
        assert!(!screen.contains("round 1"), "{screen}");
        !file(&terminal.work("table")).is_empty()
    });
    assert!(!screen.contains("poll, 2 objects"), "{screen}");
}
