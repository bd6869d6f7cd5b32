//! Turns: which children are read on, once much of what they wrote waits in files.
//!
//! [`Backlog`] says when, and what is promised. What it takes to be read on is a *turn*. A child
//! that waits for one is not listened to, so that none costs anything while it waits.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::child::ChildState;
use super::pace::Pace;
use super::{ChildSet, Error, Kind, OutputMode, Result, Stream, Token};
use crate::backlog::Backlog;

/// How long a child with a turn may be silent before the next one is read, too.
const SLICE: Duration = Duration::from_millis(50);
/// After so many of these it has no turn any more.
const QUIET_MAX: u32 = 20;
/// What a child may write within [`ALLOWANCE_EVERY`] without a turn. It is little, for on a busy
/// machine all are slow.
const ALLOWANCE: u64 = 64 << 10;
const ALLOWANCE_EVERY: Duration = Duration::from_secs(1);
/// A piece, of which one is read at a time of a child that waits.
const PIECE: u64 = 64 << 10;
/// What those that wait are read is this part of what the others are.
const SHARE: u64 = 16;

/// Whether a child may be read on.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadTurn {
    /// It writes little: so many bytes are left to it, since then.
    Free { left: u64, since: Option<Instant> },
    /// It writes much, and has to wait for its turn, or waits.
    Due,
    /// It may be read once, each of these streams.
    Once([bool; 2]),
    /// It is read on. How many bytes were, since the last look; and at how many looks before it was
    /// silent.
    Has { read: u64, quiet: u32 },
}

impl ReadTurn {
    pub(super) const NEW: Self = Self::Free { left: ALLOWANCE, since: None };
    const GIVEN: Self = Self::Has { read: 0, quiet: 0 };
}

/// The turns of a set.
#[derive(Debug)]
pub(super) struct ReadTurns {
    backlog: Option<Arc<Backlog>>,
    /// Those that have a turn.
    reading: Vec<Token>,
    /// Those that wait for one, by rank.
    waiting: BTreeSet<(u64, Token)>,
    /// The last of them that was read once.
    last: (u64, Token),
    /// What those that wait may be read.
    credit: u64,
    pace: Pace,
}

impl ReadTurns {
    pub(super) fn new(backlog: Option<Arc<Backlog>>, readers_min: usize) -> Self {
        Self {
            backlog,
            reading: Vec::new(),
            waiting: BTreeSet::new(),
            last: (0, Token(0)),
            credit: 0,
            pace: Pace::new(readers_min),
        }
    }

    /// Whether so much waits in files that children are read in turn.
    fn are_taken(&self) -> bool {
        self.backlog.as_ref().is_some_and(|backlog| backlog.is_long())
    }

    /// How many children may have a turn.
    fn width(&self) -> usize {
        match &self.backlog {
            Some(backlog) if backlog.is_crowded(2 * SLICE) => 0,
            _ => self.pace.width(),
        }
    }

    /// Whether some child waits for its turn.
    pub(super) fn is_waited_for(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// The next child that is read once: each in turn.
    fn next_once(&mut self) -> Option<Token> {
        let behind = (Bound::Excluded(self.last), Bound::Unbounded);
        let next = self.waiting.range(behind).next().or_else(|| self.waiting.first()).copied()?;
        self.waiting.remove(&next);
        self.last = next;
        Some(next.1)
    }
}

impl ChildState {
    /// Whether it never needs a turn: it is seen as it writes, it ends, or all that it wrote is in
    /// memory.
    fn needs_no_turn(&self) -> bool {
        self.options.output_mode == OutputMode::Stream
            || self.exit.is_some()
            || self.termination.is_some()
            || !self.streams.iter().any(|out| out.spilled())
    }
}

impl ChildSet {
    /// Whether a stream that is ready may be read. If not, its child waits for its turn from here
    /// on.
    pub(super) fn has_turn(&mut self, token: Token, stream: Stream) -> Result<bool> {
        if !self.read_turns.are_taken() {
            return Ok(true);
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(false) };
        if kid.needs_no_turn() {
            return Ok(true);
        }
        match &mut kid.turn {
            ReadTurn::Has { .. } => return Ok(true),
            ReadTurn::Once(streams) if streams[stream as usize] => {
                streams[stream as usize] = false;
                return Ok(true);
            }
            ReadTurn::Free { left, since } => {
                let now = Instant::now();
                let passed = since.map_or(Duration::MAX, |since| now.saturating_duration_since(since));
                if passed >= ALLOWANCE_EVERY {
                    (*left, *since) = (ALLOWANCE, Some(now));
                }
                if *left > 0 {
                    return Ok(true);
                }
            }
            ReadTurn::Once(_) | ReadTurn::Due => (),
        }
        kid.turn = ReadTurn::Due;
        if self.read_turns.waiting.is_empty() {
            if self.readers() < self.read_turns.width() {
                self.give_turn(token);
                return Ok(true);
            }
            self.timers.turns_at(Instant::now() + SLICE);
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(false) };
        self.read_turns.waiting.insert((kid.options.rank, token));
        let out = &mut kid.streams[stream as usize];
        if let Some(reader) = &mut out.reader {
            reader.pause(&mut self.reactor).map_err(|error| Error::new("hold a child", error))?;
            out.paused = true;
        }
        Ok(false)
    }

