//! `OutputBuffer`: the output that waits for the reader of minder, and when it is handed on.
//!
//! One thread pushes what the child has written, another takes what it writes next. A short piece is
//! taken at once. When output is bulky, the taking thread waits for a moment, so that the reader gets few
//! large pieces.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use minder_os::sync::{Condvar, Mutex};

/// The most bytes that are taken at once: the size of an enlarged pipe.
const PIECE_MAX: usize = 1 << 20;
/// This number of bytes is not gathered any longer.
const PIECE_ENOUGH: usize = PIECE_MAX / 2;
/// The longest time for which bytes are gathered.
const GATHER_MAX: Duration = Duration::from_millis(4);
/// Gathering ends when the child has written nothing for this time, unless the burst is large: then the
/// child probably waits for a processor.
const QUIET: Duration = Duration::from_millis(1);
const LARGE_BURST: usize = 128 << 10;
/// Fewer bytes than this are taken at once if there was no output shortly before.
const SHORT: usize = 4 << 10;
/// A burst of output ends when nothing was taken for this time.
const BURST_GAP: Duration = Duration::from_millis(10);
/// The most bytes, and the most pieces, that one burst may hand on at once before it is gathered.
const BURST_BYTES: usize = 16 << 10;
const BURST_PIECES: u32 = 4;
/// With less room than this, the output of the child is not read.
const ROOM_MIN: usize = 4 << 10;

/// A bounded queue of bytes between two threads.
#[derive(Debug)]
pub(super) struct OutputBuffer {
    state: Mutex<State>,
    /// Wakes the thread that takes.
    arrived: Condvar,
    /// Wakes the thread that pushes, where that waits.
    taken: Condvar,
    bytes_max: usize,
}

#[derive(Debug)]
struct State {
    bytes: VecDeque<u8>,
    /// The times at which the oldest and the newest of the bytes arrived.
    oldest_at: Instant,
    newest_at: Instant,
    burst: Burst,
    /// The bytes at which the taking thread is woken before its time; 0 if it does not wait.
    wake_at: usize,
    /// `true` if the pushing thread has stopped because there was too little room.
    is_full: bool,
    phase: Phase,
}

/// The progress of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// The child may write more.
    Open,
    /// The child writes nothing more.
    Ended,
    /// All bytes were written to the reader.
    Written,
    /// The reader takes nothing more.
    Closed,
}

/// The bytes that were handed on recently.
#[derive(Debug)]
struct Burst {
    last_at: Instant,
    bytes: usize,
    pieces: u32,
}

impl Burst {
    /// Returns whether `count` bytes should wait for more.
    fn is_bulky(&self, count: usize, now: Instant) -> bool {
        let continues = now.saturating_duration_since(self.last_at) < BURST_GAP;
        count >= SHORT
            || (continues && (self.pieces >= BURST_PIECES || self.bytes.saturating_add(count) > BURST_BYTES))
    }

    fn record(&mut self, count: usize, now: Instant) {
        if now.saturating_duration_since(self.last_at) >= BURST_GAP {
            (self.bytes, self.pieces) = (0, 0);
        }
        self.last_at = now;
        self.bytes = self.bytes.saturating_add(count);
        self.pieces = self.pieces.saturating_add(1);
    }
}

