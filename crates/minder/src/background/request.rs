//! Requests of the handles to the worker thread, and the replies.

use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};

use crate::{ChildId, Command, Error, ErrorKind, Operation, Result, Signal, Size, SpawnOptions, Termination};

/// A request to the worker thread.
#[derive(Debug)]
pub(super) enum Request {
    /// With the user value of the child.
    Spawn(Box<Command>, SpawnOptions, u64, ReplySender<ChildId>),
    Kill(ChildId, Termination, ReplySender<()>),
    Signal(ChildId, Signal, ReplySender<()>),
    Restart(ChildId, Termination, ReplySender<()>),
    Resize(ChildId, Size, ReplySender<()>),
    Suspend(ChildId, ReplySender<()>),
    Resume(ChildId, ReplySender<()>),
    /// Fail if all children wait for chunks that the host keeps.
    CheckStarved(ReplySender<()>),
    /// Kill all children, after this grace period, and end the thread.
    Stop(Duration),
    /// The last handle was dropped: end the thread.
    Quit,
    #[cfg(test)]
    Panic,
}

/// The worker's end of a reply channel. Dropping it without a reply ends the caller's wait.
#[derive(Debug)]
pub(super) struct ReplySender<T>(Arc<Channel<T>>);

/// The caller's end of a reply channel.
#[derive(Debug)]
pub(super) struct ReplyReceiver<T>(Arc<Channel<T>>);

/// A channel for one reply.
///
/// `std::sync::mpsc` does not suffice. A reply that is sent between the caller's time-out and the drop
/// of its receiver would be lost, with the child that it names. Here the caller gives up under the
/// lock, so that exactly one of the two happens: the caller takes the reply, or the worker learns that
/// it must undo the request.
#[derive(Debug)]
struct Channel<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
enum State<T> {
    /// The caller waits.
    Waiting,
    Replied(Result<T>),
    /// The caller took the reply, or gave up.
    Closed,
    /// The sender was dropped without a reply.
    Dropped,
}

/// Creates a channel for one reply.
pub(super) fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let channel = Arc::new(Channel { state: Mutex::new(State::Waiting), changed: Condvar::new() });
    (ReplySender(Arc::clone(&channel)), ReplyReceiver(channel))
}

impl<T> ReplySender<T> {
    /// Returns whether the caller still waits.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(*self.0.state.lock(), State::Waiting)
    }

    /// Sends the reply. Returns `false` if the caller gave up: the worker must then undo the request.
    pub(super) fn send(self, reply: Result<T>) -> bool {
        let mut state = self.0.state.lock();
        let is_wanted = matches!(*state, State::Waiting);
        if is_wanted {
            *state = State::Replied(reply);
            self.0.changed.notify_one();
        }
        is_wanted
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        if matches!(*state, State::Waiting) {
            *state = State::Dropped;
            self.0.changed.notify_one();
        }
    }
}

impl<T> ReplyReceiver<T> {
    /// Waits for the reply for at most `timeout`. If the worker replies later, it learns that the
    /// caller gave up.
    ///
    /// # Errors
    /// - Any error that the worker replies.
    /// - `Other`: the worker thread ended, or did not reply in time.
    pub(super) fn wait(self, phrase: &'static str, operation: Operation, timeout: Duration) -> Result<T> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.0.state.lock();
        loop {
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            let reason = match std::mem::replace(&mut *state, State::Closed) {
                State::Replied(reply) => return reply,
                State::Waiting if !left.is_zero() => {
                    *state = State::Waiting;
                    state = self.0.changed.wait_timeout(state, left);
                    continue;
                }
                State::Waiting | State::Closed => "the set's thread did not answer in time",
                State::Dropped => "the set's thread ended before it was done",
            };
            return Err(Error::of_kind(ErrorKind::Other, phrase, reason).during(operation));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_returns_the_reply() {
        let (sender, receiver) = reply_channel();
        assert!(sender.is_wanted() && sender.send(Ok(7)));
        assert_eq!(receiver.wait("ask", Operation::Other, Duration::ZERO).ok(), Some(7));
    }

    #[test]
    fn wait_ends_when_the_sender_is_dropped() {
        let (sender, receiver) = reply_channel::<()>();
        std::thread::spawn(move || drop(sender));
        let error = receiver.wait("ask", Operation::Other, Duration::from_secs(600)).unwrap_err();
        assert_eq!(error.to_string(), "failed to ask: the set's thread ended before it was done");
    }

    #[test]
    fn send_reports_that_the_caller_gave_up() {
        let (sender, receiver) = reply_channel::<()>();
        assert!(receiver.wait("ask", Operation::Other, Duration::from_millis(2)).is_err());
        assert!(!sender.is_wanted() && !sender.send(Ok(())));
    }
}
