//! What the handles of a pump ask of its thread, and how the answer comes back.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::{Command, Error, ErrorKind, Result, SpawnOptions, Termination, Token};

/// Something for the pump's thread to do.
#[derive(Debug)]
pub(super) enum Request {
    Spawn(Box<Command>, SpawnOptions, ReplySender<Token>),
    Kill(Token, Termination, ReplySender<()>),
    /// The children of all that was written are to be killed, then the thread ends.
    Stop(Duration),
    /// The last handle is gone.
    Quit,
    #[cfg(test)]
    Panic,
}

/// The thread's side of an answer. Dropped without one, it tells the asker that none will come.
#[derive(Debug)]
pub(super) struct ReplySender<T>(Arc<Slot<T>>);

/// The asker's side.
#[derive(Debug)]
pub(super) struct ReplyReceiver<T>(Arc<Slot<T>>);

#[derive(Debug)]
struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
enum State<T> {
    Open,
    Answered(Result<T>),
    /// The asker went away, or took the answer.
    Closed,
    /// The thread went away.
    Broken,
}

impl<T> Slot<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes both sides of one answer.
pub(super) fn reply_channel<T>() -> (ReplySender<T>, ReplyReceiver<T>) {
    let slot = Arc::new(Slot { state: Mutex::new(State::Open), changed: Condvar::new() });
    (ReplySender(Arc::clone(&slot)), ReplyReceiver(slot))
}

impl<T> ReplySender<T> {
    /// Whether somebody still waits.
    pub(super) fn is_wanted(&self) -> bool {
        matches!(*self.0.lock(), State::Open)
    }

    /// Answers. `false` says that nobody waits any more: what was done for him is to be undone.
    pub(super) fn send(self, result: Result<T>) -> bool {
        let mut state = self.0.lock();
        let wanted = matches!(*state, State::Open);
        if wanted {
            *state = State::Answered(result);
            self.0.changed.notify_one();
        }
        wanted
    }
}

impl<T> Drop for ReplySender<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Open) {
            *state = State::Broken;
            self.0.changed.notify_one();
        }
    }
}

impl<T> ReplyReceiver<T> {
    /// Waits for the answer, for at most `timeout`. An answer that comes later finds nobody, and
    /// the thread undoes it.
    pub(super) fn wait(self, operation: &'static str, timeout: Duration) -> Result<T> {
        let deadline = Instant::now().checked_add(timeout);
        let mut state = self.0.lock();
        loop {
            let left =
                deadline.map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
            match std::mem::replace(&mut *state, State::Closed) {
                State::Answered(result) => return result,
                State::Broken => {
                    return Err(Error::of_kind(
                        ErrorKind::Other,
                        operation,
                        "the pump's thread ended before it was done",
                    ));
                }
                State::Open if !left.is_zero() => *state = State::Open,
                State::Open | State::Closed => {
                    return Err(Error::of_kind(
                        ErrorKind::Other,
                        operation,
                        "the pump's thread did not answer in time",
                    ));
                }
            }
            state = self.0.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_comes_or_is_said_not_to_come() {
        let (promise, answer) = reply_channel();
        assert!(promise.is_wanted() && promise.send(Ok(7)));
        assert_eq!(answer.wait("ask", Duration::ZERO).ok(), Some(7));
    }

    #[test]
    fn a_dropped_promise_ends_the_wait() {
        let (promise, answer) = reply_channel::<()>();
        std::thread::spawn(move || drop(promise));
        let error = answer.wait("ask", Duration::from_secs(600)).unwrap_err();
        assert_eq!(error.to_string(), "failed to ask: the pump's thread ended before it was done");
    }

    #[test]
    fn an_answer_that_is_late_finds_nobody() {
        let (promise, answer) = reply_channel::<()>();
        assert!(answer.wait("ask", Duration::from_millis(2)).is_err());
        assert!(!promise.is_wanted() && !promise.send(Ok(())));
    }
}
