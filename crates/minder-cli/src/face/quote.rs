//! `--shell-quote`: prints each argument, or the command with it, so that a shell reads it as one
//! word.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::Parser;

use super::{OptionKey, ParallelArgs, words};
use crate::config::CompatMode;
use crate::flags::{Flags, Verb, mistake};
use crate::report;
use crate::verbs::run::Plan;
use minder_runner::input::Record;
use minder_template::{Job, Options, Template};

/// Prints what is read, quoted once for each time that it was asked for.
pub(super) fn print(wishes: &ParallelArgs) -> Result<ExitCode> {
    let times = wishes.values(OptionKey::ShellQuote).len();
    let mut line: Vec<OsString> = vec!["minder".into(), "run".into(), "--no-record".into()];
    let run = words::run(wishes)?;
    let bare = run.iter().take_while(|word| *word != "--").any(|word| word == "--script");
    line.extend(run);
    let flags = Flags::try_parse_from(&line).map_err(|error| anyhow!(mistake(&error)))?;
    let Verb::Run(flags) = flags.verb else { bail!("`--shell-quote` is for commands that are run") };
    let Plan { config: plan, arguments: mut input, .. } = Plan::new(*flags, &line, CompatMode::Parallel)?;
    let argument = Template::text(&"{}".into(), &Options::default());
    report::with_stdout(|out| {
        let mut number = 0;
        while let Some(record) = input.next()? {
            number += 1;
            let Record::Columns(columns) = &record else { bail!("a line of the input is too long") };
            let job = Job { columns, number, ..Job::default() };
            let mut text: Vec<u8> = if bare {
                argument.argv(&job)?.iter().flat_map(|word| word.as_encoded_bytes()).copied().collect()
            } else {
                plan.template.display(&job).into_bytes()
            };
            for _ in 0..times {
                text = quoted(&text);
            }
            text.push(b'\n');
            out.write_all(&text)?;
        }
        Ok(())
    })
}

/// A word of a POSIX shell that stands for this text.
fn quoted(text: &[u8]) -> Vec<u8> {
    let safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+./-".contains(byte);
    if !text.is_empty() && text.iter().all(safe) {
        return text.to_vec();
    }
    let mut out = b"'".to_vec();
    for &byte in text {
        match byte {
            b'\'' => out.extend_from_slice(b"'\"'\"'"),
            byte => out.push(byte),
        }
    }
    out.push(b'\'');
    // Nothing stands in quotes at the ends, but where there is nothing at all.
    if text.starts_with(b"'") {
        out.drain(..2);
    }
    if text.ends_with(b"'") {
        out.truncate(out.len() - 2);
    }
    out
}

#[cfg(test)]
mod tests {
    #[test]
    fn texts_are_quoted_as_gnu_parallel_does() {
        for (text, times, quoted) in [
            ("", 1, "''"),
            ("a+b_c.d/e-9", 1, "a+b_c.d/e-9"),
            ("a b", 1, "'a b'"),
            ("a=b", 1, "'a=b'"),
            ("it's", 1, r#"'it'"'"'s'"#),
            ("'", 1, r#""'""#),
            ("''", 1, r#""'"''"'""#),
            ("a b", 2, r#""'"'a b'"'""#),
            ("b c", 3, r#"'"'"'"'"'"'"'b c'"'"'"'"'"'"'"#),
            ("é*~\n", 1, "'é*~\n'"),
        ] {
            let once = |text: Vec<u8>, _| super::quoted(&text);
            let said = (0..times).fold(text.as_bytes().to_vec(), once);
            assert_eq!(String::from_utf8_lossy(&said), quoted, "{text}");
        }
    }
}
