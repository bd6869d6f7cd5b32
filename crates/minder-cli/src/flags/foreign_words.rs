//! Flags and subcommands of other tools, and what to type here instead.
//!
//! The words are those that users of GNU parallel, xargs, make, nextest, pytest and the like type most
//! often. A word that `minder` itself knows is never looked up here.

use std::ffi::OsString;

use crate::likeness::{counted, nearest};

/// Words of other tools, with blanks between them, and the answer to each: the end of a message
/// `unknown …: ANSWER`. A flag that ends with `=` is known, but its value was refused.
type Row = (&'static str, &'static str);

/// Flags of `minder run`, and of the command line of GNU parallel.
const RUN_FLAGS: &[Row] = &[
    // Failures.
    (
        "--keep-going --no-fail-fast --ignore-errors --continue-on-error",
        "a failure does not stop the other jobs (`--halt` changes that)",
    ),
    (
        "--bail --fail-fast --exitfirst --on-error --on-failure --exit-on-error --halt-on-failure \
         --kill-others-on-fail --stop-on-error",
        "use `--halt now,fail=1`",
    ),
    ("--kill-others", "use `--halt now,done=1`"),
    ("--race", "use `--halt now,success=1`"),
    (
        "--success",
        "`--halt now,success=1` ends the run at the first success (`--success-output` shows or hides output)",
    ),
    ("--restart", "use `--retries 0`, which starts a failing job again without limit"),
    ("--max-fail", "use `--halt soon,fail=N`"),
    ("--retry --reruns --tries --flaky", "use `--retries N`"),
    ("--reruns-delay", "use `--retry-delay TIME`"),
    (
        "--rerun",
        "`minder retry` runs the failed jobs of the last run again (`--retries N` tries each job N times)",
    ),
    ("--only-failed --only-failures --failed-only --hide-success", "use `--success-output never`"),
    (
        "--exit-code",
        "the exit status is the number of failed jobs (`--exit-status xargs` tells kinds of failures apart)",
    ),
    ("--time-limit --max-time", "use `--timeout TIME`"),
    (
        "--deadline --global-timeout --run-timeout --total-timeout",
        "`timeout -s INT TIME minder run …` ends a whole run (`--timeout TIME` is for each job)",
    ),
    (
        "--kill-after --stop-timeout",
        "use `--timeout TIME` to end a job, `--termseq SIGNAL,MS,…` for the signals that do",
    ),
    ("--continue", "use `minder resume`"),
    // The number of jobs, and the machine.
    (
        "--concurrency --job-limit --nproc --parallel --parallelism --processes --test-threads --threads \
         --workers",
        "use `-j N`",
    ),
    ("--load-average", "use `--load N`"),
    (
        "--max-mem --max-memory --mem --mem-limit --memory --memory-limit --rlimit --ulimit",
        "use `--memory-max SIZE`, which limits each job (`--memfree SIZE` only delays starts)",
    ),
    (
        "--limit-rate --max-rate --rate-limit --throttle",
        "use `--rate N/s`, or `--delay TIME` between two starts",
    ),
    ("--per-host --per-key", "use `--limit-per {1} N`, with the placeholder of the host"),
    ("--longest-first", "use `--order longest`"),
    ("--backoff --retry-backoff", "use `--retry-delay TIME`, which doubles with each retry"),
    ("--dotenv", "use `--env-file FILE`"),
    ("--ignore-comments", "use `--skip-comments`"),
    ("--chdir --cwd --dir --directory", "use `--wd DIR`"),
    (
        "-S --sshlogin --onall --nonall",
        "jobs run only on this machine (`minder run ssh {} COMMAND ::: HOST…` has a job for each host)",
    ),
    // Input.
    ("-z --null-separator --print0", "use `-0`"),
    (
        "--separator --split",
        "use `-d TEXT` between arguments, `--words` for blanks, `--colsep REGEXP` between columns",
    ),
    ("-F --field-delimiter --field-separator", "use `--colsep REGEXP`"),
    ("-f --file --input", "use `-a FILE`"),
    ("-e", "use `-E TEXT`"),
    ("-i", "leave it out, or use `-I TEXT` for a placeholder other than `{}`"),
    ("-l", "use `-L N` for lines per job, `--load N` for the load of the machine"),
    ("--batch --batch-size --chunk", "use `-n N`"),
    ("--pairs --zip", "use `--link`"),
    ("--cross", "several `:::` give all combinations"),
    ("--random --shuffle", "use `--shuf`"),
    (
        "--first --head",
        "`head -n N FILE | minder run COMMAND` runs the first lines only (`--header :` names columns)",
    ),
    (
        "--partition",
        "minder has no partitions (`awk 'NR % 4 == 1' FILE | minder run COMMAND` runs a quarter of the \
         lines)",
    ),
    (
        "--after --depends --depends-on --needs",
        "jobs do not wait for each other: use `minder run … && minder run …`, or make with `+minder run …`",
    ),
    (
        "--cache --skip-existing --skip-unchanged",
        "a run skips nothing because of files: `[ -f {.}.out ] || COMMAND` in a shell line does \
         (`minder resume` skips what its run has done)",
    ),
    ("--watch", "minder watches no files: use a tool such as entr, `ls *.c | entr minder run …`"),
    ("--repeat --runs", "use `seq N | minder run -n0 COMMAND`"),
    // Output.
    ("--ordered --sort", "use `-k`"),
    ("--label --prefix", "use `--tag`"),
    ("--name", "`--names NAME,NAME` names the jobs, `--tag` begins each line with the argument"),
    ("--no-capture", "use `--lb` for whole lines, or `-u` for jobs that write themselves"),
    ("--output-sync", "the output of a job is shown as a whole (`--group` is the default)"),
    ("--log-dir --logs --outdir --output-dir --output-directory", "use `--results DIR`"),
    (
        "--output",
        "`--results DIR` stores the output of jobs, `--success-output never` shows only that of failed ones",
    ),
    ("--just-print --no-run --recon --what-if", "use `--dry-run`"),
    ("--debug --trace", "use `-t`, which prints each command when it starts"),
    ("--progress-bar --show-progress", "use `--bar`, or `--progress` for the running jobs"),
    ("--status", "use `--bar`"),
    ("--no-progress", "use `--no-status`"),
    ("--no-color", "use `--color=never`"),
    ("--sound", "use `--notify`, which reports the end of the run"),
    ("--tmux", "minder opens no windows (`--pty` gives each job a terminal)"),
    // The record.
    (
        "--log --log-file --logfile",
        "each run is recorded (`minder log`); `--joblog FILE` also writes a table",
    ),
    (
        "--junit --junit-xml --reporter",
        "`minder log last --junit` prints the results of a run when it has ended (also `--json`, `--csv`)",
    ),
    (
        "--html --markdown --md --tap",
        "`minder log last` prints the jobs as a table, with `--csv`, `--json` or `--junit` as data",
    ),
    (
        "--github",
        "minder prints no annotations (`minder log last --junit` is a report that other tools read)",
    ),
    ("--durations --stats", "`minder log last` lists the jobs and their durations"),
    ("--last-failed", "use `minder retry`"),
    // The tool itself.
    ("-?", "use `-h`"),
    ("--citation --will-cite", "minder prints no citation notice"),
    ("--gnu", "`minder parallel` accepts the command line of GNU parallel"),
    ("--config --config-file", "settings are in `minder.toml`: see `minder help config`"),
    ("--background --bg --fg --semaphore", "`minder sem` runs one command in the background"),
    // Refused values.
    ("-n=", "`--dry-run` prints the commands, `--xargs` gives a job as many arguments as fit"),
    ("-s=", "`--quiet` prints only errors"),
    ("--exit-status=", "`--halt now,fail=1` returns the status of the failed job"),
    ("--stdin=", "`--pipe` divides standard input among the jobs"),
];

