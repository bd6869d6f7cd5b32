//! A host with its own event loop: a background set reads the child on a separate thread, and the host
//! takes the events.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::io::{BufRead, Write};

use minder::poll::{Events, Interest, Poller, Token};
use minder::{BackgroundSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        for line in std::io::stdin().lock().lines() {
            writeln!(std::io::stdout(), "{}", line?.to_uppercase())?;
        }
        return Ok(());
    }
    let set = BackgroundSet::new(ChildSetOptions::default())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = set.spawn(&command, SpawnOptions::default())?;

    // A write queues bytes and never blocks. The rest can be written after `Event::Writable`.
    assert_eq!(set.write(child, b"loud\nand clear\n")?, 15);
    set.close_stdin(child)?;

    // The host watches the set's descriptor in its own event loop. Here that is this poller.
    let host = Poller::new()?;
    let mut events = Vec::new();
    let mut text = Vec::new();
    if host.add(&set.poll_handle(), Token(0), Interest::READABLE).is_err() {
        println!("background: the poller cannot watch this handle; this example needs Unix");
        return Ok(());
    }
    while !set.is_empty() {
        host.wait(&mut Events::new(), None)?;
        set.drain_events(&mut events, 1 << 20);
        for event in events.drain(..) {
            match event {
                Event::Output { chunk: bytes, .. } => text.extend_from_slice(&bytes),
                Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
                _ => (),
            }
        }
    }
    host.delete(&set.poll_handle())?;
    set.stop(std::time::Duration::ZERO)?;
    assert_eq!(text, b"LOUD\nAND CLEAR\n");

    println!("background: the child answered {:?}", String::from_utf8_lossy(&text));
    Ok(())
}