impl OutputBuffer {
    /// Makes an empty buffer for at most `bytes_max` bytes. Their memory is reserved, and used when they
    /// come.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn new(bytes_max: usize) -> Result<Self> {
        let mut bytes = VecDeque::new();
        if bytes.try_reserve_exact(bytes_max).is_err() {
            bail!("cannot reserve the memory of `--buffer`: not enough memory");
        }
        let now = Instant::now();
        Ok(Self {
            state: Mutex::new(State::new(bytes, now)),
            arrived: Condvar::new(),
            taken: Condvar::new(),
            bytes_max,
        })
    }

    /// Returns how far the output has come.
    pub(super) fn phase(&self) -> Phase {
        self.state.lock().phase
    }

    /// Returns the room for output. `None`: it is too small until half of the buffer is free, which
    /// [`take`](Self::take) reports.
    pub(super) fn room(&self) -> Option<usize> {
        let mut state = self.state.lock();
        let room = self.bytes_max - state.bytes.len();
        if room < ROOM_MIN {
            state.is_full = true;
        }
        (!state.is_full).then_some(room)
    }

    /// Waits until there is room. Returns `None` if the reader takes nothing more.
    pub(super) fn wait_for_room(&self) -> Option<usize> {
        loop {
            let room = self.room();
            let state = self.state.lock();
            if state.phase == Phase::Closed {
                return None;
            }
            if room.is_some() {
                return room;
            }
            if state.is_full {
                drop(self.taken.wait(state));
            }
        }
    }

    /// Returns when the last bytes arrived.
    pub(super) fn newest_at(&self) -> Instant {
        self.state.lock().newest_at
    }

    /// Appends bytes for which there is room. Drops them if the reader takes nothing more.
    pub(super) fn push(&self, bytes: &[u8]) {
        let now = Instant::now();
        let mut state = self.state.lock();
        let wakes = state.push(bytes, now);
        drop(state);
        if wakes {
            self.arrived.notify_one();
        }
    }

    /// Marks the end of the output, or what became of it. A later phase stays.
    pub(super) fn advance(&self, phase: Phase) {
        let mut state = self.state.lock();
        if matches!(state.phase, Phase::Open | Phase::Ended) {
            state.phase = phase;
        }
        if phase == Phase::Closed {
            state.bytes = VecDeque::new();
        }
        drop(state);
        self.arrived.notify_all();
        self.taken.notify_all();
    }

    /// Waits for bytes, and moves them into `piece`. Returns `None` after the last ones, and otherwise
    /// whether there is room again that was lacking.
    pub(super) fn take(&self, piece: &mut Vec<u8>) -> Option<bool> {
        piece.clear();
        let mut state = self.state.lock();
        loop {
            if state.phase == Phase::Closed || (state.bytes.is_empty() && state.phase == Phase::Ended) {
                return None;
            }
            if state.bytes.is_empty() {
                state.wake_at = 1;
                state = self.arrived.wait(state);
                continue;
            }
            let now = Instant::now();
            let Some(pause) = state.gather_time(now) else { break };
            state.wake_at = PIECE_ENOUGH;
            state = self.arrived.wait_timeout(state, pause);
        }
        state.take(piece, Instant::now());
        let has_room_again = state.is_full && state.bytes.len() <= self.bytes_max / 2;
        if has_room_again {
            state.is_full = false;
            self.taken.notify_all();
        }
        Some(has_room_again)
    }
}

impl State {
    fn new(bytes: VecDeque<u8>, now: Instant) -> Self {
        Self {
            bytes,
            oldest_at: now,
            newest_at: now,
            burst: Burst { last_at: now, bytes: 0, pieces: 0 },
            wake_at: 0,
            is_full: false,
            phase: Phase::Open,
        }
    }

    /// Appends bytes that arrived now. Returns `true` if the taking thread is to be woken.
    fn push(&mut self, bytes: &[u8], now: Instant) -> bool {
        if self.phase == Phase::Closed {
            return false;
        }
        if self.bytes.is_empty() {
            self.oldest_at = now;
        }
        self.newest_at = now;
        self.bytes.extend(bytes);
        // A wake-up is a system call, and the child may write one byte at a time.
        let wakes = self.wake_at > 0 && self.bytes.len() >= self.wake_at;
        if wakes {
            self.wake_at = 0;
        }
        wakes
    }

    /// Moves the oldest bytes into `piece`.
    fn take(&mut self, piece: &mut Vec<u8>, now: Instant) {
        self.wake_at = 0;
        let count = self.bytes.len().min(PIECE_MAX);
        let (first, second) = self.bytes.as_slices();
        let of_first = first.len().min(count);
        piece.extend_from_slice(&first[..of_first]);
        piece.extend_from_slice(&second[..count - of_first]);
        self.bytes.drain(..count);
        if self.bytes.is_empty() {
            // From here on it is filled from its beginning: an idle relay uses little memory.
            self.bytes.clear();
        }
        self.oldest_at = self.newest_at;
        self.burst.record(count, now);
    }

