//! The output of one child: from its pipes to memory, to a file, to the caller's file, or dropped.
//!
//! The methods change only these outputs and return what the set has to do.

use std::sync::Arc;
use std::time::Instant;

use super::config::{OutputMode, OverflowPolicy, SpawnOptions};
use super::spill::SpillBuffer;
use super::stream::{StreamIo, StreamState};
use crate::chunk::{Chunk, MemoryQuota};
use crate::event::{SpillFile, Stream};
use crate::sys::pipe::{ReadOutcome, Reader};
use crate::sys::wait::Report;
use crate::{Error, Operation, Result};

/// The least capacity of a chunk.
const CHUNK_MIN: usize = 64;

/// The action that the set has to take after one read of a stream.
#[derive(Debug)]
#[must_use]
pub(super) enum Effect {
    None,
    /// Queue an output event for each chunk that has none.
    QueueOutput,
    /// Queue the event that counts forwarded bytes.
    QueueForwarded,
    /// The pipe was closed: queue the end of the stream, and the end of the child if that was all.
    Closed,
    /// Add the child to those that wait for memory, and retry them: there may be room already.
    WaitForMemory,
    /// The spill file refused bytes, for this reason. Retry with the next poll.
    SpillRefused(Error),
    /// The file that output is forwarded to is full: the child keeps its turn to be read.
    KeepTurn,
}

/// One read of a stream.
#[derive(Debug)]
#[must_use]
pub(super) struct ReadStep {
    pub(super) outcome: ReadOutcome,
    pub(super) effect: Effect,
}

impl ReadStep {
    const WOULD_BLOCK: Self = Self { outcome: ReadOutcome::WouldBlock, effect: Effect::None };
    const EOF: Self = Self { outcome: ReadOutcome::Eof, effect: Effect::Closed };

    fn data(count: usize, effect: Effect) -> Self {
        Self { outcome: ReadOutcome::Data(count), effect }
    }
}

/// One step of a stream that waits for memory or for its spill file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RetryStep {
    /// It does not wait any more.
    Finished,
    /// It still waits.
    Waiting,
    /// A chunk came back from the spill file: queue it, and take the next step.
    ReadBack,
    /// Read the pipe again; then take the next step, if `again`.
    Resume { again: bool },
}

/// The result of taking a spill file for `Event::Spilled`.
#[derive(Debug)]
pub(super) struct TakenSpill {
    pub(super) file: Option<SpillFile>,
    /// `true` if the bytes that the file refused are now the first chunk in memory. Their output
    /// event comes next.
    pub(super) rest_buffered: bool,
}

/// The outputs of one child.
#[derive(Debug)]
pub(super) struct ChildOutput {
    /// Indexed by `Stream`.
    pub(super) streams: [StreamState; 2],
    pub(super) quota: Arc<MemoryQuota>,
    mode: OutputMode,
    overflow: OverflowPolicy,
    /// `true` if a spill file is handed over as a file.
    pub(super) spill_as_file: bool,
    /// The time of the last activity, from the exit of the child on.
    last_activity: Option<Instant>,
    /// `true` if the child is in the list of those that wait for memory.
    pub(super) waits_for_memory: bool,
    /// The number of bytes that were dropped.
    pub(super) dropped: u64,
}

impl ChildOutput {
    pub(super) fn new(readers: [Option<Reader>; 2], quota: Arc<MemoryQuota>, options: &SpawnOptions) -> Self {
        Self {
            streams: readers.map(StreamState::new),
            quota,
            mode: options.output_mode,
            overflow: options.overflow,
            spill_as_file: options.spill_as_file,
            last_activity: None,
            waits_for_memory: false,
            dropped: 0,
        }
    }

    pub(super) fn stream(&mut self, stream: Stream) -> &mut StreamState {
        &mut self.streams[stream as usize]
    }

    /// Returns whether output is handed over as it arrives.
    pub(super) fn is_streaming(&self) -> bool {
        self.mode == OutputMode::Stream
    }

    /// Hands output over as it arrives from now on. The child blocks while there is no room in memory.
    pub(super) fn start_streaming(&mut self) {
        self.mode = OutputMode::Stream;
        self.overflow = OverflowPolicy::Block;
    }

    /// Returns the options of the next run: these, with the present way to hand output over.
    pub(super) fn with_modes(&self, options: SpawnOptions) -> SpawnOptions {
        SpawnOptions { output_mode: self.mode, overflow: self.overflow, ..options }
    }

