//! The tables: tasks with their attempts, as text.

/// Something that a user wants to do, and how users try it.
#[derive(Debug, Default)]
pub(super) struct Task {
    pub(super) name: String,
    /// Lines of the shell that run before an attempt.
    pub(super) given: Vec<String>,
    /// A line of the shell that runs after an attempt.
    pub(super) check: Option<String>,
    /// The lines of standard output that are right.
    pub(super) out: Vec<String>,
    pub(super) is_ordered: bool,
    pub(super) is_quiet: bool,
    pub(super) has_terminal: bool,
    /// A part of standard error that is right.
    pub(super) err: Option<String>,
    pub(super) status: i32,
    pub(super) attempts: Vec<Attempt>,
}

/// A line that a user types first.
#[derive(Debug, Default)]
pub(super) struct Attempt {
    pub(super) line: String,
    /// The lines that a user types after a message, of this build or an earlier one.
    pub(super) then: Vec<String>,
    /// A text that the message has to contain.
    pub(super) says: Option<String>,
    /// The name of the recorded outcome.
    pub(super) recorded: String,
}

/// Returns the tasks of a table.
pub(super) fn parse(text: &str) -> Vec<Task> {
    let mut tasks: Vec<Task> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.to_owned();
        if what == "task" {
            tasks.push(Task { name: rest, ..Task::default() });
            continue;
        }
        let task = tasks.last_mut().unwrap_or_else(|| panic!("no task before: {line}"));
        match what {
            "given" => task.given.push(rest),
            "check" => task.check = Some(rest),
            "=" => task.out.push(rest.replace("\\t", "\t")),
            "ordered" => task.is_ordered = true,
            "quiet" => task.is_quiet = true,
            "terminal" => task.has_terminal = true,
            "err" => task.err = Some(rest),
            "exit" => task.status = rest.parse().expect("parse status"),
            "$" => task.attempts.push(Attempt { line: rest, ..Attempt::default() }),
            _ => {
                let attempt = task.attempts.last_mut().unwrap_or_else(|| panic!("no attempt before: {line}"));
                match what {
                    "then" => attempt.then.push(rest),
                    "says" => attempt.says = Some(rest),
                    "->" => attempt.recorded = rest,
                    _ => panic!("unknown line: {line}"),
                }
            }
        }
    }
    assert!(tasks.iter().all(|task| !task.attempts.is_empty()), "a task has no attempt");
    tasks
}

/// Returns a table with these outcomes, one for each attempt.
pub(super) fn with_outcomes(text: &str, names: &[&str]) -> String {
    let mut names = names.iter();
    let mut lines: Vec<String> = Vec::new();
    let mut open = None;
    for line in text.lines().filter(|line| !line.starts_with("-> ")) {
        if !line.starts_with("then ") && !line.starts_with("says ") {
            lines.extend(open.take());
        }
        lines.push(line.to_owned());
        if line.starts_with("$ ") {
            open = Some(format!("-> {}", names.next().expect("an outcome for each attempt")));
        }
    }
    lines.extend(open);
    lines.join("\n") + "\n"
}

#[test]
fn outcomes_are_written_behind_their_attempts() {
    let before = "task a\n= x\n$ one\nthen two\nsays three\n-> led\n$ four\n\ntask b\n$ five\n";
    let after =
        "task a\n= x\n$ one\nthen two\nsays three\n-> right\n$ four\n-> silent\n\ntask b\n$ five\n-> led\n";
    assert_eq!(with_outcomes(before, &["right", "silent", "led"]), after);
    let tasks = parse(after);
    assert_eq!((tasks.len(), tasks[0].attempts.len(), tasks[1].out.len()), (2, 2, 0));
    assert_eq!(tasks[0].attempts[0].then, ["two"]);
}
