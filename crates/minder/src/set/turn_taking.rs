//! Which children are read while much output waits in files.
//!
//! [`Backlog`](crate::Backlog) describes when, and what is promised. A child that waits for its turn
//! is paused, so that it costs nothing while it waits.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::child_set::ChildSet;
use super::output::pause_failed;
use super::read_turns::{ALLOWANCE, ALLOWANCE_INTERVAL, ReadTurn, SINGLE_READ, SLICE};
use super::timers::INTERVAL_MIN;
use crate::event::{ChildId, Stream};
use crate::{Error, Operation, Result};

/// After this many silent rotations a child loses its turn.
const QUIET_MAX: u32 = 20;
/// Waiting children are read one byte for this many bytes of the others.
const CREDIT_DIVISOR: u64 = 16;

impl ChildState {
    /// Returns whether it may always be read: its output is handed over as it arrives, it is ending, or all
    /// of its output is in memory.
    fn needs_no_turn(&self) -> bool {
        self.is_streaming()
            || self.has_exited()
            || self.termination.is_some()
            || !self.streams.iter().any(|stream| stream.is_spilled())
    }
}

impl ChildSet {
    /// Returns whether a readable stream may be read. If not, the stream is paused and its child waits for a
    /// turn.
    pub(super) fn has_turn(&mut self, id: ChildId, stream: Stream) -> Result<bool> {
        if !self.read_turns.are_active() {
            return Ok(true);
        }
        let Some(child) = self.children.get_mut(id) else { return Ok(false) };
        if child.needs_no_turn() {
            return Ok(true);
        }
        match &mut child.turn {
            ReadTurn::Has { .. } => return Ok(true),
            ReadTurn::Once(streams) if streams[stream as usize] => {
                streams[stream as usize] = false;
                return Ok(true);
            }
            ReadTurn::Free { left, since } => {
                let now = Instant::now();
                let elapsed = since.map_or(Duration::MAX, |since| now.saturating_duration_since(since));
                if elapsed >= ALLOWANCE_INTERVAL {
                    *left = ALLOWANCE;
                    *since = Some(now);
                }
                if *left > 0 {
                    return Ok(true);
                }
            }
            ReadTurn::Once(_) | ReadTurn::Due => (),
        }
        child.turn = ReadTurn::Due;
        if !self.read_turns.has_waiting() {
            if self.active_readers() < self.read_turns.width() {
                self.give_turn(id);
                return Ok(true);
            }
            self.timers.schedule_read_turns(Instant::now() + SLICE);
        }
        let Some(child) = self.children.get_mut(id) else { return Ok(false) };
        self.read_turns.waiting.insert((child.options.rank, id));
        child.stream(stream).pause(&mut self.io.reactor).map_err(pause_failed)?;
        Ok(false)
    }

    /// Gives a child a turn: it is read until it exits or falls silent.
    fn give_turn(&mut self, id: ChildId) {
        let Some(child) = self.children.get_mut(id) else { return };
        child.turn = ReadTurn::GIVEN;
        // Few children have a turn, so large pipes do not hold much in all.
        for stream in &mut child.streams {
            if stream.is_spilled()
                && let Some(reader) = stream.reader()
            {
                reader.enlarge(None);
            }
        }
        self.read_turns.reading.push(id);
    }

    /// Counts bytes that were just read of a child.
    pub(super) fn count_read(&mut self, id: ChildId, bytes: u64) {
        if !self.read_turns.are_active() {
            return;
        }
        self.read_turns.pace.count(bytes);
        self.keep_turn(id);
        let Some(child) = self.children.get_mut(id) else { return };
        match &mut child.turn {
            ReadTurn::Free { left, .. } => *left = left.saturating_sub(bytes),
            ReadTurn::Has { read, quiet } => {
                *read += bytes;
                *quiet = 0;
                if self.read_turns.has_waiting() {
                    self.read_turns.credit += bytes / CREDIT_DIVISOR;
                }
            }
            // An enlarged pipe may hold more than the credit for one read.
            ReadTurn::Once(_) | ReadTurn::Due => {
                let excess = bytes.saturating_sub(SINGLE_READ);
                self.read_turns.credit = self.read_turns.credit.saturating_sub(excess);
            }
        }
    }

    /// Gives a streaming child a turn, or keeps it: it has written, or would have if the file that it
    /// is forwarded to were not full. Such children come before all others.
    pub(super) fn keep_turn(&mut self, id: ChildId) {
        let Some(backlog) = &self.read_turns.backlog else { return };
        if !backlog.is_long() {
            return;
        }
        let Some(child) = self.children.get_mut(id) else { return };
        if !child.is_streaming() {
            return;
        }
        backlog.note_shown();
        match &mut child.turn {
            ReadTurn::Has { read, quiet } => {
                *read += 1;
                *quiet = 0;
            }
            turn => {
                *turn = ReadTurn::Has { read: 1, quiet: 0 };
                self.read_turns.reading.push(id);
            }
        }
    }

