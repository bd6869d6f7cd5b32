//! Flags that have no effect where they stand, or that other tools have with a value.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use anyhow::{Result, bail};
use clap::Parser;
use minder_template::shell_word;
use regex::Regex;

use super::text_placeholders::Hint;
use crate::flags::{Flags, RunFlags, Verb, WITHOUT_NUMBER};

/// The maximum length of a command line that a message repeats.
const LINE_MAX: usize = 200;

/// Refuses a number in place of the command behind a flag without a value. `typed` are the flags.
///
/// # Errors
/// The command is a number, and the flag before it is one of [`WITHOUT_NUMBER`].
pub(super) fn check_flag_before_number(typed: &[OsString], command: &[OsString]) -> Result<()> {
    let number = command
        .first()
        .filter(|word| !word.is_empty() && word.as_encoded_bytes().iter().all(|byte| byte.is_ascii_digit()));
    let (Some(number), Some(flag)) = (number, typed.last()) else { return Ok(()) };
    if let Some((flag, hint)) = WITHOUT_NUMBER.iter().find(|(known, _)| flag == known) {
        let number = number.display();
        bail!(
            "`{flag}` takes no value, so `{number}` would be the command: {hint} (to run it: `./{number}`)"
        );
    }
    Ok(())
}

/// Refuses a `--shard` as test runners have it, which run one part of several.
///
/// # Errors
/// The value has the form K/N.
pub(super) fn check_shard(flags: &RunFlags) -> Result<()> {
    let Some(shard) = flags.pipe.shard.as_deref() else { return Ok(()) };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match shard.split_once('/') {
        Some((part, parts)) if is_number(part) && is_number(parts) => bail!(
            "--shard: `{shard}` is not a column of records: `awk 'NR % 4 == 1' FILE | minder run COMMAND` \
             runs a quarter of the lines"
        ),
        _ => Ok(()),
    }
}

/// Refuses flags of `minder run` behind a command that is a shell line: they would make a program of the
/// line. `typed` are the flags before it, and `behind` what follows the command.
///
/// # Errors
/// The first word is a shell line, and the others are flags of `minder run`.
pub(super) fn check_flags_behind_line(
    typed: &[OsString],
    command: &[OsString],
    behind: &[OsString],
) -> Result<()> {
    let [line, flags @ ..] = command else { return Ok(()) };
    let is_line = |byte: &u8| byte.is_ascii_whitespace() || b"|;&<>".contains(byte);
    if !line.as_encoded_bytes().iter().any(is_line) || Path::new(line).exists() || !are_flags(flags) {
        return Ok(());
    }
    bail!("flags go before the command: {}", with_flags_first(typed, line, flags, behind));
}

/// Returns a hint for a program that cannot run, if flags of `minder run` follow it.
pub(crate) fn flags_behind_program(command: &[OsString]) -> Option<String> {
    let [program, words @ ..] = command else { return None };
    let flags: Vec<OsString> =
        words.iter().take_while(|word| word.as_encoded_bytes().starts_with(b"-")).cloned().collect();
    let line = with_flags_first(&[], program, &flags, &words[flags.len()..]);
    are_flags(&flags).then(|| format!("flags go before the command: {line}"))
}

/// Returns whether the words are flags of `minder run` with their values, and nothing else.
fn are_flags(words: &[OsString]) -> bool {
    let is_flag = words.first().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let args = ["minder".into(), "run".into()].into_iter().chain(words.iter().cloned());
    is_flag
        && Flags::try_parse_from(args)
            .is_ok_and(|flags| matches!(flags.verb, Verb::Run(flags) if flags.words.is_empty()))
}

fn with_flags_first(typed: &[OsString], program: &OsStr, flags: &[OsString], behind: &[OsString]) -> String {
    let mut line = "minder run".to_owned();
    for word in typed
        .iter()
        .chain(flags)
        .map(OsString::as_os_str)
        .chain([program])
        .chain(behind.iter().map(OsString::as_os_str))
    {
        let word = shell_word(word);
        if line.len() + word.len() > LINE_MAX {
            return format!("{line} …");
        }
        line = format!("{line} {word}");
    }
    line
}

/// Returns a hint about `-x`, which other tools have for stopping at the first failure.
pub(super) fn exit_without_effect(flags: &RunFlags) -> Option<Hint> {
    let arity = &flags.arity;
    let joins = arity.context || arity.multiple || arity.xargs || arity.max_chars.is_some();
    let counts = arity.max_args.is_some() || arity.max_replace_args.is_some() || arity.lines.is_some();
    (arity.exit && !joins && !counts).then(|| Hint {
        text: "-x".to_owned(),
        what: "has no effect on commands of one argument",
        advice: "`--halt now,fail=1` stops at the first failure".to_owned(),
    })
}

/// Returns a hint about a delimiter that looks like a set of characters in a regular expression.
pub(super) fn delimiter_like_regexp(flags: &RunFlags) -> Option<Hint> {
    let text = flags.input.delimiter.as_ref()?.to_str()?;
    let is_set = text.len() > 3 && text.starts_with('[') && text.ends_with(']');
    is_set.then(|| Hint {
        text: format!("-d {text}"),
        what: "is text, not a regular expression",
        advice: "`--words` divides lines at blanks".to_owned(),
    })
}

