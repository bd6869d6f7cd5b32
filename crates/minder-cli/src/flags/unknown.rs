//! Messages about flags and subcommands that do not exist: each names what was meant, if that is
//! known.

use std::ffi::OsString;

use clap::{Arg, Command};

use super::foreign_words::{foreign_word, related_flag};
use super::typed_name::flag_named;
use crate::likeness::{counted, have_same_letters, nearest};

/// The subcommands whose flags are recognised where they do not belong.
const OWNERS: [&str; 2] = ["run", "log"];

/// The maximum length of a command line that a message repeats.
const LINE_MAX: usize = 200;

/// The answer to a command in place of a subcommand of `minder bench`.
const BENCH: &str = "`minder bench` measures mechanisms of this machine; to time commands, use `minder run \
                     -j1 ::: 'COMMAND 1' 'COMMAND 2'`, or `seq 10 | minder run -j1 -n0 COMMAND`, and \
                     `minder log last`";

/// Returns the message about a flag that `command` does not have. `minder` is the whole command line
/// interface.
pub(super) fn unknown_flag(flag: &str, command: &Command, minder: &Command) -> String {
    let unknown = format!("unknown flag `{flag}`");
    let answer = foreign_word(command.get_name(), flag);
    if answer.is_some() {
        return with_answer(unknown, answer);
    }
    // `minder --resume`, as in the command line of a run.
    let subcommand = flag.strip_prefix("--").and_then(|name| command.find_subcommand(name));
    if let Some(subcommand) = subcommand {
        return format!("{unknown}; did you mean `{} {}`?", command.get_name(), subcommand.get_name());
    }
    // A letter means something else to each subcommand: only one that was typed too early is meant.
    let is_meant = flag.starts_with("--") || command.get_name() == minder.get_name();
    let has_flag = |name: &&str| {
        is_meant && minder.find_subcommand(name).is_some_and(|owner| flag_named(owner, flag).is_some())
    };
    let meant = match OWNERS.iter().copied().find(has_flag) {
        Some(owner) => Some(format!("minder {owner} {flag}")),
        None => flag.strip_prefix("--").and_then(|name| near_flag(name, command)),
    };
    match meant {
        Some(meant) => format!("{unknown}; did you mean `{meant}`?"),
        None => with_answer(unknown, related_flag(command.get_name(), flag)),
    }
}

fn with_answer(unknown: String, answer: Option<&str>) -> String {
    match answer {
        Some(answer) => format!("{unknown}: {answer}"),
        None => unknown,
    }
}

/// Returns the flag with a name like this one, or the only one that begins with these words: `--dry-run`
/// for `--dry`, or the one that takes such a number, `--load` for `--max-load`, or such a time of a job,
/// `--timeout` for `--job-timeout`.
fn near_flag(name: &str, command: &Command) -> Option<String> {
    let longs = || visible(command).flat_map(visible_longs);
    let longer = || {
        let begins = |long: &&str| long.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
        let mut longer = longs().filter(begins);
        let first = longer.next();
        if longer.next().is_none() { first } else { None }
    };
    let takes = |kinds: &[&str], name: &&str| {
        let names = |arg: &Arg| arg.get_value_names().unwrap_or_default().join("|");
        let is_taken = |arg: &Arg| names(arg).split('|').any(|kind| kinds.contains(&kind));
        visible(command).any(|arg| is_taken(arg) && visible_longs(arg).any(|long| long == *name))
    };
    let counted = || counted(name).filter(|name| takes(&["N"], name));
    let of_job = || name.strip_prefix("job-").filter(|name| takes(&["N", "TIME"], name));
    // Three letters of which one is another are mostly another word: `--tap` is not `--tag`.
    let is_same = |near: &&str| near.len() > 3 || near.len() != name.len() || have_same_letters(name, near);
    let near = nearest(name, longs()).filter(is_same).or_else(longer).or_else(counted).or_else(of_job);
    near.map(|name| format!("--{name}"))
}

