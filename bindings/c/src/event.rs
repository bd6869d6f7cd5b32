//! Events: what happens to the children of a set.
//!
//! For one child the events come in this order: MINDER_EVENT_OUTPUT and MINDER_EVENT_EOF of each stream in
//! the order of the bytes; MINDER_EVENT_EXITED after the last byte; MINDER_EVENT_DONE after everything
//! else. A child that is started again reports each run in this way, with MINDER_EVENT_RESTARTING in place
//! of MINDER_EVENT_DONE.
//!
//! A minder_events is for one thread at a time: it holds the events that minder_set_take() moved there.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::collections::VecDeque;
use std::ffi::{CString, c_char, c_void};
use std::sync::Mutex;

use minder::{Event, Stream};

use crate::arg::{self, Opaque, free, handle, lock, nanoseconds};
use crate::command::minder_stream;
use crate::exit::minder_exit;
use crate::status::value;

/// Names a child of a set. It is valid until the child is done. No set of this process gives it out again
/// before 2^31 other children were started.
pub type minder_child_id = u64;

/// The kind of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_event_kind {
    /// The child wrote `bytes` to `stream`.
    MINDER_EVENT_OUTPUT = 1,
    /// `stream` is at its end.
    MINDER_EVENT_EOF = 2,
    /// There is room again for minder_set_write().
    MINDER_EVENT_WRITABLE = 3,
    /// The signal `signal` stopped the child (job control).
    MINDER_EVENT_STOPPED = 4,
    /// The child exited as `exit` says.
    MINDER_EVENT_EXITED = 5,
    /// A run ended as `exit` says, and the child is started again after `delay`, for the `restarts`-th
    /// time.
    MINDER_EVENT_RESTARTING = 6,
    /// The child was started again as the process `pid`.
    MINDER_EVENT_RESTARTED = 7,
    /// The child could not be started again: `error` says why. Another attempt or the end follows.
    MINDER_EVENT_RESTART_FAILED = 8,
    /// The child is done as `exit` says: it exited, and its outputs ended or were closed. Its id is not
    /// valid any more.
    MINDER_EVENT_DONE = 9,
}

/// An event. The library makes these structures, and later versions may add members at the end.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_event {
    /// The child that it is about.
    pub child: minder_child_id,
    /// One of minder_event_kind.
    pub kind: i32,
    /// One of minder_stream, for MINDER_EVENT_OUTPUT and MINDER_EVENT_EOF.
    pub stream: i32,
    /// The output of the child; NULL for other kinds. No NUL follows.
    pub bytes: *const u8,
    /// The number of bytes.
    pub len: usize,
    /// The exit of the child; NULL for other kinds.
    pub exit: *const minder_exit,
    /// Why the child could not be started again; NULL for other kinds.
    pub error: *const c_char,
    /// The time until the next start, in nanoseconds.
    pub delay: i64,
    /// The number of times that the child was started again.
    pub restarts: u64,
    /// The new process.
    pub pid: u32,
    /// The signal that stopped the child.
    pub signal: i32,
    /// The pointer that minder_spawn_options or minder_set_set_user() gave to the child; NULL by
    /// default. Every kind has it. MINDER_EVENT_DONE is the last event of the child: the host may
    /// free its object then.
    pub user: *mut c_void,
}

/// Events that were taken from a set. Freed by minder_events_free().
#[derive(Debug)]
pub struct minder_events(());

/// Events that were taken, and the one that the caller looks at.
#[derive(Debug, Default)]
pub(crate) struct Taken {
    /// With the user value of the child.
    pub(crate) waiting: VecDeque<(Event, u64)>,
    /// Memory for the next events that are taken.
    pub(crate) spare: Vec<(Event, u64)>,
    current: Option<Box<Current>>,
}

/// An event, and what its pointers point to.
#[derive(Debug)]
struct Current {
    /// Owns the bytes.
    event: Event,
    exit: Option<minder_exit>,
    error: Option<CString>,
    view: minder_event,
}

// SAFETY: the pointers of `view` point into the same allocation or one that it owns.
unsafe impl Send for Current {}

