//! Tests with real children.

#![cfg(unix)]

mod alone;
#[cfg(target_os = "linux")]
mod cancel;
mod capture;
mod child;
mod room;
mod runtimes;

use minder::Command;

/// Returns a command that runs a script.
fn sh(script: &str) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]);
    command
}
