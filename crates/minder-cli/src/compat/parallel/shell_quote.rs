//! `--shell-quote`: prints each argument, or the command with it, quoted for a POSIX shell.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, anyhow, bail};
use clap::Parser;

use super::args::ParallelArgs;
use super::options::OptionKey;
use super::translate::job_arguments;
use crate::commands::run::Plan;
use crate::config::CompatMode;
use crate::flags::{Flags, Verb, clap_error_line};
use crate::ui;
use minder_runner::input::Record;
use minder_template::{Job, Options, Template};

/// Prints one line for each job, quoted once for each `--shell-quote`.
///
/// # Errors
/// The options are invalid, the input cannot be read, or standard output cannot be written.
pub(in crate::compat) fn print_quoted(args: &ParallelArgs) -> Result<ExitCode> {
    let levels = args.values(OptionKey::ShellQuote).len();
    let mut line: Vec<OsString> = vec!["minder".into(), "run".into(), "--no-record".into()];
    let run_args = job_arguments(args)?;
    // `--commands`: there is no command besides the argument.
    let argument_only = run_args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--commands");
    line.extend(run_args);
    let flags = Flags::try_parse_from(&line)
        .map_err(|error| anyhow!(clap_error_line(&error, &Flags::interface(), &line[1..])))?;
    let Verb::Run(flags) = flags.verb else { bail!("`--shell-quote` requires a command to run") };
    let Plan { config, arguments: mut input, .. } = Plan::new(*flags, &line, CompatMode::Parallel)?;
    let argument = Template::text(&"{}".into(), &Options::default());
    ui::with_stdout(|out| {
        let mut number = 0;
        while let Some(record) = input.next_arguments()? {
            number += 1;
            let Record::Columns(columns) = &record else { bail!("a line of the input is too long") };
            let job = Job { columns, number, ..Job::default() };
            let mut text: Vec<u8> = if argument_only {
                argument.argv(&job)?.iter().flat_map(|arg| arg.as_encoded_bytes()).copied().collect()
            } else {
                config.template.display(&job).into_bytes()
            };
            for _ in 0..levels {
                text = quote(&text);
            }
            text.push(b'\n');
            out.write_all(&text)?;
        }
        Ok(())
    })
}

/// Quotes a text so that a POSIX shell reads it as one argument, in the style of GNU parallel.
pub(super) fn quote(text: &[u8]) -> Vec<u8> {
    let is_safe = |byte: &u8| byte.is_ascii_alphanumeric() || b"_+./-".contains(byte);
    if !text.is_empty() && text.iter().all(is_safe) {
        return text.to_vec();
    }
    let parts: Vec<&[u8]> = text.split(|byte| *byte == b'\'').collect();
    let mut out = [b"'", &parts.join(&br#"'"'"'"#[..])[..], b"'"].concat();
    // A quote at either end leaves an empty pair of quotes there: remove it.
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
    fn quote_follows_gnu_parallel() {
        for (text, levels, expected) in [
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
            let quoted = (0..levels).fold(text.as_bytes().to_vec(), |text, _| super::quote(&text));
            assert_eq!(String::from_utf8_lossy(&quoted), expected, "{text}");
        }
    }
}
