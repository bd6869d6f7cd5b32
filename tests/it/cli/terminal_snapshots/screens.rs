//! What a day of use shows, on a small and on a large terminal.

use regex::Regex;

use super::{Terminal, even, file};
use crate::cli::advise::with_members;

/// Columns and rows.
const SIZES: [(u16, u16); 2] = [(80, 24), (120, 40)];

fn open(columns: u16, rows: u16) -> Option<Terminal> {
    let terminal = Terminal::open_with(columns, &[])?;
    terminal.tmux(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
    Some(terminal)
}

/// Fails if a line on the screen is wrapped.
#[track_caller]
fn assert_fits(terminal: &Terminal, name: &str) {
    // Joined lines are fewer. The screen may have moved on meanwhile.
    let screen = terminal.screen();
    let count = |text: &str| text.trim_end().lines().count();
    assert_eq!(count(&screen), count(&terminal.whole_lines()), "{name}: a line is wrapped:\n{screen}");
}

fn replaced(text: &str, pattern: &str, by: &str) -> String {
    Regex::new(pattern).expect("compile pattern").replace_all(text, by).into_owned()
}

#[test]
fn running_jobs_fill_the_screen_and_ctrl_c_ends_them() {
    for (columns, rows) in SIZES {
        let Some(terminal) = open(columns, rows) else { return };
        terminal.line("minder run --progress -j50 'child await go {}' ::: $(seq 60)");
        let running = |screen: &str| screen.contains(" more") && screen.contains("0/60 done · 50 running");
        let screen = terminal.wait_until("the list of jobs", running);
        assert_fits(&terminal, "running jobs");
        // Two jobs that start at the same time may stand in any order.
        insta::assert_snapshot!(format!("running-{columns}"), replaced(&even(&screen), r"go \d+", "go N"));
        terminal.key("C-c");
        terminal.wait_for_prompt("minder resume");
        terminal.clear();
        terminal.line("minder run -j1 'child await go {}' ::: one two three");
        terminal.wait_for_text("0/3 done · 1 running");
        terminal.key("C-c");
        let screen = terminal.wait_for_prompt("minder resume");
        insta::assert_snapshot!(format!("interrupted-{columns}"), even(&screen));
    }
}

#[test]
fn failures_and_their_record_fit_the_screen() {
    for (columns, rows) in SIZES {
        let Some(terminal) = open(columns, rows) else { return };
        let script = "#!/bin/sh\necho checking $2\n\
                      case $2 in *b*) echo \"$2: expected 3, got 4\" >&2; exit 2;; esac\n";
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::write(terminal.work("test.sh"), script).expect("write file");
        std::fs::set_permissions(terminal.work("test.sh"), executable).expect("set permissions");
        terminal
            .line("minder run -k -j2 ./test.sh --a-long-option=that-every-test-gets ::: alpha beta gamma");
        let screen = terminal.wait_for_prompt("3 jobs");
        insta::assert_snapshot!(format!("failures-{columns}"), even(&screen));
        for (name, line, end) in [
            ("log", "minder log", "./test.sh"),
            ("log-run", "minder log last", "gamma"),
            ("log-job", "minder log last 2", "stdout"),
        ] {
            terminal.clear();
            terminal.line(line);
            let screen = terminal.wait_for_prompt(end);
            // The values of variables are whole, and those of another machine are other ones.
            let (shown, environment) = screen.split_once("\nenvironment").unwrap_or((&screen, ""));
            if environment.is_empty() {
                assert_fits(&terminal, name);
            }
            let waited = " · TIME waiting for a processor";
            let shown = even(shown).replace(waited, "");
            let varying = r"today \d+:\d+|\d+-\d+-\d+ \d+:\d+:\d+|/tmp/\S*";
            insta::assert_snapshot!(format!("{name}-{columns}"), replaced(&shown, varying, "_"));
        }
    }
}

/// Changes the record of the only run, as if it had run on a certain machine.
fn change_record(terminal: &Terminal) {
    let runs = std::fs::read_dir(terminal.at("state/runs")).expect("list runs");
    let run = runs.flatten().next().expect("find the run").path();
    let journal = run.join("attempt-1.jsonl");
    let changed = |line: &str| {
        let event = |name: &str| line.starts_with(&format!("{{\"event\":\"{name}\""));
        let members: &[(&str, &str)] = match () {
            () if event("host") => &[("cpus", "2"), ("memory", "16000000000")],
            () if event("ended") && line.contains("\"job\":6,") => &[
                ("at", "1.0"),
                ("wall", "8.0"),
                ("user", "2.0"),
                ("main", "2.0"),
                ("system", "0"),
                ("ready", "0"),
            ],
            () if event("ended") => &[
                ("at", "1.0"),
                ("wall", "1.0"),
                ("user", "0.5"),
                ("main", "0.5"),
                ("system", "0"),
                ("ready", "0"),
            ],
            () if event("over") => &[("elapsed", "10.0"), ("cpu_busy", "4.5"), ("cpu_idle", "15.5")],
            () => &[],
        };
        with_members(line, members)
    };
    let text: String = file(&journal).lines().map(changed).collect();
    std::fs::write(&journal, text).expect("write journal");
}

#[test]
fn advice_about_a_run_fits_the_screen() {
    for (columns, rows) in SIZES {
        let Some(terminal) = open(columns, rows) else { return };
        terminal.line("minder run -j2 'sleep 0.0{}; : a long line that has no end' ::: 1 2 3 4 5 6");
        terminal.wait_for_prompt("6 jobs");
        change_record(&terminal);
        terminal.clear();
        terminal.line("minder advise");
        let screen = terminal.wait_for_prompt("Prediction error");
        assert_fits(&terminal, "advise");
        insta::assert_snapshot!(format!("advise-{columns}"), screen.trim_end());
    }
}

#[test]
fn state_of_the_clocks_fits_the_screen() {
    for (columns, rows) in SIZES {
        let Some(terminal) = open(columns, rows) else { return };
        terminal.line("minder clock");
        let screen = terminal.wait_for_prompt("load ");
        assert_fits(&terminal, "clock");
        // What is unusual is another text on each machine, and some have no name of a clock source.
        let end = screen.find("\nload ").expect("find the load");
        let shown = replaced(&screen[..end], r"(?m)^clock source .*\n", "");
        let shown = replaced(&shown, r"[0-9.]+ (ns|µs|ms|s)\b", "TIME");
        insta::assert_snapshot!(format!("clock-{columns}"), replaced(&shown, " {2,}", "  "));
    }
}

#[test]
fn reports_about_the_machine_fit_the_screen() {
    for (columns, rows) in SIZES {
        let Some(terminal) = open(columns, rows) else { return };
        terminal.line("minder run -j2 'sleep 0.1; : {}' ::: 1 2 3 4 5 6");
        terminal.wait_for_prompt("6 jobs");
        for (name, line, end) in [
            ("advise", "minder advise", "elapsed"),
            ("doctor", "minder doctor", "minder"),
            ("status", "minder status", "no run"),
        ] {
            terminal.clear();
            terminal.line(line);
            terminal.wait_for_prompt(end);
            assert_fits(&terminal, name);
        }
    }
}
