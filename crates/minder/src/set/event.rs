//! The entries of a set's queue of events.

use crate::event::{ChildId, Stream};

/// An event that waits for the caller. The bytes of an output event stay with their child.
#[derive(Clone, Copy, Debug)]
pub(super) enum QueuedEvent {
    /// One chunk of this stream. If it was dropped in the meantime, the entry is skipped.
    Output(ChildId, Stream),
    /// The spill file of this stream.
    Spilled(ChildId, Stream),
    /// The bytes that were forwarded since the last event of this kind.
    Forwarded(ChildId, Stream),
    /// There is room in the pipe of the child's standard input.
    Writable(ChildId),
    /// The end of this stream.
    Eof(ChildId, Stream),
    /// The child was stopped by this signal (job control).
    Stopped(ChildId, i32),
    /// The child exited.
    Exited(ChildId),
    /// The rest of the child's output, then `Done`. The entry stays first until the child is done.
    Drain(ChildId),
    /// The child was started again.
    Restarted(ChildId),
    /// The child could not be started again. Its state has the error.
    RestartFailed(ChildId),
    /// The child, which has no process, is not started again.
    Abandoned(ChildId),
    /// A waker was used.
    Woken,
}