/// Returns the message about a subcommand that `command` does not have.
pub(super) fn unknown_subcommand(name: &str, command: &Command) -> String {
    let unknown = format!("unknown command `{name}`");
    let known = command.get_subcommands().map(Command::get_name);
    if let Some(meant) = nearest(name, known) {
        return format!("{unknown}; did you mean `{meant}`?");
    }
    let answer = if command.get_name() == "bench" { Some(BENCH) } else { None };
    with_answer(unknown, foreign_word(command.get_name(), name).or(answer))
}

/// Returns the command line that runs `args`, if they are a command that was typed without `run`: the
/// first of them is not a subcommand, and others follow.
pub(super) fn as_run(args: &[OsString], minder: &Command) -> Option<String> {
    let (name, rest) = args.split_first()?;
    let known = minder.get_subcommands().map(Command::get_name);
    let is_typo = nearest(name.to_str()?, known).is_some();
    let is_foreign = foreign_word(minder.get_name(), name.to_str()?).is_some();
    let has_values = rest.iter().any(|arg| matches!(arg.as_encoded_bytes(), b":::" | b"::::"));
    if rest.is_empty() || is_typo || (is_foreign && !has_values) {
        return None;
    }
    let words: Vec<String> = args.iter().map(|arg| minder_template::shell_word(arg)).collect();
    let line = format!("minder run {}", words.join(" "));
    Some(if line.len() <= LINE_MAX { line } else { format!("minder run {} …", words[0]) })
}

/// Returns the flags that the help lists.
fn visible(command: &Command) -> impl Iterator<Item = &Arg> {
    command.get_arguments().filter(|arg| !arg.is_hide_set())
}

