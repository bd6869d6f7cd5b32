//! Which flags of `minder run` a file may set.
//!
//! A project's file comes with a repository that another person may have written. It must not choose
//! what runs, what the jobs get, or where something is written. Each flag is in exactly one table.

use super::setting::Value;
use minder_ui::table::escape;

/// Flags that may not be set for the same reason.
pub(crate) struct Group {
    pub(crate) why: &'static str,
    pub(crate) names: &'static [&'static str],
}

/// Flags that a project's file may not set.
pub(crate) const FORBIDDEN: &[Group] = &[
    Group { why: "it selects the program that runs", names: &["shell", "commands", "quote", "limit"] },
    Group { why: "it changes the environment of the jobs", names: &["env", "process-slot-var"] },
    Group {
        why: "it changes what the words of the command stand for",
        names: &[
            "replace",
            "extensionreplace",
            "basenamereplace",
            "dirnamereplace",
            "basenameextensionreplace",
            "seqreplace",
            "slotreplace",
            "plus",
            "rpl",
            "arg-sep",
            "arg-file-sep",
        ],
    },
    Group {
        why: "it changes the arguments or the input of the jobs",
        names: &[
            "null",
            "delimiter",
            "words",
            "colsep",
            "csv",
            "header",
            "skip-first-line",
            "link",
            "trim",
            "eof",
            "max-args",
            "max-replace-args",
            "lines",
            "xargs",
            "pipe",
            "pipe-part",
            "recstart",
            "recend",
            "regexp",
            "remove-rec-sep",
            "round-robin",
            "tee",
            "shard",
            "bin",
            "group-by",
            "cat",
            "fifo",
        ],
    },
    Group {
        why: "it selects files or directories that are read or written",
        names: &["arg-file", "wd", "stdin", "results", "joblog", "tmpdir", "files", "template", "cleanup"],
    },
    Group {
        why: "it could weaken a protection",
        names: &[
            "only",
            "no-dash-values",
            "no-guard",
            "close-fds",
            "no-record",
            "redact-args",
            "interactive",
            "no-run-if-empty",
        ],
    },
];

/// Flags that no file and no variable may set.
pub(crate) const TYPED_ONLY: &[Group] = &[
    Group {
        why: "it belongs to one command line",
        names: &["resume", "resume-failed", "retry-failed", "skip-lost", "dry-run", "help"],
    },
    Group { why: "it decides which settings are read", names: &["profile", "no-config"] },
    Group {
        why: "it is for the command line of GNU parallel",
        names: &["parallel-env", "joblog-append", "print-parts", "color-lines"],
    },
    Group { why: "it has no long name", names: &["context", "multiple", "print"] },
];

/// Flags that each file may set, a project's file some of them to some values only.
#[cfg(test)]
const ALLOWED: &[&str] = &[
    "jobs",
    "shuf",
    "order",
    "seed",
    "total-jobs",
    "max-chars",
    "exit",
    "group",
    "no-keep-order",
    "keep-order",
    "line-buffer",
    "ungroup",
    "success-output",
    "failure-output",
    "cancelled-output",
    "tag",
    "tagstring",
    "pty",
    "spool",
    "buffer",
    "bar",
    "eta",
    "progress",
    "no-status",
    "heartbeat",
    "status-level",
    "notify",
    "quiet",
    "verbose",
    "color",
    "color-failed",
    "timeout",
    "retries",
    "retry-delay",
    "halt",
    "termseq",
    "delay",
    "load",
    "memfree",
    "memsuspend",
    "noswap",
    "no-jobserver",
    "nice",
    "timer-slack",
    "tty",
    "exit-status",
    "block",
    "block-timeout",
    "sync",
    "leak",
    "grace",
    "hold-results",
    "backend",
];

/// Returns why no file and no variable may set this flag.
pub(super) fn typed_only(name: &str) -> Option<&'static str> {
    reason(TYPED_ONLY, name)
}

