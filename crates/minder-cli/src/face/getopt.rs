//! Options as GNU parallel reads them: long ones by any beginning that is no other's, in either
//! case; short ones in one word; and all of them before the first other word.

use std::ffi::{OsStr, OsString};

use anyhow::{Result, bail};
use clap::CommandFactory;
use minder_os::encoding::os_string_from_encoded;

use super::table::{HIDDEN, KNOWN, OptionSpec, ValueKind};
use crate::flags::{Flags, habits};

/// An option that was given.
#[derive(Debug)]
pub(super) enum ParsedOption {
    /// One of GNU parallel's, and its value if it has one.
    Known(&'static OptionSpec, Option<OsString>),
    /// One that only `minder run` has, as it was typed.
    Own(OsString),
}

/// The options before the first other word, and what stands there and behind.
///
/// # Errors
/// An option that is unknown, that may be several, or that lacks its value.
pub(super) fn parse(words: &[OsString]) -> Result<(Vec<ParsedOption>, Vec<OsString>)> {
    let mut given = Vec::new();
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let bytes = word.as_encoded_bytes();
        if bytes == b"--" {
            return Ok((given, after.to_vec()));
        }
        if bytes.len() < 2 || bytes[0] != b'-' {
            break;
        }
        rest = match bytes.strip_prefix(b"--") {
            Some(long) => take_long(word, long, after, &mut given)?,
            None => take_short(&bytes[1..], after, &mut given)?,
        };
    }
    Ok((given, rest.to_vec()))
}

fn take_long<'a>(
    word: &OsString,
    long: &[u8],
    after: &'a [OsString],
    given: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    let (name, attached) = match long.iter().position(|byte| *byte == b'=') {
        Some(at) => (&long[..at], Some(&long[at + 1..])),
        None => (long, None),
    };
    let name = String::from_utf8_lossy(name).into_owned();
    let Some(known) = find(&name)? else {
        let Some(takes_value) = of_run(&name) else {
            bail!("`--{name}` is no flag of GNU parallel, and none of ours (see `minder run --help`)");
        };
        given.push(ParsedOption::Own(word.clone()));
        let (value, rest) = if takes_value && attached.is_none() {
            after.split_at(after.len().min(1))
        } else {
            (&after[..0], after)
        };
        given.extend(value.iter().cloned().map(ParsedOption::Own));
        return Ok(rest);
    };
    match (known.takes, attached) {
        (ValueKind::Nothing, Some(_)) => bail!("`--{name}` takes no value"),
        (ValueKind::Value, Some(b"")) => bail!("`--{name}` wants a value"),
        (_, Some(value)) => {
            given.push(ParsedOption::Known(known, Some(os_string_from_encoded(value.to_vec()))));
            Ok(after)
        }
        (_, None) => with_next(known, &format!("--{name}"), after, given),
    }
}

fn take_short<'a>(
    letters: &[u8],
    after: &'a [OsString],
    given: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    for (at, letter) in letters.iter().enumerate() {
        let name = char::from(*letter).to_string();
        let Some(known) = exact(&name) else { bail!("`-{name}` is no flag of GNU parallel") };
        let attached = &letters[at + 1..];
        match known.takes {
            ValueKind::Nothing => given.push(ParsedOption::Known(known, None)),
            _ if attached.is_empty() => return with_next(known, &format!("-{name}"), after, given),
            _ => {
                given.push(ParsedOption::Known(known, Some(os_string_from_encoded(attached.to_vec()))));
                return Ok(after);
            }
        }
    }
    Ok(after)
}

/// An option whose value, if any, is the next word.
fn with_next<'a>(
    known: &'static OptionSpec,
    typed: &str,
    after: &'a [OsString],
    given: &mut Vec<ParsedOption>,
) -> Result<&'a [OsString]> {
    let fits = |number: bool| {
        after.first().is_some_and(|word| match word.as_encoded_bytes() {
            [b'-', ..] => false,
            [first, ..] => !number || first.is_ascii_digit(),
            [] => !number,
        })
    };
    let next = match known.takes {
        ValueKind::Nothing => false,
        ValueKind::Value if after.is_empty() => bail!("`{typed}` wants a value"),
        ValueKind::Value => true,
        ValueKind::Maybe(_) => fits(false),
        ValueKind::MaybeNumber(_) => fits(true),
    };
    let (value, rest) = after.split_at(usize::from(next));
    given.push(ParsedOption::Known(known, value.first().cloned()));
    Ok(rest)
}

