//! A process of `minder clock sweep`.

use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use minder::Command;
use minder_bench::ProbeOptions;

use minder_ui::with_stdout;

/// Measures, and reports to the process that has started this one.
pub(super) fn run(args: &[String]) -> Result<ExitCode> {
    let Some(options) = ProbeOptions::parse(args) else {
        bail!("`minder clock probe` is started by `minder clock sweep`");
    };
    let command = probe_command()?;
    with_stdout(|out| Ok(options.run(&command, out)?))
}

/// Returns the command of the processes of `minder clock sweep`: this program.
pub(super) fn probe_command() -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program, which is to be started")?;
    let mut command = Command::new(program);
    command.args(["clock", "probe"]);
    Ok(command)
}
