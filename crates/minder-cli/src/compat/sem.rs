//! The arguments of `sem`.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use anyhow::{Result, bail};
use minder_os::encoding::os_string_from_encoded;

use crate::commands::sem::SemArgs;

use super::parallel::{OptionKey, ParallelArgs};

/// Each of these options requests a semaphore.
const SEM_OPTIONS: [OptionKey; 6] = [
    OptionKey::Semaphore,
    OptionKey::Background,
    OptionKey::Foreground,
    OptionKey::Wait,
    OptionKey::SemaphoreName,
    OptionKey::SemaphoreTimeout,
];

/// Flags of `minder run` that `sem` accepts. The progress flags have no effect here.
const ACCEPTED_FLAGS: [&str; 5] = ["--bar", "--eta", "--progress", "--pipe", "--verbose"];

impl SemArgs {
    /// Returns `true` if the options request a semaphore.
    pub(super) fn is_requested(args: &ParallelArgs) -> bool {
        SEM_OPTIONS.iter().any(|key| args.has(*key))
    }

    /// Returns the semaphore's arguments.
    ///
    /// # Errors
    /// An option or an argument separator has no meaning for `sem`.
    pub(super) fn new(args: &ParallelArgs) -> Result<Self> {
        // Other flags select or decorate the output of several jobs; `sem` runs a single command.
        if let Some(flag) = args.run_flag_names().iter().find(|flag| !ACCEPTED_FLAGS.contains(flag)) {
            bail!("`{flag}` cannot be used with sem, which runs the command as it is");
        }
        if let Some(flag) = args.own_flags().first() {
            let name = flag.to_string_lossy();
            let name = name.split('=').next().unwrap_or_default();
            bail!("`{name}` cannot be used with sem, which runs the command as it is");
        }
        if let Some(separator) = args.command().iter().find(|arg| *arg == ":::" || *arg == "::::") {
            bail!("`{}` cannot be used with sem, which reads no arguments", separator.display());
        }
        if args.has(OptionKey::Foreground) && args.has(OptionKey::Background) {
            bail!("`--fg` cannot be used with `--bg`");
        }
        let started = args.value(OptionKey::SemaphoreStarted).map(PathBuf::from);
        let command = if started.is_some() {
            // The process in the foreground has already removed the placeholders.
            args.command().to_vec()
        } else {
            args.command().iter().map(|arg| remove_placeholders(arg)).collect()
        };
        Ok(Self {
            name: args.value(OptionKey::SemaphoreName).cloned(),
            jobs: args.value(OptionKey::Jobs).cloned(),
            timeout: args.value(OptionKey::SemaphoreTimeout).cloned(),
            foreground: args.has(OptionKey::Foreground),
            wait: args.has(OptionKey::Wait),
            print: args.has(OptionKey::Print) && !args.has(OptionKey::Silent),
            verbose: args.has_run_flag("--verbose"),
            quote: args.has(OptionKey::Quote),
            shell: args.shell()?,
            started,
            command,
        })
    }
}

/// Removes every `{}`. GNU parallel does the same, since `sem` has no arguments to insert.
fn remove_placeholders(arg: &OsStr) -> OsString {
    let mut out = Vec::new();
    let mut rest = arg.as_encoded_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        if let Some(after) = rest.strip_prefix(b"{}") {
            rest = after;
        } else {
            out.push(byte);
            rest = after;
        }
    }
    os_string_from_encoded(out)
}
