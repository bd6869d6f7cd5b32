//! Starts one program and reads its output: `Command` is plain data, `spawn` copies no memory.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::io::Read;

use minder::{Command, ErrorKind, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        println!("hello from {}", std::env::var("WHO")?);
        return Ok(());
    }
    // A command can be started many times. Here it is this program itself.
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").env("WHO", "a child").stdin(Stdio::null()).stdout(Stdio::piped());

    let mut child = command.spawn()?;
    let mut text = String::new();
    if let Some(mut stdout) = child.stdout.take() {
        stdout.read_to_string(&mut text)?;
    }
    let exit = child.wait()?;
    assert!(exit.status.success(), "the child exited with {}", exit.status);
    assert_eq!(text.trim_end(), "hello from a child");

    // A program that cannot be started is an error at once, and leaves nothing behind.
    let error = Command::new("no-such-program-anywhere").spawn().expect_err("start a missing program");
    assert_eq!(error.kind(), ErrorKind::NotFound);

    println!("spawn: one child wrote {:?}; the other: {error}", text.trim_end());
    Ok(())
}
