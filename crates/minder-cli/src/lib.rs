//! The command: flags → plan → verb.
//!
//! Flags only check themselves; a plan joins them with what this machine is, and leaves nothing to guess; a verb does the
//! work. The library never prints: every line that a person reads comes from here, on stderr, and data goes to stdout.

mod exit;
mod flags;
mod journal;
mod plan;
mod report;
pub mod template;
mod verbs;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::flags::{Flags, Verb};

/// Runs the command with these arguments, of which the first is its name.
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args: Vec<OsString> = args.into_iter().collect();
    let flags = match Flags::try_parse_from(&args) {
        Ok(flags) => flags,
        Err(error) => return refuse(&error, args.get(1)),
    };
    let result = match flags.verb {
        Verb::Run(flags) => plan::Plan::new(*flags, &args).and_then(verbs::run::run),
        Verb::Log(flags) => report::data(|out| verbs::log::run(out, &flags)),
        Verb::Doctor(flags) => report::data(|out| verbs::doctor::run(out, flags.json)),
    };
    match result {
        Ok(code) => code,
        Err(error) => {
            report::say(&report::explain(&error));
            ExitCode::from(exit::OTHER)
        }
    }
}

/// Prints help and version on stdout; an error in the flags as one line on stderr, with where to read on.
fn refuse(error: &clap::Error, word: Option<&OsString>) -> ExitCode {
    if !error.use_stderr() {
        // A closed stdout is no reason to complain about help.
        let _ = error.print();
        return ExitCode::SUCCESS;
    }
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let _ = error.print();
        return ExitCode::from(exit::OTHER);
    }
    let mut whose = Flags::command().get_name().to_owned();
    if let Some(verb) = Flags::command()
        .get_subcommands()
        .map(clap::Command::get_name)
        .find(|name| word.is_some_and(|word| word == name))
    {
        whose = format!("{whose} {verb}");
    }
    report::say(&format!("{} (see `{whose} --help`)", what_is_wrong(error)));
    ExitCode::from(exit::OTHER)
}

/// Clap's first line, in our words where it has no good ones.
fn what_is_wrong(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return "no command is given".to_owned();
    }
    let text = error.render().to_string();
    let line = text.lines().next().unwrap_or_default().trim_start_matches("error: ").trim_end();
    // Clap puts the values that it knows on a line of their own.
    let listed = text.lines().skip(1).take_while(|line| line.starts_with("  ") && !line.trim().is_empty());
    let listed: Vec<&str> = listed.map(str::trim).collect();
    [line, &listed.join(", ")].join(" ").trim_end().replace("  ", " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_tree_is_sound() {
        Flags::command().debug_assert();
    }
}
