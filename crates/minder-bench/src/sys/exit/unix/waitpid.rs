//! The least that observing an exit can cost: waitpid(2) for a child that was just killed. It
//! observes no other exit.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Instant;

use minder::Child;
use rustix::process::WaitOptions;

use crate::sys::exit::process::{to_pid, wait};
use crate::sys::exit::types::{EXIT_TIMEOUT, ExitMeasurement, KillMode, ObservedExit};
use crate::sys::exit::watcher::{self, ExitWatcher};
use crate::sys::thread::spawn_small;

#[derive(Debug)]
pub(super) struct Waitpid;

impl ExitWatcher for Waitpid {
    fn add(&mut self, child: Child) -> io::Result<()> {
        child.into_pid();
        Ok(())
    }

    fn next(&mut self, awaited: u32, _deadline: Instant) -> io::Result<Option<ObservedExit>> {
        Ok(wait(Some(to_pid(awaited)?), WaitOptions::empty())?)
    }

    /// Measures on a separate thread, from the first kill to the last exit: waitpid(2) has no
    /// time-out, and must not block the caller if a child cannot exit.
    fn measure(&mut self, victims: &[u32], mode: KillMode) -> io::Result<ExitMeasurement> {
        let observed = Arc::new(AtomicUsize::new(0));
        let thread_observed = Arc::clone(&observed);
        let victims = victims.to_vec();
        let (sender, receiver) = channel();
        let thread = spawn_small(move || {
            // The receiver is gone if the caller gave up.
            let _ = sender.send(watcher::measure(&mut Waitpid, &victims, mode, &thread_observed));
        })?;
        let mut before = 0;
        loop {
            match receiver.recv_timeout(EXIT_TIMEOUT) {
                Ok(measurement) => {
                    let _ = thread.join();
                    return measurement;
                }
                Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("a thread ended early")),
                Err(RecvTimeoutError::Timeout) => {
                    let now = observed.load(Ordering::Relaxed);
                    if now == before {
                        return Ok(ExitMeasurement::default());
                    }
                    before = now;
                }
            }
        }
    }
}
