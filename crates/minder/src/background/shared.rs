//! The state that the handles and the worker thread share.

use std::time::Duration;

use minder_os::sync::{Condvar, Mutex};

use super::config::BackgroundSetOptions;
use super::event_queue::{EventQueue, QueueLimits};
use super::request::Request;
use crate::event::ChildId;
use crate::poll::Waker;
use crate::sys::wait;
use crate::{Error, ErrorKind, Operation, Result};

/// The time for which a stop waits, after the grace period, until all process trees are gone.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(6);

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) state: Mutex<State>,
    /// Notified after a new request, for a worker that sleeps, and after the worker's end, for a call
    /// of `stop`.
    pub(super) changed: Condvar,
    /// Notified when events are queued while a host waits for them, and after the worker's end.
    pub(super) published: Condvar,
    /// Readable exactly while the queue has events. It is woken and reset with `state` locked, so
    /// that it never disagrees with the queue.
    pub(super) ready: wait::Waker,
    /// Ends the worker's wait for its children.
    pub(super) waker: Waker,
    pub(super) options: BackgroundSetOptions,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub(super) requests: Vec<Request>,
    /// Children with new bytes in their input queue, or with an input to close.
    pub(super) inputs: Vec<ChildId>,
    pub(super) queue: EventQueue,
    /// The number of calls of `BackgroundSet::wait` that wait on `published`.
    pub(super) waiting_hosts: usize,
    /// `true` if the worker takes no events from its set until the queue is shorter.
    pub(super) is_full: bool,
    /// The first error that belongs to no call, until `take_error` takes it.
    pub(super) error: Option<Error>,
    /// Why the worker ended, after it did.
    pub(super) stopped: Option<StopReason>,
}

/// Why the worker thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StopReason {
    Stopped,
    /// Some children could not be killed in time.
    LeftSome,
    Panicked,
}

impl Shared {
    /// Returns how many queued bytes are too many for another event. An empty queue takes one.
    pub(super) fn max_queued_bytes(&self) -> usize {
        self.options.set.max_buffered_bytes.max(1)
    }

    pub(super) fn queue_limits(&self) -> QueueLimits {
        QueueLimits {
            max_chunk_bytes: self.options.set.read_buffer_bytes,
            max_child_bytes: self.options.set.max_child_bytes,
            eager_exit: self.options.eager_exit,
        }
    }

    /// Ends the calls of `wait_all` when no child is left whose events another thread took.
    pub(super) fn notify_if_empty(&self, state: &State) {
        if state.waiting_hosts > 0 && state.queue.children() == 0 {
            self.published.notify_all();
        }
    }

    /// Makes the host's descriptor readable while the queue has events, and not otherwise.
    pub(super) fn update_poll_handle(&self, state: &State) {
        if state.queue.has_events() {
            if state.waiting_hosts > 0 {
                self.published.notify_all();
            }
            // It fails only if the descriptor is readable already.
            let _ = self.ready.wake();
        } else {
            self.ready.reset();
        }
    }

    /// Wakes the worker from a sleep or a wait.
    pub(super) fn wake_worker(&self) {
        self.changed.notify_all();
        // It fails only if the worker's wait is going to end already.
        let _ = self.waker.wake();
    }

    /// Refuses calls from now on, and ends the calls that wait.
    pub(super) fn close(&self, reason: StopReason) {
        let mut state = self.state.lock();
        state.stopped = Some(reason);
        let requests = std::mem::take(&mut state.requests);
        drop(state);
        // Dropping a request drops its reply sender, which ends the caller's wait.
        drop(requests);
        self.changed.notify_all();
        self.published.notify_all();
    }
}

impl State {
    /// Fails if the worker has ended.
    pub(super) fn check_running(&self, phrase: &'static str, operation: Operation) -> Result<()> {
        let reason = match self.stopped {
            None => return Ok(()),
            Some(StopReason::Stopped | StopReason::LeftSome) => "the set was stopped",
            Some(StopReason::Panicked) => "the set's thread panicked",
        };
        Err(Error::of_kind(ErrorKind::Other, phrase, reason).during(operation))
    }
}
