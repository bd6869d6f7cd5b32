//! The thread that tells Emacs that there are events.
//!
//! Emacs cannot watch a descriptor that it has not made. It reads a pipe process, and `open_channel` gives
//! us the end to write to. The thread writes one byte when the set has events, and then waits until Lisp has
//! taken some: at most one byte waits for each time that Lisp takes events.
//!
//! While a child writes much, the thread waits for some milliseconds before it tells, so that filters get few
//! large pieces. A filter that is slower than that gets large pieces anyway.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use minder::{BackgroundSet, ErrorKind};

use crate::system::{self, Channel};

/// If Lisp has taken this many bytes without such a pause, more will come soon.
const MUCH: usize = 16 << 10;
const PAUSE: Duration = Duration::from_millis(10);
/// How many bytes are told at once.
const ENOUGH: usize = 256 << 10;
/// How long the thread waits for more bytes, and how often it looks.
const GATHER_TIME: Duration = Duration::from_millis(4);
const GATHER_STEP: Duration = Duration::from_millis(1);

/// Tells the thread what Lisp has taken.
#[derive(Debug)]
pub(crate) struct News {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    wanted: Wanted,
    channel: Arc<Channel>,
    /// When Lisp took bytes, and how many since the last pause.
    taken: (Instant, usize),
}

/// What the thread does next.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Wanted {
    /// It waits until Lisp has taken events.
    Nothing,
    /// It tells the next event of the set.
    Event,
    /// The same, but much output is under way.
    Much,
    /// It tells what was taken from the set, and not yet by Lisp.
    Rest,
}

impl State {
    /// Counts bytes that Lisp has taken. Returns how many it has taken since the last pause.
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

    fn want(&self, wanted: Wanted) {
        let mut state = self.lock();
        if state.wanted != wanted {
            state.wanted = wanted;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Waits until something is wanted, and returns it.
    fn next(&self) -> Wanted {
        let mut state = self.lock();
        while state.wanted == Wanted::Nothing {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::replace(&mut state.wanted, Wanted::Nothing)
    }
}

impl News {
    /// Starts the thread. It ends when the set is stopped.
    pub(crate) fn start(set: &BackgroundSet, channel: Channel) -> std::io::Result<Self> {
        let state = State { wanted: Wanted::Event, channel: Arc::new(channel), taken: (Instant::now(), 0) };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let set = set.clone();
        let theirs = Arc::clone(&shared);
        std::thread::Builder::new().name("minder-news".into()).spawn(move || {
            system::block_signals();
            tell(&set, &theirs);
        })?;
        Ok(Self { shared })
    }

    /// Makes the thread tell the next event, or the ones that are there. Lisp has just taken this many bytes.
    pub(crate) fn want(&self, taken_bytes: usize) {
        let is_much = self.shared.lock().count(taken_bytes) >= MUCH;
        self.shared.want(if is_much { Wanted::Much } else { Wanted::Event });
    }

    /// Makes the thread tell at once.
    pub(crate) fn want_rest(&self) {
        self.shared.want(Wanted::Rest);
    }

    /// Tells another pipe process from now on.
    pub(crate) fn attach(&self, channel: Channel) {
        self.shared.lock().channel = Arc::new(channel);
        self.want_rest();
    }
}

/// Writes a byte for each time that events are there and wanted, until the set is stopped.
fn tell(set: &BackgroundSet, shared: &Shared) {
    loop {
        // No lock of ours is held while the thread waits for the set or for Emacs.
        let wanted = shared.next();
        if wanted != Wanted::Rest && !has_waited_for_event(set) {
            return;
        }
        // After a pause, the event is not part of much output.
        if wanted == Wanted::Much && shared.lock().taken.0.elapsed() < PAUSE {
            gather(set, shared);
        }
        let channel = Arc::clone(&shared.lock().channel);
        channel.tell();
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

/// Waits until enough bytes are there, or for a short time.
fn gather(set: &BackgroundSet, shared: &Shared) {
    let end = Instant::now() + GATHER_TIME;
    let mut state = shared.lock();
    // Lisp may take events meanwhile, by a call that waits for no news.
    while state.wanted == Wanted::Nothing && Instant::now() < end {
        drop(state);
        let queued = set.buffered_bytes();
        state = shared.lock();
        if queued >= ENOUGH {
            return;
        }
        let waited = shared.changed.wait_timeout(state, GATHER_STEP);
        state = waited.unwrap_or_else(PoisonError::into_inner).0;
    }
}
