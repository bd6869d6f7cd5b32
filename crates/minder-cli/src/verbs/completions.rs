//! `minder completions`: what a shell needs to complete our flags, from the flags themselves.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;

use crate::flags::{CompletionsFlags, Flags};

/// Prints the completions for a shell.
pub(crate) fn run(out: &mut dyn Write, flags: &CompletionsFlags) -> Result<()> {
    // The generator gives up loudly when its writer does: ours may be closed.
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut Flags::command(), "minder", &mut text);
    Ok(out.write_all(&text)?)
}
