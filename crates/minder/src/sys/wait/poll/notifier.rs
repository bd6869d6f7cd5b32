//! A thread that polls in place of a foreign event loop, and makes a descriptor readable when
//! events are pending.
//!
//! poll(2) has no kernel object that a foreign event loop could watch. The first request for such a
//! descriptor starts the thread. The thread sleeps in poll(2) with the same list of sources, and
//! exits with its poller. Events arrive some microseconds later than with a backend whose kernel
//! object has a descriptor.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};

use super::registry::{Shared, has_ready_source};
use crate::sys::thread::start_small;
use crate::sys::wait::waker::Waker;

#[derive(Debug)]
pub(super) struct Notifier {
    shared: Arc<NotifierShared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct NotifierShared {
    sources: Arc<Shared>,
    /// Readable while events are pending.
    waker: Waker,
    state: Mutex<NotifierState>,
    /// Wakes the thread when it has signalled `waker` and waits for a request.
    state_changed: Condvar,
}

#[derive(Debug, Default)]
struct NotifierState {
    deadline: Option<Instant>,
    /// The waker is signalled. The thread waits until `again` or `stop` is set.
    signalled: bool,
    /// The thread has to poll again, with the current list and deadline.
    again: bool,
    stop: bool,
}

impl Notifier {
    pub(super) fn start(sources: Arc<Shared>) -> io::Result<Self> {
        let state = Mutex::default();
        let shared =
            Arc::new(NotifierShared { sources, waker: Waker::new()?, state, state_changed: Condvar::new() });
        let thread_shared = Arc::clone(&shared);
        let thread = start_small("minder-notifier", move || thread_shared.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    pub(super) fn poll_handle(&self) -> BorrowedFd<'_> {
        self.shared.waker.poll_handle()
    }

    /// Makes the thread poll again: the caller may have served ready sources, or changed the
    /// deadline.
    pub(super) fn restart(&self, deadline: Option<Instant>) -> io::Result<()> {
        let mut state = self.shared.state.lock();
        let deadline_changed = state.deadline != deadline;
        state.deadline = deadline;
        if state.signalled {
            self.shared.waker.reset();
            state.signalled = false;
            state.again = true;
            self.shared.state_changed.notify_one();
        } else if deadline_changed {
            state.again = true;
            self.shared.interrupt()?;
        }
        Ok(())
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.shared.state.lock().stop = true;
        self.shared.state_changed.notify_one();
        // A thread that cannot be woken stays asleep in poll(2). It is then not joined.
        let is_woken = self.shared.interrupt().is_ok();
        if let Some(thread) = self.thread.take()
            && is_woken
        {
            let _ = thread.join();
        }
    }
}

impl NotifierShared {
    /// Interrupts the call of poll(2) in which the thread may sleep.
    fn interrupt(&self) -> io::Result<()> {
        self.sources.list_changed(&mut self.sources.lock())
    }

    fn run(&self) {
        loop {
            // Requests are read after `enter`, so that later requests interrupt the call.
            let (mut polled, generation) = self.sources.enter();
            let mut state = self.state.lock();
            if state.stop {
                return self.sources.leave(generation);
            }
            state.again = false;
            let deadline = state.deadline;
            drop(state);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            // The owner gets the error when it waits.
            let completed = self.sources.poll_once(&mut polled, generation, left);
            let found = completed.map_or(true, |completed| completed && has_ready_source(&polled));
            let mut state = self.state.lock();
            // After a request the thread polls again: the sources that it found may have been served.
            if state.stop || state.again || !(found || left == Some(Duration::ZERO)) {
                continue;
            }
            state.signalled = true;
            let _ = self.waker.wake();
            while !(state.again || state.stop) {
                state = self.state_changed.wait(state);
            }
        }
    }
}
