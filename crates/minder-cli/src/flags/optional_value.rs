//! Flags of xargs with an optional value, which clap cannot parse: `-i`, `-l`, `-e` and their long
//! forms are rewritten before clap sees them. The value must be attached to the flag.

use std::ffi::{OsStr, OsString};
use std::iter::Peekable;
use std::slice::Iter;

use clap::{ArgAction, Command};
use minder_os::encoding::os_string_from_encoded;

/// A flag with an optional value, and the arguments that replace it.
struct OptionalFlag {
    short: u8,
    long: &'static str,
    /// The flag that replaces it if it has a value.
    with_value: &'static str,
    /// The arguments that replace it if it has no value.
    without_value: &'static [&'static str],
}

const OPTIONAL_FLAGS: [OptionalFlag; 3] = [
    OptionalFlag { short: b'i', long: "replace", with_value: "-I", without_value: &["-I", "{}"] },
    OptionalFlag { short: b'l', long: "max-lines", with_value: "-L", without_value: &["-L", "1"] },
    OptionalFlag { short: b'e', long: "eof", with_value: "-E", without_value: &[] },
];

impl OptionalFlag {
    /// Pushes the arguments that replace the flag.
    fn push(&self, value: Option<OsString>, out: &mut Vec<OsString>) {
        match value {
            Some(value) => out.extend([OsString::from(self.with_value), value]),
            None => out.extend(self.without_value.iter().map(OsString::from)),
        }
    }
}

/// Returns `true` if any argument may have to be rewritten. Building clap's command to find out
/// which flags have values is expensive beside a short run.
pub(crate) fn needs_rewrite(args: &[OsString]) -> bool {
    let flags = args.iter().take_while(|arg| !matches!(arg.as_encoded_bytes(), b"--" | b":::" | b"::::"));
    flags.map(|arg| arg.as_encoded_bytes()).any(|arg| match arg.strip_prefix(b"-") {
        None | Some([]) => false,
        Some([b'-', long @ ..]) => OPTIONAL_FLAGS.iter().any(|flag| long.starts_with(flag.long.as_bytes())),
        Some(letters) => OPTIONAL_FLAGS.iter().any(|flag| letters.contains(&flag.short)),
    })
}

/// Rewrites the flags in `args`, the arguments after `run`, so that clap can parse them. It stops at
/// the first argument that is not a flag.
pub(crate) fn rewrite(args: &[OsString], run: &Command) -> Vec<OsString> {
    let mut rewriter = Rewriter { run, rest: args.iter().peekable(), out: Vec::with_capacity(args.len()) };
    while let Some(arg) = rewriter.next_flag() {
        match arg.as_encoded_bytes() {
            [b'-', b'-', long @ ..] => rewriter.rewrite_long(arg, long),
            [_, letters @ ..] => rewriter.rewrite_short(letters),
            [] => (),
        }
    }
    rewriter.out.extend(rewriter.rest.cloned());
    rewriter.out
}

struct Rewriter<'a> {
    run: &'a Command,
    rest: Peekable<Iter<'a, OsString>>,
    out: Vec<OsString>,
}

impl<'a> Rewriter<'a> {
    /// Takes the next argument if it is a flag.
    fn next_flag(&mut self) -> Option<&'a OsString> {
        self.rest.next_if(|arg| {
            let bytes = arg.as_encoded_bytes();
            bytes.len() >= 2 && bytes[0] == b'-' && bytes != b"--"
        })
    }

    fn rewrite_long(&mut self, arg: &OsString, long: &[u8]) {
        let (name, value) = match long.iter().position(|byte| *byte == b'=') {
            Some(at) => (&long[..at], Some(&long[at + 1..])),
            None => (long, None),
        };
        if let Some(flag) = OPTIONAL_FLAGS.iter().find(|flag| flag.long.as_bytes() == name) {
            flag.push(value.map(|value| os_string_from_encoded(value.to_vec())), &mut self.out);
            return;
        }
        self.out.push(arg.clone());
        if value.is_none() && long_requires_value(self.run, name) {
            self.out.extend(self.rest.next().cloned());
        }
    }

    /// Rewrites short flags that share one argument.
    fn rewrite_short(&mut self, letters: &[u8]) {
        for (at, letter) in letters.iter().enumerate() {
            let after = &letters[at + 1..];
            if let Some(flag) = OPTIONAL_FLAGS.iter().find(|flag| flag.short == *letter) {
                let value = match after {
                    [] => None,
                    value => Some(os_string_from_encoded(value.to_vec())),
                };
                flag.push(value, &mut self.out);
                return;
            }
            let mut flag = vec![b'-', *letter];
            if short_requires_value(self.run, *letter) {
                flag.extend_from_slice(after);
                self.out.push(os_string_from_encoded(flag));
                if after.is_empty() {
                    self.out.extend(self.rest.next().cloned());
                }
                return;
            }
            self.out.push(os_string_from_encoded(flag));
        }
    }
}

/// Returns `true` if a flag has a value that cannot be omitted.
pub(crate) fn requires_value(arg: &clap::Arg) -> bool {
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append)
        && arg.get_num_args().is_none_or(|range| range.min_values() > 0)
}

fn long_requires_value(run: &Command, name: &[u8]) -> bool {
    let has_name = |arg: &&clap::Arg| {
        let names = arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten());
        names.into_iter().any(|long| OsStr::new(long).as_encoded_bytes() == name)
    };
    run.get_arguments().find(has_name).is_some_and(requires_value)
}

fn short_requires_value(run: &Command, letter: u8) -> bool {
    let letter = char::from(letter);
    let has_name = |arg: &&clap::Arg| {
        arg.get_short() == Some(letter)
            || arg.get_all_short_aliases().into_iter().flatten().any(|short| short == letter)
    };
    run.get_arguments().find(has_name).is_some_and(requires_value)
}

#[cfg(test)]
mod tests {

    use super::*;
    use crate::flags::Flags;

    fn rewritten(line: &str) -> String {
        let minder = Flags::interface();
        let run = minder.find_subcommand("run").expect("find subcommand");
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let args = rewrite(&args, run);
        args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn rewrite_replaces_flags_with_an_optional_value() {
        for (line, expected) in [
            ("-i echo {}", "-I {} echo {}"),
            ("-i@ echo @", "-I @ echo @"),
            ("-ki echo {}", "-k -I {} echo {}"),
            ("-l echo -i", "-L 1 echo -i"),
            ("-l2 -l 3 echo", "-L 2 -L 1 3 echo"),
            ("-e -eX echo", "-E X echo"),
            ("--replace=@ --max-lines --eof=q echo", "-I @ -L 1 -E q echo"),
            ("-j 2 -kj3 -d i --joblog -l echo -i", "-j 2 -k -j3 -d i --joblog -l echo -i"),
            ("--color -- -i", "--color -- -i"),
            ("--lb --jl x -i @", "--lb --jl x -I {} @"),
        ] {
            assert_eq!(rewritten(line), expected);
        }
    }
}