/// Returns a hint about a regular expression of `--colsep` that matches the empty text or any character, and
/// so divides a line everywhere.
pub(super) fn colsep_of_any_text(flags: &RunFlags) -> Option<Hint> {
    let text = flags.input.colsep.as_deref().filter(|text| !flags.input.csv && !text.is_empty())?;
    let whole = Regex::new(&format!(r"\A(?:{text})\z")).ok()?;
    let what = if Regex::new(text).ok()?.is_match("") {
        "is a regular expression that matches the empty text"
    } else if ["a", "0", ",", " ", "~"].iter().all(|one| whole.is_match(one)) {
        "is a regular expression that matches any character"
    } else {
        return None;
    };
    let meant = match text.strip_suffix('*') {
        Some(repeated) if !repeated.is_empty() => format!("{repeated}+"),
        _ => regex::escape(text),
    };
    Some(Hint {
        text: format!("--colsep {text}"),
        what,
        advice: format!("did you mean `--colsep '{meant}'`?"),
    })
}

/// Returns a hint about `minder run help`, which reads standard input.
pub(super) fn help_as_command(words: &[OsString], reads_stdin: bool) -> Option<Hint> {
    (reads_stdin && matches!(words, [word] if word == "help")).then(|| Hint {
        text: "help".to_owned(),
        what: "is the command here, for each line of standard input",
        advice: "`minder run --help` prints the help".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::flags::{Flags, Verb};

    #[test]
    fn number_behind_a_flag_without_value_is_refused() {
        let check =
            |flag: &str, word: &str| check_flag_before_number(&["-k".into(), flag.into()], &[word.into()]);
        let text = check("-t", "4").expect_err("refuse number").to_string();
        assert!(text.contains("`-j N`") && text.contains("`./4`"), "{text}");
        for (flag, word) in [("-k", "4"), ("-t", "./4"), ("-t", "4x"), ("-t", "")] {
            assert!(check(flag, word).is_ok(), "{flag} {word}");
        }
        assert!(check_flag_before_number(&[], &["4".into()]).is_ok());
    }

    #[test]
    fn flags_behind_a_shell_line_are_refused() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        let check = |command: &[&str]| {
            let checked = check_flags_behind_line(&words(&["-k"]), &words(command), &words(&[":::", "a b"]));
            checked.err().map(|error| error.to_string())
        };
        for (command, expected) in [
            (&["./slow {}", "-j8"][..], "minder run -k -j8 './slow {}' ::: 'a b'"),
            (&["./slow {}", "-j", "8", "--tag"], "minder run -k -j 8 --tag './slow {}' ::: 'a b'"),
        ] {
            assert_eq!(check(command), Some(format!("flags go before the command: {expected}")));
        }
        // A word that is not a flag, a flag of the program, a program, no flags.
        for command in [&["./a b", "-j8", "x"][..], &["./a b", "--zz"], &["./slow", "-j8"], &["./a b"], &[]] {
            assert_eq!(check(command), None, "{command:?}");
        }
        let long = "x".repeat(300);
        let text = check(&["./slow {}", "-j8", "--tagstring", &long]).expect("refuse flags");
        assert_eq!(text, "flags go before the command: minder run -k -j8 --tagstring …");
    }

    #[test]
    fn flags_behind_a_program_have_a_hint() {
        let hint =
            |line: &str| flags_behind_program(&line.split(' ').map(OsString::from).collect::<Vec<_>>());
        let expected = "flags go before the command: minder run -j8 ./slow x";
        assert_eq!(hint("./slow -j8 x").as_deref(), Some(expected));
        for line in ["./slow", "./slow x -j8", "./slow --zz"] {
            assert_eq!(hint(line), None, "{line}");
        }
    }

    #[test]
    fn colsep_that_matches_anything_has_a_hint() {
        let hint = |colsep: &str| {
            let args = ["minder", "run", "--colsep", colsep, "echo"];
            let Verb::Run(flags) = Flags::try_parse_from(args).expect("parse flags").verb else {
                panic!("another subcommand");
            };
            colsep_of_any_text(&flags).map(|hint| hint.advice)
        };
        for (colsep, meant) in [
            ("|", r"\|"),
            (".", r"\."),
            ("$", r"\$"),
            ("^", r"\^"),
            (" *", " +"),
            (r"\s*", r"\s+"),
            ("*", ""),
        ] {
            let expected = (!meant.is_empty()).then(|| format!("did you mean `--colsep '{meant}'`?"));
            assert_eq!(hint(colsep), expected, "{colsep}");
        }
        for colsep in [",", r"\|", r"\t", " +", "[,;]", "a|b"] {
            assert_eq!(hint(colsep), None, "{colsep}");
        }
    }

    #[test]
    fn help_is_a_command_only_with_standard_input() {
        assert!(help_as_command(&["help".into()], true).is_some());
        assert!(help_as_command(&["help".into()], false).is_none());
        assert!(help_as_command(&["help".into(), "{}".into()], true).is_none());
    }

    #[test]
    fn exit_has_an_effect_where_arguments_are_joined() {
        for (line, expected) in [("-x", true), ("-k", false), ("-x -n2", false), ("-x -s 100 -X", false)] {
            let args = ["minder", "run"].into_iter().chain(line.split(' ')).chain(["echo"]);
            let Verb::Run(flags) = Flags::try_parse_from(args).expect("parse flags").verb else {
                panic!("another subcommand");
            };
            assert_eq!(exit_without_effect(&flags).is_some(), expected, "{line}");
        }
    }
}
