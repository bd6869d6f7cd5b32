//! Known reasons for different answers. `docs/from-parallel.md` explains those of GNU parallel.

use super::generator::{Script, Tool};
use super::sandbox::Answer;

/// Two different answers to a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Difference<'a> {
    pub(super) script: &'a Script,
    /// The answer of GNU parallel or of findutils' xargs.
    pub(super) theirs: &'a Answer,
    pub(super) ours: &'a Answer,
}

impl Difference<'_> {
    /// Returns whether minder refused to run anything, with a message that contains this text.
    fn is_refused(&self, text: &str) -> bool {
        self.ours.stderr.contains("minder: ") && self.ours.stderr.contains(text)
    }

    fn is_of(&self, tool: Tool) -> bool {
        self.script.tool == tool
    }

    fn has_same_output(&self) -> bool {
        self.ours.stdout == self.theirs.stdout && self.ours.status == self.theirs.status
    }
}

/// A reason, and how it is recognised. The first that applies counts.
#[derive(Debug)]
pub(super) struct Reason {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    applies: fn(&Difference<'_>) -> bool,
}

/// The reasons, the most specific first.
pub(super) const ALL: &[Reason] = &[
    Reason {
        name: "no Perl",
        why: "minder contains no Perl and refuses expressions in it",
        applies: |d| d.is_of(Tool::Parallel) && d.is_refused("Perl"),
    },
    Reason {
        name: "no other machines",
        why: "minder runs jobs on one machine and refuses options about others",
        applies: |d| d.is_refused("jobs run only on this machine"),
    },
    Reason {
        name: "no SQL server",
        why: "minder keeps no jobs in a database; `minder log --sql` queries its record",
        applies: |d| d.is_refused("minder keeps no jobs in a database"),
    },
    Reason {
        name: "no tmux",
        why: "minder opens no windows",
        applies: |d| d.is_refused("minder opens no windows"),
    },
    Reason {
        name: "no embedding",
        why: "`--embed`, `--session` and `--_parset` belong to shell functions of GNU parallel",
        applies: |d| {
            d.script.uses(&["--embed", "--session", "--_parset"]) && d.ours.stderr.contains("minder: ")
        },
    },
    Reason {
        name: "help and version",
        why: "`--help`, `--version`, `--citation` and completions are minder's",
        applies: |d| {
            let printing =
                ["--help", "-h", "--version", "-V", "--citation", "--bibtex", "--shell-completion"];
            d.script.uses(&printing)
        },
    },
    Reason {
        name: "progress display",
        why: "`--bar`, `--eta` and `--progress` are minder's, on standard error",
        applies: |d| {
            d.is_of(Tool::Parallel) && d.script.uses(&["--bar", "--eta", "--progress"]) && d.has_same_output()
        },
    },
    Reason {
        name: "debug output",
        why: "`--debug` prints internals of GNU parallel",
        applies: |d| d.script.uses(&["--debug", "-D"]),
    },
];

/// Returns the name of the first reason that applies.
pub(super) fn find(difference: &Difference<'_>) -> Option<&'static str> {
    ALL.iter().find(|reason| (reason.applies)(difference)).map(|reason| reason.name)
}

#[cfg(test)]
mod tests {
    use super::super::generator::Environment;
    use super::*;

    fn reason(option: &'static str, stderr: &str) -> Option<&'static str> {
        let environment = Environment::User;
        let options = vec![option];
        let script = Script { tool: Tool::Parallel, number: 1, environment, options, text: String::new() };
        let theirs = Answer::default();
        let ours = Answer { stderr: stderr.into(), ..Answer::default() };
        find(&Difference { script: &script, theirs: &theirs, ours: &ours })
    }

    #[test]
    fn reasons_are_recognised_by_options_and_messages() {
        assert_eq!(reason("--rpl", "minder: its value is Perl, which\n"), Some("no Perl"));
        assert_eq!(reason("--rpl", "something else\n"), None);
        assert_eq!(reason("--bar", "50%\n"), Some("progress display"));
        assert_eq!(reason("-k", "50%\n"), None);
    }

    #[test]
    fn names_of_reasons_are_cells_of_a_table() {
        assert!(ALL.iter().all(|reason| !reason.name.contains([',', '|'])));
    }
}
