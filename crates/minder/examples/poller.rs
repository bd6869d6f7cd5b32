//! Waits until descriptors are ready, with each wait backend of this machine.

#![expect(clippy::print_stdout, reason = "an example prints its result")]

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Poller, Token};
use minder::{Backend, ErrorKind};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut seen = Vec::new();
    for backend in Backend::available() {
        let poller = match Poller::with_backend(backend) {
            Ok(poller) => poller,
            // Containers often forbid some of them.
            Err(error) => {
                println!("poller: {error}");
                continue;
            }
        };
        let (mut reader, mut writer) = std::io::pipe()?;
        match poller.add(&reader, Token(7), Interest::READABLE) {
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                println!("poller: `{backend}` cannot watch a pipe; this example needs Unix");
                return Ok(());
            }
            added => added?,
        }
        // The pipe is empty: the wait lasts until its deadline, and not less.
        let mut events = Events::new();
        let deadline = Instant::now() + Duration::from_millis(10);
        assert_eq!(poller.wait_deadline(&mut events, Some(deadline))?, 0);
        assert!(Instant::now() >= deadline);

        // The pipe has bytes. It is reported by every wait until they are read.
        writer.write_all(b"data")?;
        for _ in 0..2 {
            assert_eq!(poller.wait(&mut events, None)?, 1);
            assert!(events.iter().all(|ready| ready.token == Token(7) && ready.readable));
        }
        reader.read_exact(&mut [0; 4])?;

        // Any thread can end a wait.
        let waker = poller.waker();
        let other = std::thread::spawn(move || waker.wake());
        poller.wait(&mut events, None)?;
        assert!(events.woken());
        other.join().map_err(|_| "the other thread panicked")??;
        poller.delete(&reader)?;
        seen.push(backend.name());
    }
    println!("poller: the same by {}", seen.join(" and "));
    Ok(())
}
