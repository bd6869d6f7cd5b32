//! A command that takes its tree with it: after `kill -9` of this process nothing of what it
//! started lives on.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use minder::{Command, GuardOptions, ProcessGuard, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("kid") {
        return Ok(());
    }
    // First thing, before any thread: on Linux this returns in another process than the one that
    // called.
    let guard = ProcessGuard::install(&GuardOptions::new())?;
    let guardians = match guard.guardians() {
        Ok(guardians) => format!("guarded by {} and {}", guardians.outer, guardians.inner),
        Err(why) => format!("without guardians: {why}"),
    };
    let (before, after) = guard.raise_fd_limit()?;
    assert!(before <= after);

    // Before the first child.
    guard.wait_ready()?;
    let mut child = Command::new(std::env::current_exe()?).arg("kid").stdin(Stdio::Null).spawn()?;
    let exit = child.wait()?;
    let status = u8::from(!exit.status.success());

    println!("guard: {guardians}; the child says {}", exit.status);
    // The end of an orderly run: daemons that jobs left behind may stay.
    guard.exit(status)
}
