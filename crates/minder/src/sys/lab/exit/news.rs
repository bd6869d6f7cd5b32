//! The way from threads that hear ends to whoever waits for them.

use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::End;

/// How long threads may take to end when their children are gone.
const END: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct News {
    told: Receiver<End>,
    pub(super) tell: Option<Sender<End>>,
}

impl News {
    pub(super) fn new() -> Self {
        let (tell, told) = channel();
        Self { told, tell: Some(tell) }
    }

    pub(super) fn next(&self, deadline: Instant) -> io::Result<Option<End>> {
        match self.told.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(end) => Ok(Some(end)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("a thread ended early")),
        }
    }

    /// Whether all threads have said their last word, within a bound.
    pub(super) fn end(&mut self) -> bool {
        self.tell = None;
        let until = Instant::now() + END;
        loop {
            match self.told.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(_) => (),
                Err(error) => return error == RecvTimeoutError::Disconnected,
            }
        }
    }
}
