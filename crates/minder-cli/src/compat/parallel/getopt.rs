//! Parses options like GNU parallel.
//!
//! A long option may be abbreviated as long as the abbreviation is unambiguous, in either case. Short
//! options may share one argument. Options end at the first argument that is not an option.

use std::ffi::OsString;

use anyhow::{Result, bail};
use clap::ArgAction;
use minder_os::encoding::os_string_from_encoded;

use super::options::{INTERNAL_OPTIONS, OPTIONS, OptionSpec, ValueKind};
use crate::flags::{Flags, flag_named, foreign_word, related_flag};
use crate::likeness::nearest;

/// An option on the command line.
#[derive(Debug)]
pub(super) enum ParsedOption {
    /// An option of GNU parallel, with its value if it has one.
    Known(&'static OptionSpec, Option<OsString>),
    /// A flag that only `minder run` has, or its value, as typed.
    Run(OsString),
}

/// Returns the options, and the arguments after them.
///
/// # Errors
/// An option is unknown or ambiguous, lacks its value, or has a value although it takes none.
pub(super) fn parse(args: &[OsString]) -> Result<(Vec<ParsedOption>, Vec<OsString>)> {
    let mut options = Vec::new();
    let mut rest = args;
    while let Some((arg, after)) = rest.split_first() {
        let bytes = arg.as_encoded_bytes();
        if bytes == b"--" {
            return Ok((options, after.to_vec()));
        }
        if bytes.len() < 2 || bytes[0] != b'-' {
            break;
        }
        rest = match bytes.strip_prefix(b"--") {
            Some(long) => parse_long(arg, long, after, &mut options)?,
            None => parse_short(&bytes[1..], after, &mut options)?,
        };
    }
    Ok((options, rest.to_vec()))
}

fn parse_long<'a>(
    arg: &OsString,
    long: &[u8],
    after: &'a [OsString],
    options: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    let (name, attached) = match long.iter().position(|byte| *byte == b'=') {
        Some(at) => (&long[..at], Some(&long[at + 1..])),
        None => (long, None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let Some(spec) = find(&name)? else {
        let Some(takes_value) = run_flag_takes_value(&name) else {
            bail!("unknown option `--{name}`{} (see `minder parallel --help`)", suggestion(&name));
        };
        options.push(ParsedOption::Run(arg.clone()));
        let value_len = usize::from(takes_value && attached.is_none() && !after.is_empty());
        let (value, rest) = after.split_at(value_len);
        options.extend(value.iter().cloned().map(ParsedOption::Run));
        return Ok(rest);
    };
    match (spec.value, attached) {
        (ValueKind::None, Some(_)) => bail!("`--{name}` does not take a value"),
        (ValueKind::Required, Some(b"")) => bail!("`--{name}` requires a value"),
        (_, Some(value)) => {
            options.push(ParsedOption::Known(spec, Some(os_string_from_encoded(value.to_vec()))));
            Ok(after)
        }
        (_, None) => take_next_value(spec, &format!("--{name}"), after, options),
    }
}

fn parse_short<'a>(
    letters: &[u8],
    after: &'a [OsString],
    options: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    for (at, letter) in letters.iter().enumerate() {
        let name = char::from(*letter).to_string();
        let Some(spec) = find_exact(&name) else {
            bail!("unknown option `-{name}` (see `minder parallel --help`)")
        };
        let attached = &letters[at + 1..];
        match spec.value {
            ValueKind::None => options.push(ParsedOption::Known(spec, None)),
            _ if attached.is_empty() => return take_next_value(spec, &format!("-{name}"), after, options),
            _ => {
                options.push(ParsedOption::Known(spec, Some(os_string_from_encoded(attached.to_vec()))));
                return Ok(after);
            }
        }
    }
    Ok(after)
}

/// Pushes an option whose value, if it has one, is the next argument. Returns the arguments after
/// it.
fn take_next_value<'a>(
    spec: &'static OptionSpec,
    typed: &str,
    after: &'a [OsString],
    options: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    let next = after.first().map(|arg| arg.as_encoded_bytes());
    let has_value = match spec.value {
        ValueKind::None => false,
        ValueKind::Required if next.is_none() => bail!("`{typed}` requires a value"),
        ValueKind::Required => true,
        ValueKind::Optional(_) => next.is_some_and(|next| !next.starts_with(b"-")),
        ValueKind::OptionalNumber(_) => next.and_then(<[u8]>::first).is_some_and(u8::is_ascii_digit),
    };
    let (value, rest) = after.split_at(usize::from(has_value));
    options.push(ParsedOption::Known(spec, value.first().cloned()));
    Ok(rest)
}

/// Returns a name in lower case without hyphens and underscores, which do not distinguish names.
fn normalize(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect::<String>().to_lowercase()
}

/// Returns the option of exactly this name. The case of a short option matters.
fn find_exact(name: &str) -> Option<&'static OptionSpec> {
    let matches = |known: &&str| match (known.chars().count(), name.chars().count()) {
        (1, _) | (_, 1) => *known == name,
        _ => normalize(known) == normalize(name),
    };
    OPTIONS.iter().chain(INTERNAL_OPTIONS).find(|spec| spec.names.iter().any(&matches))
}