impl Opaque for minder_events {
    type Inner = Mutex<Taken>;
    const TAG: [u8; 8] = *b"mnd_evt\0";
}

/// Creates an empty list of events. Never returns NULL.
#[unsafe(no_mangle)]
pub extern "C" fn minder_events_new() -> *mut minder_events {
    value(std::ptr::null_mut(), || Ok(arg::new_handle(Mutex::default())))
}

/// Frees a list of events, with those that were not looked at.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_events_free(events: *mut minder_events) {
    free!(events);
}

/// Returns the next event, or NULL if there is none. The event and its bytes are valid until the next call
/// with this list; then their memory counts no more in the limits of the set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_events_next(events: *mut minder_events) -> *const minder_event {
    value(std::ptr::null(), || {
        let mut taken = lock(handle!(events));
        // The bytes of the last event make room before the next one is looked at.
        taken.current = None;
        let current = match taken.waiting.pop_front() {
            Some((event, user)) => taken.current.insert(Current::of(event, user)),
            None => return Ok(std::ptr::null()),
        };
        Ok(&raw const current.view)
    })
}

/// Returns how many events minder_events_next() has left.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_events_count(events: *const minder_events) -> usize {
    value(0, || Ok(lock(handle!(events)).waiting.len()))
}

/// Returns the number that the library keeps for a pointer of the host.
pub(crate) fn number_of(user: *mut c_void) -> u64 {
    user.expose_provenance() as u64
}

/// Returns the pointer of the host.
pub(crate) fn pointer_of(user: u64) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(user as usize)
}

fn stream_number(stream: Stream) -> i32 {
    match stream {
        Stream::Stdout => minder_stream::MINDER_STDOUT as i32,
        Stream::Stderr => minder_stream::MINDER_STDERR as i32,
    }
}

impl Current {
    fn of(event: Event, user: u64) -> Box<Self> {
        let view = minder_event {
            child: event.child().map_or(0, minder::ChildId::as_u64),
            kind: 0,
            stream: 0,
            bytes: std::ptr::null(),
            len: 0,
            exit: std::ptr::null(),
            error: std::ptr::null(),
            delay: 0,
            restarts: 0,
            pid: 0,
            signal: 0,
            user: pointer_of(user),
        };
        let mut current = Box::new(Self { event, exit: None, error: None, view });
        current.fill();
        current
    }

    /// Describes the event. Its pointers stay valid, because the allocation does not move.
    fn fill(&mut self) {
        use minder_event_kind::*;
        let view = &mut self.view;
        let mut exit = None;
        let kind = match &self.event {
            Event::Output { stream, chunk, .. } => {
                view.stream = stream_number(*stream);
                view.bytes = chunk.as_ptr();
                view.len = chunk.len();
                MINDER_EVENT_OUTPUT
            }
            Event::Eof { stream, .. } => {
                view.stream = stream_number(*stream);
                MINDER_EVENT_EOF
            }
            Event::Writable { .. } => MINDER_EVENT_WRITABLE,
            Event::Stopped { signal, .. } => {
                view.signal = *signal;
                MINDER_EVENT_STOPPED
            }
            Event::Exited { exit: how, .. } => {
                exit = Some(minder_exit::from(*how));
                MINDER_EVENT_EXITED
            }
            Event::Restarting { outcome, delay, restarts, .. } => {
                exit = Some(minder_exit::from(*outcome));
                view.delay = nanoseconds(*delay);
                view.restarts = *restarts;
                MINDER_EVENT_RESTARTING
            }
            Event::Restarted { pid, .. } => {
                view.pid = *pid;
                MINDER_EVENT_RESTARTED
            }
            Event::RestartFailed { error, .. } => {
                let text = CString::new(error.to_string()).unwrap_or_default();
                view.error = self.error.insert(text).as_ptr();
                MINDER_EVENT_RESTART_FAILED
            }
            Event::Done { outcome, .. } => {
                exit = Some(minder_exit::from(*outcome));
                MINDER_EVENT_DONE
            }
            // The others are requested by calls that this interface does not have.
            _ => return,
        };
        view.kind = kind as i32;
        if let Some(exit) = exit {
            view.exit = self.exit.insert(exit);
        }
    }
}
