//! One attempt: its two lines, and its outcome.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use minder::{Command, ExitStatus, Stdio};
use regex::Regex;

use super::super::{Run, path, temp_dir};
use super::table::{Attempt, Task};

/// The outcome of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Right,
    Led,
    Misled,
    Silent,
}

impl Outcome {
    pub(super) const ALL: [Self; 4] = [Self::Right, Self::Led, Self::Misled, Self::Silent];

    /// Returns the name in the tables.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Right => "right",
            Self::Led => "led",
            Self::Misled => "misled",
            Self::Silent => "silent",
        }
    }
}

/// Subcommands, which a word in capitals does not stand for.
const SUBCOMMANDS: [&str; 10] =
    ["run", "log", "resume", "retry", "xargs", "parallel", "sem", "help", "doctor", "relay"];

/// The result of a line.
struct Result {
    status: i32,
    out: String,
    err: String,
}

/// Runs an attempt with this program. Returns the outcome, and what was printed.
pub(super) fn try_attempt(task: &Task, attempt: &Attempt, minder: &OsStr) -> (Outcome, String) {
    let dir = temp_dir();
    for name in ["bin", "work", "home"] {
        std::fs::create_dir(dir.path().join(name)).expect("create directory");
    }
    std::os::unix::fs::symlink(minder, dir.path().join("bin/minder")).expect("create symbolic link");
    for line in &task.given {
        run_line(dir.path(), line, false);
    }
    let first = run_task_line(dir.path(), task, &attempt.line);
    let said = format!("exit {}\n{}{}", first.status, first.out, first.err);
    if is_right(task, &first) {
        return (Outcome::Right, said);
    }
    let message = message(&first.err);
    let says = attempt.says.as_deref();
    let second = attempt
        .then
        .iter()
        .filter(|line| leads(&attempt.line, line, &message, says))
        .find(|line| is_right(task, &run_task_line(dir.path(), task, line)));
    let outcome = match second {
        Some(_) => Outcome::Led,
        None if message.is_empty() && [0, task.status].contains(&first.status) => Outcome::Silent,
        None => Outcome::Misled,
    };
    (outcome, said)
}

/// Runs an attempt of a task, and then its `check`.
fn run_task_line(dir: &Path, task: &Task, line: &str) -> Result {
    let mut result = run_line(dir, line, task.has_terminal);
    if let Some(check) = &task.check {
        result.out += &run_line(dir, check, false).out;
    }
    result
}

