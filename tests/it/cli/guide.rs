//! The examples of the guide and of the topics of `minder help` print what they show.
//!
//! Every command in them is run by bash, in its own directory for each section, and what comes is
//! compared with what stands there, except for what differs from run to run: see `PATTERNS`. After
//! a change, run this test with `MINDER_REWRITE=1`: it writes what came into the texts, for a
//! person to read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use minder::{Command, Stdio};
use regex::Regex;

use super::{MINDER, Run, path, run_to_end, temp_dir};

/// Stands between the outputs of two commands.
const MARK: &str = "\n\u{1e}\n";

/// Patterns of texts that are never the same twice, each with its substitute.
const PATTERNS: [(&str, &str); 6] = [
    (r"\b[0-9a-f]{8}\b", "RUN"),
    (r"resume [0-9a-f]{4,8}\b", "resume RUN"),
    (r"today \d\d:\d\d", "today"),
    (r" · [0-9.]+× as fast as one at a time", ""),
    (r"\d[0-9.]* (ms|s|min|h)\b( \d+ (s|min)\b)?", "TIME"),
    // bash prints more about a killed program when it reads a script.
    (r"^\S+: line \d+: +\d+ Killed .*", "Killed"),
];

#[test]
fn guide_shows_actual_output() {
    check(&root().join("docs/guide.md"));
}

#[test]
fn help_topics_show_actual_output() {
    let topics = root().join("crates/minder-cli/src/commands/help");
    let mut files: Vec<PathBuf> = std::fs::read_dir(topics)
        .expect("list directory")
        .map(|item| item.expect("get name").path())
        .collect();
    files.sort();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        check(&file);
    }
}

/// Creates what the examples of the help need: files, and programs with the names of tools.
const SCENE: &str = "\
for name in a b; do for end in log txt c; do printf 'x\\n' > $name.$end; done; done; \
printf 'http://a\\nhttp://b\\n' > urls.txt; \
for name in test.sh get.sh ../bin/make ../bin/npm; do \
printf '#!/bin/sh\\necho $0 \"$@\"\\n' > $name; chmod +x $name; done";