/// Names are the same whatever their case, and with or without their hyphens.
fn plain(name: &str) -> String {
    name.chars().filter(|letter| !matches!(letter, '-' | '_')).collect::<String>().to_lowercase()
}

/// The option of exactly this name; one letter is one letter.
fn exact(name: &str) -> Option<&'static OptionSpec> {
    let is = |known: &&str| match (known.chars().count(), name.chars().count()) {
        (1, _) | (_, 1) => *known == name,
        _ => plain(known) == plain(name),
    };
    KNOWN.iter().chain(HIDDEN).find(|known| known.names.iter().any(&is))
}

/// The option that is meant with a long name or the beginning of one.
fn find(name: &str) -> Result<Option<&'static OptionSpec>> {
    if let Some(known) = exact(name) {
        return Ok(Some(known));
    }
    let typed = plain(name);
    if typed.is_empty() || of_run(name).is_some() {
        return Ok(None);
    }
    let long = |known: &&str| known.len() > 1 && plain(known).starts_with(&typed);
    let meant: Vec<&OptionSpec> = KNOWN.iter().filter(|known| known.names.iter().any(&long)).collect();
    match meant.as_slice() {
        [] => Ok(None),
        [known] => Ok(Some(*known)),
        several => {
            let names = several.iter().filter_map(|known| known.names.iter().find(|name| long(name)));
            let names: Vec<String> = names.map(|name| format!("--{name}")).collect();
            bail!("`--{name}` may be each of {}", names.join(", "))
        }
    }
}

/// Whether a flag of `minder run` of exactly this name takes a value; nothing if there is no such
/// flag.
fn of_run(name: &str) -> Option<bool> {
    let mut all = Flags::command();
    all.build();
    let run = all.find_subcommand("run")?;
    let known = |arg: &&clap::Arg| {
        let names = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
        names.into_iter().any(|long| OsStr::new(long) == name)
    };
    run.get_arguments().find(known).map(habits::takes_value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::face::table::Mapping;

    fn said(line: &str) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let (given, rest) = match parse(&words) {
            Ok(parsed) => parsed,
            Err(error) => return error.to_string(),
        };
        let mut out: Vec<String> = Vec::new();
        for given in given {
            out.push(match given {
                ParsedOption::Known(known, value) => {
                    let value = value.map_or_else(String::new, |value| format!("={}", value.display()));
                    format!("{}{value}", known.names[0])
                }
                ParsedOption::Own(word) => word.display().to_string(),
            });
        }
        out.push("|".into());
        out.extend(rest.iter().map(|word| word.display().to_string()));
        out.join(" ")
    }

    #[test]
    fn options_are_read_as_gnu_parallel_does() {
        for (line, read) in [
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
            ("--eta=1 echo", "`--eta` takes no value"),
            ("-k -j", "`-j` wants a value"),
            ("--tagstring= echo", "`--tagstring` wants a value"),
            ("--resu x", "`--resu` may be each of --results, --resume, --resume-failed"),
            ("-kZ echo", "`-Z` is no flag of GNU parallel"),
        ] {
            assert_eq!(said(line), read, "{line}");
        }
        assert!(said("--bogus").starts_with("`--bogus` is no flag"), "{}", said("--bogus"));
    }

    #[test]
    fn what_is_passed_on_is_there() {
        for known in KNOWN {
            let Mapping::Pass(flag) = known.does else { continue };
            let Some(name) = flag.strip_prefix("--") else { continue };
            let takes = of_run(name).unwrap_or_else(|| panic!("there is no {flag}"));
            assert_eq!(takes, known.takes != ValueKind::Nothing, "{flag}");
        }
    }

    #[test]
    fn no_name_is_there_twice() {
        let mut names: Vec<&str> =
            KNOWN.iter().chain(HIDDEN).flat_map(|known| known.names).copied().collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
