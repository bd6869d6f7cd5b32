//! Turns an error of clap into one line in the style of minder's other messages.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseIntError, TryFromIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use super::foreign_words::{attached_number, foreign_value};
use super::typed_name::typed_name;
use super::unknown::{as_run, unknown_flag, unknown_subcommand};

/// Returns the message, without a hint where to find help. `args` are the arguments of `minder`.
pub(crate) fn clap_error_line(error: &Error, minder: &Command, args: &[OsString]) -> String {
    let (command, args) = addressed(minder, args);
    let flag = invalid_argument(error);
    let flag = flag.as_str();
    let value = context(error, ContextKind::InvalidValue).concat();
    let typed = match error.kind() {
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => typed_name(flag, &value, command, args),
        _ => None,
    };
    let flag = typed.as_deref().unwrap_or(flag);
    let line = error_line(error, flag, command, minder);
    if error.kind() == ErrorKind::UnknownArgument
        && command.get_name() == "run"
        && let Some(line) = attached_number(args, flag)
    {
        return line;
    }
    match foreign_value(command.get_name(), flag, &value) {
        Some(answer) => format!("{line} ({answer})"),
        None => line,
    }
}

/// Returns the message about an error of clap. `flag` is the flag as it was typed.
fn error_line(error: &Error, flag: &str, command: &Command, minder: &Command) -> String {
    let valid = context(error, ContextKind::ValidValue).join(", ");
    let value = context(error, ContextKind::InvalidValue).concat();
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => unknown_flag(flag, command, minder),
        ErrorKind::UnknownArgument => format!("unexpected argument `{flag}`"),
        ErrorKind::InvalidSubcommand => {
            unknown_subcommand(&context(error, ContextKind::InvalidSubcommand).concat(), command)
        }
        ErrorKind::InvalidValue if value.is_empty() && valid.is_empty() => {
            format!("`{flag}` requires a value")
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("`{flag}` requires a value: one of {valid}"),
        ErrorKind::InvalidValue => format!("invalid value `{value}` for {flag}: expected one of {valid}"),
        ErrorKind::ValueValidation => format!("{flag}: {}", validation_error(error, &value)),
        ErrorKind::TooManyValues => format!("`{flag}` does not take a value"),
        ErrorKind::ArgumentConflict => {
            let others = context(error, ContextKind::PriorArg);
            let other = others.first().map(|other| flag_name(other)).unwrap_or_default();
            let subcommand = context(error, ContextKind::InvalidSubcommand).concat();
            let flag = if flag.is_empty() { &subcommand } else { flag };
            if other == flag {
                format!("`{flag}` is given twice")
            } else {
                format!("`{flag}` cannot be used with `{other}`")
            }
        }
        ErrorKind::MissingRequiredArgument if flag == "<COMMAND>..." => "no command given".to_owned(),
        ErrorKind::MissingRequiredArgument => format!("missing argument `{flag}`"),
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8, but must be text".to_owned(),
        _ => first_line(error),
    }
}

/// Returns where to find help, or the command line that was meant. `args` are the arguments of `minder`.
pub(crate) fn clap_error_hint(error: &Error, minder: &Command, args: &[OsString]) -> String {
    if error.kind() == ErrorKind::InvalidSubcommand
        && let Some(line) = as_run(args, minder)
    {
        return format!("to run it: {line}");
    }
    let path = args[..args.len() - addressed(minder, args).1.len()].iter();
    let path: String = path.map(|name| format!(" {}", name.display())).collect();
    format!("see `minder{path} --help`")
}

/// Returns `true` if the arguments ask a subcommand for the version, or ask in another spelling than
/// `minder --version`.
pub(crate) fn asks_for_version(error: &Error) -> bool {
    let is = |kind, words: &[&str]| words.contains(&context(error, kind).concat().as_str());
    match error.kind() {
        ErrorKind::UnknownArgument => is(ContextKind::InvalidArg, &["--version", "-V"]),
        ErrorKind::InvalidSubcommand => is(ContextKind::InvalidSubcommand, &["version"]),
        _ => false,
    }
}

/// Returns the subcommand that `args` name, and its own arguments.
fn addressed<'a>(minder: &'a Command, args: &'a [OsString]) -> (&'a Command, &'a [OsString]) {
    let mut addressed = (minder, args);
    while let (command, [name, rest @ ..]) = addressed
        && let Some(subcommand) = command.get_subcommands().find(|subcommand| name == subcommand.get_name())
    {
        addressed = (subcommand, rest);
    }
    addressed
}