    pub(super) fn is_open(&self) -> bool {
        self.streams.iter().any(StreamState::is_open)
    }

    /// Starts to note activity: the child has exited.
    pub(super) fn watch_activity(&mut self, now: Instant) {
        self.last_activity = Some(now);
    }

    /// Notes that an output was active, or that we did not read it. Without effect before the exit.
    fn note_activity(&mut self) {
        if let Some(at) = &mut self.last_activity {
            *at = Instant::now();
        }
    }

    /// Returns the time of the last activity. `None` before the exit.
    pub(super) fn last_activity(&self) -> Option<Instant> {
        self.last_activity
    }

    /// Returns whether a stream was active since `now`, or is paused: it is not silent then.
    pub(super) fn was_active_since(&self, stream: Stream, now: Instant) -> bool {
        self.streams[stream as usize].is_paused() || self.last_activity.is_some_and(|at| at > now)
    }

    /// Reads a stream once, after a report or without one.
    pub(super) fn read(
        &mut self,
        stream: Stream,
        io: &mut StreamIo,
        report: Option<&Report>,
    ) -> Result<ReadStep> {
        if self.stream(stream).is_forwarding()
            && let Some(step) = self.splice(stream, io)
        {
            return Ok(step);
        }
        // Bytes that were spilled before streaming began are handed over first.
        let is_full = self.stream(stream).is_spilled() || !self.quota.has_room(io.config.read_buffer_bytes);
        if self.overflow == OverflowPolicy::Block && is_full {
            return self.pause_for_memory(stream, io);
        }
        if let Some(step) = self.splice_to_spill(stream, io) {
            return Ok(step);
        }
        let Some(reader) = self.stream(stream).reader() else { return Ok(ReadStep::WOULD_BLOCK) };
        io.buffer.clear();
        let outcome = match report {
            Some(report) => reader.read(&mut io.reactor, report, &mut io.buffer),
            None => reader.drain(&mut io.buffer),
        };
        let outcome = outcome
            .map_err(|error| Error::new("read the output of a child", error).during(Operation::Read))?;
        match outcome {
            ReadOutcome::Data(count) => Ok(ReadStep::data(count, self.store(stream, io)?)),
            ReadOutcome::Eof => {
                self.stream(stream).close(&mut io.reactor);
                Ok(ReadStep::EOF)
            }
            ReadOutcome::WouldBlock => Ok(ReadStep::WOULD_BLOCK),
        }
    }

