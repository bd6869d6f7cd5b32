//! Turns an error of clap into one line in the style of minder's other messages.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError, TryFromIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Returns the message, without a hint where to find help.
pub(crate) fn clap_error_line(error: &Error) -> String {
    let arg = context(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let flag = flag_name(&arg);
    let valid = context(error, ContextKind::ValidValue).join(", ");
    let value = context(error, ContextKind::InvalidValue).concat();
    match error.kind() {
        ErrorKind::UnknownArgument if flag == "--version" => {
            "unknown flag `--version`; did you mean `minder --version`?".to_owned()
        }
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            format!("unknown flag `{flag}`{}", suggestion(error, ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => format!("unexpected argument `{flag}`"),
        ErrorKind::InvalidSubcommand => {
            let name = context(error, ContextKind::InvalidSubcommand).concat();
            format!("unknown command `{name}`{}", suggestion(error, ContextKind::SuggestedSubcommand))
        }
        ErrorKind::InvalidValue if value.is_empty() && valid.is_empty() => {
            format!("`{flag}` requires a value")
        }
        ErrorKind::InvalidValue if value.is_empty() => format!("`{flag}` requires a value: one of {valid}"),
        ErrorKind::InvalidValue => format!("invalid value `{value}` for {flag}: expected one of {valid}"),
        ErrorKind::ValueValidation => format!("{flag}: {}", validation_error(error, &value)),
        ErrorKind::TooManyValues => format!("`{flag}` takes no value"),
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
        ErrorKind::MissingRequiredArgument if flag == "<COMMAND>..." => "no command is given".to_owned(),
        ErrorKind::MissingRequiredArgument => format!("missing argument `{flag}`"),
        ErrorKind::InvalidUtf8 => "an argument is not valid UTF-8, but must be text".to_owned(),
        _ => first_line(error),
    }
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

fn suggestion(error: &Error, kind: ContextKind) -> String {
    match context(error, kind).as_slice() {
        [] => String::new(),
        [first, ..] => format!("; did you mean `{first}`?"),
    }
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
            ("run", "no command is given"),
            ("run -j4", "no command is given"),
            ("run -j", "`--jobs` requires a value"),
            ("run --jbos 3 x", "unknown flag `--jbos`; did you mean `--jobs`?"),
            ("run -Z x", "unknown flag `-Z`"),
            ("run --version", "unknown flag `--version`; did you mean `minder --version`?"),
            ("run --leak x y", "invalid value `x` for --leak: expected one of close, wait"),
            ("run --color=x y", "invalid value `x` for --color: expected one of auto, always, never, jobs"),
            ("run --leak= y", "`--leak` requires a value: one of close, wait"),
            ("run --bar=1 y", "`--bar` takes no value"),
            ("run --grace x y", "--grace: invalid value `x`: expected an integer"),
            ("run --grace 99999999999999999999 y", "--grace: `99999999999999999999` is too large"),
            (
                "run --nice 9999999999 y",
                "--nice: `9999999999` is out of range: expected -2147483648 to 2147483647",
            ),
            ("run -k --lb x", "`--keep-order` cannot be used with `--line-buffer`"),
            ("log --prune x", "`--prune` cannot be used with `[RUN]`"),
            ("log --json --json", "`--json` is given twice"),
            ("log --sql", "`--sql` requires a value"),
            ("log a b", "unexpected argument `b`"),
            ("rum", "unknown command `rum`; did you mean `run`?"),
            ("xyz", "unknown command `xyz`"),
        ] {
            let args = ["minder"].into_iter().chain(line.split(' '));
            let error = Flags::try_parse_from(args).expect_err(line);
            assert_eq!(clap_error_line(&error), expected, "{line}");
        }
        let command = clap::Command::new("x").arg(clap::Arg::new("FILE").required(true));
        let error = command.try_get_matches_from(["x"]).expect_err("parse without required argument");
        assert_eq!(clap_error_line(&error), "missing argument `<FILE>`");
    }
}