/// Returns the flag or the argument that an error is about.
pub(super) fn invalid_argument(error: &Error) -> String {
    let arg = context(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    flag_name(&arg).to_owned()
}

/// Returns what clap recorded about this error.
fn context(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// Returns `--jobs` for `--jobs <N>`, and `--color` for `--color[=<WHEN>]`.
fn flag_name(usage: &str) -> &str {
    if usage.starts_with('-') { usage.split([' ', '[', '=']).next().unwrap_or(usage) } else { usage }
}

/// Returns why a value was refused. The parsers of minder return a complete message.
fn validation_error(error: &Error, value: &str) -> String {
    let Some(source) = error.source() else { return format!("invalid value `{value}`") };
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        return match error.kind() {
            IntErrorKind::PosOverflow => format!("`{value}` is too large"),
            IntErrorKind::NegOverflow => format!("`{value}` is too small"),
            _ => format!("invalid value `{value}`: expected an integer"),
        };
    }
    if source.is::<TryFromIntError>() {
        return format!("`{value}` is too large");
    }
    let text = source.to_string();
    // The messages of clap's ranges begin with the value without quotes.
    match text.strip_prefix(value).and_then(|rest| rest.strip_prefix(" is not in ")) {
        Some(range) => format!("`{value}` is out of range: expected {}", range.replace("..=", " to ")),
        None => text,
    }
}

fn first_line(error: &Error) -> String {
    let text = error.render().to_string();
    text.lines().next().unwrap_or_default().trim_start_matches("error: ").trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::Flags;

    #[test]
    fn clap_error_line_names_the_flag_or_value() {
        for (line, expected) in [
            ("run -j", "`-j` requires a value"),
            ("run --max-procs", "`--max-procs` requires a value"),
            (
                "run -n echo ::: a",
                "-n: invalid number `echo`: expected NUMBER (`--dry-run` prints the commands, `--xargs` \
                 gives a job as many arguments as fit)",
            ),
            ("run -n 5x ::: a", "-n: invalid number `5x`: expected NUMBER"),
            ("run -s echo a", "-s: invalid number `echo`: expected NUMBER (`--quiet` prints only errors)"),
            (
                "run --stdin --pipe x",
                "`--stdin` requires a value (`--pipe` divides standard input among the jobs)",
            ),
            ("run --jbos 3 x", "unknown flag `--jbos`; did you mean `--jobs`?"),
            ("run -Z x", "unknown flag `-Z`"),
            ("run --leak x y", "invalid value `x` for --leak: expected one of close, wait"),
            ("run --color=x y", "invalid value `x` for --color: expected one of auto, always, never, jobs"),
            ("run --leak= y", "`--leak` requires a value: one of close, wait"),
            ("run --bar=1 y", "`--bar` does not take a value"),
            ("run --grace x y", "--grace: invalid value `x`: expected an integer"),
            ("run --grace 99999999999999999999 y", "--grace: `99999999999999999999` is too large"),
            (
                "run --nice 9999999999 y",
                "--nice: `9999999999` is out of range: expected -2147483648 to 2147483647",
            ),
            ("run -k --lb x", "`--keep-order` cannot be used with `--line-buffer`"),
            ("--resume", "unknown flag `--resume`; did you mean `minder resume`?"),
            ("log --last", "unknown flag `--last`: use `minder log last`"),
            ("log --prune x", "`--prune` cannot be used with `[RUN]`"),
            ("log --json --json", "`--json` is given twice"),
            ("log --sql", "`--sql` requires a value"),
            ("log a b", "[JOB]: invalid value `b`: expected an integer"),
            ("log a 1 c", "unexpected argument `c`"),
            ("rum", "unknown command `rum`; did you mean `run`?"),
            ("xyz", "unknown command `xyz`"),
        ] {
            assert_eq!(message(line).0, expected.replace("NUMBER", NUMBER), "{line}");
        }
        let command = Command::new("x").arg(clap::Arg::new("FILE").required(true));
        let error = command.clone().try_get_matches_from(["x"]).expect_err("parse without required argument");
        assert_eq!(clap_error_line(&error, &command, &[]), "missing argument `<FILE>`");
    }

    #[test]
    fn clap_error_hint_names_the_help_or_the_line() {
        for (line, expected) in [
            ("run -Z", "see `minder run --help`"),
            ("bench wait --rounds 0", "see `minder bench wait --help`"),
            ("--resume", "see `minder --help`"),
            ("xyz", "see `minder --help`"),
            ("rnu echo ::: a", "see `minder --help`"),
            ("echo ::: a", "to run it: minder run echo ::: a"),
        ] {
            assert_eq!(message(line).1, expected, "{line}");
        }
    }

    #[test]
    fn asks_for_version_knows_its_spellings() {
        for (line, expected) in [
            ("run --version", true),
            ("log --version", true),
            ("bench wait -V", true),
            ("version", true),
            ("run --versions", false),
            ("versions", false),
        ] {
            let error = Flags::try_parse_from(["minder"].into_iter().chain(line.split(' '))).expect_err(line);
            assert_eq!(asks_for_version(&error), expected, "{line}");
        }
    }

    #[test]
    fn flags_of_other_tools_lead_to_no_wrong_answer() {
        let mut counts = std::collections::BTreeMap::new();
        let mut wrong = String::new();
        for row in include_str!("other_tools.txt").split("\n\n").filter(|row| !row.starts_with('#')) {
            let lines: Vec<&str> = row.trim_end().lines().collect();
            let [flag, wanted, answer] = lines[..] else { panic!("not three lines: {row}") };
            let (_, flag) = flag.split_once(": ").expect("split the tool from the flag");
            assert!(wanted.starts_with("wanted: "), "{row}");
            let (verdict, answer) = answer.split_once(": ").expect("split the verdict from the answer");
            assert!(["right", "led", "nothing", "other"].contains(&verdict), "{row}");
            *counts.entry(verdict).or_insert(0) += 1;
            let line = format!("run {flag} echo ::: a");
            let is_known = Flags::try_parse_from(["minder"].into_iter().chain(line.split(' '))).is_ok();
            let now = if is_known { "accepted".to_owned() } else { message(&line).0 };
            if now != answer {
                wrong.push_str(&format!("{flag}: {now}\n"));
            }
        }
        assert!(wrong.is_empty(), "answered otherwise:\n{wrong}");
        let counts: Vec<_> = counts.into_iter().collect();
        assert_eq!(counts, [("led", 6), ("nothing", 70), ("other", 6), ("right", 38)]);
    }

    /// Returns the message about a line, and its hint.
    fn message(line: &str) -> (String, String) {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let error = Flags::try_parse_from([OsString::from("minder")].iter().chain(&args)).expect_err(line);
        let minder = Flags::interface();
        (clap_error_line(&error, &minder, &args), clap_error_hint(&error, &minder, &args))
    }

    const NUMBER: &str =
        "a number, which may have a suffix: K, M, G, T, P (powers of 1024) or k, m, g, t, p (of 1000)";
}
