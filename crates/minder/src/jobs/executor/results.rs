//! The bounded queue of results: from the threads that process items to the thread that finishes them.

use std::collections::VecDeque;
use std::time::Duration;

use super::sync::{Condvar, Mutex};

/// The most results that wait for the receiver. It holds as many again while it works through those that
/// it took.
pub(super) const RESULTS_MAX: usize = 2048;

/// The number of fast results that wake the receiver together.
const FAST_BATCH: usize = RESULTS_MAX / 2;
/// The longest time for which the receiver waits for that many.
const FAST_WAIT: Duration = Duration::from_micros(25);

/// A queue with many senders and one receiver.
#[derive(Debug)]
pub(super) struct Results<T> {
    state: Mutex<State<T>>,
    /// Notified when the receiver waits and there are as many results as it waits for, or the queue is
    /// closed.
    arrived: Condvar,
    /// Notified when a sender waits and there is room.
    room: Condvar,
}

#[derive(Debug)]
struct State<T> {
    results: VecDeque<T>,
    is_closed: bool,
    /// `true` if the receiver is gone. Results are dropped then.
    is_abandoned: bool,
    /// For how many results the receiver waits, if it does. A notification costs a system call, so it is
    /// sent only if a thread waits.
    awaited: Option<usize>,
    waiting_senders: usize,
}

impl<T> State<T> {
    /// Returns whether the receiver has to be woken. It is woken once for each of its waits.
    fn take_wake_up(&mut self) -> bool {
        self.awaited.take_if(|awaited| self.is_closed || self.results.len() >= *awaited).is_some()
    }
}

impl<T> Results<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                results: VecDeque::new(),
                is_closed: false,
                is_abandoned: false,
                awaited: None,
                waiting_senders: 0,
            }),
            arrived: Condvar::new(),
            room: Condvar::new(),
        }
    }

    /// Adds a result. Blocks while the queue is full.
    pub(super) fn send(&self, result: T) {
        let mut state = self.state.lock();
        while state.results.len() >= RESULTS_MAX && !state.is_abandoned {
            state.waiting_senders += 1;
            state = self.room.wait(state);
            state.waiting_senders -= 1;
        }
        if state.is_abandoned {
            drop(state);
            return; // drops the result without the lock
        }
        state.results.push_back(result);
        let wake = state.take_wake_up();
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// Moves all results into `into`, which is empty. Blocks until there is one. Returns whether there
    /// is: if not, the queue is closed. If results are fast, this waits a moment for several of them.
    pub(super) fn receive(&self, into: &mut VecDeque<T>, is_fast: bool) -> bool {
        let mut state = self.state.lock();
        if is_fast && state.results.len() < FAST_BATCH && !state.is_closed {
            state.awaited = Some(FAST_BATCH);
            state = self.arrived.wait_timeout(state, FAST_WAIT);
        }
        while state.results.is_empty() {
            if state.is_closed {
                return false;
            }
            state.awaited = Some(1);
            state = self.arrived.wait(state);
        }
        state.awaited = None;
        std::mem::swap(&mut state.results, into);
        let wake = state.waiting_senders > 0;
        drop(state);
        if wake {
            self.room.notify_all();
        }
        true
    }

    /// Moves all results into `into`, which is empty. There may be none.
    pub(super) fn take(&self, into: &mut VecDeque<T>) {
        std::mem::swap(&mut self.state.lock().results, into);
    }

    /// Ends [`receive`](Self::receive) once all results were received. No result is sent afterwards.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_closed = true;
        let wake = state.take_wake_up();
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// Drops the results from now on: nothing receives them.
    pub(super) fn abandon(&self) {
        let mut state = self.state.lock();
        state.is_abandoned = true;
        let results = std::mem::take(&mut state.results);
        drop(state);
        self.room.notify_all();
        drop(results);
    }
}
