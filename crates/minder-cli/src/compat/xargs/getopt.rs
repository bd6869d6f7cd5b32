//! Parses options like getopt_long(3): a long option may be abbreviated, short options may share one
//! argument, and options end at the first argument that is not one.

use std::ffi::OsString;

use minder_os::encoding::os_string_from_encoded;

use super::options::{OPTIONS, OptionKey, OptionSpec, ValueKind};

/// The options of a command line, one after the other.
#[derive(Debug)]
pub(super) struct Getopt<'a> {
    rest: &'a [OsString],
    /// The letters of the current argument that are left.
    letters: &'a [u8],
}

/// An option with its value.
pub(super) type Parsed = (OptionKey, Option<OsString>);

impl<'a> Getopt<'a> {
    pub(super) fn new(args: &'a [OsString]) -> Self {
        Self { rest: args, letters: &[] }
    }

    /// Returns the arguments after the options, once there is no further option.
    pub(super) fn rest(&self) -> &'a [OsString] {
        self.rest
    }

    /// Returns the next option.
    ///
    /// # Errors
    /// The option is unknown or ambiguous, lacks its value, or has one although it takes none.
    pub(super) fn next(&mut self) -> Result<Option<Parsed>, String> {
        if let Some((&letter, attached)) = self.letters.split_first() {
            return self.short(letter, attached).map(Some);
        }
        let Some((arg, after)) = self.rest.split_first() else { return Ok(None) };
        let bytes = arg.as_encoded_bytes();
        if bytes == b"--" {
            self.rest = after;
            return Ok(None);
        }
        match bytes {
            [b'-', b'-', long @ ..] => {
                self.rest = after;
                self.long(long).map(Some)
            }
            [b'-', letter, attached @ ..] => {
                self.rest = after;
                self.short(*letter, attached).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Returns the option of a letter, and what is attached to it: its value, or further letters.
    fn short(&mut self, letter: u8, attached: &'a [u8]) -> Result<Parsed, String> {
        self.letters = attached;
        let shown = String::from_utf8_lossy(std::slice::from_ref(&letter)).into_owned();
        let spec = OPTIONS.iter().find(|spec| spec.letter == Some(letter));
        let spec = spec.ok_or_else(|| format!("invalid option -- '{shown}'"))?;
        let value = match spec.value {
            ValueKind::None => return Ok((spec.key, None)),
            _ if !attached.is_empty() => Some(os_string_from_encoded(attached.to_vec())),
            ValueKind::Optional => None,
            ValueKind::Required => {
                Some(self.take_next().ok_or_else(|| format!("option requires an argument -- '{shown}'"))?)
            }
        };
        self.letters = &[];
        Ok((spec.key, value))
    }

    fn long(&mut self, long: &[u8]) -> Result<Parsed, String> {
        let (name, attached) = match long.iter().position(|byte| *byte == b'=') {
            Some(at) => (&long[..at], Some(os_string_from_encoded(long[at + 1..].to_vec()))),
            None => (long, None),
        };
        let spec = find_long(&String::from_utf8_lossy(name))?;
        let value = match (spec.value, attached) {
            (ValueKind::None, Some(_)) => {
                return Err(format!("option '--{}' doesn't allow an argument", spec.long));
            }
            (ValueKind::Required, None) => {
                let next = self.take_next();
                Some(next.ok_or_else(|| format!("option '--{}' requires an argument", spec.long))?)
            }
            (_, attached) => attached,
        };
        Ok((spec.key, value))
    }

    fn take_next(&mut self) -> Option<OsString> {
        let (next, after) = self.rest.split_first()?;
        self.rest = after;
        Some(next.clone())
    }
}

/// Returns the option of this name, or the only one that begins with it.
fn find_long(name: &str) -> Result<&'static OptionSpec, String> {
    let options = || OPTIONS.iter().filter(|spec| !spec.long.is_empty());
    if let Some(spec) = options().find(|spec| spec.long == name) {
        return Ok(spec);
    }
    let found: Vec<_> = options().filter(|spec| spec.long.starts_with(name)).collect();
    match found.as_slice() {
        [] => Err(format!("unrecognized option '--{name}'")),
        [spec] => Ok(*spec),
        specs => {
            let names: Vec<_> = specs.iter().map(|spec| format!("'--{}'", spec.long)).collect();
            Err(format!("option '--{name}' is ambiguous; possibilities: {}", names.join(" ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the options, `|`, and the rest of the arguments.
    fn parsed(line: &str) -> String {
        let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut getopt = Getopt::new(&args);
        let mut out = Vec::new();
        loop {
            match getopt.next() {
                Ok(Some((key, value))) => {
                    let value = value.map_or_else(String::new, |value| format!("={}", value.display()));
                    out.push(format!("{key:?}{value}"));
                }
                Ok(None) => break,
                Err(error) => return error,
            }
        }
        out.push("|".into());
        out.extend(getopt.rest().iter().map(|arg| arg.display().to_string()));
        out.join(" ")
    }

    #[test]
    fn getopt_follows_the_c_library() {
        for (line, expected) in [
            ("-rtn1 echo -n", "NoRunIfEmpty Verbose MaxArgs=1 | echo -n"),
            ("-n 1 -- -x", "MaxArgs=1 | -x"),
            ("-i -iX -e -Ex echo", "Replace Replace=X Eof Eof=x | echo"),
            ("-E x -l -l3 -L 2", "Eof=x MaxLines MaxLines=3 Lines=2 |"),
            ("--max-a=2 --nul --repl X", "MaxArgs=2 Null Replace | X"),
            ("-0 - x", "Null | - x"),
            ("-n", "option requires an argument -- 'n'"),
            ("-Z", "invalid option -- 'Z'"),
            ("--foo", "unrecognized option '--foo'"),
            ("--null=3", "option '--null' doesn't allow an argument"),
            ("--max-args", "option '--max-args' requires an argument"),
            (
                "--m 3",
                "option '--m' is ambiguous; possibilities: '--max-lines' '--max-args' '--max-chars' \
                 '--max-procs'",
            ),
        ] {
            assert_eq!(parsed(line), expected, "{line}");
        }
    }
}