/// Returns the option of this long name or abbreviation.
fn find(name: &str) -> Result<Option<&'static OptionSpec>> {
    if let Some(spec) = find_exact(name) {
        return Ok(Some(spec));
    }
    let prefix = normalize(name);
    if prefix.is_empty() || run_flag_takes_value(name).is_some() {
        return Ok(None);
    }
    let matches = |known: &&str| known.len() > 1 && normalize(known).starts_with(&prefix);
    let found: Vec<&OptionSpec> = OPTIONS.iter().filter(|spec| spec.names.iter().any(&matches)).collect();
    match found.as_slice() {
        [] => Ok(None),
        [spec] => Ok(Some(*spec)),
        specs => {
            let names = specs.iter().filter_map(|spec| spec.names.iter().find(|name| matches(name)));
            let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
            bail!("ambiguous option `--{name}`: it may be {}", names.join(", "))
        }
    }
}

/// Returns the end of the message about an unknown option: what to type in its place, if that is known.
fn suggestion(name: &str) -> String {
    let flag = format!("--{name}");
    let long_names = OPTIONS.iter().flat_map(|spec| spec.names).copied().filter(|known| known.len() > 1);
    let near = || nearest(name, long_names).map(|known| format!("; did you mean `--{known}`?"));
    let answered = |answer| format!(": {answer}");
    let exact = foreign_word("parallel", &flag).map(answered);
    exact.or_else(near).or_else(|| related_flag("parallel", &flag).map(answered)).unwrap_or_default()
}

/// Returns whether the flag of `minder run` of exactly this name takes a value, or `None` if there
/// is no such flag.
fn run_flag_takes_value(name: &str) -> Option<bool> {
    let minder = Flags::interface();
    let arg = flag_named(minder.find_subcommand("run")?, &format!("--{name}"));
    // One with several values is not written in one word, as the options of a profile are.
    arg.filter(|arg| arg.get_num_args().is_none_or(|count| count.max_values() <= 1)).map(|arg| {
        matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
            && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compat::parallel::options::Mapping;

    /// Returns the options, `|`, and the rest of the arguments.
    fn parsed(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (options, rest) = match parse(&args) {
            Ok(parsed) => parsed,
            Err(error) => return error.to_string(),
        };
        let mut out: Vec<String> = Vec::new();
        for option in options {
            out.push(match option {
                ParsedOption::Known(spec, value) => {
                    let value = value.map_or_else(String::new, |value| format!("={}", value.display()));
                    format!("{}{value}", spec.names[0])
                }
                ParsedOption::Run(arg) => arg.display().to_string(),
            });
        }
        out.push("|".into());
        out.extend(rest.iter().map(|arg| arg.display().to_string()));
        out.join(" ")
    }

    #[test]
    fn parse_follows_gnu_parallel() {
        for (line, expected) in [
            ("echo -k ::: 1", "| echo -k ::: 1"),
            ("-kj4 -0r echo", "keep-order jobs=4 null no-run-if-empty | echo"),
            ("-kj 4 echo", "keep-order jobs=4 | echo"),
            ("-j -1 -j+2 -P50% echo", "jobs=-1 jobs=+2 jobs=50% | echo"),
            ("--keep --ke --KEEP-order echo", "keep-order keep-order keep-order | echo"),
            ("--max-procs=2 --maxprocs 3 --j 4 echo", "jobs=2 jobs=3 jobs=4 | echo"),
            ("--res x --joblog y --tagstring ::: 1", "results=x joblog=y tagstring=::: | 1"),
            (
                "--no-keep --noswap --no-run -r echo",
                "no-keep-order noswap no-run-if-empty no-run-if-empty | echo",
            ),
            ("-i echo {}", "replace=echo | {}"),
            ("-i -k -i@ echo", "replace keep-order replace=@ | echo"),
            ("-l -k -l2 -l 3 -l echo", "max-lines keep-order max-lines=2 max-lines=3 max-lines | echo"),
            ("-e2 -E x --eof=y --eof -k echo", "eof=2 E=x eof=y eof keep-order | echo"),
            ("-k -- -x ::: 1", "keep-order | -x ::: 1"),
            ("-k - ::: 1", "keep-order | - ::: 1"),
            ("--colsep -x echo", "colsep=-x | echo"),
            ("--grace 3 --no-record --leak=wait echo", "--grace 3 --no-record --leak=wait | echo"),
            ("--eta=1 echo", "`--eta` does not take a value"),
            ("-k -j", "`-j` requires a value"),
            ("--tagstring= echo", "`--tagstring` requires a value"),
            ("--resu x", "ambiguous option `--resu`: it may be --results, --resume, --resume-failed"),
            ("-kZ echo", "unknown option `-Z` (see `minder parallel --help`)"),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
        for (flag, answer) in [
            ("--bogus", ""),
            ("--fail-fast", ": use `--halt now,fail=1`"),
            ("--retires", "; did you mean `--retries`?"),
            ("--max-workers", ": use `-j N`"),
        ] {
            let expected = format!("unknown option `{flag}`{answer} (see `minder parallel --help`)");
            assert_eq!(parsed(flag), expected);
        }
    }

    #[test]
    fn passed_options_exist_in_run() {
        for spec in OPTIONS {
            let Mapping::Pass(flag) = spec.mapping else { continue };
            let Some(name) = flag.strip_prefix("--") else { continue };
            let takes_value = run_flag_takes_value(name).unwrap_or_else(|| panic!("unknown flag {flag}"));
            assert_eq!(takes_value, spec.value != ValueKind::None, "{flag}");
        }
    }

    #[test]
    fn option_names_are_unique() {
        let mut names: Vec<&str> =
            OPTIONS.iter().chain(INTERNAL_OPTIONS).flat_map(|spec| spec.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
