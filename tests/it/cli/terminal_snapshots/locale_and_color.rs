//! `NO_COLOR`, `LC_ALL=C`, and terminals with few abilities.

use regex::Regex;

use super::{Terminal, even};

/// A run with all that is colored: a bar, job lines, a failure.
const RUN: &str =
    "minder run -k -j2 --bar --status-level all 'child await go {}; test {} != two' ::: one two";

/// Returns the screen without control sequences for colors and attributes.
fn plain(screen: &str) -> String {
    Regex::new("\x1b\\[[0-9;]*m").expect("compile pattern").replace_all(screen, "").into_owned()
}

/// Runs [`RUN`], and returns the screen with colors, while the bar is shown and at the end.
fn screens(terminal: &Terminal, run: &str) -> [String; 2] {
    let colored = || terminal.tmux(&["capture-pane", "-p", "-e", "-J"]);
    terminal.line(run);
    terminal.wait_until("a bar", |screen| screen.contains("0/2 done") && screen.contains("2 running"));
    let bar = colored();
    std::fs::write(terminal.work("go"), "").expect("write file");
    terminal.wait_for_prompt("failed: child");
    let end = colored();
    std::fs::remove_file(terminal.work("go")).expect("remove file");
    [bar, end]
}

/// Makes screens equal whose jobs end in any order.
fn sorted(screen: &str) -> Vec<String> {
    let mut lines: Vec<String> = even(&plain(screen)).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn no_color_changes_nothing_but_colors() {
    let Some(terminal) = Terminal::open() else { return };
    let colored = screens(&terminal, RUN);
    terminal.line("export NO_COLOR=1");
    terminal.clear();
    let no_color = screens(&terminal, RUN);
    for (colored, no_color) in colored.iter().zip(&no_color) {
        assert!(colored.contains("\x1b["), "{colored:?}");
        assert!(!no_color.contains('\x1b'), "{no_color:?}");
        assert_eq!(sorted(colored), sorted(no_color));
    }
    assert!(colored[1].contains("\x1b[31mFAIL") && colored[1].contains("\x1b[32mok"), "{colored:?}");
    insta::assert_snapshot!("no-color-bar", even(&no_color[0]));
}

#[test]
fn locale_without_utf8_gets_ascii() {
    let Some(terminal) = Terminal::open_with(80, &[("LC_ALL", "C")]) else { return };
    let screens = screens(&terminal, RUN);
    for screen in &screens {
        assert!(screen.is_ascii(), "{screen}");
    }
    insta::assert_snapshot!("ascii-bar", even(&plain(&screens[0])));
    terminal.clear();
    terminal.line("minder run -j1 --quiet true ::: 1 2 3 4 5 a-very-long-argument");
    terminal.wait_for_prompt("--quiet");
    terminal.clear();
    terminal.line("minder log");
    let screen = terminal.wait_for_prompt("jobs");
    assert!(screen.is_ascii() && screen.contains("true ::: 1 2 3 ..."), "{screen}");
    for (line, over) in [
        ("minder log last 1", "stderr"),
        ("minder advise last", "Prediction error"),
        ("minder doctor", "limits"),
    ] {
        terminal.clear();
        terminal.line(line);
        let screen = terminal.wait_for_prompt(over);
        assert!(screen.is_ascii(), "{line}: {screen}");
    }
}

#[test]
fn terminal_without_abilities_gets_neither_status_line_nor_color() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("TERM=dumb minder run -j2 'child sleep-ms 2500; test {} = 1' ::: 1 2");
    let screen = terminal.wait_until("the end", |screen| {
        assert!(!screen.contains("running"), "{screen}");
        screen.contains("failed: ")
    });
    assert!(screen.contains("minder: 2 jobs · 1 failed"), "{screen}");
    assert!(!terminal.tmux(&["capture-pane", "-p", "-e"]).contains('\x1b'));
    // Without a name of the terminal, it counts as one that can all, as in other programs.
    terminal.clear();
    terminal.line("env -u TERM minder run -j1 'child await go {}' ::: 1");
    terminal.wait_for_text("0/1 done · 1 running");
    std::fs::write(terminal.work("go"), "").expect("write file");
    let screen = terminal.wait_for_prompt("1 job");
    assert!(!screen.contains("running"), "{screen}");
}

#[test]
fn terminal_without_a_size_counts_as_80_columns() {
    let Some(terminal) = Terminal::open() else { return };
    terminal.line("stty rows 0 cols 0; minder run -k -j2 --progress 'child await go {}' ::: 1 2");
    terminal.wait_for_text("0/2 done · 2 running");
    std::fs::write(terminal.work("go"), "").expect("write file");
    let screen = terminal.wait_for_prompt("2 jobs");
    assert!(screen.contains("\n1\n2\nminder: 2 jobs") && !screen.contains("running"), "{screen}");
    for line in ["minder log", "minder doctor", "minder log last 1", "minder advise"] {
        terminal.clear();
        terminal.line(&format!("{line}; echo [$?]"));
        terminal.wait_for_prompt("\n[0]\n");
    }
}
