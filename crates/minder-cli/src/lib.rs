//! The command line of minder: flags → configuration → subcommand.
//!
//! Flags only check themselves; `config` turns them into the configuration of the engine; a
//! subcommand does the work. The libraries never print: every line that a person reads comes from
//! here, on stderr, and data goes to stdout.

mod exit;
mod face;
mod flags;
mod config;
mod report;
mod units;
mod verbs;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use anyhow::anyhow;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::config::CompatMode;
use crate::face::Translation;
use crate::flags::habits::{self, ValueStyle};
use crate::flags::{Flags, Verb, mistake};
use crate::report::table::escape;

/// The smallest stack of the main thread, in bytes. The parser of flags needs 64 KiB of it, and six
/// times that without optimisation.
const STACK_MIN: u64 = if cfg!(debug_assertions) { 512 << 10 } else { 96 << 10 };

/// Runs the command with these arguments, of which the first is its name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    if let Some(bytes) = minder_os::limits::stack_limit().filter(|bytes| *bytes < STACK_MIN) {
        let (has, needs) = (bytes >> 10, STACK_MIN >> 10);
        return ended(Err(anyhow!(
            "the stack may have {has} KiB only, and minder needs {needs} (`ulimit -s {needs}`)"
        )));
    }
    let mut args: Vec<OsString> = args.into_iter().collect();
    let mut manner = CompatMode::Own;
    if let Some((called, skipped)) = face::called(&args) {
        match face::take(called, &args[skipped..]) {
            Ok(Translation::Run(words)) => {
                manner = CompatMode::Parallel;
                args = ["minder", "run"].into_iter().map(OsString::from).chain(words).collect();
            }
            Ok(Translation::Verb(words)) => {
                args = std::iter::once("minder".into()).chain(words).collect();
            }
            Ok(Translation::Sem(sem)) => return ended(verbs::sem::run(sem)),
            Ok(Translation::Said(code)) => return code,
            Err(error) => return ended(Err(error)),
        }
    } else if args.get(1).is_some_and(|verb| verb == "run") {
        rewrite(&mut args, ValueStyle::Attached);
    }
    let flags = match Flags::try_parse_from(&args) {
        Ok(flags) => flags,
        Err(error) => return refuse(&error, args.get(1..).unwrap_or_default()),
    };
    ended(match flags.verb {
        Verb::Run(flags) => verbs::run::run(*flags, &args, manner),
        Verb::Log(flags) => report::with_stdout(|out| verbs::log::run(out, &flags)),
        Verb::Doctor(flags) => report::with_stdout(|out| verbs::doctor::run(out, flags.json)),
        Verb::Bench(flags) => verbs::bench::run(&flags),
        Verb::Help(flags) => report::with_stdout(|out| verbs::help::run(out, &flags)),
        Verb::Man(flags) => report::with_stdout(|out| verbs::man::run(out, &flags)),
        Verb::Completions(flags) => report::with_stdout(|out| verbs::completions::run(out, &flags)),
    })
}

/// The status of what was done; says what kept it from being done.
fn ended(result: anyhow::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) => {
            // It may quote what was typed.
            report::message(&escape(report::format_error(&error).as_bytes()));
            ExitCode::from(exit::OTHER)
        }
    }
}

/// Rewrites the flags of `minder run` so that clap knows them.
fn rewrite(args: &mut Vec<OsString>, loose: ValueStyle) {
    if !habits::is_needed(args.get(2..).unwrap_or_default()) {
        return;
    }
    let mut all = Flags::command();
    all.build();
    if let Some(run) = all.find_subcommand("run") {
        let words = habits::rewrite(args.get(2..).unwrap_or_default(), run, loose);
        args.truncate(2);
        args.extend(words);
    }
}

/// Prints help and version on stdout; an error in the flags as one line on stderr, with where to
/// read on.
fn refuse(error: &clap::Error, words: &[OsString]) -> ExitCode {
    if !error.use_stderr() {
        return ended(print_help(error));
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(exit::OTHER);
    }
    let all = Flags::command();
    let (mut command, mut whose) = (&all, all.get_name().to_owned());
    for word in words {
        let Some(verb) = command.get_subcommands().find(|verb| word == verb.get_name()) else { break };
        whose = format!("{whose} {}", verb.get_name());
        command = verb;
    }
    report::message(&format!("{} (see `{whose} --help`)", escape(mistake(error).as_bytes())));
    ExitCode::from(exit::OTHER)
}

fn print_help(error: &clap::Error) -> anyhow::Result<ExitCode> {
    report::open_output()?;
    match error.print().and_then(|()| std::io::stdout().flush()) {
        // A reader that has seen enough is no reason to complain about help.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(ExitCode::SUCCESS),
        Err(error) => Err(anyhow::Error::from(error).context("cannot write to standard output")),
        Ok(()) => Ok(ExitCode::SUCCESS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        Flags::command().debug_assert();
    }
}
