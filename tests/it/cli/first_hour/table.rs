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

/// A line that a user types first. Several lines may share what stands below them.
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
                let open = task.attempts.iter_mut().filter(|attempt| attempt.recorded.is_empty());
                for attempt in open {
                    match what {
                        "then" => attempt.then.push(rest.clone()),
                        "says" => attempt.says = Some(rest.clone()),
                        "->" => attempt.recorded.clone_from(&rest),
                        _ => panic!("unknown line: {line}"),
                    }
                }
            }
        }
    }
    let is_complete = |task: &Task| {
        let mut attempts = task.attempts.iter();
        attempts.len() > 0 && attempts.all(|attempt| !attempt.recorded.is_empty())
    };
    assert!(tasks.iter().all(is_complete), "a task has no attempt, or one without an outcome");
    tasks
}

#[test]
fn attempts_share_what_stands_below_them() {
    let tasks = parse("task a\n= x\n$ one\n$ two\nthen three\nsays four\n-> led\n$ five\n-> right\n");
    let [one, two, five] = tasks[0].attempts.as_slice() else { panic!("{tasks:?}") };
    for attempt in [one, two] {
        assert_eq!((attempt.then.join("|"), attempt.recorded.as_str()), ("three".to_owned(), "led"));
    }
    assert_eq!((five.then.len(), five.recorded.as_str()), (0, "right"));
}