#[test]
fn examples_in_the_help_run() {
    for line in ["-h", "run -h", "log --help", "resume --help", "retry --help"] {
        let help = run_to_end(line).exit_code(0).stderr("").text();
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        // The next column has the description. A run is named `last`, since ids are random; `jq` may be
        // missing, and the input of a pipe belongs to another run.
        let examples: Vec<String> = examples
            .take_while(|line| !line.is_empty())
            .map(|line| line.trim().split("  ").next().unwrap_or_default().replace("61c0", "last"))
            .filter(|line| !line.contains("jq ") && !line.contains("seq 1000"))
            .collect();
        assert!(examples.len() >= 4, "{help}");
        for example in examples {
            let first = "minder run -k true ::: $(seq 20)";
            let steps = [SCENE, first, "set -o pipefail", &example, "echo status $?"].map(|command| Step {
                indent: "",
                command: command.to_owned(),
                shown: Vec::new(),
                lines: 0..0,
            });
            let came = run(&steps, Path::new(line));
            assert_eq!(came[4], "status 0\n", "{example}:\n{}", came[3]);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("find root of the repository")
}

/// A command in a text, with the output shown there.
struct Step<'a> {
    /// The text before each line.
    indent: &'static str,
    command: String,
    shown: Vec<&'a str>,
    /// The lines of the text that are the output.
    lines: std::ops::Range<usize>,
}

fn check(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let sections =
        if file.extension().is_some_and(|it| it == "md") { fenced(&text) } else { indented(&text) };
    assert!(sections.iter().any(|steps| !steps.is_empty()), "{}: no command", file.display());
    let mut wrong = String::new();
    let mut lines = text.lines().map(str::to_owned).collect::<Vec<_>>();
    for steps in sections.iter().rev().filter(|steps| !steps.is_empty()) {
        let came = run_in_time(steps, file);
        for (step, came) in steps.iter().zip(came).rev() {
            if is_shown(step, &came) {
                continue;
            }
            let came: Vec<&str> = came.lines().map(str::trim_end).collect();
            let at = step.lines.start;
            let shown = step.shown.join("\n");
            let _ = writeln!(
                wrong,
                "line {at}: $ {}\n--- shown\n{shown}\n--- came\n{}",
                step.command,
                came.join("\n")
            );
            lines.splice(step.lines.clone(), came.iter().map(|line| format!("{}{line}", step.indent)));
        }
    }
    if std::env::var_os("MINDER_REWRITE").is_some() {
        std::fs::write(file, lines.join("\n") + "\n").expect("write file");
    } else {
        assert!(wrong.is_empty(), "{}:\n{wrong}", file.display());
    }
}

/// The number of times that a section with a sleep is tried. On a busy machine a sleep may end after another
/// that is longer; a difference that is real comes each time.
const TRIES_ASLEEP: usize = 5;

/// Runs a section as [`run`] does, again if it sleeps and its output is not the one that is shown.
fn run_in_time(steps: &[Step<'_>], file: &Path) -> Vec<String> {
    let sleeps = steps.iter().any(|step| step.command.contains("sleep"));
    let is_shown = |came: &Vec<String>| steps.iter().zip(came).all(|(step, came)| is_shown(step, came));
    let mut came = run(steps, file);
    for _ in 1..if sleeps { TRIES_ASLEEP } else { 1 } {
        if is_shown(&came) {
            break;
        }
        came = run(steps, file);
    }
    came
}

fn is_shown(step: &Step<'_>, came: &str) -> bool {
    same(&came.lines().map(str::trim_end).collect::<Vec<_>>(), &step.shown)
}

/// Runs the commands of a section one after the other in one shell, and returns the output of each.
fn run(steps: &[Step<'_>], file: &Path) -> Vec<String> {
    let dir = temp_dir();
    let at = |name: &str| dir.path().join(name);
    for name in ["bin", "work"] {
        std::fs::create_dir(at(name)).expect("create directory");
    }
    std::os::unix::fs::symlink(MINDER, at("bin/minder")).expect("create symbolic link");
    // The status of a command is that of the mark after it, for `echo $?`.
    let mark = format!("mark() {{ local status=$?; printf '{MARK}'; return $status; }}\n");
    let mut script = mark + "exec 2>&1\n";
    for step in steps {
        let _ = write!(script, "{}\nmark\n", step.command);
    }
    std::fs::write(at("script"), script).expect("write file");
    let mut bash = Command::new("bash");
    bash.arg(at("script"))
        .current_dir(at("work"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .env("PATH", format!("{}:{}", path(&at("bin")), std::env::var("PATH").unwrap_or_default()))
        .env("HOME", at("work"))
        .env("LC_ALL", "C.UTF-8")
        .env("MINDER_STATE_DIR", at("state"));
    for name in [
        "MINDER_BACKEND",
        "MINDER_CONFIG_DIR",
        "XDG_CONFIG_HOME",
        "MAKEFLAGS",
        "CARGO_MAKEFLAGS",
        "PARALLEL",
        "SHELL",
        "BASH_ENV",
    ] {
        bash.env_remove(name);
    }
    let said = Run::start(&bash).wait().text();
    let mut came: Vec<String> = said.split(MARK).map(str::to_owned).collect();
    let rest = came.pop().unwrap_or_default();
    assert_eq!((came.len(), rest.as_str()), (steps.len(), ""), "{}: bash gave up:\n{said}", file.display());
    came
}

fn same(came: &[&str], shown: &[&str]) -> bool {
    came == shown || even(came) == even(&joined(shown).iter().map(String::as_str).collect::<Vec<_>>())
}

/// Joins the lines of each long message, which a topic shows as `minder: ` and lines below its text.
fn joined(shown: &[&str]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in shown {
        match lines.last_mut().filter(|last| last.starts_with("minder: ")) {
            Some(message) if line.starts_with("        ") => {
                message.push(' ');
                message.push_str(line.trim_start());
            }
            _ => lines.push((*line).to_owned()),
        }
    }
    lines
}

/// Replaces the parts of the lines that differ between runs. Columns of such lines need not line
/// up.
fn even(lines: &[&str]) -> Vec<String> {
    let patterns = PATTERNS.map(|(pattern, for_it)| (Regex::new(pattern).expect("compile pattern"), for_it));
    let replace = |line: &&str| {
        patterns
            .iter()
            .fold((*line).to_owned(), |line, (pattern, it)| pattern.replace_all(&line, *it).into_owned())
    };
    let even: Vec<String> = lines.iter().map(replace).collect();
    if even.iter().zip(lines).all(|(even, line)| even == line) {
        return even;
    }
    even.iter().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// Returns the commands of a page by section: those in `console` blocks.
fn fenced(text: &str) -> Vec<Vec<Step<'_>>> {
    let mut sections = vec![Vec::new()];
    let mut inside = false;
    let mut lines = text.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        if line.starts_with("```") {
            inside = line == "```console";
            if !inside && line != "```" {
                // A block of something else.
                lines.by_ref().find(|(_, line)| *line == "```");
            }
        } else if inside {
            take(sections.last_mut(), "", at, line);
        } else if line.starts_with("## ") {
            sections.push(Vec::new());
        }
    }
    sections
}

/// Returns the commands of a topic: indented by four, the first line begins with `$`.
fn indented(text: &str) -> Vec<Vec<Step<'_>>> {
    let mut steps = Vec::new();
    let mut inside = false;
    for (at, line) in text.lines().enumerate() {
        inside = line.starts_with("    ") && (inside || line.starts_with("    $ "));
        if inside {
            take(Some(&mut steps), "    ", at, &line[4..]);
        }
    }
    vec![steps]
}

/// A line of a block: a command, more of it, or output.
fn take<'a>(steps: Option<&mut Vec<Step<'a>>>, indent: &'static str, at: usize, line: &'a str) {
    let Some(steps) = steps else { return };
    if let Some(command) = line.strip_prefix("$ ") {
        let command = command.to_owned();
        return steps.push(Step { indent, command, shown: Vec::new(), lines: at + 1..at + 1 });
    }
    let step = steps.last_mut().unwrap_or_else(|| panic!("line {}: output of no command", at + 1));
    if step.shown.is_empty() && step.command.ends_with('\\') {
        step.command.push('\n');
        step.command.push_str(line.strip_prefix("> ").unwrap_or(line));
        step.lines = at + 1..at + 1;
    } else {
        step.shown.push(line);
        step.lines.end = at + 1;
    }
}