    /// From here on the child is read until it ends.
    fn give_turn(&mut self, token: Token) {
        let Some(kid) = self.children.get_mut(token) else { return };
        kid.turn = ReadTurn::GIVEN;
        // Few have a turn, so that large pipes hold little.
        let spilled = kid.streams.iter().filter(|out| out.spilled());
        spilled.filter_map(|out| out.reader.as_ref()).for_each(|reader| reader.enlarge(None));
        self.read_turns.reading.push(token);
    }

    /// Counts what was just read of a child.
    pub(super) fn count_turn(&mut self, token: Token, bytes: u64) {
        if !self.read_turns.are_taken() {
            return;
        }
        self.read_turns.pace.count(bytes);
        self.keep_turn(token);
        let Some(kid) = self.children.get_mut(token) else { return };
        match &mut kid.turn {
            ReadTurn::Free { left, .. } => *left = left.saturating_sub(bytes),
            ReadTurn::Has { read, quiet } => {
                (*read, *quiet) = (*read + bytes, 0);
                if self.read_turns.is_waited_for() {
                    self.read_turns.credit += bytes / SHARE;
                }
            }
            // A pipe may hold more than a piece.
            ReadTurn::Once(_) | ReadTurn::Due => {
                self.read_turns.credit = self.read_turns.credit.saturating_sub(bytes.saturating_sub(PIECE));
            }
        }
    }

    /// Notes that a child that is seen as it writes has written, or would have if its reader read:
    /// it comes before all others.
    pub(super) fn keep_turn(&mut self, token: Token) {
        let Some(backlog) = self.read_turns.backlog.as_ref().filter(|backlog| backlog.is_long()) else {
            return;
        };
        let Some(kid) =
            self.children.get_mut(token).filter(|kid| kid.options.output_mode == OutputMode::Stream)
        else {
            return;
        };
        backlog.note_shown();
        match &mut kid.turn {
            ReadTurn::Has { read, quiet } => (*read, *quiet) = (*read + 1, 0),
            turn => {
                *turn = ReadTurn::Has { read: 1, quiet: 0 };
                self.read_turns.reading.push(token);
            }
        }
    }

    /// Hands out the turns that are free, and what is read of those that go on waiting.
    pub(super) fn hand_out_turns(&mut self) -> Result<()> {
        let mut result = Ok(());
        let mut free = self.read_turns.width().saturating_sub(self.readers());
        while free > 0
            && let Some((_, token)) = self.read_turns.waiting.pop_first()
        {
            free -= 1;
            self.give_turn(token);
            result = result.and(self.resume_reading(token, ReadTurn::GIVEN));
        }
        // What there is room for is read of all; it may be a little more, since nothing of it was read yet.
        let mut room = self.read_turns.backlog.as_ref().map_or(0, |backlog| backlog.room());
        while room.max(self.read_turns.credit) >= PIECE
            && let Some(token) = self.read_turns.next_once()
        {
            let pays = if room >= PIECE { &mut room } else { &mut self.read_turns.credit };
            *pays -= PIECE;
            result = result.and(self.resume_reading(token, ReadTurn::Once([true; 2])));
        }
        if !self.read_turns.is_waited_for() {
            self.read_turns.credit = 0;
        }
        result
    }

