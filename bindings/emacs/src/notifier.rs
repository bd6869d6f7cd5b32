//! The thread that notifies Emacs of events.
//!
//! Emacs cannot watch a descriptor that it has not made. It reads a pipe process, and `open_channel` gives
//! us the end to write to. The thread writes one byte when the set has events, and then waits until Lisp has
//! taken some: at most one byte waits for each time that Lisp takes events.
//!
//! While a child writes much, the thread waits for some milliseconds before it writes the byte, so
//! that filters get few large pieces. A filter that is slower than that gets large pieces anyway.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use minder::{BackgroundSet, ErrorKind};

use crate::system::{self, Channel};

/// Output is bulk output if Lisp has taken this many bytes without a pause of [`PAUSE`].
const BULK_BYTES: usize = 16 << 10;
/// Bytes that Lisp takes after a pause of this length are not part of earlier bulk output.
const PAUSE: Duration = Duration::from_millis(10);
/// The thread gathers bulk output until this many bytes are queued.
const GATHER_BYTES: usize = 256 << 10;
/// The longest time for which the thread gathers bulk output.
const GATHER_TIME: Duration = Duration::from_millis(4);
/// The interval at which the thread looks how many bytes are queued.
const GATHER_STEP: Duration = Duration::from_millis(1);

/// The side of Lisp: requests notifications from the thread.
#[derive(Debug)]
pub(crate) struct Notifier {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    request: Request,
    channel: Arc<Channel>,
    /// The time at which Lisp last took bytes, and the bytes that it has taken since the last
    /// pause.
    taken: (Instant, usize),
}

/// The notification that Lisp waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Request {
    /// None: the thread waits until Lisp has taken events.
    None,
    /// Of the next event of the set.
    NextEvent,
    /// Of the next event of the set, which is part of bulk output: the thread gathers more first.
    BulkOutput,
    /// At once: Lisp has not yet taken all events that were taken from the set.
    TakenEvents,
}

impl State {
    /// Counts bytes that Lisp has taken. Returns the number that it has taken since the last pause.
    fn count(&mut self, bytes: usize) -> usize {
        if bytes > 0 {
            let (last, sum) = self.taken;
            let now = Instant::now();
            self.taken = (now, if now - last < PAUSE { sum.saturating_add(bytes) } else { bytes });
        }
        self.taken.1
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn request(&self, request: Request) {
        let mut state = self.lock();
        if state.request != request {
            state.request = request;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits for a request, and returns it.
    fn next(&self) -> Request {
        let mut state = self.lock();
        while state.request == Request::None {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::replace(&mut state.request, Request::None)
    }
}

impl Notifier {
    /// Starts the thread. It ends when the set is stopped.
    pub(crate) fn start(set: &BackgroundSet, channel: Channel) -> std::io::Result<Self> {
        let state =
            State { request: Request::NextEvent, channel: Arc::new(channel), taken: (Instant::now(), 0) };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let set = set.clone();
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("minder-events".into()).spawn(move || {
            system::block_signals();
            notify(&set, &theirs);
        })?;
        Ok(Self { shared })
    }

    /// Requests a notification of the next event, or of the events that are there. Lisp has just
    /// taken this many bytes.
    pub(crate) fn request_next(&self, taken_bytes: usize) {
        let is_bulk = self.shared.lock().count(taken_bytes) >= BULK_BYTES;
        self.shared.request(if is_bulk { Request::BulkOutput } else { Request::NextEvent });
    }

    /// Requests a notification at once.
    pub(crate) fn request_now(&self) {
        self.shared.request(Request::TakenEvents);
    }

    /// Notifies another pipe process from now on.
    pub(crate) fn attach(&self, channel: Channel) {
        self.shared.lock().channel = Arc::new(channel);
        self.request_now();
    }
}

/// Writes a byte for each request, once there are events, until the set is stopped.
fn notify(set: &BackgroundSet, shared: &Shared) {
    loop {
        // No lock of ours is held while the thread waits for the set or for Emacs.
        let request = shared.next();
        if request != Request::TakenEvents && !has_waited_for_event(set) {
            return;
        }
        // After a pause, the event is not part of bulk output.
        if request == Request::BulkOutput && shared.lock().taken.0.elapsed() < PAUSE {
            gather(set, shared);
        }
        let channel = Arc::clone(&shared.lock().channel);
        channel.notify();
    }
}

/// Waits for an event of the set. Returns whether there is one: otherwise the set was stopped.
fn has_waited_for_event(set: &BackgroundSet) -> bool {
    loop {
        match set.wait(None) {
            Ok(_) => return true,
            // Lisp holds chunks for a moment, while it copies them.
            Err(error) if error.kind() == ErrorKind::Limit => (),
            Err(_) => return false,
        }
    }
}

/// Waits until enough bytes are queued, or for a short time.
fn gather(set: &BackgroundSet, shared: &Shared) {
    let end = Instant::now() + GATHER_TIME;
    let mut state = shared.lock();
    // Lisp may take events meanwhile, by a call that waits for no notification.
    while state.request == Request::None && Instant::now() < end {
        drop(state);
        let queued = set.buffered_bytes();
        state = shared.lock();
        if queued >= GATHER_BYTES {
            return;
        }
        let waited = shared.changed.wait_timeout(state, GATHER_STEP);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
