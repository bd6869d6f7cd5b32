//! The choice of the children that are read while much output waits in files.
//!
//! [`Backlog`](crate::Backlog) describes when, and what is promised. A child that waits for its turn
//! is paused, so that it costs nothing while it waits. The methods decide; the set pauses and resumes
//! the streams.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::child::ChildState;
use super::pace::Pace;
use super::read_turn::ReadTurn;
use super::slab::Slab;
use crate::backlog::Backlog;
use crate::event::{ChildId, Stream};

/// The time for which a child with a turn may be silent before the next child is read, too.
const SLICE: Duration = Duration::from_millis(50);
/// The number of bytes of a waiting child that are read at a time.
const SINGLE_READ: u64 = 64 << 10;
/// After this many silent rotations a child loses its turn.
const QUIET_MAX: u32 = 20;
/// Waiting children are read one byte for this many bytes of the others.
const CREDIT_DIVISOR: u64 = 16;

/// The turns of a set.
#[derive(Debug)]
pub(super) struct ReadTurns {
    backlog: Option<Arc<Backlog>>,
    /// The children that have a turn.
    reading: Vec<ChildId>,
    /// How many of them use it.
    active: usize,
    /// The children that wait for a turn, by rank.
    waiting: BTreeSet<(u64, ChildId)>,
    /// The last waiting child that was read once.
    last_once: (u64, ChildId),
    /// The number of bytes that may be read of waiting children.
    credit: u64,
    pace: Pace,
    /// The time of the next rotation, while a child waits.
    rotate_at: Option<Instant>,
}

impl ReadTurns {
    pub(super) fn new(backlog: Option<Arc<Backlog>>, min_readers: usize) -> Self {
        Self {
            backlog,
            reading: Vec::new(),
            active: 0,
            waiting: BTreeSet::new(),
            last_once: (0, ChildId::from_u64(0)),
            credit: 0,
            pace: Pace::new(min_readers),
            rotate_at: None,
        }
    }

