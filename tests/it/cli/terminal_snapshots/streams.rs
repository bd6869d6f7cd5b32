//! Streams that are not all of them the terminal, and those that are closed.

use super::Terminal;
use crate::cli::file;

/// A run that is long enough for a status line.
const RUN: &str = "minder run -k -j2 'child sleep-ms 2500; echo {}' ::: 1 2";

#[test]
fn status_line_goes_to_no_file_and_not_over_a_pager() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line(&format!("{RUN} 2> log; echo [$?]"));
    let screen = terminal.wait_until("the end", |screen| {
        assert!(!screen.contains("running"), "{screen}");
        screen.contains("[0]")
    });
    assert!(screen.contains("\n1\n2\n[0]\n"), "{screen}");
    assert_eq!(file(&terminal.work("log")), "");
    terminal.clear();
    terminal.line(&format!("{RUN} > log; echo [$?]"));
    terminal.wait_for_text("0/2 done · 2 running");
    let screen = terminal.wait_for_prompt("\n[0]\n");
    assert!(screen.contains("\nminder: 2 jobs") && !screen.contains("running"), "{screen}");
    assert_eq!(file(&terminal.work("log")), "1\n2\n");
    terminal.clear();
    terminal.line(&format!("{RUN} | less"));
    let screen = terminal.wait_until("a pager", |screen| {
        assert!(!screen.contains("running"), "{screen}");
        screen.contains("2 jobs") && screen.contains("(END)")
    });
    // The pager may draw the second line after the summary.
    assert!(
        ["1", "2"].iter().all(|wanted| screen.lines().any(|line| line.trim_end() == *wanted)),
        "{screen}"
    );
    terminal.key("q");
    terminal.wait_until("a prompt", |screen| screen.trim_end().ends_with("\n$"));
}

#[test]
fn program_script_records_the_display() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line(&format!("script -qec \"{RUN}\" record"));
    terminal.wait_for_text("0/2 done · 2 running");
    let screen = terminal.wait_for_prompt("2 jobs");
    assert!(screen.contains("\n1\n2\nminder: 2 jobs") && !screen.contains("running"), "{screen}");
    assert!(file(&terminal.work("record")).contains("0/2 done · 2 running"));
}

#[test]
fn closed_streams_are_reported_or_left_alone() {
    let Some(terminal) = Terminal::open() else { return };
    for (line, wanted) in [
        ("minder run -k echo ::: 1 >&-", "minder: cannot write to standard output: it is closed\n[255]"),
        ("minder log >&-", "minder: cannot write to standard output: it is closed\n[255]"),
        ("minder doctor >&-", "minder: cannot write to standard output: it is closed\n[255]"),
        ("minder run -k --bar echo ::: 1 2 2>&-", "1\n2\n[0]"),
        ("minder run -j1 'echo {} >&2; exit 3' ::: 1 2>&-", "[1]"),
        ("minder run --bar true ::: 1 2 >&- 2>&-", "[0]"),
        ("minder run --bar true ::: 1 2 <&- 2>&-", "[0]"),
    ] {
        // Not in the same line: until the shell has read it, the screen is the one of the line before.
        terminal.clear();
        terminal.line(&format!("{line}; echo [$?]"));
        let screen = terminal.wait_for_prompt("]\n");
        assert_eq!(screen.trim_end(), format!("$ {line}; echo [$?]\n{wanted}\n$"), "{line}");
    }
}
