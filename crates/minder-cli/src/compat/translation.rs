//! What a command line of GNU parallel or `sem` becomes.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use super::InvokedAs;
use super::parallel::{OptionKey, ParallelArgs, print_info, print_quoted, run_arguments};
use super::warning::warn;
use crate::commands::sem::SemArgs;

/// What minder does for a command line of GNU parallel.
#[derive(Debug)]
pub(crate) enum Translation {
    /// A run: the arguments after `minder run`, flags first.
    Run(Vec<OsString>),
    /// Another subcommand of minder, with its arguments.
    Subcommand(Vec<OsString>),
    /// A command that waits for a slot of a semaphore.
    Sem(SemArgs),
    /// Nothing more: the requested text was printed.
    Done(ExitCode),
}

/// Translates the arguments after the program's name.
///
/// # Errors
/// An option is unknown, unsupported or misused. The error names it.
pub(crate) fn translate(invoked_as: InvokedAs, args: &[OsString]) -> Result<Translation> {
    let args = ParallelArgs::read(invoked_as, args)?;
    if let Some(shell) = args.value(OptionKey::Completion) {
        return Ok(Translation::Subcommand(vec!["completions".into(), shell.clone()]));
    }
    if let Some(code) = print_info(&args)? {
        return Ok(Translation::Done(code));
    }
    if args.has(OptionKey::ShellQuote) {
        return print_quoted(&args).map(Translation::Done);
    }
    if SemArgs::is_requested(&args) {
        return SemArgs::new(&args).map(Translation::Sem);
    }
    if std::env::var_os("PARALLEL_ENV").is_some_and(|code| !code.is_empty()) {
        warn(
            "`PARALLEL_ENV` is ignored: functions, aliases and variables that env_parallel or parset \
             passes do not reach jobs; exported ones do",
        );
    }
    run_arguments(&args).map(Translation::Run)
}
