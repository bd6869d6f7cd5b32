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

    /// Returns whether standard output and the exit status are the same if these characters are ignored.
    fn is_same_without(&self, ignored: &[char]) -> bool {
        let rest = |answer: &Answer| answer.stdout.replace(ignored, "");
        rest(self.ours) == rest(self.theirs) && self.ours.status == self.theirs.status
    }

    /// Returns whether each line of minder is the beginning of that of the other program.
    fn lines_are_shorter(&self) -> bool {
        let [ours, theirs] = [self.ours, self.theirs].map(|answer| answer.stdout.lines());
        ours.clone().count() == theirs.clone().count()
            && ours.zip(theirs).all(|(ours, theirs)| theirs.starts_with(ours.trim_end()))
    }

    fn has_same_output(&self) -> bool {
        self.ours.stdout == self.theirs.stdout && self.ours.status == self.theirs.status
    }
}

/// Returns whether a placeholder stands inside quotes that the shell of jobs sees.
fn is_quoted_placeholder(script: &str) -> bool {
    ["'echo \"", "\"echo '"].iter().any(|start| script.contains(start))
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
        applies: |d| d.is_of(Tool::Parallel) && d.script.uses(&["--bar", "--eta", "--progress"]),
    },
    Reason {
        name: "debug output",
        why: "`--debug` prints internals of GNU parallel",
        applies: |d| d.script.uses(&["--debug", "-D"]),
    },
    Reason {
        name: "usage",
        why: "after a wrong command line, GNU parallel prints its usage on standard output, minder one \
              line on standard error",
        applies: |d| d.theirs.stdout.contains("Usage:") && d.ours.stderr.contains("minder: "),
    },
    Reason {
        name: "no-profile",
        why: "minder knows `--no-profile` of other versions of GNU parallel",
        applies: |d| d.script.uses(&["--no-profile"]) && d.theirs.stderr.contains("Unknown option"),
    },
    Reason {
        name: "value in quotes",
        why: "inside quotes a value is unchanged; GNU parallel adds quotes, which become text",
        applies: |d| {
            d.is_of(Tool::Parallel)
                && is_quoted_placeholder(&d.script.text)
                && d.is_same_without(&['\'', ' ', '\t'])
        },
    },
    Reason {
        name: "missing column",
        why: "a missing column from the end is empty, `{0}` is text, a tag omits missing columns",
        applies: |d| {
            let has = |text: &str| d.script.text.contains(text);
            let asks = ["{2", "{3", "{-", "{0", "{9"].iter().any(|column| has(column));
            let is_text = has("{0}") && d.ours.stdout.contains("{0}");
            d.is_of(Tool::Parallel)
                && asks
                && (d.is_same_without(&[' ', '\t']) || is_text || has("{-") && d.lines_are_shorter())
        },
    },
    Reason {
        name: "several values for one word",
        why: "where the shell takes one word, minder refuses several values",
        applies: |d| {
            ["there is not one value", "can be evaluated as a variable"].iter().any(|why| d.is_refused(why))
        },
    },
    Reason {
        name: "value as program text",
        why: "minder refuses a value where another program would run it as code",
        applies: |d| d.is_refused("which runs it as code"),
    },
    Reason {
        name: "unquoted arguments",
        why: "`--shebang-wrap` of GNU parallel inserts arguments into a shell line without quotes",
        applies: |d| {
            let argument = |line: &str| line.strip_prefix('<')?.strip_suffix('>').map(String::from);
            let is_unchanged = |line| argument(line).is_some_and(|value| d.script.text.contains(&value));
            d.script.uses(&["--shebang-wrap"]) && d.ours.stdout.lines().all(is_unchanged)
        },
    },
    Reason {
        name: "blank lines",
        why: "blank lines do not count for `-L`",
        applies: |d| {
            let has_blank_lines =
                ["words.txt", "trailing.txt", "blanks.txt"].iter().any(|file| d.script.text.contains(file));
            let counts_lines = d.script.uses(&["-L", "-l", "--max-lines"]);
            d.is_of(Tool::Parallel) && counts_lines && has_blank_lines && d.ours.status == d.theirs.status
        },
    },
    Reason {
        name: "joblog header",
        why: "a new joblog begins with its header, also with `+`",
        applies: |d| {
            let without_header: String = d
                .ours
                .stdout
                .lines()
                .filter(|line| !line.starts_with("Seq\t"))
                .fold(String::new(), |text, line| text + line + "\n");
            d.script.text.contains(" +log") && without_header == d.theirs.stdout
        },
    },
    Reason {
        name: "retry-failed",
        why: "minder does not run commands that a joblog contains",
        applies: |d| {
            let runs_given =
                d.script.text.contains("--retry-failed --joblog log ") && d.ours.stderr.is_empty();
            d.is_refused("`--retry-failed` requires the command") || runs_given
        },
    },
    Reason {
        name: "resume from results",
        why: "minder resumes from a joblog, not from `--results` alone",
        applies: |d| d.is_refused("`--resume` requires `--joblog FILE`"),
    },
    Reason {
        name: "blocks of pipe-part",
        why: "without `--block`, GNU parallel divides a small file into ten blocks for each slot",
        applies: |d| {
            let lines = |answer: &Answer| answer.stdout.lines().count();
            let is_default = d.script.uses(&["--pipe-part"]) && !d.script.text.contains("--block");
            is_default && lines(d.theirs) > lines(d.ours)
        },
    },
    Reason {
        name: "show-limits",
        why: "`--show-limits` prints two numbers, without the text after them",
        applies: |d| d.is_of(Tool::Parallel) && d.script.uses(&["--show-limits"]),
    },
    Reason {
        name: "tag of several values",
        why: "the text of `--tagstring` is not repeated for each value",
        applies: |d| {
            let several = d.script.uses(&["-N", "--max-replace-args", "-n", "--max-args"]);
            several && d.script.uses(&["--tagstring"]) && d.ours.status == d.theirs.status
        },
    },
    Reason {
        name: "unterminated quote",
        why: "an unterminated quote is refused before the input is read, even if there are no jobs",
        applies: |d| d.is_refused("quote is opened at character"),
    },
    Reason {
        name: "carriage return",
        why: "after a carriage return within a line the tag was not repeated",
        applies: |d| {
            d.is_of(Tool::Parallel) && d.script.text.contains("a\\rb") && d.theirs.stdout.contains('\r')
        },
    },
    Reason {
        name: "invalid size",
        why: "an invalid value of `--block` is refused; GNU parallel divides by zero or ignores it",
        applies: |d| d.is_refused("--block: invalid number"),
    },
    Reason {
        name: "missing resource",
        why: "minder reports a missing directory or terminal with exit status 255 and one line",
        applies: |d| d.is_refused("cannot create a directory in") || d.is_refused("-p asks on the terminal"),
    },
    Reason {
        name: "messages of jobs",
        why: "minder did not report jobs that failed or timed out on standard error",
        applies: |d| {
            let said = ["This job failed:", "This job was killed because it timed out:"];
            d.has_same_output() && said.iter().any(|text| d.theirs.stderr.contains(text))
        },
    },
    Reason {
        name: "warnings",
        why: "minder warns of a missing profile (it extended blocks and ignored `--cleanup` silently)",
        applies: |d| {
            let theirs = ["A record was longer than", "--cleanup ignored"];
            let said = theirs.iter().any(|text| d.theirs.stderr.contains(text));
            d.has_same_output() && (said || d.ours.stderr.contains("minder: profile "))
        },
    },
    Reason {
        name: "unsupported placeholder",
        why: "`{uniq}` and `{choose_k}` are refused",
        applies: |d| d.is_refused("is a placeholder of GNU parallel's --plus that minder does not support"),
    },
    Reason {
        name: "environment names",
        why: "`--env _` needed no recorded environment, because jobs are local",
        applies: |d| d.theirs.stderr.contains("Run 'parallel --record-env'"),
    },
    Reason {
        name: "interactive dry run",
        why: "with `--dry-run`, `-p` asks nothing",
        applies: |d| d.script.uses(&["--dry-run"]) && d.theirs.stderr.contains("bugid: interactive-tty"),
    },
    Reason {
        name: "blanks of -n 0",
        why: "with `-n 0`, a shown command has one blank for each missing value; minder shows one for all",
        applies: |d| {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_shown = d.script.uses(&["--dry-run"]) && d.script.text.contains("-n 0");
            is_shown && squeezed(&d.theirs.stdout) == squeezed(&d.ours.stdout)
        },
    },
    Reason {
        name: "stderr of files",
        why: "with `--files`, minder shows the standard error of jobs, which GNU parallel discards",
        applies: |d| {
            let only_ours = d.theirs.stderr.is_empty() && !d.ours.stderr.contains("minder: ");
            d.script.text.contains("--files") && d.has_same_output() && only_ours
        },
    },
    Reason {
        name: "color and newlines",
        why: "with `--color-failed`, GNU parallel adds a newline to output without one",
        applies: |d| {
            let names = ["--color-failed", "--cf", "--colour-failed", "--color-fail", "--colour-fail"];
            d.script.uses(&names) && d.is_same_without(&['\n'])
        },
    },
    Reason {
        name: "terminal of jobs",
        why: "`-o` of minder lets jobs write to the terminal themselves, without tags",
        applies: |d| d.script.uses(&["-o", "--open-tty"]) && d.is_of(Tool::Parallel),
    },
    Reason {
        name: "control characters of tags",
        why: "tabs of a value were escaped in a tag, as other control characters still are",
        applies: |d| {
            let has_tag = ["--tag", "--tagstring", "--ctag"].iter().any(|flag| d.script.text.contains(flag));
            has_tag && d.ours.stdout.replace("\\t", "\t") == d.theirs.stdout
        },
    },
    Reason {
        name: "order of messages",
        why: "a message of xargs and the output of a job that still runs come in either order",
        applies: |d| {
            let sorted = |answer: &Answer| {
                let mut lines: Vec<String> = answer.stderr.lines().map(String::from).collect();
                lines.sort_unstable();
                lines
            };
            d.is_of(Tool::Xargs) && d.has_same_output() && sorted(d.ours) == sorted(d.theirs)
        },
    },
    Reason {
        name: "latest line",
        why: "`--latest-line` means `--line-buffer`",
        applies: |d| d.script.uses(&["--latest-line", "--ll"]),
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
        assert_eq!(
            reason("-n", "minder: cannot run `x=1 2`: there is not one value\n"),
            Some("several values for one word")
        );
    }

    /// Returns the reason for two answers to a script with an option.
    fn reason_of(option: &'static str, text: &str, theirs: &str, ours: &str) -> Option<&'static str> {
        let environment = Environment::User;
        let options = vec![option];
        let script = Script { tool: Tool::Parallel, number: 1, environment, options, text: text.into() };
        let theirs = Answer { stdout: theirs.into(), ..Answer::default() };
        let ours = Answer { stdout: ours.into(), ..Answer::default() };
        find(&Difference { script: &script, theirs: &theirs, ours: &ours })
    }

    #[test]
    fn an_option_alone_is_no_reason() {
        assert_eq!(reason_of("-L", "parallel -L 1 < words.txt", "a\n\n", "a\n"), Some("blank lines"));
        assert_eq!(reason_of("-L", "parallel -L 1 < list.txt", "a\n\n", "a\n"), None);
        assert_eq!(reason_of("--retry-failed", "parallel --retry-failed", "a\n", "b\n"), None);
        let wrap = "./s 'a;b'";
        assert_eq!(reason_of("--shebang-wrap", wrap, "<a>\n", "<a;b>\n"), Some("unquoted arguments"));
        assert_eq!(reason_of("--shebang-wrap", wrap, "<a>\n", "<c>\n"), None);
        assert_eq!(reason_of("{n}", "echo {-1} {-2}", "a a\n", "a \n"), Some("missing column"));
        assert_eq!(reason_of("{n}", "echo {-1} {-2}", "a a\n", "b \n"), None);
        assert_eq!(reason_of("--jl", "--jl +log", "1\n", "Seq\tx\n1\n"), Some("joblog header"));
        assert_eq!(reason_of("--jl", "--jl +log", "1\n", "Seq\tx\n2\n"), None);
    }

    #[test]
    fn order_of_messages_needs_the_same_lines() {
        let environment = Environment::User;
        let options = vec!["-n"];
        let mut script = Script { tool: Tool::Xargs, number: 1, environment, options, text: String::new() };
        let answer = |stderr: &str| Answer { stderr: stderr.into(), ..Answer::default() };
        let [theirs, ours, other] = [answer("a\nb\n"), answer("b\na\n"), answer("b\n")];
        let found = |script: &Script, ours| find(&Difference { script, theirs: &theirs, ours });
        assert_eq!(found(&script, &ours), Some("order of messages"));
        assert_eq!(found(&script, &other), None);
        script.tool = Tool::Parallel;
        assert_eq!(found(&script, &ours), None);
    }

    #[test]
    fn names_of_reasons_are_cells_of_a_table() {
        assert!(ALL.iter().all(|reason| !reason.name.contains([',', '|'])));
    }
}
