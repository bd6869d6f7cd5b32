//! The entries of a set's queue of events.

use crate::event::{Stream, Token};

/// An event that waits for the caller. The bytes of an output event stay with their child.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueuedEvent {
    /// One chunk of this stream. If it was dropped in the meantime, the entry is skipped.
    Output(Token, Stream),
    /// The spill file of this stream.
    Spilled(Token, Stream),
    /// The bytes that were forwarded since the last event of this kind.
    Forwarded(Token, Stream),
    /// There is room in the pipe of the child's standard input.
    Writable(Token),
    /// The end of this stream.
    Eof(Token, Stream),
    /// The child was stopped by this signal (job control).
    Stopped(Token, i32),
    /// The child exited.
    Exited(Token),
    /// The rest of the child's output, then `Done`. The entry stays first until the child is done.
    Drain(Token),
    /// A waker was used.
    Woken,
}
