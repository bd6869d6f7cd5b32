//! Flags and subcommands of other tools, and what to type here instead.
//!
//! The tools are GNU parallel, xargs, make, ninja, cargo, nextest, pytest, docker, fd, rush,
//! rust-parallel and the parallel of moreutils. A word that `minder` itself knows is never looked up
//! here.

use crate::likeness::nearest;

/// Words with the same meaning, and the answer to them: the end of a message `unknown …: ANSWER`.
type Entry = (&'static [&'static str], &'static str);

/// Flags of `minder run`, and of the command line of GNU parallel.
const RUN_FLAGS: &[Entry] = &[
    // Failures.
    (
        &["--keep-going", "--no-fail-fast", "--ignore-errors", "--continue-on-error"],
        "a failure does not stop the other jobs (`--halt` changes that)",
    ),
    (
        &[
            "--fail-fast",
            "--ff",
            "--exitfirst",
            "--stop-on-error",
            "--stop-on-failure",
            "--exit-on-error",
            "--abort-on-error",
            "--halt-on-failure",
        ],
        "use `--halt now,fail=1`",
    ),
    (&["--max-fail", "--maxfail", "--max-failures"], "use `--halt soon,fail=N`"),
    (
        &[
            "--retry",
            "--reruns",
            "--restart",
            "--max-retries",
            "--max-attempts",
            "--attempts",
            "--flaky",
            "--flaky-retries",
        ],
        "use `--retries N`",
    ),
    (
        &["--rerun"],
        "`minder retry` runs the failed jobs of the last run again (`--retries N` tries each job N times)",
    ),
    (
        &["--only-failed", "--failed-only", "--only-failures", "--hide-success", "--hide-passed"],
        "use `--success-output never`",
    ),
    (
        &["--exit-code", "--exit-codes", "--return-code"],
        "the exit status is the number of failed jobs (`--exit-status xargs` tells kinds of failures apart)",
    ),
    (&["--retry-interval", "--reruns-delay", "--backoff"], "use `--retry-delay TIME`"),
    (
        &["--time-limit", "--time-out", "--max-time", "--job-timeout", "--timeout-seconds", "--slow-timeout"],
        "use `--timeout TIME`",
    ),
    (
        &["--kill-after", "--stop-signal", "--stop-timeout"],
        "use `--timeout TIME` to end a job, `--termseq SIGNAL,MS,…` for the signals that do",
    ),
    (&["--continue"], "use `minder resume`"),
    // The number of jobs, and the machine.
    (
        &[
            "--max-parallel",
            "--max-jobs",
            "--max-workers",
            "--max-concurrency",
            "--concurrency",
            "--parallel",
            "--parallelism",
            "--build-jobs",
            "--test-threads",
            "--threads",
            "--num-threads",
            "--workers",
            "--num-workers",
            "--numprocesses",
            "--processes",
            "--nproc",
            "--cpus",
            "--slots",
        ],
        "use `-j N`",
    ),
    (&["--load-average", "--max-load"], "use `--load N`"),
    (&["--memory", "--max-memory", "--min-memory", "--mem"], "use `--memfree SIZE`"),
    (&["--priority", "--niceness"], "use `--nice N`"),
    (&["--cwd", "--chdir", "--directory", "--working-dir", "--working-directory"], "use `--wd DIR`"),
    (
        &[
            "--sshlogin",
            "--sshloginfile",
            "--slf",
            "--hosts",
            "--remote",
            "--onall",
            "--nonall",
            "--transfer",
        ],
        "jobs run only on this machine",
    ),
    // Input.
    (&["-z", "--print0", "--nul", "--zero", "--zero-terminated", "--null-separator"], "use `-0`"),
    (
        &["--separator", "--sep", "--split"],
        "use `-d TEXT` between arguments, `--words` for blanks, `--colsep REGEXP` between columns",
    ),
    (&["-F", "--field-delimiter", "--field-separator", "--column-separator"], "use `--colsep REGEXP`"),
    (&["-f", "--input", "--input-file", "--from-file", "--file"], "use `-a FILE`"),
    (&["-e"], "use `-E TEXT`"),
    (&["-i"], "leave it out, or use `-I TEXT` for a placeholder other than `{}`"),
    (&["-l"], "use `-L N`"),
    (&["--batch", "--batch-size", "--chunk", "--chunk-size", "--group-size"], "use `-n N`"),
    (&["--zip", "--pair", "--pairs", "--paired"], "use `--link`"),
    (&["--cross", "--product", "--combinations"], "several `:::` give all combinations"),
    (
        &["--command", "--cmd", "--exec", "--exec-batch", "--commands-from-args"],
        "the command follows the flags: minder run COMMAND ::: ARGUMENT, or minder run ::: COMMAND",
    ),
    (&["--shell-path"], "use `--shell PATH`"),
    (&["--shuffle", "--random", "--random-order"], "use `--shuf`"),
    (&["--repeat", "--times", "--iterations", "--runs"], "use `seq N | minder run -n0 COMMAND`"),
    (&["--filter", "--parens", "--perl"], "minder runs no Perl (see `--plus` and `--rpl`)"),
    // Output.
    (&["--ordered", "--sort", "--sorted", "--preserve-order", "--in-order"], "use `-k`"),
    (&["--prefix", "--label", "--labels", "--with-name", "--print-name"], "use `--tag`"),
    (
        &["--nocapture", "--no-capture", "--immediate-output", "--unbuffered"],
        "use `--lb` for whole lines, or `-u` for jobs that write themselves",
    ),
    (&["--output-sync"], "the output of a job is shown as a whole (`--group` is the default)"),
    (&["--output", "--output-dir", "--output-directory", "--outdir"], "use `--results DIR`"),
    (
        &["--dryrun", "--just-print", "--recon", "--simulate", "--shell-quote", "--no-run", "--what-if"],
        "use `--dry-run`",
    ),
    (&["--debug", "--trace", "--show-commands"], "use `-t`, which prints each command when it starts"),
    (&["--progress-bar", "--progressbar", "--show-progress", "--status"], "use `--bar`"),
    (&["--no-progress", "--no-bar"], "use `--no-status`"),
    (&["--no-color", "--no-colour"], "use `--color never`"),
    (&["--confirm", "--prompt"], "use `--interactive`"),
    (&["--tmux", "--tmuxpane"], "minder opens no windows (`--pty` gives each job a terminal)"),
    (&["--compress", "--compress-program"], "minder does not compress output that waits"),
    // The record.
    (
        &["--log", "--log-file", "--logfile"],
        "each run is recorded (`minder log`); `--joblog FILE` also writes a table",
    ),
    (
        &["--junit", "--junit-xml", "--junitxml", "--reporter", "--report"],
        "`minder log last --junit` prints the results of a run when it has ended (also `--json`, `--csv`)",
    ),
    (&["--stats", "--summary", "--durations"], "`minder log last` lists the jobs and their durations"),
    (&["--last", "--last-failed", "--lf", "--failed-first"], "use `minder retry`"),
    (
        &["--sql-master", "--sqlmaster", "--sql-worker", "--sqlworker"],
        "`minder log --sql` queries the record",
    ),
    // The tool itself.
    (&["-?"], "use `-h`"),
    (&["--will-cite", "--citation", "--bibtex", "--no-notice"], "minder prints no citation notice"),
    (&["--gnu"], "`minder parallel` accepts the command line of GNU parallel"),
    (&["--config", "--config-file"], "settings are in `minder.toml`: see `minder help config`"),
    (&["--no-profile", "--plain"], "use `--no-config`"),
    (&["--show-limits", "--max-line-length-allowed"], "`minder doctor` shows the limits of this machine"),
    (
        &["--semaphore", "--fg", "--bg", "--background", "--detach"],
        "`minder sem` runs one command in the background",
    ),
];

