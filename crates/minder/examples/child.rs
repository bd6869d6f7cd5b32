//! Waits for a child with a deadline, and kills it when that has passed.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use std::time::{Duration, Instant};

use minder::{Command, Stdio, Termination};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("kid") {
        // It ends when its input does, which is never, while the parent holds the other end.
        std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    let mut child = command.arg("kid").stdin(Stdio::Piped).spawn()?;
    let input = child.take_stdin();

    // A timeout is a `Duration`, a deadline an `Instant`; a wait never ends before it.
    let patience = Duration::from_millis(50);
    let before = Instant::now();
    assert!(child.wait_timeout(patience)?.is_none(), "it waits for its input");
    let waited = before.elapsed();
    assert!(waited >= patience);

    // The whole group of processes dies, not only the one that we know.
    child.kill(Termination::IMMEDIATE)?;
    let exit = child.wait()?;
    assert!(!exit.status.success(), "it was killed, and says {}", exit.status);
    drop(input);

    println!("child: waited {waited:?} for it, then killed it: {}", exit.status);
    Ok(())
}