    /// How many have a turn and use it.
    fn readers(&self) -> usize {
        self.read_turns.reading.iter().filter(|token| self.is_reader(**token)).count()
    }

    fn is_reader(&self, token: Token) -> bool {
        self.children.get(token).is_some_and(|kid| matches!(kid.turn, ReadTurn::Has { quiet: 0, .. }))
    }

    /// Looks at those that have a turn. One that was silent does not count, and when it goes on, it
    /// comes first again: it may only have waited for a processor.
    pub(super) fn rotate_turns(&mut self, now: Instant) -> Result<()> {
        let Self { read_turns: turns, children: kids, .. } = self;
        turns.reading.retain(|token| {
            let Some(ChildState { turn, .. }) = kids.get_mut(*token) else { return false };
            match turn {
                ReadTurn::Has { read: 0, quiet: QUIET_MAX } => *turn = ReadTurn::NEW,
                ReadTurn::Has { read: 0, quiet } => *quiet += 1,
                ReadTurn::Has { read, .. } => *read = 0,
                _ => return false,
            }
            matches!(turn, ReadTurn::Has { .. })
        });
        // Where fewer are to be read than are, those that are shown last wait.
        let mut excess = self.readers().saturating_sub(self.read_turns.width());
        if excess > 0 {
            let rank = |token: &Token| {
                self.children
                    .get(*token)
                    .map(|kid| (kid.options.output_mode != OutputMode::Stream, kid.options.rank))
            };
            self.read_turns.reading.sort_by_key(rank);
            for at in (0..self.read_turns.reading.len()).rev() {
                let token = self.read_turns.reading[at];
                if excess > 0 && self.is_reader(token) {
                    excess -= 1;
                    self.read_turns.reading.remove(at);
                    self.children.get_mut(token).into_iter().for_each(|kid| kid.turn = ReadTurn::Due);
                }
            }
        }
        self.read_turns.credit += PIECE;
        let result = self.hand_out_turns();
        if self.read_turns.is_waited_for() {
            self.timers.turns_at(now + SLICE);
        }
        result
    }

    /// Time went by in a turn in which some child waited.
    pub(super) fn pass_turn(&mut self, time: Duration) {
        // What is read while nothing but what is seen at once is says nothing about how many should be.
        if self.read_turns.width() > 0 {
            let reading = self.readers();
            self.read_turns.pace.pass(time, reading);
        }
    }

    /// Takes a child out of the turns: it needs none any more, or is gone.
    pub(super) fn leave_turns(&mut self, token: Token) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        match std::mem::replace(&mut kid.turn, ReadTurn::NEW) {
            ReadTurn::Has { .. } => self.read_turns.reading.retain(|other| *other != token),
            ReadTurn::Due => {
                let rank = kid.options.rank;
                if self.read_turns.waiting.remove(&(rank, token)) {
                    return self.resume_reading(token, ReadTurn::NEW);
                }
            }
            _ => (),
        }
        Ok(())
    }

    /// Whether the child waits for nothing but its turn, which comes.
    pub(super) fn waits_for_turn(&self, token: Token) -> bool {
        self.children
            .get(token)
            .is_some_and(|kid| self.read_turns.waiting.contains(&(kid.options.rank, token)))
    }

    fn resume_reading(&mut self, token: Token, turn: ReadTurn) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        kid.turn = turn;
        let mut result = Ok(());
        for (kind, stream) in [(Kind::Stdout, Stream::Stdout), (Kind::Stderr, Stream::Stderr)] {
            let port_token = self.children.port_token(token, kind);
            // What a file refused waits for that file.
            let waits =
                self.children.get(token).is_none_or(|kid| !kid.streams[stream as usize].unwritten.is_empty());
            if !waits {
                result = result.and(self.read_on(token, stream, port_token));
            }
        }
        result
    }
}
