//! The bytes that a host wrote to one child and that are not in the child's pipe yet.

use std::io;

use crate::{Error, ErrorKind, Operation, Result};

const WRITE: &str = "write to the input of a child";

/// A bounded queue of bytes for a child's standard input.
#[derive(Debug)]
pub(super) struct StdinQueue {
    state: State,
    /// Bytes that the worker thread has not taken.
    unsent: Vec<u8>,
    /// The number of bytes that are not in the pipe: those in `unsent`, and those that the worker
    /// holds.
    queued: usize,
    /// `true` if a write was cut short, so that the host is to be notified of room.
    wants_room: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The child has no such pipe, or it was closed.
    Absent,
    Open,
    /// The host closed the input. The pipe is closed after the last byte was written.
    Closing,
    /// The child closed its end.
    Broken(io::ErrorKind),
}

/// The next action of the worker thread.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdinAction {
    Write(Vec<u8>),
    Close,
    Nothing,
}

impl StdinQueue {
    /// Creates an empty queue. `is_open` is false for a child without such a pipe.
    pub(super) fn new(is_open: bool) -> Self {
        let state = if is_open { State::Open } else { State::Absent };
        Self { state, unsent: Vec::new(), queued: 0, wants_room: false }
    }

    /// Accepts as many bytes as there is room for, and returns how many.
    pub(super) fn accept(&mut self, bytes: &[u8], max: usize) -> Result<usize> {
        match self.state {
            State::Open => (),
            State::Broken(kind) => return Err(Error::new(WRITE, kind.into()).during(Operation::Write)),
            State::Absent | State::Closing => {
                let error = Error::of_kind(ErrorKind::Unknown, WRITE, "it has none, or no more");
                return Err(error.during(Operation::Write));
            }
        }
        let count = bytes.len().min(max.saturating_sub(self.queued));
        self.unsent.extend_from_slice(&bytes[..count]);
        self.queued += count;
        self.wants_room |= count < bytes.len();
        Ok(count)
    }

    /// Closes the queue to new bytes. Those that were accepted are still written.
    pub(super) fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closing;
        }
    }

    /// Returns what the worker thread does next. `spare` is an empty buffer for bytes that are
    /// accepted later.
    pub(super) fn next(&mut self, mut spare: Vec<u8>) -> StdinAction {
        if !self.unsent.is_empty() {
            spare.clear();
            return StdinAction::Write(std::mem::replace(&mut self.unsent, spare));
        }
        if self.state == State::Closing {
            self.state = State::Absent;
            return StdinAction::Close;
        }
        StdinAction::Nothing
    }

    /// Counts bytes that are in the pipe now. Returns whether the host is to be notified of room.
    pub(super) fn written(&mut self, count: usize, max: usize) -> bool {
        self.queued -= count;
        self.queued <= max / 2 && std::mem::take(&mut self.wants_room)
    }

    /// Notes that the child closed its end. Returns whether the host waits for room: it is notified,
    /// and its next write returns the error.
    pub(super) fn set_broken(&mut self, kind: io::ErrorKind) -> bool {
        self.state = State::Broken(kind);
        self.unsent = Vec::new();
        self.queued = 0;
        std::mem::take(&mut self.wants_room)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_queue_notifies_of_room_once() {
        let mut queue = StdinQueue::new(true);
        assert_eq!(queue.accept(b"abcdef", 4).ok(), Some(4));
        assert_eq!(queue.accept(b"ef", 4).ok(), Some(0));
        assert_eq!(queue.next(Vec::new()), StdinAction::Write(b"abcd".to_vec()));
        assert!(!queue.written(1, 4) && queue.written(1, 4) && !queue.written(1, 4));
        assert_eq!(queue.accept(b"ef", 4).ok(), Some(2));
    }

    #[test]
    fn close_takes_effect_after_the_last_byte() {
        let mut queue = StdinQueue::new(true);
        assert_eq!(queue.accept(b"a", 4).ok(), Some(1));
        queue.close();
        assert_eq!(queue.next(Vec::new()), StdinAction::Write(b"a".to_vec()));
        assert_eq!(queue.next(Vec::new()), StdinAction::Close);
        assert_eq!(queue.next(Vec::new()), StdinAction::Nothing);
        assert_eq!(queue.accept(b"b", 4).map_err(|error| error.kind()), Err(ErrorKind::Unknown));
    }

    #[test]
    fn write_after_the_child_closed_its_end_is_an_error() {
        let mut queue = StdinQueue::new(true);
        assert_eq!(queue.accept(b"abc", 2).ok(), Some(2));
        assert!(queue.set_broken(io::ErrorKind::BrokenPipe));
        let error = queue.accept(b"c", 2).unwrap_err();
        assert_eq!(error.io_error().kind(), io::ErrorKind::BrokenPipe);
    }
}
