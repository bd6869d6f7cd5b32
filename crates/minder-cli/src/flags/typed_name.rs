//! The spellings of a flag, and the one that was typed.

use std::ffi::OsString;

use clap::{Arg, Command};

/// Returns the spelling of `flag` that was typed with `value`: `-n` for `--max-args`. `args` are the
/// arguments of `command`. A value that is missing is empty.
pub(super) fn typed_name(flag: &str, value: &str, command: &Command, args: &[OsString]) -> Option<String> {
    let name = flag.strip_prefix("--")?;
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name))?;
    let words: Vec<&str> = args.iter().map(|arg| arg.to_str().unwrap_or_default()).collect();
    words.iter().enumerate().find_map(|(at, word)| {
        let is_value = |attached: &str| match attached {
            "" => words.get(at + 1).copied().unwrap_or_default() == value,
            attached => attached.strip_prefix('=').unwrap_or(attached) == value,
        };
        match word.strip_prefix("--") {
            Some(word) => longs(arg)
                .find(|long| word.strip_prefix(long).is_some_and(is_value))
                .map(|long| format!("--{long}")),
            None => {
                // The flag may be the last one of several in a word: `-kn5`.
                let letters = word.strip_prefix('-')?;
                let has_value =
                    |short: &char| letters.split_once(*short).is_some_and(|(_, attached)| is_value(attached));
                shorts(arg).find(has_value).map(|short| format!("-{short}"))
            }
        }
    })
}

/// Returns the flag of a command with this spelling, such as `--jobs` or `-j`. Of several letters, the first
/// counts.
pub(crate) fn flag_named<'a>(command: &'a Command, spelling: &str) -> Option<&'a Arg> {
    command.get_arguments().find(|arg| match spelling.strip_prefix("--") {
        Some(name) => longs(arg).any(|long| long == name),
        None => {
            let letter = spelling.strip_prefix('-').and_then(|letters| letters.chars().next());
            letter.is_some_and(|letter| shorts(arg).any(|short| short == letter))
        }
    })
}

/// Returns the long spellings of a flag, without their dashes.
fn longs(arg: &Arg) -> impl Iterator<Item = &str> {
    arg.get_long().into_iter().chain(arg.get_all_aliases().into_iter().flatten())
}

/// Returns the letters of a flag.
fn shorts(arg: &Arg) -> impl Iterator<Item = char> {
    arg.get_short().into_iter().chain(arg.get_all_short_aliases().into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flags::Flags;

    #[test]
    fn typed_name_returns_the_spelling_before_the_value() {
        let minder = Flags::interface();
        let run = minder.find_subcommand("run").expect("find subcommand");
        for (flag, value, line, expected) in [
            ("--max-args", "echo", "-n echo", Some("-n")),
            ("--max-args", "x", "-n3 -kn x echo", Some("-n")),
            ("--max-args", "x", "-knx echo", Some("-n")),
            ("--max-args", "x", "-n=x echo", Some("-n")),
            ("--max-args", "x", "--max-args x echo -n x", Some("--max-args")),
            ("--jobs", "", "-k -P", Some("-P")),
            ("--jobs", "", "--max-procs=", Some("--max-procs")),
            ("--max-args", "x", "echo x", None),
            ("-X", "", "-X", None),
        ] {
            let args: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(typed_name(flag, value, run, &args).as_deref(), expected, "{line}");
        }
    }
}
