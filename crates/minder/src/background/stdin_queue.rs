//! What a host wrote to one child and the child has not read yet.

use std::io;

use crate::{Error, ErrorKind, Result};

/// A bounded queue of bytes towards a child's standard input.
#[derive(Debug)]
pub(super) struct StdinQueue {
    state: State,
    /// Accepted, and not yet with the pump's thread.
    fresh: Vec<u8>,
    /// Accepted and not yet in the child's pipe: `fresh`, and what the thread holds.
    queued: usize,
    /// Whether the host was turned away and wants to hear of room.
    wanted: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum State {
    /// The child has no such pipe.
    Absent,
    Open,
    /// To be closed once all of it is written.
    Closing,
    Broken(io::ErrorKind),
}

/// What the pump's thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum StdinAction {
    Write(Vec<u8>),
    Close,
    Nothing,
}

impl StdinQueue {
    pub(super) fn new(there: bool) -> Self {
        let state = if there { State::Open } else { State::Absent };
        Self { state, fresh: Vec::new(), queued: 0, wanted: false }
    }

    /// Accepts as many bytes as there is room for.
    pub(super) fn accept(&mut self, bytes: &[u8], max: usize) -> Result<usize> {
        match self.state {
            State::Open => (),
            State::Broken(kind) => return Err(Error::new("write to the input of a child", kind.into())),
            State::Absent | State::Closing => {
                return Err(Error::of_kind(
                    ErrorKind::Unknown,
                    "write to the input of a child",
                    "it has none, or no more",
                ));
            }
        }
        let count = bytes.len().min(max.saturating_sub(self.queued));
        self.fresh.extend_from_slice(&bytes[..count]);
        self.queued += count;
        self.wanted |= count < bytes.len();
        Ok(count)
    }

    /// Accepts nothing more; what was accepted is written first.
    pub(super) fn close(&mut self) {
        if self.state == State::Open {
            self.state = State::Closing;
        }
    }

    /// Hands out all that is fresh, in exchange for `spare`, whose memory serves what comes next.
    pub(super) fn next(&mut self, mut spare: Vec<u8>) -> StdinAction {
        if !self.fresh.is_empty() {
            spare.clear();
            return StdinAction::Write(std::mem::replace(&mut self.fresh, spare));
        }
        match self.state {
            State::Closing => {
                self.state = State::Absent;
                StdinAction::Close
            }
            _ => StdinAction::Nothing,
        }
    }

    /// Some of it reached the pipe; says whether the host is to be told of room now.
    pub(super) fn written(&mut self, count: usize, max: usize) -> bool {
        self.queued -= count;
        self.queued <= max / 2 && std::mem::take(&mut self.wanted)
    }

    /// The child reads no more; says whether the host waits for room, and is to learn this instead.
    pub(super) fn broke(&mut self, kind: io::ErrorKind) -> bool {
        self.state = State::Broken(kind);
        self.fresh = Vec::new();
        self.queued = 0;
        std::mem::take(&mut self.wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_turns_away_and_tells_of_room_once() {
        let mut input = StdinQueue::new(true);
        assert_eq!(input.accept(b"abcdef", 4).ok(), Some(4));
        assert_eq!(input.accept(b"ef", 4).ok(), Some(0));
        assert_eq!(input.next(Vec::new()), StdinAction::Write(b"abcd".to_vec()));
        assert!(!input.written(1, 4) && input.written(1, 4) && !input.written(1, 4));
        assert_eq!(input.accept(b"ef", 4).ok(), Some(2));
    }

    #[test]
    fn it_is_closed_after_the_last_byte_and_then_takes_none() {
        let mut input = StdinQueue::new(true);
        assert_eq!(input.accept(b"a", 4).ok(), Some(1));
        input.close();
        assert_eq!(input.next(Vec::new()), StdinAction::Write(b"a".to_vec()));
        assert_eq!(
            (input.next(Vec::new()), input.next(Vec::new())),
            (StdinAction::Close, StdinAction::Nothing)
        );
        assert_eq!(input.accept(b"b", 4).map_err(|error| error.kind()), Err(ErrorKind::Unknown));
    }

    #[test]
    fn a_child_that_reads_no_more_is_an_error_for_whoever_waits() {
        let mut input = StdinQueue::new(true);
        assert_eq!(input.accept(b"abc", 2).ok(), Some(2));
        assert!(input.broke(io::ErrorKind::BrokenPipe));
        let error = input.accept(b"c", 2).unwrap_err();
        assert_eq!(error.io_error().kind(), io::ErrorKind::BrokenPipe);
    }
}
