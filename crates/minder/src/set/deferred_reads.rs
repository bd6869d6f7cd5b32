//! Deferred reads: the outputs of young children are polled now and then before they are registered
//! with the backend. Pipes for which the backend has no room are polled in the same way.
//!
//! Registering and removing two pipes are four system calls. A child that exits within milliseconds
//! needs none of them: its outputs are read at its exit.

use std::time::{Duration, Instant};

use super::child::ChildState;
use crate::event::ChildId;

/// The most that a deferred read may be late, so that many share one wake-up.
const TOLERANCE: Duration = Duration::from_millis(1);

/// A child whose outputs are polled instead of being registered.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeferredRead {
    pub(super) id: ChildId,
    due: Instant,
    /// The time between the last poll and the next.
    pub(super) interval: Duration,
}

/// The deferred reads of a set.
#[derive(Debug, Default)]
pub(super) struct DeferredReads {
    list: Vec<DeferredRead>,
    next_at: Option<Instant>,
}

impl DeferredReads {
    /// Returns when the next read is due.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.next_at
    }

    /// Polls the outputs of a child after `interval`, unless a poll is due already.
    pub(super) fn add(&mut self, id: ChildId, child: &mut ChildState, interval: Duration) {
        if std::mem::replace(&mut child.read_deferred, true) {
            return;
        }
        let due = Instant::now() + interval;
        self.list.push(DeferredRead { id, due, interval });
        self.schedule(due);
    }

    fn schedule(&mut self, due: Instant) {
        // With a tolerance, so that not every child sets the timer again.
        if self.next_at.is_none_or(|at| due + TOLERANCE < at) {
            self.next_at = Some(due);
        }
    }

    /// Takes the reads that are due.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<DeferredRead> {
        let mut due = Vec::new();
        if self.next_at.take_if(|at| *at <= now).is_none() {
            return due;
        }
        for read in std::mem::take(&mut self.list) {
            if read.due <= now {
                due.push(read);
            } else {
                self.list.push(read);
                self.schedule(read.due);
            }
        }
        due
    }

    /// Removes a child that is started again.
    pub(super) fn remove(&mut self, id: ChildId, child: &mut ChildState) {
        if std::mem::take(&mut child.read_deferred) {
            self.list.retain(|read| read.id != id);
        }
    }
}