    /// Moves bytes from the pipe to the file of `forward`, without a copy. Returns `None` if the file
    /// or the kernel refuses: the bytes are still in the pipe, and are read as usual.
    fn splice(&mut self, stream: Stream, io: &mut StreamIo) -> Option<ReadStep> {
        let state = &mut self.streams[stream as usize];
        let (reader, file) = state.reader_and_forward()?;
        match reader.forward(file) {
            Ok(ReadOutcome::Data(count)) => {
                let effect = if state.forwarded == 0 { Effect::QueueForwarded } else { Effect::None };
                state.forwarded += count as u64;
                self.note_activity();
                Some(ReadStep::data(count, effect))
            }
            Ok(ReadOutcome::Eof) => {
                state.close(&mut io.reactor);
                Some(ReadStep::EOF)
            }
            Ok(ReadOutcome::WouldBlock) => Some(ReadStep::WOULD_BLOCK),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                // The file accepts no bytes, so the child is not silent. The set waits for a file at
                // most once in each poll, so that the waits for many files do not add up.
                if let Some(mut wait) = io.splice_wait.take() {
                    if let Some(until) = io.poll_until {
                        wait = wait.min(until.saturating_duration_since(Instant::now()));
                    }
                    reader.wait_for_room(file, wait);
                }
                self.note_activity();
                Some(ReadStep { outcome: ReadOutcome::WouldBlock, effect: Effect::KeepTurn })
            }
            Err(_) => {
                state.forward = None;
                None
            }
        }
    }

    /// Moves bytes from the pipe to the spill file, without a copy, if the stream has one and its
    /// output is kept until the exit. Returns `None` if that is not so, or the file or the kernel
    /// refuses: the bytes are read as usual.
    fn splice_to_spill(&mut self, stream: Stream, io: &mut StreamIo) -> Option<ReadStep> {
        let is_streaming = self.is_streaming();
        let state = self.stream(stream);
        if state.splice_unsupported || is_streaming || !state.unwritten.is_empty() {
            return None;
        }
        let (reader, spill) = state.reader_and_spill()?;
        match spill.splice_from(reader) {
            Ok(ReadOutcome::Eof) => {
                state.close(&mut io.reactor);
                Some(ReadStep::EOF)
            }
            Ok(ReadOutcome::Data(count)) => {
                self.note_activity();
                Some(ReadStep::data(count, Effect::None))
            }
            Ok(ReadOutcome::WouldBlock) => Some(ReadStep::WOULD_BLOCK),
            Err(_) => {
                state.splice_unsupported = true;
                None
            }
        }
    }

    /// Stores the bytes of the last read: in memory, in the spill file, or by dropping the oldest.
    fn store(&mut self, stream: Stream, io: &mut StreamIo) -> Result<Effect> {
        self.note_activity();
        let count = io.buffer.len();
        let must_spill = self.overflow == OverflowPolicy::Spill && !self.quota.has_strict_room(count);
        if must_spill || self.stream(stream).is_spilled() {
            return self.spill(stream, io);
        }
        while self.overflow == OverflowPolicy::DropOldest && !self.quota.has_strict_room(count) {
            // The oldest chunk of this stream, or of the other. If there is none, the caller holds
            // all chunks of the child, and the bytes that were just read are the oldest here.
            let [own, other] = [stream as usize, 1 - stream as usize];
            let oldest =
                self.streams[own].buffered.pop_front().or_else(|| self.streams[other].buffered.pop_front());
            match oldest {
                Some(chunk) => self.dropped += chunk.len() as u64,
                None if self.quota.has_room(count) => break,
                None => {
                    self.dropped += count as u64;
                    return Ok(Effect::None);
                }
            }
        }
        self.buffer(stream, io);
        Ok(if self.is_streaming() { Effect::QueueOutput } else { Effect::None })
    }

    /// Keeps the bytes of the last read in memory: in the last chunk if they fit into it, else in a
    /// new one.
    fn buffer(&mut self, stream: Stream, io: &mut StreamIo) {
        let buffered = &mut self.streams[stream as usize].buffered;
        if buffered.back_mut().is_some_and(|last| last.extend_within(&io.buffer)) {
            return;
        }
        let full = io.config.read_buffer_bytes;
        let bytes = if io.buffer.len() * 2 > full {
            // Handing the buffer over is cheaper than copying that much.
            std::mem::replace(&mut io.buffer, io.budget.buffer())
        } else {
            // A child that keeps writing gets larger and larger chunks.
            let grown = buffered.back().map_or(0, |last| last.len() * 2).min(full);
            let mut bytes = Vec::with_capacity(io.buffer.len().max(grown).max(CHUNK_MIN));
            bytes.extend_from_slice(&io.buffer);
            bytes
        };
        buffered.push_back(Chunk::new(bytes, &self.quota));
    }

    /// Writes the bytes of the last read to the spill file. If that fails, they are kept in
    /// `unwritten` and the stream is paused, so that there are never more of them.
    fn spill(&mut self, stream: Stream, io: &mut StreamIo) -> Result<Effect> {
        let is_streaming = self.is_streaming();
        let state = &mut self.streams[stream as usize];
        let pushed = match &mut state.spill {
            Some(spill) => spill.push(&io.buffer),
            // A new file stays in the stream even if it accepts nothing: it may have a name, and has
            // to be removed then.
            None => SpillBuffer::create(&io.config, &mut io.spill_number)
                .and_then(|spill| state.spill.insert(spill).push(&io.buffer)),
        };
        if let Err(error) = pushed {
            state.unwritten.append(&mut io.buffer);
            state.pause(&mut io.reactor).map_err(pause_failed)?;
            return Ok(Effect::SpillRefused(error));
        }
        // While a stream spills, the child is among those that wait for memory, so that the bytes are
        // read back when there is room.
        let waits = is_streaming && !self.waits_for_memory;
        Ok(if waits { Effect::WaitForMemory } else { Effect::None })
    }

    /// Pauses a stream until there is room in memory.
    fn pause_for_memory(&mut self, stream: Stream, io: &mut StreamIo) -> Result<ReadStep> {
        self.stream(stream).pause(&mut io.reactor).map_err(pause_failed)?;
        // We stop reading, so the child is not silent, even if there is room in a moment.
        self.note_activity();
        Ok(ReadStep { outcome: ReadOutcome::WouldBlock, effect: Effect::WaitForMemory })
    }

    /// Takes the next step of a stream that waits for memory or for its spill file.
    pub(super) fn retry(&mut self, stream: Stream, io: &mut StreamIo) -> Result<RetryStep> {
        let is_streaming = self.is_streaming();
        let state = &self.streams[stream as usize];
        if !(state.is_paused() || state.is_spilled()) {
            return Ok(RetryStep::Finished);
        }
        if state.spill_queued {
            return Ok(RetryStep::Waiting);
        }
        let has_unwritten = !state.unwritten.is_empty();
        if is_streaming && self.quota.has_room(io.config.read_buffer_bytes) {
            if self.read_back(stream, io)? {
                return Ok(RetryStep::ReadBack);
            }
        } else if has_unwritten && self.overflow != OverflowPolicy::Block {
            self.write_unwritten(stream, io)?;
        } else if is_streaming {
            return Ok(RetryStep::Waiting);
        }
        Ok(RetryStep::Resume { again: is_streaming })
    }

    /// Returns whether every output waits for chunks to be dropped that the caller keeps.
    pub(super) fn is_starved(&self, read_size: usize) -> bool {
        self.waits_for_memory
            && self.overflow == OverflowPolicy::Block
            && !self.quota.has_room(read_size)
            && self.streams.iter().any(StreamState::is_paused)
            // One that is still read is paused by the next report.
            && self.streams.iter().all(|stream| stream.buffered.is_empty())
    }

    /// Writes the bytes that the spill file refused before.
    fn write_unwritten(&mut self, stream: Stream, io: &mut StreamIo) -> Result<()> {
        let state = self.stream(stream);
        let spill = match state.spill.take() {
            Some(spill) => spill,
            None => SpillBuffer::create(&io.config, &mut io.spill_number)?,
        };
        state.spill.insert(spill).push(&state.unwritten)?;
        state.unwritten.clear();
        Ok(())
    }

    /// Moves one chunk from the spill file to memory. Returns whether there was one.
    pub(super) fn read_back(&mut self, stream: Stream, io: &StreamIo) -> Result<bool> {
        let state = &mut self.streams[stream as usize];
        let mut bytes = io.budget.buffer();
        let count = match &mut state.spill {
            Some(spill) => spill.pop(&mut bytes)?,
            None => 0,
        };
        if count == 0 {
            if state.unwritten.is_empty() {
                return Ok(false);
            }
            bytes = std::mem::take(&mut state.unwritten);
        }
        state.buffered.push_back(Chunk::new(bytes, &self.quota));
        Ok(true)
    }

    /// Takes the oldest chunk of a stream, for an event. `None` if it was dropped to make room.
    pub(super) fn take_chunk(&mut self, stream: Stream) -> Option<Chunk> {
        let state = self.stream(stream);
        state.queued_events -= 1;
        state.buffered.pop_front()
    }

    /// Takes the number of bytes that were forwarded, if there are any.
    pub(super) fn take_forwarded(&mut self, stream: Stream) -> Option<u64> {
        self.stream(stream).take_forwarded()
    }

    /// Takes the spill file of a stream. The bytes that it refused follow from memory: one full disk
    /// must not delay the other children.
    pub(super) fn take_spill_file(&mut self, stream: Stream) -> TakenSpill {
        let state = &mut self.streams[stream as usize];
        state.spill_queued = false;
        let rest_buffered = !state.unwritten.is_empty();
        if rest_buffered {
            let rest = std::mem::take(&mut state.unwritten);
            state.buffered.push_front(Chunk::new(rest, &self.quota));
            state.queued_events += 1;
        }
        let spill = state.spill.take_if(|spill| spill.len() > 0);
        TakenSpill { file: spill.map(SpillBuffer::into_spill_file), rest_buffered }
    }

    /// Takes the end of a stream if it is due while the child runs: the output is handed over as it
    /// arrives, and no spilled bytes are left.
    pub(super) fn take_streamed_eof(&mut self, stream: Stream) -> bool {
        self.is_streaming() && !self.stream(stream).is_spilled() && self.stream(stream).take_eof()
    }
}

pub(super) fn pause_failed(error: std::io::Error) -> Error {
    Error::new("pause a child", error).during(Operation::Read)
}
