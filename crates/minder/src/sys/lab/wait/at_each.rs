//! Threads that are made for one wait and end with it: each waits for 63 objects and for an event
//! by which whoever finds something first calls back the others. While one call suffices, the
//! caller makes it himself.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use super::{Baseline, CALL_MAX, Call, List, Objects};
use crate::sys::thread::SMALL_STACK;

/// Nothing was found.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) enum AtEach {
    Alone(Call),
    Threads {
        objects: Arc<Objects>,
        /// The event that calls back.
        recall: Objects,
    },
}

impl AtEach {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        match objects.len() {
            ..=CALL_MAX => Ok(Self::Alone(Call::open(objects))),
            _ => Ok(Self::Threads { objects, recall: Objects::open(1)? }),
        }
    }
}

impl Baseline for AtEach {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Alone(call) => call.wait(),
            Self::Threads { objects, recall } => wait(objects, recall),
        }
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Alone(call) => call.look(),
            Self::Threads { objects, recall } => {
                // They find themselves called back.
                recall.signal(0)?;
                wait(objects, recall)
            }
        }
    }
}

fn wait(objects: &Objects, recall: &Objects) -> io::Result<Option<usize>> {
    let found = AtomicUsize::new(NONE);
    let started = scope(|scope| {
        for first in (0..objects.len()).step_by(CALL_MAX - 1) {
            let mine = first..objects.len().min(first + CALL_MAX - 1);
            let hear = || {
                let mine = mine;
                let sources = mine.clone().map(|index| objects.source(index));
                let place = List::of(sources.chain([recall.source(0)])).wait();
                if let Ok(Some(place)) = place
                    && place < mine.len()
                {
                    found.store(mine.start + place, Ordering::Relaxed);
                    // It is open; without it the others would not come back.
                    let _ = recall.signal(0);
                }
            };
            if let Err(error) = Builder::new().stack_size(SMALL_STACK).spawn_scoped(scope, hear) {
                recall.signal(0)?;
                return Err(error);
            }
        }
        Ok(())
    });
    recall.reset(0)?;
    started.map(|()| Some(found.into_inner()).filter(|found| *found != NONE))
}
