//! Hints that depend on the environment of the run.

use std::ffi::OsString;

use minder_os::stdio::{StdStream, std_was_closed};
use minder_template::Options;

/// The line about a run whose input is the null device, as where a shell would expand `*.log`.
pub(super) const NO_INPUT: &str = "standard input is the null device, so there is nothing to run \
                                   (`::: ARGUMENT` gives arguments, `:::: FILE` a file of them)";

/// Returns whether standard input is the null device, and was not closed.
pub(super) fn stdin_is_null() -> bool {
    minder_os::stdio::stdin_is_null() && !std_was_closed(StdStream::Input)
}

/// Returns the line about a shell line that begins with a function which bash exported, if another shell
/// runs it.
pub(super) fn exported_function(words: &[OsString], options: &Options) -> Option<String> {
    let [line] = words else { return None };
    let (name, _) = line.to_str()?.split_once(' ')?;
    let is_bash = options.shell.as_deref().is_some_and(|shell| shell.as_encoded_bytes().ends_with(b"bash"));
    let is_function = !is_bash && std::env::var_os(format!("BASH_FUNC_{name}%%")).is_some();
    is_function.then(|| format!("`{name}` is a function that bash exports: `--shell bash` runs it"))
}
