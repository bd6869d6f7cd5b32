//! The result of translating a command line of GNU parallel, `sem` or xargs.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use super::InvokedAs;
use super::parallel::{
    OptionKey, ParallelArgs, print_env_names, print_env_setup, print_info, print_quoted, run_arguments,
};
use super::warning::warn;
use super::xargs::{self, Request};
use crate::commands::sem::SemArgs;
use crate::commands::xargs::{FAILURE, XargsPlan};
use crate::ui::with_stdout;

/// The action of minder for a command line of another program.
#[derive(Debug)]
pub(crate) enum Translation {
    /// A run: the arguments after `minder run`, flags first.
    Run(Vec<OsString>),
    /// Another subcommand of minder, with its arguments.
    Subcommand(Vec<OsString>),
    /// A command that waits for a slot of a semaphore.
    Sem(SemArgs),
    /// Commands with arguments from words of the input.
    Xargs(Box<XargsPlan>),
    /// Nothing more: the requested text was printed.
    Done(ExitCode),
}

/// Translates the arguments after the program's name.
///
/// # Errors
/// An option of GNU parallel is unknown, unsupported or misused. The error names it.
pub(crate) fn translate(invoked_as: InvokedAs, args: &[OsString]) -> Result<Translation> {
    match invoked_as {
        InvokedAs::Xargs => translate_xargs(args),
        InvokedAs::Parallel | InvokedAs::Sem => translate_parallel(invoked_as, args),
    }
}

/// Errors in the options of xargs are printed in its words, with its exit status.
fn translate_xargs(args: &[OsString]) -> Result<Translation> {
    Ok(match xargs::read(args) {
        Request::Run(plan) => Translation::Xargs(plan),
        Request::Print(text) => Translation::Done(with_stdout(|out| Ok(out.write_all(text.as_bytes())?))?),
        Request::Failed => Translation::Done(ExitCode::from(FAILURE)),
    })
}

fn translate_parallel(invoked_as: InvokedAs, args: &[OsString]) -> Result<Translation> {
    let args = ParallelArgs::read(invoked_as, args)?;
    if let Some(shell) = args.value(OptionKey::Completion) {
        return Ok(Translation::Subcommand(vec!["completions".into(), shell.clone()]));
    }
    if args.has(OptionKey::EnvNames) {
        return print_env_names(&args).map(Translation::Done);
    }
    if args.has(OptionKey::EnvSetup) {
        return print_env_setup(&args).map(Translation::Done);
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
            "`PARALLEL_ENV` of GNU parallel is ignored: for functions, aliases and variables that are not \
             exported, use minder's env_parallel (eval \"$(minder parallel --env-setup)\")",
        );
    }
    run_arguments(&args).map(Translation::Run)
}
