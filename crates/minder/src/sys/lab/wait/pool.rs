//! A pool of resident threads, each of which waits for a few objects by one call. For each wait all
//! of them are sent off, and the first that has found something calls back the others, by an event
//! that all of them wait for beside their objects: a call takes 64, as `WaitForMultipleObjects`
//! does. While one call suffices, the caller makes it himself.
//!
//! Threads are sent off and collected by a gate each: on Windows an event, which is what programs
//! for all of its versions have.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

use super::{Baseline, CALL_MAX, Call, List, Objects};
use crate::sys::lab::Gate;
use crate::sys::thread::start_small;

/// Nothing was found.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) enum Pool {
    /// The caller's own call.
    Alone(Call),
    Threads(Arc<Shared>, Vec<(Arc<Gate>, JoinHandle<()>)>),
}

/// What the caller and the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    objects: Arc<Objects>,
    /// The event that calls back.
    recall: Objects,
    found: AtomicUsize,
    recalled: AtomicBool,
    /// How many threads are not back.
    out: AtomicUsize,
    over: AtomicBool,
    caller: Gate,
}

impl Pool {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        let count = objects.len();
        if count <= CALL_MAX {
            return Ok(Self::Alone(Call::open(objects)));
        }
        let shared = Arc::new(Shared {
            objects,
            recall: Objects::open(1)?,
            found: AtomicUsize::new(NONE),
            recalled: AtomicBool::new(false),
            out: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            caller: Gate::new()?,
        });
        let mut it = Self::Threads(Arc::clone(&shared), Vec::new());
        for first in (0..count).step_by(CALL_MAX - 1) {
            let (shared, mine) = (Arc::clone(&shared), first..count.min(first + CALL_MAX - 1));
            if let Self::Threads(_, threads) = &mut it {
                let gate = Arc::new(Gate::new()?);
                let theirs = Arc::clone(&gate);
                threads.push((gate, start_small("bench", move || shared.serve(mine, &theirs))?));
            }
        }
        Ok(it)
    }
}

impl Baseline for Pool {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Alone(call) => call.wait(),
            Self::Threads(shared, threads) => shared.send_off(threads),
        }
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Alone(call) => call.look(),
            Self::Threads(shared, threads) => {
                // They find themselves called back.
                shared.call_back();
                shared.send_off(threads)
            }
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Self::Threads(shared, threads) = self {
            shared.over.store(true, Ordering::Release);
            threads.iter().for_each(|(gate, _)| gate.open());
            threads.drain(..).for_each(|(_, thread)| _ = thread.join());
        }
    }
}

impl Shared {
    /// One wait.
    fn send_off(&self, threads: &[(Arc<Gate>, JoinHandle<()>)]) -> io::Result<Option<usize>> {
        self.found.store(NONE, Ordering::Relaxed);
        self.out.store(threads.len(), Ordering::Relaxed);
        threads.iter().for_each(|(gate, _)| gate.open());
        self.caller.pass();
        if self.recalled.swap(false, Ordering::Relaxed) {
            self.recall.reset(0)?;
        }
        Ok(Some(self.found.load(Ordering::Relaxed)).filter(|found| *found != NONE))
    }

    /// Ends this wait of all threads, once.
    fn call_back(&self) {
        if !self.recalled.swap(true, Ordering::Relaxed) {
            // It is open and has room for a signal; without it the threads would not come back.
            let _ = self.recall.signal(0);
        }
    }

    /// A thread's life.
    fn serve(&self, mine: Range<usize>, gate: &Gate) {
        let sources = mine.clone().map(|index| self.objects.source(index));
        let mut list = List::of(sources.chain([self.recall.source(0)]));
        loop {
            gate.pass();
            if self.over.load(Ordering::Acquire) {
                return;
            }
            if let Ok(Some(place)) = list.wait()
                && place < mine.len()
            {
                self.found.store(mine.start + place, Ordering::Relaxed);
                self.call_back();
            }
            // The last one brings the caller what all of them have seen.
            if self.out.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.caller.open();
            }
        }
    }
}
