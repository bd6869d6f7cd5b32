//! Threads that are started for one wait and exit with it.
//!
//! Each waits for 63 objects and for an event. The thread that first finds a signalled object
//! recalls the others by that event. While one call is enough, the caller makes it itself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use super::objects::Objects;
use super::types::{CALL_MAX, WaitBaseline};
use super::wfmo::{List, Wfmo};
use crate::sys::thread::SMALL_STACK;

/// No signalled object was found.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) enum ThreadPerWait {
    /// The caller makes the only call.
    Inline(Wfmo),
    Threads {
        objects: Arc<Objects>,
        /// The event that recalls the threads.
        recall: Objects,
    },
}

impl ThreadPerWait {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        match objects.len() {
            ..=CALL_MAX => Ok(Self::Inline(Wfmo::open(objects))),
            _ => Ok(Self::Threads { objects, recall: Objects::open(1)? }),
        }
    }
}

impl WaitBaseline for ThreadPerWait {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Inline(call) => call.wait(),
            Self::Threads { objects, recall } => wait(objects, recall),
        }
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Inline(call) => call.poll(),
            Self::Threads { objects, recall } => {
                // The threads return at once from their calls.
                recall.signal(0)?;
                wait(objects, recall)
            }
        }
    }
}

fn wait(objects: &Objects, recall: &Objects) -> io::Result<Option<usize>> {
    // The end of the scope joins the threads, which orders the relaxed accesses.
    let found = AtomicUsize::new(NONE);
    let started = scope(|scope| {
        for first in (0..objects.len()).step_by(CALL_MAX - 1) {
            let range = first..objects.len().min(first + CALL_MAX - 1);
            let found = &found;
            let run_thread = move || {
                let sources = range.clone().map(|index| objects.source(index));
                let position = List::new(sources.chain([recall.source(0)])).wait();
                if let Ok(Some(position)) = position
                    && position < range.len()
                {
                    found.store(range.start + position, Ordering::Relaxed);
                    // The event is open, so this does not fail. If it did, the other threads would
                    // not return.
                    let _ = recall.signal(0);
                }
            };
            if let Err(error) = Builder::new().stack_size(SMALL_STACK).spawn_scoped(scope, run_thread) {
                recall.signal(0)?;
                return Err(error);
            }
        }
        Ok(())
    });
    recall.reset(0)?;
    started?;
    let found = found.into_inner();
    Ok(if found == NONE { None } else { Some(found) })
}
