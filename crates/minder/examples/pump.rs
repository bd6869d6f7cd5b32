//! A host that is busy with other things: a pump listens on a thread of its own, and the host takes
//! what has come.

#![expect(clippy::print_stdout, reason = "an example says what it saw")]

use std::io::{BufRead, Write};

use minder::{
    BackgroundSet, ChildSetConfig, Command, Event, Events, Interest, Poller, SpawnOptions, Stdio, Token,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("kid") {
        for line in std::io::stdin().lock().lines() {
            writeln!(std::io::stdout(), "{}", line?.to_uppercase())?;
        }
        return Ok(());
    }
    let pump = BackgroundSet::start(ChildSetConfig::default())?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("kid").stdin(Stdio::Piped).stdout(Stdio::Piped);
    let child = pump.spawn(&command, SpawnOptions::default())?;

    // Writing queues and never blocks; what does not fit is tried again after `Event::Writable`.
    assert_eq!(pump.write(child, b"loud\nand clear\n")?, 15);
    pump.close_stdin(child)?;

    // A host has a loop of its own, and watches the pump's descriptor there. This poller stands for it.
    let (host, mut events, mut text) = (Poller::new()?, Vec::new(), Vec::new());
    if host.add(&pump.poll_handle(), Token(0), Interest::READABLE).is_err() {
        println!("pump: the poller watches no handles of others here; this example needs Unix");
        return Ok(());
    }
    while pump.children() > 0 {
        host.wait(&mut Events::new(), None)?;
        pump.drain_events(&mut events, 1 << 20);
        for event in events.drain(..) {
            match event {
                Event::Output(_, _, bytes) => text.extend_from_slice(&bytes),
                Event::Done(_, outcome) => assert!(outcome.exit.status.success()),
                _ => (),
            }
        }
    }
    host.delete(&pump.poll_handle())?;
    pump.stop(std::time::Duration::ZERO)?;
    assert_eq!(text, b"LOUD\nAND CLEAR\n");

    println!("pump: the child answered {:?}", String::from_utf8_lossy(&text));
    Ok(())
}