/// Returns the long names of a flag that the help lists.
fn visible_longs(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_visible_aliases().into_iter().flatten())
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::flags::Flags;

    #[test]
    fn unknown_flag_names_what_was_meant() {
        let minder = Flags::interface();
        for (command, flag, expected) in [
            ("run", "--jbos", "unknown flag `--jbos`; did you mean `--jobs`?"),
            ("run", "--linebuffer", "unknown flag `--linebuffer`; did you mean `--line-buffer`?"),
            ("run", "--fail-fast", "unknown flag `--fail-fast`: use `--halt now,fail=1`"),
            ("run", "--failed", "unknown flag `--failed`; did you mean `minder log --failed`?"),
            ("run", "--no-such-flag", "unknown flag `--no-such-flag`"),
            ("run", "--dry", "unknown flag `--dry`; did you mean `--dry-run`?"),
            ("run", "--fail", "unknown flag `--fail`"),
            ("run", "--time", "unknown flag `--time`"),
            ("run", "--failure", "unknown flag `--failure`; did you mean `--failure-output`?"),
            ("run", "--paralell", "unknown flag `--paralell`: use `-j N`"),
            ("run", "--max-workers", "unknown flag `--max-workers`: use `-j N`"),
            ("run", "--max-load", "unknown flag `--max-load`; did you mean `--load`?"),
            ("run", "--job-limit", "unknown flag `--job-limit`: use `-j N`"),
            ("run", "--no-tag", "unknown flag `--no-tag`"),
            ("run", "--no-workers", "unknown flag `--no-workers`"),
            ("run", "--kill-others", "unknown flag `--kill-others`: use `--halt now,done=1`"),
            ("run", "--men", "unknown flag `--men`"),
            ("run", "--yes", "unknown flag `--yes`"),
            ("run", "--evn", "unknown flag `--evn`; did you mean `--env`?"),
            ("run", "--no", "unknown flag `--no`"),
            ("run", "-Z", "unknown flag `-Z`"),
            ("log", "--last", "unknown flag `--last`: use `minder log last`"),
            ("log", "--since", "unknown flag `--since`"),
            ("log", "--joblog", "unknown flag `--joblog`; did you mean `minder run --joblog`?"),
            ("doctor", "--fail-fast", "unknown flag `--fail-fast`"),
        ] {
            let subcommand = minder.find_subcommand(command).expect("find subcommand");
            assert_eq!(unknown_flag(flag, subcommand, &minder), expected);
        }
        for (flag, expected) in [
            ("--resume", "unknown flag `--resume`; did you mean `minder resume`?"),
            ("-j", "unknown flag `-j`; did you mean `minder run -j`?"),
            ("--failed", "unknown flag `--failed`; did you mean `minder log --failed`?"),
            ("-v", "unknown flag `-v`: use `minder --version`"),
            ("--no-such-flag", "unknown flag `--no-such-flag`"),
        ] {
            assert_eq!(unknown_flag(flag, &minder, &minder), expected);
        }
    }

    #[test]
    fn unknown_flag_is_not_answered_by_one_with_another_meaning() {
        let minder = Flags::interface();
        let run = minder.find_subcommand("run").expect("find subcommand");
        for (flag, meant) in [
            ("job-timeout", Some("timeout")),
            ("max-jobs", Some("jobs")),
            ("num-jobs", Some("jobs")),
            ("max-load", Some("load")),
            ("max-retries", Some("retries")),
            // Of something else than a job.
            ("stop-timeout", None),
            ("idle-timeout", None),
            ("total-timeout", None),
            ("connect-timeout", None),
            ("build-jobs", None),
            ("kill-delay", None),
            // A flag that takes no number, or a condition in place of one.
            ("max-delay", None),
            ("max-files", None),
            ("max-limit", None),
            ("job-files", None),
            ("job-header", None),
            // The opposite, or something else to do.
            ("list-files", None),
            ("count-lines", None),
            ("skip-header", None),
            ("keep-env", None),
            ("login-shell", None),
            ("watch-exit", None),
            ("no-shell", None),
            // Too rare for words that only these have.
            ("start-delay", None),
            ("output-order", None),
        ] {
            assert_eq!(near_flag(flag, run), meant.map(|meant| format!("--{meant}")), "{flag}");
        }
    }

    #[test]
    fn unknown_subcommand_names_what_was_meant() {
        let minder = Flags::interface();
        for (name, expected) in [
            ("rnu", "unknown command `rnu`; did you mean `run`?"),
            ("hlep", "unknown command `hlep`; did you mean `help`?"),
            ("dcotor", "unknown command `dcotor`; did you mean `doctor`?"),
            ("failed", "unknown command `failed`: use `minder log --failed`"),
            ("rm", "unknown command `rm`: use `minder log --prune`"),
            ("echo", "unknown command `echo`"),
        ] {
            assert_eq!(unknown_subcommand(name, &minder), expected);
        }
        let bench = minder.find_subcommand("bench").expect("find subcommand");
        assert_eq!(unknown_subcommand("wat", bench), "unknown command `wat`; did you mean `wait`?");
        assert!(unknown_subcommand("sleep 1", bench).contains("to time commands, use `minder run -j1"));
    }

    #[test]
    fn as_run_repeats_a_command_that_was_typed_without_run() {
        let minder = Flags::interface();
        let line = |words: &[&str]| {
            let args: Vec<OsString> = words.iter().map(OsString::from).collect();
            as_run(&args, &minder)
        };
        assert_eq!(line(&["echo", ":::", "a"]).as_deref(), Some("minder run echo ::: a"));
        assert_eq!(line(&["wc -c {}", ":::", "a b"]).as_deref(), Some("minder run 'wc -c {}' ::: 'a b'"));
        assert_eq!(line(&["gzip", "-9"]).as_deref(), Some("minder run gzip -9"));
        assert_eq!(line(&["rm", ":::", "a"]).as_deref(), Some("minder run rm ::: a"));
        assert_eq!(line(&["echo", &"x".repeat(300)]).as_deref(), Some("minder run echo …"));
        for words in [&[][..], &["echo"], &["rnu", "echo", ":::", "a"], &["status", "-v"]] {
            assert_eq!(line(words), None, "{words:?}");
        }
    }
}
