//! Spellings of xargs and GNU parallel that clap does not know: flags whose value may be left out.

use std::ffi::{OsStr, OsString};

use clap::{ArgAction, Command};

/// Whether the next word may be the value of a flag whose value may be left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueStyle {
    /// Only what is written to the flag itself, as for xargs.
    Attached,
    /// Also the next word if it does not look like a flag, as for GNU parallel.
    NextWord,
}

/// The flags whose value may be left out: short, long, what is meant with a value, and what
/// without.
const OPTIONAL: [(u8, &str, &str, &[&str]); 3] = [
    (b'i', "replace", "-I", &["-I", "{}"]),
    (b'l', "max-lines", "-L", &["-L", "1"]),
    (b'e', "eof", "-E", &[]),
];

/// Whether there is anything to rewrite: finding out which flags have values is dear beside a short
/// run.
pub(crate) fn is_needed(words: &[OsString]) -> bool {
    let flags = words.iter().take_while(|word| !matches!(word.as_encoded_bytes(), b"--" | b":::" | b"::::"));
    flags.map(|word| word.as_encoded_bytes()).any(|word| match word.strip_prefix(b"-") {
        None | Some([]) => false,
        Some([b'-', long @ ..]) => OPTIONAL.iter().any(|(_, name, ..)| long.starts_with(name.as_bytes())),
        Some(letters) => OPTIONAL.iter().any(|(letter, ..)| letters.contains(letter)),
    })
}

/// Rewrites the flags before the first other word, so that clap knows them. `words` begin behind
/// the verb.
pub(crate) fn rewrite(words: &[OsString], run: &Command, loose: ValueStyle) -> Vec<OsString> {
    let mut out = Vec::with_capacity(words.len());
    let mut rest = words.iter().peekable();
    while let Some(word) = rest.peek() {
        let bytes = word.as_encoded_bytes();
        if bytes.len() < 2 || bytes[0] != b'-' || bytes == b"--" {
            break;
        }
        let Some(word) = rest.next() else { break };
        let next = |rest: &mut std::iter::Peekable<std::slice::Iter<'_, OsString>>, numeric: bool| {
            let fits = |word: &&OsString| {
                let bytes = word.as_encoded_bytes();
                loose == ValueStyle::NextWord
                    && !bytes.starts_with(b"-")
                    && (!numeric || bytes.first().is_some_and(u8::is_ascii_digit))
            };
            rest.next_if(|word| fits(word)).cloned()
        };
        if let Some(long) = bytes.strip_prefix(b"--") {
            let (name, value) = match long.iter().position(|byte| *byte == b'=') {
                Some(at) => (&long[..at], Some(&long[at + 1..])),
                None => (long, None),
            };
            let optional = OPTIONAL.iter().find(|(_, known, ..)| known.as_bytes() == name);
            match (optional, value) {
                (Some((short, _, with, without)), None) => {
                    meant(&mut out, next(&mut rest, *short == b'l'), with, without);
                }
                (Some((_, _, with, _)), Some(value)) => {
                    out.extend([
                        OsString::from(with),
                        minder_os::encoding::os_string_from_encoded(value.to_vec()),
                    ]);
                }
                (None, value) => {
                    out.push(word.clone());
                    if value.is_none() && long_takes_value(run, name) {
                        out.extend(rest.next().cloned());
                    }
                }
            }
            continue;
        }
        cluster(&bytes[1..], run, &mut out, &mut rest, &next);
    }
    out.extend(rest.cloned());
    out
}

type Rest<'a> = std::iter::Peekable<std::slice::Iter<'a, OsString>>;

/// Short flags in one word.
fn cluster(
    letters: &[u8],
    run: &Command,
    out: &mut Vec<OsString>,
    rest: &mut Rest<'_>,
    next: &impl Fn(&mut Rest<'_>, bool) -> Option<OsString>,
) {
    for (at, letter) in letters.iter().enumerate() {
        let after = &letters[at + 1..];
        if let Some((short, _, with, without)) = OPTIONAL.iter().find(|(known, ..)| known == letter) {
            let value = match after {
                [] => next(rest, *short == b'l'),
                value => Some(minder_os::encoding::os_string_from_encoded(value.to_vec())),
            };
            return meant(out, value, with, without);
        }
        let mut flag = vec![b'-', *letter];
        if short_takes_value(run, *letter) {
            flag.extend_from_slice(after);
            out.push(minder_os::encoding::os_string_from_encoded(flag));
            if after.is_empty() {
                out.extend(rest.next().cloned());
            }
            return;
        }
        out.push(minder_os::encoding::os_string_from_encoded(flag));
    }
}

fn meant(out: &mut Vec<OsString>, value: Option<OsString>, with: &str, without: &[&str]) {
    match value {
        Some(value) => out.extend([OsString::from(with), value]),
        None => out.extend(without.iter().map(OsString::from)),
    }
}

/// Whether a flag has a value that may not be left out.
pub(crate) fn takes_value(arg: &clap::Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
        && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn long_takes_value(run: &Command, name: &[u8]) -> bool {
    let known = |arg: &&clap::Arg| {
        let names = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
        names.into_iter().any(|long| OsStr::new(long).as_encoded_bytes() == name)
    };
    run.get_arguments().find(known).is_some_and(takes_value)
}

fn short_takes_value(run: &Command, letter: u8) -> bool {
    let letter = char::from(letter);
    let known = |arg: &&clap::Arg| {
        arg.get_short() == Some(letter)
            || arg.get_all_short_aliases().into_iter().flatten().any(|short| short == letter)
    };
    run.get_arguments().find(known).is_some_and(takes_value)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::flags::Flags;

    fn said(line: &str, loose: ValueStyle) -> String {
        let mut all = Flags::command();
        all.build();
        let run = all.find_subcommand("run").expect("the verb");
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let words = rewrite(&words, run, loose);
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn values_may_be_left_out() {
        for (line, xargs, parallel) in [
            ("-i echo {}", "-I {} echo {}", "-I echo {}"),
            ("-i@ echo @", "-I @ echo @", "-I @ echo @"),
            ("-ki echo {}", "-k -I {} echo {}", "-k -I echo {}"),
            ("-l echo -i", "-L 1 echo -i", "-L 1 echo -i"),
            ("-l2 -l 3 echo", "-L 2 -L 1 3 echo", "-L 2 -L 3 echo"),
            ("-e -eX echo", "-E X echo", "-E X echo"),
            ("--replace=@ --max-lines --eof=q echo", "-I @ -L 1 -E q echo", "-I @ -L 1 -E q echo"),
            (
                "-j 2 -kj3 -d i --joblog -l echo -i",
                "-j 2 -k -j3 -d i --joblog -l echo -i",
                "-j 2 -k -j3 -d i --joblog -l echo -i",
            ),
            ("--color -- -i", "--color -- -i", "--color -- -i"),
            ("--lb --jl x -i @", "--lb --jl x -I {} @", "--lb --jl x -I @"),
        ] {
            assert_eq!(said(line, ValueStyle::Attached), xargs);
            assert_eq!(said(line, ValueStyle::NextWord), parallel);
        }
    }
}