    /// Returns whether so much output waits in files that children are read in turn.
    fn are_active(&self) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| backlog.is_long())
    }

    /// Returns how many children may have a turn.
    fn width(&self) -> usize {
        match &self.backlog {
            Some(backlog) if backlog.is_crowded(2 * SLICE) => 0,
            _ => self.pace.width(),
        }
    }

    /// Returns whether a child waits for its turn.
    pub(super) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether this child waits for its turn.
    pub(super) fn is_waiting(&self, id: ChildId, child: &ChildState) -> bool {
        self.waiting.contains(&(child.options.rank, id))
    }

    /// Returns when turns are rotated next.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.rotate_at
    }

    /// Decides whether a readable stream may be read. If not, the stream is paused until its child has a
    /// turn.
    pub(super) fn may_read(&mut self, id: ChildId, child: &mut ChildState, stream: Stream) -> bool {
        if !self.are_active() || child.needs_no_turn() || child.turn.allows(stream as usize) {
            return true;
        }
        self.set_turn(child, ReadTurn::Due);
        if !self.has_waiting() {
            if self.active < self.width() {
                self.give(id, child);
                return true;
            }
            self.rotate_at = Some(Instant::now() + SLICE);
        }
        self.waiting.insert((child.options.rank, id));
        false
    }

    fn set_turn(&mut self, child: &mut ChildState, turn: ReadTurn) {
        let last = std::mem::replace(&mut child.turn, turn);
        self.active = self.active + usize::from(turn.is_active()) - usize::from(last.is_active());
    }

    /// Gives a child a turn: it is read until it exits or falls silent.
    fn give(&mut self, id: ChildId, child: &mut ChildState) {
        self.set_turn(child, ReadTurn::GIVEN);
        // Few children have a turn, so large pipes do not hold much in all.
        for stream in &mut child.output.streams {
            if stream.is_spilled()
                && let Some(reader) = stream.reader()
            {
                reader.enlarge(None);
            }
        }
        self.reading.push(id);
    }

    /// Counts bytes that were just read of a child.
    pub(super) fn count(&mut self, id: ChildId, child: &mut ChildState, bytes: u64) {
        if !self.are_active() {
            return;
        }
        self.pace.count(bytes);
        self.keep(id, child);
        match &mut child.turn {
            ReadTurn::Free { left, .. } => *left = left.saturating_sub(bytes),
            ReadTurn::Has { read, .. } => {
                let turn = ReadTurn::Has { read: *read + bytes, quiet: 0 };
                self.set_turn(child, turn);
                if self.has_waiting() {
                    self.credit += bytes / CREDIT_DIVISOR;
                }
            }
            // An enlarged pipe may hold more than the credit for one read.
            ReadTurn::Once(_) | ReadTurn::Due => {
                let excess = bytes.saturating_sub(SINGLE_READ);
                self.credit = self.credit.saturating_sub(excess);
            }
        }
    }

    /// Gives a streaming child a turn, or keeps it: it has written, or would have if the file that it
    /// is forwarded to were not full. Such children come before all others.
    pub(super) fn keep(&mut self, id: ChildId, child: &mut ChildState) {
        let Some(backlog) = self.backlog.as_ref().filter(|backlog| backlog.is_long()) else { return };
        if !child.output.is_streaming() {
            return;
        }
        backlog.note_shown();
        let read = match child.turn {
            ReadTurn::Has { read, .. } => read,
            _ => {
                self.reading.push(id);
                0
            }
        };
        self.set_turn(child, ReadTurn::Has { read: read + 1, quiet: 0 });
    }

    /// Hands out the free turns, and single reads to children that keep waiting. Returns the children that
    /// are to be resumed.
    pub(super) fn hand_out(&mut self, children: &mut Slab<ChildState>) -> Vec<ChildId> {
        let mut resumed = Vec::new();
        let mut free = self.width().saturating_sub(self.active);
        while free > 0
            && let Some((_, id)) = self.waiting.pop_first()
        {
            free -= 1;
            if let Some(child) = children.get_mut(id) {
                self.give(id, child);
                resumed.push(id);
            }
        }
        // Every waiting child is read as far as the backlog has room. It may become a little more
        // than that, because the room counts only bytes that were read.
        let mut room = self.backlog.as_ref().map_or(0, |backlog| backlog.room());
        while room.max(self.credit) >= SINGLE_READ
            && let Some(id) = self.take_next_once()
        {
            if room >= SINGLE_READ {
                room -= SINGLE_READ;
            } else {
                self.credit -= SINGLE_READ;
            }
            if let Some(child) = children.get_mut(id) {
                self.set_turn(child, ReadTurn::Once([true; 2]));
                resumed.push(id);
            }
        }
        if !self.has_waiting() {
            self.credit = 0;
        }
        resumed
    }

    /// Takes the next waiting child that is read once, each in turn.
    fn take_next_once(&mut self) -> Option<ChildId> {
        let after_last = (Bound::Excluded(self.last_once), Bound::Unbounded);
        let next = self.waiting.range(after_last).next().or_else(|| self.waiting.first()).copied()?;
        self.waiting.remove(&next);
        self.last_once = next;
        Some(next.1)
    }

    /// Rotates the turns if that is due. Returns the children that are to be resumed.
    pub(super) fn rotate_if_due(&mut self, now: Instant, children: &mut Slab<ChildState>) -> Vec<ChildId> {
        if self.rotate_at.take_if(|at| *at <= now).is_none() {
            return Vec::new();
        }
        let resumed = self.rotate(children);
        self.rotate_at = self.has_waiting().then(|| now + SLICE);
        resumed
    }

    /// Checks the children that have a turn, and hands out those that are free. A silent child does not
    /// count. When it writes again it has priority, because it may only have waited for a processor. Returns
    /// the children that are to be resumed.
    fn rotate(&mut self, children: &mut Slab<ChildState>) -> Vec<ChildId> {
        let mut reading = std::mem::take(&mut self.reading);
        reading.retain(|id| {
            let Some(child) = children.get_mut(*id) else { return false };
            let turn = match child.turn {
                ReadTurn::Has { read: 0, quiet: QUIET_MAX } => ReadTurn::NEW,
                ReadTurn::Has { read: 0, quiet } => ReadTurn::Has { read: 0, quiet: quiet + 1 },
                ReadTurn::Has { quiet, .. } => ReadTurn::Has { read: 0, quiet },
                _ => return false,
            };
            self.set_turn(child, turn);
            matches!(turn, ReadTurn::Has { .. })
        });
        self.reading = reading;
        self.take_excess(children);
        self.credit += SINGLE_READ;
        self.hand_out(children)
    }

    /// Takes turns away if more children have one than may. Those whose output is shown last lose
    /// theirs first.
    fn take_excess(&mut self, children: &mut Slab<ChildState>) {
        let excess = self.active.saturating_sub(self.width());
        if excess == 0 {
            return;
        }
        let least = self.active - excess;
        let order =
            |id: &ChildId| children.get(*id).map(|child| (!child.output.is_streaming(), child.options.rank));
        self.reading.sort_by_key(order);
        for at in (0..self.reading.len()).rev() {
            if self.active == least {
                return;
            }
            if let Some(child) = children.get_mut(self.reading[at])
                && child.turn.is_active()
            {
                self.reading.remove(at);
                self.set_turn(child, ReadTurn::Due);
            }
        }
    }

    /// Counts the time of a poll in which a child waited for its turn.
    pub(super) fn measure_pace(&mut self, time: Duration) {
        // With a width of zero only streaming children are read. Their throughput does not show how
        // many others should be read.
        if self.width() > 0 {
            self.pace.add_time(time, self.active);
        }
    }

    /// Removes a child that does not need a turn any more, or is done. Returns whether it is to be resumed.
    pub(super) fn leave(&mut self, id: ChildId, child: &mut ChildState) -> bool {
        let last = child.turn;
        self.set_turn(child, ReadTurn::NEW);
        match last {
            ReadTurn::Has { .. } => {
                self.reading.retain(|other| *other != id);
                false
            }
            ReadTurn::Due => self.waiting.remove(&(child.options.rank, id)),
            ReadTurn::Free { .. } | ReadTurn::Once(_) => false,
        }
    }
}
