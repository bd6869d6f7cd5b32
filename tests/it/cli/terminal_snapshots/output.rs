//! The output of jobs above the status line, and at the end of a run.

use super::{Terminal, even};

#[test]
fn failed_jobs_are_listed_and_shown_again_at_the_end() {
    let Some(terminal) = Terminal::open() else { return };
    let job = "echo out {}; echo err {} >&2; exit {}";
    terminal.line(&format!("minder run -k -j1 --failure-output immediate-final '{job}' ::: 0 1 2"));
    terminal.wait_for_prompt("(exit 2");
    insta::assert_snapshot!("immediate-final", even(&terminal.whole_lines()));
    terminal.clear();
    terminal
        .line(&format!("minder run -k -j1 --failure-output final --success-output never '{job}' ::: 0 1"));
    terminal.wait_for_prompt("(exit 1");
    insta::assert_snapshot!("final", even(&terminal.whole_lines()));
}

#[test]
fn each_end_has_a_line_with_status_level_all() {
    let Some(terminal) = Terminal::open_with(110, &[]) else { return };
    let job = "child await go-{} {}; test {} != b";
    let flags = "-k -j2 --status-level all --retries 2 --halt now,fail=1";
    terminal.line(&format!("minder run {flags} '{job}' ::: a b c d"));
    terminal.wait_for_text("0/4 done · 2 running");
    std::fs::write(terminal.work("go-a"), "").expect("write file");
    terminal.wait_for_text("1/4 done · 2 running");
    std::fs::write(terminal.work("go-b"), "").expect("write file");
    terminal.wait_for_prompt("not started: 1 job");
    insta::assert_snapshot!("status-level", even(&terminal.whole_lines()));
}

#[test]
fn unfinished_and_colored_output_is_not_damaged() {
    // `-u` and `--tty` have no status line; the output is the same.
    for flags in ["--lb -j1", "-j1", "-k -j2", "-u -j1", "--tty", "--pty --lb -j1"] {
        let Some(terminal) = Terminal::open() else { return };
        let job = r#"printf "\033[31mred-{}"; child await go ""; printf "half-{}""#;
        let job = format!(r#"{job}; child await more ""; printf "\033[m\n""#);
        terminal.line(&format!("clear; minder run {flags} '{job}' ::: 1 2"));
        // Of `--lb`, only whole lines are shown.
        let [begun, half] = if flags.contains("--lb") { ["0/2 done", "red-1"] } else { ["red-1", "half-1"] };
        terminal.wait_for_text(begun);
        std::fs::write(terminal.work("go"), "").expect("write file");
        terminal.wait_for_text(half);
        std::fs::write(terminal.work("more"), "").expect("write file");
        let screen = terminal.wait_for_prompt("2 jobs");
        let text = even(&screen);
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        // `await` writes a line end.
        let whole: Vec<&str> = lines.iter().copied().filter(|line| !line.is_empty()).collect();
        assert_eq!(whole[..4], ["red-1", "half-1", "red-2", "half-2"], "{flags}: {screen}");
        assert!(whole[4].starts_with("minder: 2 jobs · 0 failed"), "{flags}: {screen}");
        assert_eq!(whole[5..], ["$"], "{flags}: {screen}");
        let colors = terminal.tmux(&["capture-pane", "-p", "-e"]);
        let summary = colors.lines().find(|line| line.contains("minder: 2 jobs")).unwrap_or_default();
        assert!(!summary.contains("[31m"), "{flags}: {colors:?}");
    }
}
