//! The bounded queue of results: from the threads that process items to the thread that finishes them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::sync::{Condvar, Mutex, yield_now};

/// The most results that wait for the receiver. It holds as many again while it works through those that
/// it took.
pub(super) const RESULTS_MAX: usize = 1024;

/// How often the receiver of fast results lets other threads run before it blocks.
const YIELDS: u32 = 8;
/// Results are fast if they come at less than this interval.
const FAST: Duration = Duration::from_micros(5);

/// How fast results come. A wake-up for each fast result would cost more than the work for it.
#[derive(Debug)]
pub(super) struct Pace {
    last: Instant,
    is_fast: bool,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { last: Instant::now(), is_fast: false }
    }

    /// Notes that this number of results has come since the last call.
    pub(super) fn note(&mut self, results: usize) {
        let now = Instant::now();
        self.is_fast = now.duration_since(self.last) < FAST * results as u32;
        self.last = now;
    }

    pub(super) fn is_fast(&self) -> bool {
        self.is_fast
    }
}

/// A queue with many senders and one receiver.
#[derive(Debug)]
pub(super) struct Results<T> {
    state: Mutex<State<T>>,
    /// Notified when the receiver waits and there is a result, or the queue is closed.
    arrived: Condvar,
    /// Notified when a sender waits and there is room.
    room: Condvar,
}

#[derive(Debug)]
struct State<T> {
    results: VecDeque<T>,
    is_closed: bool,
    /// Whether the receiver is gone. Results are dropped then.
    is_abandoned: bool,
    /// A notification costs a system call, so it is sent only if a thread waits.
    receiver_waits: bool,
    waiting_senders: usize,
}

impl<T> Results<T> {
    pub(super) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                results: VecDeque::new(),
                is_closed: false,
                is_abandoned: false,
                receiver_waits: false,
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
        let wake = std::mem::take(&mut state.receiver_waits);
        drop(state);
        if wake {
            self.arrived.notify_one();
        }
    }

    /// Moves all results into `into`, which is empty. Blocks until there is one. Returns whether there
    /// is: if not, the queue is closed. If results are fast, this lets other threads run first, so that
    /// several come with one wake-up.
    pub(super) fn receive(&self, into: &mut VecDeque<T>, is_fast: bool) -> bool {
        let mut state = self.state.lock();
        let mut yields = if is_fast { YIELDS } else { 0 };
        while yields > 0 && state.results.is_empty() && !state.is_closed {
            yields -= 1;
            drop(state);
            yield_now();
            state = self.state.lock();
        }
        while state.results.is_empty() {
            if state.is_closed {
                return false;
            }
            state.receiver_waits = true;
            state = self.arrived.wait(state);
        }
        state.receiver_waits = false;
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
        let wake = std::mem::take(&mut state.receiver_waits);
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