/// Flags of `minder log`.
const LOG_FLAGS: &[Entry] = &[
    (&["--last", "--latest"], "use `minder log last`"),
    (&["--limit", "--max", "--max-count", "--count"], "use `-n N`"),
    (&["--errors", "--failures", "--fail", "--only-failed"], "use `--failed`"),
    (&["--watch", "--tail"], "use `--follow`"),
    (&["-o", "--format", "--output"], "use `--json`, `--csv` or `--junit`"),
    (&["--delete", "--remove", "--clean", "--clear", "--gc"], "use `--prune`"),
    (&["--list", "--all"], "`minder log` lists the runs"),
];

/// Flags of `minder` itself.
const FLAGS: &[Entry] = &[(&["-v"], "use `minder --version`")];

/// Subcommands.
const SUBCOMMANDS: &[Entry] = &[
    (&["exec", "start", "map"], "use `minder run COMMAND ::: ARGUMENT`"),
    (
        &["history", "list", "ls", "runs", "ps", "status", "show", "jobs"],
        "use `minder log` for the runs, `minder log last` for the jobs of the last one",
    ),
    (&["failed", "failures", "errors"], "use `minder log --failed`"),
    (
        &["export", "report", "junit"],
        "use `minder log last` with `--csv`, `--json`, `--junit` or `--sqlite FILE`",
    ),
    (&["continue"], "use `minder resume`"),
    (&["rerun", "rerun-failed"], "use `minder retry`"),
    (&["prune", "clean", "gc", "rm"], "use `minder log --prune`"),
    (&["query", "sql", "sqlite"], "use `minder log --sql QUERY`"),
    (&["info", "check", "capabilities", "limits"], "use `minder doctor`"),
    (&["benchmark", "measure"], "use `minder bench`"),
    (&["wrap", "pipe", "buffer"], "use `minder relay COMMAND`"),
];

