//! Narrow terminals, and windows that change their size.

use super::{Terminal, even};
use crate::cli::file;

/// Makes the window this wide.
fn resize(terminal: &Terminal, columns: u16) {
    terminal.tmux(&["resize-window", "-x", &columns.to_string(), "-y", "24"]);
}

#[test]
fn run_fits_narrow_terminals() {
    for columns in [20, 40, 60] {
        let Some(terminal) = Terminal::open_with(columns, &[]) else { return };
        terminal.line("minder run -k -j2 'child await g {}; test {} != 9' ::: 0 1 2 3 4 5 6 7 8 9");
        // Lines that the terminal has broken are joined.
        terminal.wait_until("a status line", |screen| screen.contains("0/10 done"));
        insta::assert_snapshot!(format!("status-{columns}"), even(&terminal.whole_lines()));
        let status = terminal.screen();
        let status = status.lines().find(|line| line.contains("0/10 done")).unwrap_or_default();
        assert!(status.chars().count() < usize::from(columns), "{status:?}");
        std::fs::write(terminal.work("g"), "").expect("write file");
        terminal.wait_for_prompt("(exit 1");
        // What was before may have scrolled away.
        let text = even(&terminal.whole_lines());
        let (_, end) = text.split_once("\n8\n").expect("find the last jobs");
        insta::assert_snapshot!(format!("end-{columns}"), end);
    }
}

#[test]
fn list_of_runs_is_that_of_the_readme() {
    let Some(terminal) = Terminal::open() else { return };
    let script = "#!/bin/sh\ncase $1 in linux) echo built $1;; mac) echo no SDK for mac >&2; exit 2;; \
                  *) exec child await go built $1;; esac\n";
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::write(terminal.work("build.sh"), script).expect("write file");
    std::fs::set_permissions(terminal.work("build.sh"), executable).expect("set permissions");
    terminal.line("minder run -j2 -k ./build.sh ::: linux mac bsd haiku &");
    terminal.wait_for_text("no SDK for mac");
    terminal.wait_until_true("two finished jobs", || {
        let runs = std::fs::read_dir(terminal.at("state").join("runs")).into_iter().flatten().flatten();
        runs.map(|run| file(&run.path().join("attempt-1.jsonl"))).any(|it| it.contains(r#""job":2"#))
    });
    terminal.line("kill -9 %1");
    terminal.line("echo");
    terminal.wait_for_text("Killed");
    terminal.clear();
    terminal.line("minder log");
    let screen = even(&terminal.wait_for_prompt(" left · "));
    let readme = file(&path_of_readme());
    let (_, after) = readme.split_once("    $ minder log\n").expect("find the list of runs");
    let list: Vec<&str> = after.lines().take_while(|line| !line.starts_with("    $")).collect();
    let list: Vec<String> = list.iter().map(|line| normal(line)).collect();
    let shown: Vec<String> = screen.lines().skip(1).take(list.len()).map(normal).collect();
    assert_eq!(shown, list, "{screen}");
}

fn path_of_readme() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md")
}

/// Replaces the id and the times of a line, and the spaces between its words.
fn normal(line: &str) -> String {
    let resume = regex::Regex::new(r"resume [0-9a-f]{4}$").expect("compile pattern");
    let line = resume.replace_all(line, "resume ID");
    let line = regex::Regex::new(r"\d\d:\d\d").expect("compile pattern").replace_all(&line, "TIME");
    even(&line).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn window_may_change_while_the_status_line_is_shown() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -k -j2 'child await go-{} {}' ::: one two three");
    terminal.wait_for_text("0/3 done · 2 running");
    // A wider window, one that is narrower than the line, and the first one.
    resize(&terminal, 120);
    std::fs::write(terminal.work("go-one"), "").expect("write file");
    terminal.wait_for_text("1/3 done · 2 running");
    resize(&terminal, 20);
    let is_narrow = |line: &str| line.ends_with("1/3 done") && line.chars().count() < 20;
    terminal.wait_until("a short line", |screen| screen.lines().any(is_narrow));
    resize(&terminal, 80);
    // minder learns of the width after the terminal has rewrapped the line.
    std::fs::write(terminal.work("go-two"), "").expect("write file");
    terminal.wait_for_text("2/3 done · 1 running");
    std::fs::write(terminal.work("go-three"), "").expect("write file");
    let screen = terminal.wait_for_prompt("3 jobs");
    let text = even(&screen);
    let lines: Vec<&str> = text.lines().collect();
    let words: Vec<&str> =
        lines.iter().copied().filter(|line| ["one", "two", "three"].contains(line)).collect();
    assert_eq!(words, ["one", "two", "three"], "{screen}");
    assert_eq!(lines[0], "$ minder run -k -j2 'child await go-{} {}' ::: one two three");
    // A part of the line from before the change may be left above: the terminal rewraps it without a notice.
    let end = lines.iter().position(|line| line.starts_with("minder: 3 jobs · 0 failed · "));
    let end = end.unwrap_or_else(|| panic!("no summary on a separate line:\n{screen}"));
    assert_eq!(lines[end - 1], "three", "something is left before the summary:\n{screen}");
    assert_eq!(lines[end + 1..], ["$"], "something is left behind the summary:\n{screen}");
}

#[test]
fn tables_fit_80_columns() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("minder run -j1 --quiet 'echo to stdout {}; echo to stderr {} >&2; exit {}' ::: 0 1 20");
    terminal.wait_for_prompt("20");
    for (line, over) in [
        ("minder log", "jobs"),
        ("minder log last --failed", "to stderr 20"),
        ("minder log last 2", "to stderr 1"),
        ("minder doctor", "limits"),
        ("minder advise last", "Prediction error"),
    ] {
        terminal.clear();
        terminal.line(line);
        terminal.wait_for_prompt(over);
        // The terminal itself has broken no line of ours, except those that are to be copied.
        let copied = |line: &&str| line.starts_with("            PATH=") || line.starts_with("  minder run ");
        let screen = terminal.whole_lines();
        let long: Vec<&str> =
            screen.lines().filter(|line| line.chars().count() > 80 && !copied(line)).collect();
        assert_eq!(long, [""; 0], "{line}:\n{screen}");
    }
    insta::assert_snapshot!("failed-jobs", {
        terminal.clear();
        terminal.line("minder log last --failed");
        even(&terminal.wait_for_prompt("to stderr 20"))
    });
}

