//! A command whose process tree dies with it: after `kill -9` of this process, nothing that it
//! started keeps running.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use minder::guard::{GuardOptions, ProcessGuard};
use minder::{Command, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        return Ok(());
    }
    // Before any thread exists. On Linux this returns in another process than the caller.
    let guard = ProcessGuard::install(&GuardOptions::new())?;
    let guardians = match guard.guardians() {
        Some(guardians) => format!("guarded by {} and {}", guardians.outer, guardians.inner),
        None => format!("without guardians: {}", guard.unavailable_reason().unwrap_or_default()),
    };
    let (before, after) = guard.raise_fd_limit()?;
    assert!(before <= after);

    // Before the first child.
    guard.wait_ready()?;
    let mut child = Command::new(std::env::current_exe()?).arg("child").stdin(Stdio::null()).spawn()?;
    let exit = child.wait()?;
    let status = u8::from(!exit.status.success());

    println!("guard: {guardians}; the child exited with {}", exit.status);
    // Daemons that jobs left behind keep running.
    guard.exit(status)
}