/// Returns the answer to a flag of another tool, with its dashes, that `command` does not have.
pub(crate) fn foreign_flag(command: &str, flag: &str) -> Option<&'static str> {
    match command {
        "run" | "parallel" => find(RUN_FLAGS, flag),
        "log" => find(LOG_FLAGS, flag),
        "minder" => find(FLAGS, flag),
        _ => None,
    }
}

/// Returns the answer to a long flag of another tool with a typing error. Short words are too near to
/// other words.
pub(super) fn near_foreign_flag(command: &str, flag: &str) -> Option<&'static str> {
    const LETTERS_MIN: usize = 6;
    let entries = match command {
        "run" | "parallel" => RUN_FLAGS,
        "log" => LOG_FLAGS,
        _ => return None,
    };
    let name = flag.strip_prefix("--").filter(|name| name.len() >= LETTERS_MIN)?;
    let known = entries.iter().flat_map(|(words, _)| *words).filter_map(|word| word.strip_prefix("--"));
    let word = nearest(name, known)?;
    find(entries, &format!("--{word}"))
}

/// Flags of `minder run` whose value is refused, and what was meant unless it is a number.
const OTHER_VALUES: &[Entry] = &[
    (&["-n"], "`--dry-run` prints the commands, `--xargs` gives a job as many arguments as fit"),
    (&["-s"], "`--quiet` prints only errors"),
    (&["--exit-status"], "`--halt now,fail=1` returns the status of the failed job"),
    (&["--stdin"], "`--pipe` divides standard input among the jobs"),
];

/// Returns what was meant by a flag of `command` whose value is refused, if other tools have the flag
/// with another meaning.
pub(super) fn foreign_value(command: &str, flag: &str, value: &str) -> Option<&'static str> {
    let is_number = value.starts_with(|first: char| first.is_ascii_digit());
    if command == "run" && !is_number { find(OTHER_VALUES, flag) } else { None }
}

/// Returns the answer to a subcommand of another tool.
pub(crate) fn foreign_subcommand(name: &str) -> Option<&'static str> {
    find(SUBCOMMANDS, name)
}

fn find(entries: &[Entry], word: &str) -> Option<&'static str> {
    entries.iter().find(|(words, _)| words.contains(&word)).map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;
    use crate::flags::Flags;

    /// Returns the spellings of the flags of a command, with their dashes.
    fn flags_of(command: &Command) -> BTreeSet<String> {
        let of = |arg: &clap::Arg| {
            let longs = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
            let shorts = arg.get_short().into_iter().chain(arg.get_all_short_aliases().into_iter().flatten());
            let longs = longs.map(|long| format!("--{long}"));
            longs.chain(shorts.map(|short| format!("-{short}"))).collect::<Vec<_>>()
        };
        command.get_arguments().flat_map(of).collect()
    }

    #[test]
    fn foreign_words_are_unique_and_not_known_to_minder() {
        let minder = Flags::interface();
        let subcommand = |name: &str| minder.find_subcommand(name).expect("find subcommand");
        let names = minder.get_subcommands().map(|known| known.get_name().to_owned()).collect();
        for (entries, known) in [
            (RUN_FLAGS, flags_of(subcommand("run"))),
            (LOG_FLAGS, flags_of(subcommand("log"))),
            (FLAGS, flags_of(&minder)),
            (SUBCOMMANDS, names),
        ] {
            let mut seen = BTreeSet::new();
            for word in entries.iter().flat_map(|(words, _)| *words) {
                assert!(!known.contains(*word), "{word} exists");
                assert!(seen.insert(word), "{word} is listed twice");
            }
        }
    }

    #[test]
    fn answers_name_flags_that_exist() {
        let minder = Flags::interface();
        let known: BTreeSet<String> = ["run", "log"]
            .iter()
            .filter_map(|name| minder.find_subcommand(name))
            .chain([&minder])
            .flat_map(flags_of)
            .collect();
        let entries = [RUN_FLAGS, LOG_FLAGS, FLAGS, SUBCOMMANDS, OTHER_VALUES].concat();
        let quoted = entries.iter().flat_map(|(_, answer)| answer.split('`').skip(1).step_by(2));
        let flags = quoted.flat_map(|code| code.split(' ')).filter(|word| word.starts_with('-'));
        let flags: Vec<&str> = flags.map(|flag| if flag == "-n0" { "-n" } else { flag }).collect();
        assert!(flags.len() > 30, "{flags:?}");
        for flag in flags {
            assert!(known.contains(flag), "{flag} does not exist");
        }
    }
}
