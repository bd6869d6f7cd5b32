//! What is wrong with flags, as one line in our words: clap's own speak of arguments and name the
//! type that was parsed.

use std::error::Error as _;
use std::num::{IntErrorKind, ParseIntError, TryFromIntError};

use clap::Error;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// The line, without a hint where to read on.
pub(crate) fn mistake(error: &Error) -> String {
    let flag = context(error, ContextKind::InvalidArg).into_iter().next().unwrap_or_default();
    let flag = name(&flag);
    let known = context(error, ContextKind::ValidValue).join(", ");
    let value = context(error, ContextKind::InvalidValue).concat();
    match error.kind() {
        ErrorKind::UnknownArgument if flag.starts_with('-') => {
            format!("`{flag}` is no flag{}", meant(error, ContextKind::SuggestedArg))
        }
        ErrorKind::UnknownArgument => format!("`{flag}` is one word too many"),
        ErrorKind::InvalidSubcommand => {
            let verb = context(error, ContextKind::InvalidSubcommand).concat();
            format!("`{verb}` is no command of minder{}", meant(error, ContextKind::SuggestedSubcommand))
        }
        ErrorKind::InvalidValue if value.is_empty() && known.is_empty() => format!("`{flag}` wants a value"),
        ErrorKind::InvalidValue if value.is_empty() => format!("`{flag}` wants a value: one of {known}"),
        ErrorKind::InvalidValue => format!("{flag} `{value}`: it is one of {known}"),
        ErrorKind::ValueValidation => format!("{flag}: {}", refused(error, &value)),
        ErrorKind::TooManyValues => format!("`{flag}` takes no value"),
        ErrorKind::ArgumentConflict => {
            let others = context(error, ContextKind::PriorArg);
            let other = others.first().map(|other| name(other)).unwrap_or_default();
            match other == flag {
                true => format!("`{flag}` is given twice"),
                false => format!("`{flag}` and `{other}` do not go together"),
            }
        }
        ErrorKind::MissingRequiredArgument if flag == "<COMMAND>..." => "no command is given".to_owned(),
        ErrorKind::MissingRequiredArgument => format!("`{flag}` is missing"),
        ErrorKind::InvalidUtf8 => "an argument is no UTF-8, and stands where text is wanted".to_owned(),
        _ => first_line(error),
    }
}

/// What clap knows of this error, as texts.
fn context(error: &Error, kind: ContextKind) -> Vec<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    }
}

/// `--jobs` of `--jobs <N>`, and of `--color[=<WHEN>]` likewise.
fn name(written: &str) -> &str {
    match written.starts_with('-') {
        true => written.split([' ', '[', '=']).next().unwrap_or(written),
        false => written,
    }
}

fn meant(error: &Error, kind: ContextKind) -> String {
    match context(error, kind).as_slice() {
        [] => String::new(),
        [one, ..] => format!(": is `{one}` meant?"),
    }
}

/// Why a value was refused. Our own parsers say so in full.
fn refused(error: &Error, value: &str) -> String {
    let Some(why) = error.source() else { return format!("`{value}` is not understood") };
    if let Some(why) = why.downcast_ref::<ParseIntError>() {
        return match why.kind() {
            IntErrorKind::PosOverflow => format!("`{value}` is too large"),
            IntErrorKind::NegOverflow => format!("`{value}` is too little"),
            _ => format!("`{value}` is no whole number"),
        };
    }
    if why.is::<TryFromIntError>() {
        return format!("`{value}` is too large");
    }
    let why = why.to_string();
    // Clap's ranges begin with the bare value.
    match why.strip_prefix(value).and_then(|rest| rest.strip_prefix(" is not in ")) {
        Some(range) => format!("`{value}` is out of range: {}", range.replace("..=", " to ")),
        None => why,
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
    fn every_kind_of_mistake_names_what_was_typed() {
        for (line, said) in [
            ("run", "no command is given"),
            ("run -j4", "no command is given"),
            ("run -j", "`--jobs` wants a value"),
            ("run --jbos 3 x", "`--jbos` is no flag: is `--jobs` meant?"),
            ("run -Z x", "`-Z` is no flag"),
            ("run --leak x y", "--leak `x`: it is one of close, wait"),
            ("run --color=x y", "--color `x`: it is one of auto, always, never, jobs"),
            ("run --leak= y", "`--leak` wants a value: one of close, wait"),
            ("run --bar=1 y", "`--bar` takes no value"),
            ("run --grace x y", "--grace: `x` is no whole number"),
            ("run --grace 99999999999999999999 y", "--grace: `99999999999999999999` is too large"),
            ("run --nice 9999999999 y", "--nice: `9999999999` is out of range: -2147483648 to 2147483647"),
            ("run -k --lb x", "`--keep-order` and `--line-buffer` do not go together"),
            ("log --prune x", "`--prune` and `[RUN]` do not go together"),
            ("log --json --json", "`--json` is given twice"),
            ("log --sql", "`--sql` wants a value"),
            ("log a b", "`b` is one word too many"),
            ("rum", "`rum` is no command of minder: is `run` meant?"),
            ("xyz", "`xyz` is no command of minder"),
        ] {
            let words = ["minder"].into_iter().chain(line.split(' '));
            assert_eq!(mistake(&Flags::try_parse_from(words).expect_err(line)), said, "{line}");
        }
        let command = clap::Command::new("x").arg(clap::Arg::new("FILE").required(true));
        let error = command.try_get_matches_from(["x"]).expect_err("it is required");
        assert_eq!(mistake(&error), "`<FILE>` is missing");
    }
}