/// Returns why a project's file may not set this flag to this value.
pub(super) fn forbidden(name: &str, value: &Value) -> Option<&'static str> {
    reason(FORBIDDEN, name).or_else(|| match value {
        Value::Bool(value) => (name == "quiet" && *value).then_some(SILENT),
        Value::Text(text) => forbidden_text(name, &text.to_string_lossy()),
        Value::List(texts) => texts.iter().find_map(|text| forbidden_text(name, &text.to_string_lossy())),
    })
}

/// Why nothing may keep a run from saying what it does.
const SILENT: &str = "the run would not say what it does or what fails";

fn forbidden_text(name: &str, text: &str) -> Option<&'static str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match name {
        "jobs" => {
            let digits = text.strip_suffix('%').unwrap_or_else(|| text.trim_start_matches(['+', '-']));
            (!is_number(digits)).then_some("it names a file, and only a number such as 4 or 50% may be set")
        }
        "tagstring" => (escape(text.as_bytes()) != text)
            .then_some("it has a control character, which the terminal would interpret"),
        "success-output" | "failure-output" => (text == "never").then_some(SILENT),
        "halt" => (text.starts_with('-') || text.contains("success") || text.contains("done"))
            .then_some("the run would leave out jobs although none has failed"),
        _ => None,
    }
}

fn reason(groups: &[Group], name: &str) -> Option<&'static str> {
    groups.iter().find(|group| group.names.contains(&name)).map(|group| group.why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn each_flag_is_in_one_table() {
        let minder = Flags::interface();
        let run = minder.find_subcommand("run").expect("find subcommand");
        let grouped = FORBIDDEN.iter().chain(TYPED_ONLY).flat_map(|group| group.names);
        let known: Vec<&str> = grouped.chain(ALLOWED).copied().collect();
        let mut names: Vec<&str> = vec!["help"];
        for flag in run.get_arguments().filter(|flag| flag.get_id() != "words") {
            names.push(flag.get_long().unwrap_or(flag.get_id().as_str()));
        }
        for name in &names {
            let count = known.iter().filter(|known| *known == name).count();
            assert_eq!(count, 1, "put `{name}` into one of the tables: may a project's file set it?");
        }
        assert_eq!(known.iter().find(|name| !names.contains(name)), None);
    }

    #[test]
    fn a_project_sets_jobs_to_numbers_only() {
        for (text, is_allowed) in [
            ("4", true),
            ("50%", true),
            ("+2", true),
            ("-1", true),
            ("0", true),
            ("procs", false),
            ("./4", false),
            ("", false),
        ] {
            assert_eq!(forbidden("jobs", &Value::Text(text.into())).is_none(), is_allowed, "{text}");
        }
        assert!(forbidden("shell", &Value::Bool(false)).is_some());
        assert!(forbidden("tag", &Value::Bool(true)).is_none());
    }

    #[test]
    fn a_project_keeps_no_run_from_reporting_and_none_from_its_jobs() {
        for (name, text, is_allowed) in [
            ("tagstring", "{#}: ä", true),
            ("tagstring", "\x1b[2J", false),
            ("tagstring", "a\nb", false),
            ("tagstring", "\u{9b}2J", false),
            ("tagstring", "\u{202e}", false),
            ("success-output", "final", true),
            ("success-output", "never", false),
            ("failure-output", "never", false),
            ("halt", "never", true),
            ("halt", "soon,fail=1", true),
            ("halt", "2", true),
            ("halt", "20%", true),
            ("halt", "-1", false),
            ("halt", "now,success=1", false),
            ("halt", "soon,done=10%", false),
        ] {
            assert_eq!(forbidden(name, &Value::Text(text.into())).is_none(), is_allowed, "{name} {text}");
            assert_eq!(
                forbidden(name, &Value::List(vec![text.into()])).is_none(),
                is_allowed,
                "{name} {text}"
            );
        }
        assert!(forbidden("quiet", &Value::Bool(true)).is_some());
        assert!(forbidden("quiet", &Value::Bool(false)).is_none());
    }
}