    /// Returns how long to wait for more bytes before these are handed on; `None` is now.
    fn gather_time(&self, now: Instant) -> Option<Duration> {
        let count = self.bytes.len();
        if self.phase != Phase::Open
            || self.is_full
            || count >= PIECE_ENOUGH
            || !self.burst.is_bulky(count, now)
        {
            return None;
        }
        let latest = self.oldest_at + GATHER_MAX;
        let is_large = self.burst.bytes.saturating_add(count) >= LARGE_BURST;
        let until = if is_large { latest } else { latest.min(self.newest_at + QUIET) };
        Some(until.saturating_duration_since(now)).filter(|pause| !pause.is_zero())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn buffer(bytes_max: usize) -> OutputBuffer {
        OutputBuffer::new(bytes_max).expect("reserve memory")
    }

    // The tests state the times themselves, so that the load of the machine does not matter.

    #[test]
    fn short_output_is_taken_at_once_and_bulky_output_is_gathered() {
        let now = Instant::now();
        let later = |micros| now + Duration::from_micros(micros);
        let mut state = State::new(VecDeque::new(), now);
        state.push(b"$ ", now);
        assert_eq!(state.gather_time(now), None);
        state.push(&[b'x'; SHORT], later(100));
        assert_eq!(state.gather_time(later(100)), Some(QUIET));
        assert_eq!(state.gather_time(later(1099)), Some(Duration::from_micros(1)));
        assert_eq!(state.gather_time(later(1100)), None, "the child has been quiet");
        state.push(b"x", later(3900));
        assert_eq!(state.gather_time(later(3900)), Some(Duration::from_micros(100)), "since the oldest");
        state.push(&[b'x'; PIECE_ENOUGH], later(3900));
        assert_eq!(state.gather_time(later(3900)), None);
        let mut piece = Vec::new();
        state.take(&mut piece, later(3900));
        assert_eq!(piece.len(), 3 + SHORT + PIECE_ENOUGH);
        // The burst continues.
        state.push(b"$ ", later(4000));
        assert_eq!(state.gather_time(later(4000)), Some(GATHER_MAX));
        state.phase = Phase::Ended;
        assert_eq!(state.gather_time(later(4000)), None);
    }

    #[test]
    fn bytes_end_with_the_output() {
        let buffer = buffer(1 << 20);
        let mut piece = Vec::new();
        buffer.push(b"$ ");
        buffer.advance(Phase::Ended);
        assert_eq!((buffer.take(&mut piece), piece.as_slice()), (Some(false), &b"$ "[..]));
        assert_eq!((buffer.take(&mut piece), buffer.phase()), (None, Phase::Ended));
    }

    /// Returns the number of pieces that the reader gets if the child writes `size` bytes `writes` times,
    /// and pauses for this time after each.
    fn pieces(size: usize, writes: usize, pause: Duration) -> usize {
        let mut now = Instant::now();
        let mut state = State::new(VecDeque::new(), now);
        let mut pieces = 0;
        let mut taken = 0;
        for _ in 0..writes {
            state.push(&vec![b'x'; size], now);
            let next = now + pause;
            // The taking thread wakes at the end of the time that it was given, or when there is
            // enough.
            while let Some(at) = match state.gather_time(now) {
                _ if state.bytes.is_empty() => None,
                wait => Some(now + wait.unwrap_or_default()).filter(|at| *at <= next),
            } {
                now = at;
                if state.gather_time(now).is_none() {
                    let mut piece = Vec::new();
                    state.take(&mut piece, now);
                    taken += piece.len();
                    pieces += 1;
                }
            }
            now = next;
        }
        assert!(writes * size - taken <= PIECE_MAX, "{taken}");
        pieces
    }

    #[test]
    fn reader_gets_few_pieces() {
        for (micros, pieces_max) in [(1, 24), (20, 32), (200, 110), (900, 520)] {
            let count = pieces(4096, 2048, Duration::from_micros(micros));
            assert!(count <= pieces_max, "a pause of {micros} us: {count} pieces");
        }
        // A slow writer is not kept waiting: each of its lines comes alone.
        assert_eq!(pieces(60, 100, Duration::from_millis(20)), 100);
    }

    #[test]
    fn many_short_pieces_become_a_burst() {
        let now = Instant::now();
        let mut burst = Burst { last_at: now, bytes: 0, pieces: 0 };
        for _ in 0..BURST_PIECES {
            assert!(!burst.is_bulky(10, now));
            burst.record(10, now);
        }
        assert!(burst.is_bulky(10, now) && !burst.is_bulky(10, now + BURST_GAP));
        burst.record(10, now + BURST_GAP);
        assert_eq!((burst.bytes, burst.pieces), (10, 1));
    }

    #[test]
    fn full_buffer_has_room_again_when_half_of_it_is_free() {
        let buffer = buffer(3 * PIECE_MAX);
        let mut piece = Vec::new();
        while let Some(room) = buffer.room() {
            buffer.push(&vec![b'x'; room.min(64 << 10)]);
        }
        assert_eq!(buffer.take(&mut piece), Some(false));
        assert_eq!((buffer.room(), buffer.take(&mut piece)), (None, Some(true)));
        assert!(buffer.room().is_some() && buffer.wait_for_room().is_some());
        buffer.advance(Phase::Closed);
        buffer.push(b"text");
        assert_eq!((buffer.take(&mut piece), buffer.wait_for_room()), (None, None));
        buffer.advance(Phase::Written);
        assert_eq!(buffer.phase(), Phase::Closed);
    }
}
