//! Waits for a child with a time-out, and kills it after that.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::time::{Duration, Instant};

use minder::{Command, Stdio, Termination};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        // It reads until the parent closes the other end of its input.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg("child").stdin(Stdio::piped()).spawn()?;
    let input = child.stdin.take();

    // A time-out is a `Duration`, a deadline is an `Instant`. A wait never ends before it.
    let timeout = Duration::from_millis(50);
    let start = Instant::now();
    assert!(child.wait_timeout(timeout)?.is_none(), "it waits for its input");
    let waited = start.elapsed();
    assert!(waited >= timeout);

    // The whole process group is killed, not only the child.
    child.kill(Termination::IMMEDIATE)?;
    let exit = child.wait()?;
    assert!(!exit.status.success(), "it was killed, but exited with {}", exit.status);
    drop(input);

    println!("child: waited {waited:?} for the child, then killed it: {}", exit.status);
    Ok(())
}