    /// Hands out the free turns, and single reads to children that keep waiting.
    pub(super) fn hand_out_turns(&mut self) -> Result<()> {
        let mut result = Ok(());
        let mut free = self.read_turns.width().saturating_sub(self.active_readers());
        while free > 0
            && let Some((_, id)) = self.read_turns.waiting.pop_first()
        {
            free -= 1;
            self.give_turn(id);
            result = result.and(self.resume_with_turn(id, ReadTurn::GIVEN));
        }
        // Every waiting child is read as far as the backlog has room. It may become a little more
        // than that, because the room counts only bytes that were read.
        let mut room = self.read_turns.backlog.as_ref().map_or(0, |backlog| backlog.room());
        while room.max(self.read_turns.credit) >= SINGLE_READ
            && let Some(id) = self.read_turns.take_next_once()
        {
            if room >= SINGLE_READ {
                room -= SINGLE_READ;
            } else {
                self.read_turns.credit -= SINGLE_READ;
            }
            result = result.and(self.resume_with_turn(id, ReadTurn::Once([true; 2])));
        }
        if !self.read_turns.has_waiting() {
            self.read_turns.credit = 0;
        }
        result
    }

    /// Returns how many children have a turn and use it.
    fn active_readers(&self) -> usize {
        self.read_turns.reading.iter().filter(|id| self.is_active_reader(**id)).count()
    }

    fn is_active_reader(&self, id: ChildId) -> bool {
        self.children.get(id).is_some_and(|child| matches!(child.turn, ReadTurn::Has { quiet: 0, .. }))
    }

    /// Checks the children that have a turn. A silent one does not count. When it writes again it has
    /// priority, because it may only have waited for a processor.
    pub(super) fn rotate_turns(&mut self, now: Instant) -> Result<()> {
        let Self { read_turns, children, .. } = self;
        read_turns.reading.retain(|id| {
            let Some(ChildState { turn, .. }) = children.get_mut(*id) else { return false };
            match turn {
                ReadTurn::Has { read: 0, quiet: QUIET_MAX } => *turn = ReadTurn::NEW,
                ReadTurn::Has { read: 0, quiet } => *quiet += 1,
                ReadTurn::Has { read, .. } => *read = 0,
                _ => return false,
            }
            matches!(turn, ReadTurn::Has { .. })
        });
        self.take_excess_turns();
        self.read_turns.credit += SINGLE_READ;
        let result = self.hand_out_turns();
        if self.read_turns.has_waiting() {
            self.timers.schedule_read_turns(now + SLICE);
        }
        result
    }

    /// Takes turns away if more children have one than may. Those whose output is shown last lose
    /// theirs first.
    fn take_excess_turns(&mut self) {
        let mut excess = self.active_readers().saturating_sub(self.read_turns.width());
        if excess == 0 {
            return;
        }
        let children = &self.children;
        self.read_turns
            .reading
            .sort_by_key(|id| children.get(*id).map(|child| (!child.is_streaming(), child.options.rank)));
        for at in (0..self.read_turns.reading.len()).rev() {
            let id = self.read_turns.reading[at];
            if excess == 0 {
                return;
            }
            if !self.is_active_reader(id) {
                continue;
            }
            excess -= 1;
            self.read_turns.reading.remove(at);
            if let Some(child) = self.children.get_mut(id) {
                child.turn = ReadTurn::Due;
            }
        }
    }

    /// Counts the time of a poll in which a child waited for its turn.
    pub(super) fn measure_pace(&mut self, time: Duration) {
        // With a width of zero only streaming children are read. Their throughput does not show how
        // many others should be read.
        if self.read_turns.width() > 0 {
            let readers = self.active_readers();
            self.read_turns.pace.add_time(time, readers);
        }
    }

    /// Removes a child from the turns: it does not need one any more, or is done.
    pub(super) fn leave_turns(&mut self, id: ChildId) -> Result<()> {
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        match std::mem::replace(&mut child.turn, ReadTurn::NEW) {
            ReadTurn::Has { .. } => self.read_turns.reading.retain(|other| *other != id),
            ReadTurn::Due => {
                let rank = child.options.rank;
                if self.read_turns.waiting.remove(&(rank, id)) {
                    return self.resume_with_turn(id, ReadTurn::NEW);
                }
            }
            ReadTurn::Free { .. } | ReadTurn::Once(_) => (),
        }
        Ok(())
    }

    /// Returns whether the child is paused only until its turn.
    pub(super) fn waits_for_turn(&self, id: ChildId) -> bool {
        self.children.get(id).is_some_and(|child| self.read_turns.waiting.contains(&(child.options.rank, id)))
    }

    fn resume_with_turn(&mut self, id: ChildId, turn: ReadTurn) -> Result<()> {
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        child.turn = turn;
        let mut result = Ok(());
        for stream in [Stream::Stdout, Stream::Stderr] {
            // A stream whose spill file refused bytes waits for that file.
            let has_unwritten = self
                .children
                .get(id)
                .is_none_or(|child| !child.streams[stream as usize].unwritten.is_empty());
            if !has_unwritten {
                result = result.and(self.resume_stream(id, stream));
            }
        }
        result
    }

    /// Reads a paused stream again. If the backend has no room for it, the stream is polled.
    pub(super) fn resume_stream(&mut self, id: ChildId, stream: Stream) -> Result<()> {
        let key = self.children.key(id, stream.into());
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        let is_registered = child
            .stream(stream)
            .resume(&mut self.io.reactor, key)
            .map_err(|error| Error::new("resume reading a child", error).during(Operation::Read))?;
        if !is_registered {
            self.defer_read(id, INTERVAL_MIN);
        }
        Ok(())
    }
}
