//! Turns: which children are read while much output waits in files. Data only; `turn_taking.rs` has
//! the decisions.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::pace::Pace;
use crate::backlog::Backlog;
use crate::event::ChildId;

/// How long a child with a turn may be silent before the next child is read, too.
pub(super) const SLICE: Duration = Duration::from_millis(50);
/// How many bytes a child may write within [`ALLOWANCE_INTERVAL`] without a turn. It is little,
/// because all children are slow on a busy machine.
pub(super) const ALLOWANCE: u64 = 64 << 10;
pub(super) const ALLOWANCE_INTERVAL: Duration = Duration::from_secs(1);
/// How many bytes of a waiting child are read at a time.
pub(super) const SINGLE_READ: u64 = 64 << 10;

/// Whether a child may be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadTurn {
    /// It writes little. `left` bytes of its allowance are left, which began at `since`.
    Free { left: u64, since: Option<Instant> },
    /// It writes much. It waits for a turn, or will when it writes again.
    Due,
    /// It may be read once: those of its streams that are `true`.
    Once([bool; 2]),
    /// It has a turn. `read` bytes were read since the last rotation; at the `quiet` rotations before
    /// that it had written nothing.
    Has { read: u64, quiet: u32 },
}

impl ReadTurn {
    pub(super) const NEW: Self = Self::Free { left: ALLOWANCE, since: None };
    pub(super) const GIVEN: Self = Self::Has { read: 0, quiet: 0 };
}

/// The turns of a set.
#[derive(Debug)]
pub(super) struct ReadTurns {
    pub(super) backlog: Option<Arc<Backlog>>,
    /// The children that have a turn.
    pub(super) reading: Vec<ChildId>,
    /// The children that wait for a turn, by rank.
    pub(super) waiting: BTreeSet<(u64, ChildId)>,
    /// The last waiting child that was read once.
    last_once: (u64, ChildId),
    /// How many bytes may be read of waiting children.
    pub(super) credit: u64,
    pub(super) pace: Pace,
}

impl ReadTurns {
    pub(super) fn new(backlog: Option<Arc<Backlog>>, min_readers: usize) -> Self {
        Self {
            backlog,
            reading: Vec::new(),
            waiting: BTreeSet::new(),
            last_once: (0, ChildId::from_u64(0)),
            credit: 0,
            pace: Pace::new(min_readers),
        }
    }

    /// Returns whether so much output waits in files that children are read in turn.
    pub(super) fn are_active(&self) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| backlog.is_long())
    }

    /// Returns how many children may have a turn.
    pub(super) fn width(&self) -> usize {
        match &self.backlog {
            Some(backlog) if backlog.is_crowded(2 * SLICE) => 0,
            _ => self.pace.width(),
        }
    }

    /// Returns whether a child waits for its turn.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the next waiting child that is read once, each in turn.
    pub(super) fn take_next_once(&mut self) -> Option<ChildId> {
        let after_last = (Bound::Excluded(self.last_once), Bound::Unbounded);
        let next = self.waiting.range(after_last).next().or_else(|| self.waiting.first()).copied()?;
        self.waiting.remove(&next);
        self.last_once = next;
        Some(next.1)
    }
}
