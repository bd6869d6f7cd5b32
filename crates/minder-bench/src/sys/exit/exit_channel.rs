//! A channel from threads that observe exits to the thread that waits for them.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::types::ObservedExit;

/// The longest time in which threads exit after their children did.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct ExitChannel {
    receiver: Receiver<ObservedExit>,
    sender: Option<Sender<ObservedExit>>,
}

impl ExitChannel {
    pub(super) fn new() -> Self {
        let (sender, receiver) = channel();
        Self { receiver, sender: Some(sender) }
    }

    /// Returns a sender for a new thread; `None` after [`close`](Self::close).
    pub(super) fn sender(&self) -> Option<Sender<ObservedExit>> {
        self.sender.clone()
    }

    /// Waits for the next exit; returns `None` if the deadline passed before.
    pub(super) fn next(&self, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(exit) => Ok(Some(exit)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("a thread ended early")),
        }
    }

    /// Waits until all threads have dropped their senders. Returns whether they did so in time, so
    /// that joining them does not block.
    pub(super) fn close(&mut self) -> bool {
        self.sender = None;
        let deadline = Instant::now() + CLOSE_TIMEOUT;
        loop {
            match self.receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(_) => (),
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }
}
