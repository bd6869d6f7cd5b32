//! `minder completions`: shell completions, generated from the flags.

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;

use crate::flags::{CompletionsFlags, Flags};

/// Prints the completions for a shell.
pub(crate) fn run(out: &mut dyn Write, flags: &CompletionsFlags) -> Result<()> {
    // The generator panics when a write fails, which happens if the reader closes stdout. So it
    // writes to memory.
    let mut text = Vec::new();
    clap_complete::generate(flags.shell, &mut Flags::command(), "minder", &mut text);
    Ok(out.write_all(&text)?)
}
