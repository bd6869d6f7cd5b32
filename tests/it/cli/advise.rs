//! `minder advise`: which run it reads, what it says about runs of every kind, and its JSON. How
//! right the predictions are is a matter of `cargo xtask bench advise`.
#![cfg(any(target_os = "linux", windows))]

use std::fs;
use std::path::{Path, PathBuf};

use minder::Command;

use super::{Run, RunOutput, minder};

/// A private state directory.
struct State(tempfile::TempDir);

impl State {
    fn new() -> Self {
        Self(super::temp_dir())
    }

    fn command(&self, line: &str, dir: &Path) -> Command {
        let mut command = minder(line);
        command.env("MINDER_STATE_DIR", self.0.path().join("state")).current_dir(dir);
        command
    }

    fn run(&self, line: &str) -> RunOutput {
        Run::start(&self.command(line, self.0.path())).wait()
    }

    fn journals(&self) -> Vec<PathBuf> {
        let runs = fs::read_dir(self.0.path().join("state/runs")).expect("list runs").flatten();
        runs.map(|run| run.path().join("attempt-1.jsonl")).collect()
    }
}

/// Returns the value of a key in pretty JSON: of the first line with it after `section`.
fn value<'a>(json: &'a str, section: &str, key: &str) -> &'a str {
    let (_, rest) =
        json.split_once(&format!("\"{section}\": ")).unwrap_or_else(|| panic!("{section}: {json}"));
    let (_, rest) = rest.split_once(&format!("\"{key}\": ")).unwrap_or_else(|| panic!("{key}: {json}"));
    rest.lines().next().expect("read value").trim_end_matches(',')
}

fn number(json: &str, section: &str, key: &str) -> f64 {
    value(json, section, key).parse().unwrap_or_else(|error| panic!("{section}.{key}: {error}: {json}"))
}

#[test]
fn jobs_that_wait_are_advised_to_run_at_once() {
    let state = State::new();
    state.run("run -j2 --tag KID sleep-ms ::: 300 310 320 330").exit_code(0);
    let json = state.run("advise --json").exit_code(0).stderr("").text();
    assert!(json.contains("\"jobs\": 4,"), "{json}");
    assert_eq!(
        (number(&json, "as_run", "slots"), number(&json, "one_by_one", "slots")),
        (2.0, 1.0),
        "{json}"
    );
    let serial = number(&json, "one_by_one", "elapsed");
    assert!(serial >= 1.25, "{json}");
    for section in ["advised", "as_run"] {
        let elapsed = number(&json, section, "elapsed");
        assert!(elapsed >= 0.32 && elapsed <= serial, "{section}: {json}");
        assert!(number(&json, section, "mean") <= number(&json, section, "p95"), "{section}: {json}");
    }
    let slots = number(&json, "advised", "slots");
    assert!(json.contains(&format!("\"flags\": \"-j{slots}")), "{json}");
    let error = json.lines().find_map(|line| line.trim().strip_prefix("\"error\": ")).expect("find error");
    assert!(error.trim_end_matches(',').parse::<f64>().is_ok_and(|error| error >= 0.03), "{json}");
    let text = state.run("advise last").exit_code(0).stderr("").text();
    for part in ["This work was ", "  one by one ", "  as it ran (-j2) ", "  advised (-j", "within "] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = format!("  minder run --tag -j{slots}");
    assert!(text.contains(&line) && text.contains(" sleep-ms ::: …\n"), "{text}");
}

#[test]
fn last_run_of_this_directory_is_read_by_default() {
    let state = State::new();
    let here = state.0.path().join("here");
    let there = state.0.path().join("there");
    for (dir, jobs) in [(&here, "0 0 0"), (&there, "0 0 0 0 0")] {
        fs::create_dir(dir).expect("create directory");
        Run::start(&state.command(&format!("run KID exit ::: {jobs}"), dir)).wait().exit_code(0);
    }
    let jobs = |line: &str, dir: &Path| {
        let json = Run::start(&state.command(line, dir)).wait().exit_code(0).text();
        let line = json.lines().find_map(|line| line.trim().strip_prefix("\"jobs\": ").map(str::to_owned));
        line.expect("find number of jobs")
    };
    assert_eq!(jobs("advise --json", &here), "3,");
    assert_eq!(jobs("advise --json", &there), "5,");
    assert_eq!(jobs("advise --json last", &here), "5,");
    // No run was started here.
    assert_eq!(jobs("advise --json", state.0.path()), "5,");
}

#[test]
fn killed_and_old_records_are_read() {
    let state = State::new();
    state.run("run -j2 KID sleep-ms ::: 50 50 50").exit_code(0);
    let journal = state.journals().pop().expect("find journal");
    let text = fs::read_to_string(&journal).expect("read journal");
    let kept = |drop: &[&str]| {
        let lines = text.split_inclusive('\n');
        let lines =
            lines.filter(|line| !drop.iter().any(|event| line.contains(&format!("\"event\":\"{event}\""))));
        fs::write(&journal, lines.collect::<String>()).expect("write journal");
        state.run("advise").exit_code(0).stderr("").text()
    };
    let killed = kept(&["over"]);
    assert!(killed.contains("The run was killed, so its elapsed time is that of the model."), "{killed}");
    let old = kept(&["host"]);
    assert!(old.contains("How many jobs ran at once is not recorded: -j"), "{old}");
    assert!(old.contains("The number of processors is not recorded: "), "{old}");
}

#[test]
fn jobs_without_a_usual_end_are_left_out() {
    let state = State::new();
    state.run("run -j2 --timeout 0.4 KID sleep-ms ::: 5 6000 7").exit_code(1);
    let text = state.run("advise").exit_code(0).text();
    assert!(text.contains("Left out: 1 job ended by a signal, a time-out or short memory."), "{text}");
    assert!(text.contains("; 2 jobs of "), "{text}");
}

#[cfg(unix)] // A POSIX shell's line.
#[test]
fn advised_line_is_the_same_command_to_a_shell() {
    let state = State::new();
    let run = |words: &[&str]| {
        let mut command = state.command("run -j2", state.0.path());
        Run::start(command.args(words)).wait().exit_code(0);
        let text = state.run("advise").exit_code(0).text();
        let line = text.lines().find_map(|line| line.strip_prefix("  minder run ")).expect("find the line");
        // The shell prints each argument, where the advice has values to fill in.
        let script = format!("printf '<%s>' {}", line.replace(":::", "").replace('…', ""));
        let mut shell = super::from("sh", "-c");
        let printed = Run::start(shell.arg(script)).wait().exit_code(0).text();
        let (_, after_flags) = printed.split_once("<-j").unwrap_or_else(|| panic!("{line}: {printed}"));
        let (_, command) = after_flags.split_once('>').expect("find the command");
        command.to_owned()
    };
    let template = "echo one >/dev/null\necho two {}";
    assert_eq!(run(&[template, ":::", "a", "b"]), format!("<{template}>"));
    assert_eq!(run(&["printf", "%s\x1b[m\n\n", ":::", "a", "b"]), "<printf><%s\x1b[m\n\n>");
}
