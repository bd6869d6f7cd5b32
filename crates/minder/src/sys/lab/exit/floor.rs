//! The least that an end can cost: waitpid(2) for a child that is known to have been killed. It
//! hears nothing else.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use rustix::process::WaitOptions;

use super::unix::{number, wait};
use super::{Batch, End, Hear, How, PATIENCE};
use crate::sys::spawn::Spawned;
use crate::sys::thread::without_signals;

/// Waits for a known child.
#[derive(Debug)]
pub(super) struct Floor;

impl Hear for Floor {
    fn add(&mut self, _child: Spawned) -> io::Result<()> {
        Ok(())
    }

    fn next(&mut self, awaited: u32, _deadline: Instant) -> io::Result<Option<End>> {
        Ok(wait(Some(number(awaited)?), WaitOptions::empty())?)
    }

    /// On a thread of its own, from the first kill to the last end: waitpid(2) knows no deadline,
    /// and is not to hold up the caller where a child cannot die.
    fn strike(&mut self, victims: &[u32], how: How) -> io::Result<Batch> {
        let heard = Arc::new(AtomicUsize::new(0));
        let (tell, told) = channel();
        let (theirs, killed) = (Arc::clone(&heard), victims.to_vec());
        let work = move || drop(tell.send(super::strike(&mut Floor, &killed, how, &theirs)));
        let thread = without_signals(|| std::thread::Builder::new().spawn(work))?;
        let mut before = 0;
        loop {
            match told.recv_timeout(PATIENCE) {
                Ok(batch) => {
                    // It said all that it had to say.
                    let _ = thread.join();
                    return batch;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a thread ended early")),
                Err(RecvTimeoutError::Timeout) => {
                    let now = heard.load(Ordering::Relaxed);
                    if now == before {
                        return Ok(Batch::default());
                    }
                    before = now;
                }
            }
        }
    }
}
