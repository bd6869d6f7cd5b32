//! Runs without a command, in which each argument is a separate shell line.

use std::ffi::OsString;

use anyhow::{Result, bail};
use minder_runner::input::{Kind, Source};

use super::input::CompatMode;
use crate::flags::RunFlags;

/// Returns whether each argument is a command: with `--commands`, and where all arguments stand on the
/// command line. Lines of files and of standard input may be names of files, and are not run unless the
/// user says so.
///
/// `words` is the command. `sources` are those of arguments, without what is cut into blocks.
///
/// # Errors
/// There is no command, or a flag has no effect without one.
pub(super) fn are_arguments(
    flags: &RunFlags,
    compat: CompatMode,
    words: &[OsString],
    sources: &[Source],
) -> Result<bool> {
    match words.first() {
        Some(_) if !flags.input.commands => return Ok(false),
        // The command line of GNU parallel is translated into a placeholder for the whole argument.
        Some(word) if compat == CompatMode::Own => bail!(
            "with `--commands` each argument is a command: leave out the flag, or put `{}` behind `{}`",
            word.display(),
            flags.input.arg_sep.display()
        ),
        _ => (),
    }
    if flags.pipe.is_wanted() && sources.is_empty() {
        bail!("`--pipe` requires a command that reads the blocks, such as cat");
    }
    let are_typed = sources.iter().all(|source| matches!(source.kind, Kind::Arguments(_)));
    if !flags.input.commands && !are_typed && compat == CompatMode::Own {
        bail!(
            "no command given: `minder run COMMAND` runs it for each line of the input, `minder run \
             --commands` runs each line as a command"
        );
    }
    match without_effect(flags, compat) {
        Some(flag) => bail!("`{flag}` requires a command: without one, each argument is a shell line"),
        None => Ok(true),
    }
}

/// Returns a flag that has no effect if each argument is a command, or would join several of them.
/// GNU parallel joins them.
fn without_effect(flags: &RunFlags, compat: CompatMode) -> Option<&'static str> {
    let RunFlags { arity, placeholders, .. } = flags;
    let joins = [
        (placeholders.quote, "--quote"),
        (arity.max_args.is_some(), "--max-args"),
        (arity.max_replace_args.is_some(), "--max-replace-args"),
        (arity.lines.is_some(), "--lines"),
        (arity.context, "-X"),
        (arity.multiple, "-m"),
        (arity.xargs, "--xargs"),
    ];
    let rules = [(placeholders.only.is_some(), "--only"), (placeholders.no_dash_values, "--no-dash-values")];
    let joins = if compat == CompatMode::Own { joins.as_slice() } else { &[] };
    joins.iter().chain(&rules).find_map(|(is_given, flag)| is_given.then_some(*flag))
}