/// Flags of `minder log`.
const LOG_FLAGS: &[Row] = &[
    ("--last --latest", "use `minder log last`"),
    ("--limit", "use `-n N`"),
    ("--failures", "use `--failed`"),
    ("--watch", "use `--follow`"),
    ("-o --format --output", "use `--json`, `--csv` or `--junit`"),
];

/// Flags of `minder` itself, and subcommands.
const MINDER_WORDS: &[Row] = &[
    ("-v", "use `minder --version`"),
    ("exec", "use `minder run COMMAND ::: ARGUMENT`"),
    (
        "history jobs list ls ps show top",
        "use `minder status` for what runs now, `minder log` for the runs, `minder log last` for the jobs of \
         the last one",
    ),
    (
        "kill stop",
        "`minder status --json` has the process of each running job; a signal to its group ends it",
    ),
    ("failed failures", "use `minder log --failed`"),
    ("export junit", "use `minder log last` with `--csv`, `--json`, `--junit` or `--sqlite FILE`"),
    ("continue", "use `minder resume`"),
    ("rerun", "use `minder retry`"),
    ("clean rm", "use `minder log --prune`"),
    ("sql", "use `minder log --sql QUERY`"),
    ("info", "use `minder doctor`"),
];

fn rows(command: &str) -> &'static [Row] {
    match command {
        "run" | "parallel" => RUN_FLAGS,
        "log" => LOG_FLAGS,
        "minder" => MINDER_WORDS,
        _ => &[],
    }
}

/// Returns the answer to a flag, with its dashes, or a subcommand that other tools have and `command`
/// does not have.
pub(crate) fn foreign_word(command: &str, word: &str) -> Option<&'static str> {
    find(command, |known| known == word)
}

