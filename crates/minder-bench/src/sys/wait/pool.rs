//! A pool of resident threads, each of which waits for a few objects by one call.
//!
//! Each wait dispatches all threads. The first one that finds a signalled object recalls the others
//! by an event that every thread waits for in addition to its objects. A call takes 64 objects, as
//! `WaitForMultipleObjects` does, so each thread has 63. While one call is enough, the caller makes
//! it itself.
//!
//! Threads are dispatched and collected by a [`Handoff`] each: on Windows an event, which programs
//! for all of its versions use.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::objects::Objects;
use super::one_call::{List, OneCall};
use super::types::{CALL_MAX, WaitBaseline};
use crate::sys::handoff::Handoff;
use crate::sys::thread::spawn_small;

/// The value of [`Shared::found`] while no signalled object was found.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) enum Pool {
    /// The caller makes the only call.
    Inline(OneCall),
    Threads(Arc<Shared>, Vec<(Arc<Handoff>, JoinHandle<()>)>),
}

/// State that the caller and the threads share.
///
/// The handoffs order the relaxed accesses: the caller writes `found` and `out` before it releases
/// the threads, and reads `found` after the last thread released it. That thread has acquired the
/// writes of the others through `out`.
#[derive(Debug)]
pub(super) struct Shared {
    objects: Arc<Objects>,
    /// The event that recalls the threads.
    recall: Objects,
    /// The index of a signalled object, or [`NONE`].
    found: AtomicUsize,
    /// Whether `recall` is signalled.
    is_recalled: AtomicBool,
    /// The number of threads that have not returned from their calls.
    out: AtomicUsize,
    is_stopped: AtomicBool,
    caller: Handoff,
}

impl Pool {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        let count = objects.len();
        if count <= CALL_MAX {
            return Ok(Self::Inline(OneCall::open(objects)));
        }
        let shared = Arc::new(Shared {
            objects,
            recall: Objects::open(1)?,
            found: AtomicUsize::new(NONE),
            is_recalled: AtomicBool::new(false),
            out: AtomicUsize::new(0),
            is_stopped: AtomicBool::new(false),
            caller: Handoff::new()?,
        });
        // Dropping it joins the threads that were started before one failed to start.
        let mut pool = Self::Threads(Arc::clone(&shared), Vec::new());
        for first in (0..count).step_by(CALL_MAX - 1) {
            let range = first..count.min(first + CALL_MAX - 1);
            if let Self::Threads(_, threads) = &mut pool {
                let dispatch = Arc::new(Handoff::new()?);
                let shared = Arc::clone(&shared);
                let thread_dispatch = Arc::clone(&dispatch);
                let thread = spawn_small(move || shared.run_thread(range, &thread_dispatch))?;
                threads.push((dispatch, thread));
            }
        }
        Ok(pool)
    }
}

impl WaitBaseline for Pool {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Inline(call) => call.wait(),
            Self::Threads(shared, threads) => shared.dispatch(threads),
        }
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Inline(call) => call.poll(),
            Self::Threads(shared, threads) => {
                // The threads return at once from their calls.
                shared.recall();
                shared.dispatch(threads)
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let Self::Threads(shared, threads) = self else { return };
        shared.is_stopped.store(true, Ordering::Release);
        for (dispatch, _) in threads.iter() {
            dispatch.release();
        }
        for (_, thread) in threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Shared {
    /// Sends all threads into their calls, and waits until all have returned.
    fn dispatch(&self, threads: &[(Arc<Handoff>, JoinHandle<()>)]) -> io::Result<Option<usize>> {
        self.found.store(NONE, Ordering::Relaxed);
        self.out.store(threads.len(), Ordering::Relaxed);
        for (dispatch, _) in threads {
            dispatch.release();
        }
        self.caller.wait();
        if self.is_recalled.swap(false, Ordering::Relaxed) {
            self.recall.reset(0)?;
        }
        let found = self.found.load(Ordering::Relaxed);
        Ok(if found == NONE { None } else { Some(found) })
    }

    /// Makes all threads return from their calls. Only the first call signals the event.
    fn recall(&self) {
        if !self.is_recalled.swap(true, Ordering::Relaxed) {
            // The object is open and has room for a signal, so this does not fail. If it did, the
            // threads would not return.
            let _ = self.recall.signal(0);
        }
    }

    /// Runs one thread, which waits for the objects of `range` each time it is dispatched.
    fn run_thread(&self, range: Range<usize>, dispatch: &Handoff) {
        let sources = range.clone().map(|index| self.objects.source(index));
        let mut list = List::new(sources.chain([self.recall.source(0)]));
        loop {
            dispatch.wait();
            if self.is_stopped.load(Ordering::Acquire) {
                return;
            }
            if let Ok(Some(position)) = list.wait()
                && position < range.len()
            {
                self.found.store(range.start + position, Ordering::Relaxed);
                self.recall();
            }
            // The last thread acquires the writes of all others, and hands them to the caller.
            if self.out.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.caller.release();
            }
        }
    }
}
