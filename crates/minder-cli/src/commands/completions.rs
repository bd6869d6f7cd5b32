//! `minder completions`: shell completions, generated from the flags.

use std::io::Write;

use anyhow::Result;
use clap::{Command, CommandFactory};

use crate::flags::{CompletionsFlags, Flags};

/// Prints the completions for a shell.
pub(crate) fn run(out: &mut dyn Write, flags: &CompletionsFlags) -> Result<()> {
    // The generator panics when a write fails, which happens if the reader closes stdout. So it
    // writes to memory.
    let mut text = Vec::new();
    let mut minder = Flags::command();
    // Subcommands of subcommands are added here.
    minder.build();
    clap_complete::generate(flags.shell, &mut without_hidden(&minder), "minder", &mut text);
    Ok(out.write_all(&text)?)
}

/// Returns the command without hidden subcommands, which the generator would offer.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    // clap removes no subcommand, and takes no name that it would have to own.
    let name: &'static str = command.get_name().to_owned().leak();
    Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true) // These are among the arguments and subcommands.
        .disable_version_flag(true)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(command.get_arguments())
        .subcommands(shown.map(without_hidden))
}
