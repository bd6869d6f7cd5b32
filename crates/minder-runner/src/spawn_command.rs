//! The command of the process library that starts an expanded template.

use minder::Command;
use minder_template::Invocation;

/// Returns the command that starts `invocation`.
pub fn spawn_command(invocation: Invocation) -> Command {
    let mut command = Command::from_argv(invocation.argv);
    if let Some(tail) = &invocation.raw_tail {
        command.raw_tail(tail);
    }
    for (name, value) in &invocation.variables {
        command.env(name, value);
    }
    command
}
