//! The command of the process library that starts an expanded template.

use std::ffi::{OsStr, OsString};

use minder::Command;
use minder_template::Invocation;

/// Returns the command that starts `invocation`.
pub fn spawn_command(invocation: &Invocation) -> Command {
    let mut argv = invocation.argv.iter();
    let mut command = Command::new(argv.next().map_or(OsStr::new(""), OsString::as_os_str));
    command.args(argv);
    if let Some(tail) = &invocation.raw_tail {
        command.raw_tail(tail);
    }
    for (name, value) in &invocation.variables {
        command.env(name, value);
    }
    command
}
