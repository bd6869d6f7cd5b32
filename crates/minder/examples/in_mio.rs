//! Runs 1,000 children inside a loop of mio, which watches the descriptor of a set.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

#[cfg(unix)]
use std::os::fd::AsRawFd;
use std::time::Duration;

use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};

const CHILDREN: usize = 1000;
const AT_ONCE: usize = 50;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    if std::env::args().nth(1).as_deref() == Some("child") {
        println!("text");
        return Ok(());
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("child").stdin(Stdio::null()).stdout(Stdio::piped());
    let mut set = ChildSet::new(ChildSetOptions::new())?;
    let mut poll = mio::Poll::new()?;
    #[cfg(unix)]
    {
        let handle = set.poll_handle()?.as_raw_fd();
        let mut source = mio::unix::SourceFd(&handle);
        poll.registry().register(&mut source, mio::Token(0), mio::Interest::READABLE)?;
    }
    // A set has no handle on Windows so far, and is polled.
    let timeout = cfg!(windows).then_some(Duration::from_millis(1));
    let mut ready = mio::Events::with_capacity(16);
    let mut started = 0;
    let mut bytes = 0;
    while started < CHILDREN || !set.is_empty() {
        while started < CHILDREN && set.len() < AT_ONCE {
            set.spawn(&command, SpawnOptions::new())?;
            started += 1;
        }
        // Other sources of the loop are watched by the same call.
        poll.poll(&mut ready, timeout)?;
        // mio is edge-triggered: all events are taken before the next wait.
        while let NextEvent::Event(event) = set.next_event(Some(Duration::ZERO))? {
            match event {
                Event::Output { chunk, .. } => bytes += chunk.len(),
                Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
                _ => (),
            }
        }
    }
    println!("mio: {CHILDREN} children wrote {bytes} bytes");
    Ok(())
}