/// Runs a line of the shell in the directory of an attempt.
fn run_line(dir: &Path, line: &str, has_terminal: bool) -> Result {
    let mut command = if has_terminal {
        let mut command = Command::new(dir.join("bin/minder"));
        command.args(["relay", "--pty", "--rows", "24", "--columns", "110", "bash"]);
        command
    } else {
        Command::new("bash")
    };
    let all = std::env::var("PATH").unwrap_or_default();
    command
        .args(["-o", "pipefail", "-c", line])
        .current_dir(dir.join("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("PATH", format!("{}:{all}", path(&dir.join("bin"))))
        .env("HOME", dir.join("home"))
        .env("SHELL", "/bin/bash")
        .env("LC_ALL", "C.UTF-8")
        .env("TERM", "xterm")
        .env("MINDER_STATE_DIR", dir.join("state"));
    for name in super::super::AROUND.into_iter().chain(["PARALLEL", "BASH_ENV"]) {
        command.env_remove(name);
    }
    let ended = Run::start(&command).wait();
    let status = match ended.status {
        ExitStatus::Exited(code) => code,
        _ => -1,
    };
    let out = ended.text();
    let mut err = ended.err;
    if has_terminal {
        err += &out.replace('\r', "\n");
    }
    Result { status, out, err }
}

/// Returns whether a line did what the task is.
fn is_right(task: &Task, result: &Result) -> bool {
    let mut out: Vec<&str> = result.out.lines().collect();
    let mut wanted: Vec<&str> = task.out.iter().map(String::as_str).collect();
    if !task.is_ordered {
        out.sort_unstable();
        wanted.sort_unstable();
    }
    let is_reported = task.err.as_deref().is_none_or(|part| result.err.contains(part));
    let is_quiet = !task.is_quiet || result.err.is_empty();
    result.status == task.status && (task.has_terminal || out == wanted) && is_reported && is_quiet
}

/// Returns the messages of minder on standard error, without the lines about the results of the run.
fn message(err: &str) -> String {
    let of_minder = |line: &&str| line.starts_with("minder: ") || line.starts_with("xargs: ");
    let parts = [" failed · ", "minder:   failed: ", "minder: output of "];
    let is_summary = |line: &&str| parts.iter().any(|part| line.contains(part));
    let lines: Vec<&str> = err.lines().filter(of_minder).filter(|line| !is_summary(line)).collect();
    lines.join("\n")
}

/// Returns whether a message leads from the first line to the second.
fn leads(first: &str, second: &str, message: &str, says: Option<&str>) -> bool {
    let before = words(first);
    let given = words(message);
    let is_given =
        |word: &String| given.contains(word) || given.iter().any(|pattern| stands_for(pattern, word));
    let new: Vec<String> = words(second).difference(&before).cloned().collect();
    assert!(!new.is_empty() || says.is_some(), "no word of `{second}` is new: what does the message say?");
    says.is_none_or(|text| message.contains(text)) && new.iter().all(is_given)
}

/// Returns whether a word of a message, such as `TIME` or `fail=N`, stands for a word of a line.
fn stands_for(pattern: &str, word: &str) -> bool {
    let is_placeholder = pattern.bytes().any(|byte| byte.is_ascii_uppercase());
    let is_value = !word.starts_with(['-', ':']) && !SUBCOMMANDS.contains(&word);
    let capitals = Regex::new("[A-Z]+").expect("compile pattern");
    let pattern = capitals.replace_all(&regex::escape(pattern), ".+").into_owned();
    let pattern = Regex::new(&format!("^{pattern}$")).expect("compile pattern");
    is_placeholder && is_value && pattern.is_match(word)
}

/// Returns the words of a line or a message, without quotes and the punctuation around them. A flag and
/// its value are two words.
fn words(text: &str) -> BTreeSet<String> {
    let plain = text.replace(['\'', '"', '`'], " ");
    let words = plain.split_whitespace().flat_map(|word| match word.split_once('=') {
        Some((flag, value)) if flag.starts_with("--") => vec![flag, value],
        _ => vec![word],
    });
    let words = words.map(|word| {
        if word.bytes().all(|byte| byte == b':') {
            return word;
        }
        word.trim_start_matches('(').trim_end_matches([',', '.', ';', ':', ')', '?'])
    });
    // Operators of the shell do not count.
    let is_operator = |word: &str| word.bytes().all(|byte| b"|&;<>!".contains(&byte));
    words.filter(|word| !is_operator(word)).map(str::to_owned).collect()
}

#[test]
fn message_leads_where_it_has_every_new_word() {
    let first = "minder run --fail-fast ./job ::: 1 2";
    let leads = |second: &str, message: &str| leads(first, second, message, None);
    let second = "minder run --halt now,fail=1 ./job ::: 1 2";
    assert!(leads(second, "minder: unknown flag `--fail-fast`: use `--halt now,fail=1`"));
    assert!(leads(second, "minder: unknown flag `--fail-fast`: use `--halt now,fail=N`."));
    assert!(!leads(second, "minder: unknown flag `--fail-fast` (see `minder run --help`)"));
    assert!(!leads("minder run --bar ./job ::: 1 2", "minder: use FLAG"));
    assert!(!leads("minder xargs ./job ::: 1 2", "minder: use COMMAND"));
}
