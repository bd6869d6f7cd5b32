//! A pool of resident threads, each of which waits for a few objects by one call. For each wait all of them are sent off,
//! and when one has found something the others are called back, by an event that all of them wait for beside their
//! objects: a system call takes 64, as `WaitForMultipleObjects` does. While one call suffices, the caller makes it himself.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{JoinHandle, Thread, current, park};

use super::poll::{List, Poll};
use super::{Baseline, Objects};
use crate::sys::thread::start_small;

/// How many objects one call takes.
const CALL_MAX: usize = 64;
/// Nothing was found.
const NONE: usize = usize::MAX;

#[derive(Debug)]
pub(super) enum Pool {
    /// The caller's own call.
    Alone(Poll),
    Threads(Arc<Shared>, Vec<JoinHandle<()>>),
}

/// What the caller and the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    objects: Arc<Objects>,
    /// The event that calls back.
    recall: Objects,
    /// Which wait it is: the threads go when it rises.
    turn: AtomicU64,
    found: AtomicUsize,
    /// How many threads are not back.
    out: AtomicUsize,
    over: AtomicBool,
    caller: OnceLock<Thread>,
}

impl Pool {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        let count = objects.len();
        if count <= CALL_MAX {
            return Ok(Self::Alone(Poll::open(objects)));
        }
        let shared = Arc::new(Shared {
            objects,
            recall: Objects::open(1)?,
            turn: AtomicU64::new(0),
            found: AtomicUsize::new(NONE),
            out: AtomicUsize::new(0),
            over: AtomicBool::new(false),
            caller: OnceLock::new(),
        });
        let mut it = Self::Threads(Arc::clone(&shared), Vec::new());
        for first in (0..count).step_by(CALL_MAX - 1) {
            let (shared, mine) = (Arc::clone(&shared), first..count.min(first + CALL_MAX - 1));
            if let Self::Threads(_, threads) = &mut it {
                threads.push(start_small("bench", move || shared.serve(mine))?);
            }
        }
        Ok(it)
    }
}

impl Baseline for Pool {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        match self {
            Self::Alone(poll) => poll.wait(),
            Self::Threads(shared, threads) => shared.send_off(threads),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if let Self::Threads(shared, threads) = self {
            shared.over.store(true, Ordering::Release);
            threads.iter().for_each(|thread| thread.thread().unpark());
            threads.drain(..).for_each(|thread| _ = thread.join());
        }
    }
}

impl Shared {
    /// One wait.
    fn send_off(&self, threads: &[JoinHandle<()>]) -> io::Result<Option<usize>> {
        self.caller.get_or_init(current);
        self.found.store(NONE, Ordering::Relaxed);
        self.out.store(threads.len(), Ordering::Relaxed);
        // What stands above is seen by whoever sees this.
        self.turn.fetch_add(1, Ordering::Release);
        threads.iter().for_each(|thread| thread.thread().unpark());
        while self.found.load(Ordering::Acquire) == NONE && self.out.load(Ordering::Acquire) > 0 {
            park();
        }
        self.recall.signal(0)?;
        while self.out.load(Ordering::Acquire) > 0 {
            park();
        }
        self.recall.reset(0)?;
        Ok(Some(self.found.load(Ordering::Acquire)).filter(|found| *found != NONE))
    }

    /// A thread's life.
    fn serve(&self, mine: Range<usize>) {
        let sources = mine.clone().map(|index| self.objects.source(index));
        let mut list = List::of(sources.chain([self.recall.source(0)]));
        let mut turn = 0;
        loop {
            while self.turn.load(Ordering::Acquire) == turn {
                if self.over.load(Ordering::Acquire) {
                    return;
                }
                park();
            }
            turn += 1;
            if let Ok(Some(place)) = list.wait()
                && place < mine.len()
            {
                self.found.store(mine.start + place, Ordering::Release);
                self.tell();
            }
            if self.out.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.tell();
            }
        }
    }

    fn tell(&self) {
        if let Some(caller) = self.caller.get() {
            caller.unpark();
        }
    }
}
