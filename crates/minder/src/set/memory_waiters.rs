//! Children that wait for memory, or for a spill file that refused their bytes.
//!
//! Chunks are dropped on any thread. The protocol that no freed room is missed is in `chunk.rs`:
//! the set requests a wake-up first and checks the room afterwards.

use super::child::ChildState;
use crate::event::ChildId;

/// The children that wait for memory, or for their spill file.
#[derive(Debug, Default)]
pub(super) struct MemoryWaiters {
    ids: Vec<ChildId>,
    /// `true` if they are tried again at the end of this poll: one was added, and there may be room already.
    retry_now: bool,
    /// `true` if the next poll tries them again without a wake-up: a spill file refused bytes or was taken.
    pub(super) retry_due: bool,
}

impl MemoryWaiters {
    pub(super) fn ids(&self) -> &[ChildId] {
        &self.ids
    }

    /// Adds a child, unless it is here.
    pub(super) fn add(&mut self, id: ChildId, child: &mut ChildState) {
        if !std::mem::replace(&mut child.output.waits_for_memory, true) {
            self.ids.push(id);
        }
    }

    /// Removes a child that is started again.
    pub(super) fn remove(&mut self, id: ChildId, child: &mut ChildState) {
        if std::mem::take(&mut child.output.waits_for_memory) {
            self.ids.retain(|waiter| *waiter != id);
        }
    }

    /// Tries all again at the end of this poll.
    pub(super) fn retry_now(&mut self) {
        self.retry_now = true;
    }

    pub(super) fn take_retry_now(&mut self) -> bool {
        std::mem::take(&mut self.retry_now)
    }

    /// Takes all, to try them again. Those that still wait are [kept](Self::keep).
    pub(super) fn take(&mut self) -> Vec<ChildId> {
        std::mem::take(&mut self.ids)
    }

    /// Keeps a child that was taken, if it still waits.
    pub(super) fn keep(&mut self, id: ChildId, child: &mut ChildState, waits: bool) {
        child.output.waits_for_memory = waits;
        if waits {
            self.ids.push(id);
        }
    }
}