#[test]
fn list_of_runs_and_status_use_the_width_for_commands() {
    let changing =
        regex::Regex::new(r"resume [0-9a-f]{4}\b|(today|yesterday) +\S+").expect("compile pattern");
    let pid = regex::Regex::new(r"pid \d+").expect("compile pattern");
    for columns in [80, 120] {
        let Some(terminal) = Terminal::open_with(columns, &[]) else { return };
        let line =
            "minder run -j1 --quiet --halt now,fail=1 'echo compile {} without warnings; exit {}' ::: 1 2";
        terminal.line(line);
        terminal.wait_for_prompt("compile 1");
        terminal.clear();
        terminal.line("minder log");
        let screen = even(&terminal.wait_for_prompt(" left · "));
        let list = changing.replace_all(&screen, "CHANGING");
        insta::assert_snapshot!(format!("runs-{columns}"), list);
        terminal.line("minder run -j2 child await go-{} {} ::: one two three 2>/dev/null &");
        terminal.clear();
        terminal.line("until minder status 2>&1 | grep -q '2 running'; do :; done; clear; minder status");
        let screen = terminal.wait_for_prompt("go-two");
        insta::assert_snapshot!(format!("status-{columns}"), pid.replace_all(&even(&screen), "pid PID"));
        for name in ["one", "two", "three"] {
            std::fs::write(terminal.work(&format!("go-{name}")), "").expect("write file");
        }
    }
}
