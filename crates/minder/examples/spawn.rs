//! Starts one program and reads what it says: `Command` is plain data, `spawn` copies no memory.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use std::io::Read;

use minder::{Command, ErrorKind, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("kid") {
        println!("hello from {}", std::env::var("WHO")?);
        return Ok(());
    }
    // A command can be started as often as one likes; here it is this very program.
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("kid").env("WHO", "a child").stdin(Stdio::Null).stdout(Stdio::Piped);

    let mut child = command.spawn()?;
    let mut text = String::new();
    if let Some(mut stdout) = child.take_stdout() {
        stdout.read_to_string(&mut text)?;
    }
    let exit = child.wait()?;
    assert!(exit.status.success(), "the child says {}", exit.status);
    assert_eq!(text.trim_end(), "hello from a child");

    // What cannot be started is an error at once, in words, and nothing is left behind.
    let error = Command::new("no-such-program-anywhere").spawn().expect_err("there is no such program");
    assert_eq!(error.kind(), ErrorKind::NotFound);

    println!("spawn: one child said {:?}; another: {error}", text.trim_end());
    Ok(())
}
