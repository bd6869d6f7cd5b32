//! Differences of standard error that are not counted, each with its name and reason.
//!
//! Standard output and exit statuses are compared as they are.

use super::sandbox::Answer;

/// A change of standard error that is made on both sides before they are compared.
#[derive(Debug)]
pub(super) struct Normalisation {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    apply: fn(&str) -> String,
}

/// All of them, in the order in which they are applied.
pub(super) const ALL: &[Normalisation] = &[
    Normalisation {
        name: "program name",
        why: "messages begin with the name of the program: `parallel:`, `xargs:`, `minder:`",
        apply: program_name,
    },
    Normalisation {
        name: "shell path",
        why: "messages of the shell begin with the path by which it was started: `/bin/bash:`, \
              `/usr/bin/bash:`, and name the line of the script or of `-c`",
        apply: shell_path,
    },
    Normalisation {
        name: "message text",
        why: "both print a message of the program itself; its words are not compared",
        apply: message_text,
    },
];

/// Returns the names of the normalisations after which both answers are the same: none if they are the
/// same as they are. Returns `None` if they differ after all of them.
pub(super) fn needed(left: &Answer, right: &Answer) -> Option<Vec<&'static str>> {
    if left.status != right.status || left.stdout != right.stdout {
        return None;
    }
    let mut names = Vec::new();
    let mut left = left.stderr.clone();
    let mut right = right.stderr.clone();
    for normalisation in ALL {
        if left == right {
            break;
        }
        let new_left = (normalisation.apply)(&left);
        let new_right = (normalisation.apply)(&right);
        if new_left != left || new_right != right {
            names.push(normalisation.name);
        }
        left = new_left;
        right = new_right;
    }
    (left == right).then_some(names)
}

/// What begins a message of the program, after [`program_name`].
const OWN: &str = "PROGRAM: ";

fn program_name(text: &str) -> String {
    each_line(text, |line| {
        let names = ["parallel: ", "sem: ", "xargs: ", "minder: "];
        let rest = names.iter().find_map(|name| line.strip_prefix(name));
        rest.map_or_else(|| line.to_string(), |rest| format!("{OWN}{rest}"))
    })
}

/// Writes `bash: line 1: …` and `/bin/sh: 1: …` as `SHELL: …`.
fn shell_path(text: &str) -> String {
    each_line(text, |line| {
        let Some((path, rest)) = line.split_once(": ") else { return line.to_string() };
        let name = path.rsplit('/').next().unwrap_or(path);
        if !["bash", "sh", "dash"].contains(&name) {
            return line.to_string();
        }
        let place = rest.split_once(": ").filter(|(place, _)| {
            let digits = place.strip_prefix("line ").unwrap_or(place);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        });
        format!("SHELL: {}", place.map_or(rest, |(_, rest)| rest))
    })
}

/// Writes consecutive messages of the program, with their continuation lines, as one.
fn message_text(text: &str) -> String {
    let mut out: Vec<&str> = Vec::new();
    for line in text.lines() {
        let is_inside = out.last() == Some(&OWN);
        if line.starts_with(OWN.trim_end()) {
            if !is_inside {
                out.push(OWN);
            }
        } else if !(is_inside && line.starts_with([' ', '\t'])) {
            out.push(line);
        }
    }
    out.join("\n")
}

fn each_line(text: &str, change: impl Fn(&str) -> String) -> String {
    text.split('\n').map(change).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(stderr: &str) -> Answer {
        Answer { stderr: stderr.into(), ..Answer::default() }
    }

    #[test]
    fn needed_names_what_makes_answers_equal() {
        let needed = |left, right| needed(&answer(left), &answer(right));
        assert_eq!(needed("a\n", "a\n"), Some(vec![]));
        assert_eq!(needed("a\n", "b\n"), None);
        assert_eq!(needed("a\n", ""), None);
        assert_eq!(needed("xargs: x\n", "minder: x\n"), Some(vec!["program name"]));
        assert_eq!(needed("xargs: x\n", ""), None);
        assert_eq!(
            needed("/bin/bash: line 1: f: not found\n", "bash: line 2: f: not found\n"),
            Some(vec!["shell path"])
        );
        assert_eq!(needed("/bin/sh: 1: f: not found\n", "sh: f: not found\n"), Some(vec!["shell path"]));
        assert_eq!(needed("bash: a\n", "bash: b\n"), None);
        assert_eq!(
            needed("parallel: Error: x\nparallel: y\n", "minder: z\n"),
            Some(vec!["program name", "message text"])
        );
        assert_eq!(
            needed("parallel: x\n  more\njob\n", "minder: z\njob\n"),
            Some(vec!["program name", "message text"])
        );
        assert_eq!(needed("parallel: x\njob\n", "minder: z\n"), None);
    }

    #[test]
    fn needed_compares_stdout_and_status_as_they_are() {
        let plain = answer("");
        assert_eq!(needed(&plain, &Answer { stdout: "parallel: x".into(), ..answer("") }), None);
        assert_eq!(needed(&plain, &Answer { status: 1, ..answer("") }), None);
    }
}