/// Flags of `minder run` without a value after which other tools have a number, and the flags that take it
/// here.
pub(crate) const WITHOUT_NUMBER: [(&str, &str); 3] = [
    ("-t", "`-j N` sets the number of jobs at once, `--timeout TIME` a time-out"),
    ("-p", "`-j N` sets the number of jobs at once"),
    ("-r", "`--retries N` tries a job N times"),
];

/// Returns the message about `unknown`, such as `-4`, if it is a part of a word such as `-p4`.
pub(super) fn attached_number(args: &[OsString], unknown: &str) -> Option<String> {
    args.iter().filter_map(|arg| arg.to_str()).find_map(|word| {
        let (flag, hint) = WITHOUT_NUMBER.iter().find(|(flag, _)| {
            let number = word.strip_prefix(flag).unwrap_or_default();
            !number.is_empty()
                && number.starts_with(unknown.trim_start_matches('-'))
                && number.bytes().all(|it| it.is_ascii_digit())
        })?;
        Some(format!("`{flag}` of `{word}` takes no value: {hint}"))
    })
}

/// Returns the answer to a long flag that asks for a number of what a word of another tool is about, such
/// as `--max-workers`, or has a typing error in it. Short words are too near to other words.
pub(crate) fn related_flag(command: &str, flag: &str) -> Option<&'static str> {
    const LETTERS_MIN: usize = 6;
    let name = flag.strip_prefix("--")?;
    let answer = counted(name).and_then(|name| foreign_word(command, &format!("--{name}")));
    let answer = answer.filter(|answer| answer.contains(" N`"));
    if answer.is_some() || name.len() < LETTERS_MIN {
        return answer;
    }
    let words = rows(command).iter().flat_map(|(words, _)| words.split(' '));
    let flags = words.filter(|word| !word.ends_with('=')).filter_map(|word| word.strip_prefix("--"));
    let word = nearest(name, flags)?;
    foreign_word(command, &format!("--{word}"))
}

/// Returns what was meant by a flag of `command` whose value is refused, if other tools have the flag
/// with another meaning.
pub(super) fn foreign_value(command: &str, flag: &str, value: &str) -> Option<&'static str> {
    let is_number = value.starts_with(|first: char| first.is_ascii_digit());
    if is_number { None } else { foreign_word(command, &format!("{flag}=")) }
}

fn find(command: &str, is_meant: impl Fn(&str) -> bool) -> Option<&'static str> {
    rows(command).iter().find(|(words, _)| words.split(' ').any(&is_meant)).map(|(_, answer)| *answer)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Command;

    use super::*;
    use crate::flags::Flags;

    #[test]
    fn related_flag_is_not_answered_by_one_with_another_meaning() {
        for flag in ["--cache-dir", "--env-file", "--retry-on-failure", "--hide-output", "--exit-statu"] {
            assert_eq!(related_flag("run", flag), None, "{flag}");
        }
        for flag in ["--io-threads", "--max-output", "--network-retry", "--no-workers"] {
            assert_eq!(related_flag("run", flag), None, "{flag}");
        }
        assert_eq!(related_flag("run", "--num-threads"), Some("use `-j N`"));
        assert_eq!(related_flag("run", "--max-workers"), Some("use `-j N`"));
        assert_eq!(foreign_word("run", "--output-dir"), Some("use `--results DIR`"));
        assert_eq!(foreign_word("run", "--reruns-delay"), Some("use `--retry-delay TIME`"));
    }

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
        let mut quoted = BTreeSet::new();
        let mut all_flags = flags_of(&minder);
        for (command, interface) in [
            ("run", minder.find_subcommand("run")),
            ("log", minder.find_subcommand("log")),
            ("minder", Some(&minder)),
        ] {
            let interface = interface.expect("find subcommand");
            let mut known = flags_of(interface);
            all_flags.extend(known.clone());
            known.extend(interface.get_subcommands().map(|known| known.get_name().to_owned()));
            for (words, answer) in rows(command) {
                for word in words.split(' ') {
                    assert_eq!(foreign_word(command, word), Some(*answer), "{word} is listed twice");
                    assert!(!known.contains(word), "{word} exists");
                    if let Some(flag) = word.strip_suffix('=') {
                        assert!(known.contains(flag), "{flag} does not exist");
                    }
                }
                let code = answer.split('`').skip(1).step_by(2).flat_map(|code| code.split(' '));
                quoted.extend(
                    code.filter(|word| word.starts_with('-'))
                        .map(|flag| if flag == "-n0" { "-n" } else { flag })
                        .map(|flag| flag.split_once('=').map_or(flag, |(flag, _)| flag)),
                );
            }
        }
        // Every flag that an answer names exists.
        assert!(quoted.len() > 30, "{quoted:?}");
        for flag in quoted {
            assert!(all_flags.contains(flag), "{flag} does not exist");
        }
    }
}
