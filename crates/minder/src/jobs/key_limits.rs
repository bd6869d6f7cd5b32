//! Limits by key: of the jobs that have the same key, only a few run at once.

use std::collections::{HashMap, VecDeque};

/// The most jobs that wait for their key. Beyond it no further job is taken from the queue, so that a
/// long input whose first jobs have one key is not read into memory.
pub(super) const WAITING_MAX: usize = 10_000;

/// The jobs of all keys that are in use. `P` is a waiting job.
#[derive(Debug)]
pub(super) struct KeyLimits<P> {
    max: u32,
    keys: HashMap<u64, Key<P>>,
    /// The number of jobs that wait, of all keys.
    waiting: usize,
}

/// The answer to a job whose turn has come.
#[derive(Debug)]
pub(super) enum Admission<P> {
    /// It starts, and counts as running.
    Start(P),
    /// It is kept until another one of its key ends.
    Kept,
    /// As many jobs wait as may.
    Full(P),
}

/// A key of which jobs run.
#[derive(Debug)]
struct Key<P> {
    running: u32,
    /// The jobs that wait, in the order in which their turn came.
    waiting: VecDeque<P>,
}

impl<P> KeyLimits<P> {
    pub(super) fn new(max: u32) -> Self {
        Self { max: max.max(1), keys: HashMap::new(), waiting: 0 }
    }

    /// Returns whether as many jobs wait as may.
    pub(super) fn is_full(&self) -> bool {
        self.waiting >= WAITING_MAX
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Returns all jobs that wait.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &P> {
        self.keys.values().flat_map(|key| &key.waiting)
    }

    /// Decides whether a job starts.
    pub(super) fn admit(&mut self, key: u64, pending: P) -> Admission<P> {
        let is_full = self.is_full();
        let key = self.keys.entry(key).or_insert_with(|| Key { running: 0, waiting: VecDeque::new() });
        if key.running < self.max {
            key.running += 1;
            return Admission::Start(pending);
        }
        if is_full {
            return Admission::Full(pending);
        }
        key.waiting.push_back(pending);
        self.waiting += 1;
        Admission::Kept
    }

    /// Notes that a job ended. Returns the job that starts in its place, which is not counted yet.
    pub(super) fn end(&mut self, key: u64) -> Option<P> {
        let entry = self.keys.get_mut(&key)?;
        entry.running -= 1;
        let next = entry.waiting.pop_front();
        self.waiting -= usize::from(next.is_some());
        self.forget_idle(key);
        next
    }

    /// Notes that a job was not started after all. It comes before the others of its key.
    pub(super) fn take_back(&mut self, key: u64) {
        if let Some(entry) = self.keys.get_mut(&key) {
            entry.running -= 1;
            self.forget_idle(key);
        }
    }

    fn forget_idle(&mut self, key: u64) {
        if self.keys.get(&key).is_some_and(|key| key.running == 0 && key.waiting.is_empty()) {
            self.keys.remove(&key);
        }
    }

    /// Drops the jobs that wait.
    pub(super) fn clear(&mut self) {
        self.keys.values_mut().for_each(|key| key.waiting.clear());
        self.waiting = 0;
    }
}
