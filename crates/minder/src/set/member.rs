//! One child of a set, and what it does with the state that all children share.
//!
//! `ChildState` and the types in it decide and change only the child. The methods here do what follows
//! from that for the set: they queue events, arm timers, and keep the lists of children that wait for
//! something. They know no other child.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::deferred_reads::DeferredRead;
use super::event::QueuedEvent;
use super::output::{Effect, RetryStep, pause_failed};
use super::shared::SharedState;
use super::slab::Endpoint;
use super::timers::{INTERVAL_MIN, TimerKind};
use crate::event::{ChildId, Event, Stream};
use crate::sys::error::is_registration_limit;
use crate::sys::pipe::ReadOutcome;
use crate::sys::wait::Report;
use crate::{Error, Operation, Result};

/// From this interval on, a silent child is registered instead of being polled again.
const INTERVAL_MAX: Duration = Duration::from_millis(16);

/// One child of a set, with what the children share.
pub(super) struct Member<'a> {
    pub(super) id: ChildId,
    pub(super) child: &'a mut ChildState,
    pub(super) shared: &'a mut SharedState,
}

impl Member<'_> {
    /// Arms a timer. If it is armed for an earlier time, that time stays; the handler then arms it
    /// again.
    pub(super) fn arm(&mut self, kind: TimerKind, at: Instant) {
        self.shared.timers.arm(&mut self.child.armed, self.id, kind, at);
    }

    /// Registers the endpoints of a new child; with a `read_delay` its process alone at first.
    pub(super) fn watch(&mut self) -> std::io::Result<()> {
        let key = Endpoint::Process.key(self.id);
        self.child.process.watch(&mut self.shared.io.reactor, key)?;
        self.child.started_at = self.shared.thread_time_reads.is_some().then(Instant::now);
        let delay = self.shared.io.config.read_delay;
        if delay.is_zero() {
            return self.register_streams(INTERVAL_MIN);
        }
        self.defer_read(delay);
        Ok(())
    }

    /// Polls the pipes after `interval`, unless a poll is due already.
    pub(super) fn defer_read(&mut self, interval: Duration) {
        self.shared.deferred_reads.add(self.id, self.child, interval);
    }

    /// Registers the outputs with the backend. If the backend is full, they are polled after `interval`,
    /// until it has room.
    pub(super) fn register_streams(&mut self, interval: Duration) -> std::io::Result<()> {
        for stream in Stream::BOTH {
            let key = Endpoint::from(stream).key(self.id);
            let state = self.child.output.stream(stream);
            if let Err(error) = state.register(&mut self.shared.io.reactor, key) {
                self.defer_read(interval);
                return if is_registration_limit(&error) { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    /// Reads a stream once, after a report or without one.
    pub(super) fn read(&mut self, stream: Stream, report: Option<&Report>) -> Result<ReadOutcome> {
        if !self.child.output.stream(stream).is_reading() {
            return Ok(ReadOutcome::WouldBlock);
        }
        if !self.shared.read_turns.may_read(self.id, self.child, stream) {
            let state = self.child.output.stream(stream);
            state.pause(&mut self.shared.io.reactor).map_err(pause_failed)?;
            return Ok(ReadOutcome::WouldBlock);
        }
        let step = self.child.output.read(stream, &mut self.shared.io, report)?;
        self.apply(stream, step.effect)?;
        if let ReadOutcome::Data(count) = step.outcome {
            self.shared.read_turns.count(self.id, self.child, count as u64);
        }
        Ok(step.outcome)
    }

    fn apply(&mut self, stream: Stream, effect: Effect) -> Result<()> {
        match effect {
            Effect::None => (),
            Effect::QueueOutput => self.shared.events.push_output(self.id, self.child, stream),
            Effect::QueueForwarded => self.shared.events.push(QueuedEvent::Forwarded(self.id, stream)),
            Effect::Closed => self.end_stream(stream),
            Effect::WaitForMemory => {
                self.shared.memory_waiters.add(self.id, self.child);
                self.shared.memory_waiters.retry_now();
            }
            Effect::SpillRefused(error) => {
                self.shared.memory_waiters.retry_due = true;
                self.shared.memory_waiters.add(self.id, self.child);
                return Err(error);
            }
            Effect::KeepTurn => self.shared.read_turns.keep(self.id, self.child),
        }
        Ok(())
    }

    /// Queues the end of a stream that was closed, and the end of the child if that was all.
    pub(super) fn end_stream(&mut self, stream: Stream) {
        self.shared.events.push_eof(self.id, self.child, stream);
        self.shared.events.push_drain(self.id, self.child);
    }

    /// Polls the pipes. A child that wrote something is registered with the backend. A silent child is
    /// polled again after twice the time, and registered in the end: most children that exit soon have
    /// exited by then.
    pub(super) fn poll_deferred(&mut self, deferred: DeferredRead) -> Result<()> {
        let DeferredRead { interval, .. } = deferred;
        let mut result = Ok(());
        let mut is_silent = interval < INTERVAL_MAX;
        let mut has_data = false;
        for stream in Stream::BOTH {
            let outcome = self.read(stream, None);
            has_data |= matches!(outcome, Ok(ReadOutcome::Data(_)));
            is_silent &= matches!(outcome, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof));
            result = result.and(outcome.map(drop));
        }
        let has_room = self.child.input.poll(&mut self.shared.io.reactor, Endpoint::Stdin.key(self.id));
        result = result.and(has_room.map(|has_room| self.shared.events.push_room(self.id, has_room)));
        self.child.read_deferred = false;
        if is_silent && !self.child.has_exited() {
            self.defer_read(interval * 2);
            return result;
        }
        // If the backend is still full, the outputs are polled again. No child is forgotten.
        let interval = if has_data { INTERVAL_MIN } else { (interval * 2).min(INTERVAL_MAX) };
        result = result.and(self.register_streams(interval).map_err(watch_failed));
        self.poll_input_later(interval);
        result
    }

    /// Handles a report about the standard input.
    pub(super) fn handle_input(&mut self, report: &Report) -> Result<()> {
        let key = Endpoint::Stdin.key(self.id);
        let has_room = self.child.input.handle(&mut self.shared.io.reactor, key, report)?;
        self.shared.events.push_room(self.id, has_room);
        self.poll_input_later(INTERVAL_MIN);
        Ok(())
    }

    /// Polls the standard input for room after `interval`, if the backend has none for it. Returns whether
    /// it does.
    pub(super) fn poll_input_later(&mut self, interval: Duration) -> bool {
        let is_unwatched = self.child.input.is_unwatched();
        if is_unwatched {
            self.defer_read(interval);
        }
        is_unwatched
    }

    /// Reads streams again that were paused until the child's turn. One whose spill file refused bytes
    /// waits for that file.
    pub(super) fn resume_streams(&mut self) -> Result<()> {
        let mut result = Ok(());
        for stream in Stream::BOTH {
            if self.child.output.stream(stream).unwritten.is_empty() {
                result = result.and(self.resume_stream(stream));
            }
        }
        result
    }

    /// Reads a paused stream again. If the backend has no room for it, the stream is polled.
    fn resume_stream(&mut self, stream: Stream) -> Result<()> {
        let key = Endpoint::from(stream).key(self.id);
        let is_registered = self
            .child
            .output
            .stream(stream)
            .resume(&mut self.shared.io.reactor, key)
            .map_err(|error| Error::new("resume reading a child", error).during(Operation::Read))?;
        if !is_registered {
            self.defer_read(INTERVAL_MIN);
        }
        Ok(())
    }

    /// Takes the spill file of a stream. `None` if there is none: the bytes that it refused are then
    /// next in the queue.
    pub(super) fn take_spill_file(&mut self, stream: Stream) -> Option<Event> {
        let taken = self.child.output.take_spill_file(stream);
        if taken.rest_buffered {
            self.shared.events.push_first(QueuedEvent::Output(self.id, stream));
        }
        if !self.child.is_draining() {
            // The next poll resumes the stream, which was paused while bytes waited.
            self.shared.memory_waiters.retry_due = true;
            self.shared.events.push_eof(self.id, self.child, stream);
        }
        taken.file.map(|file| Event::Spilled { child: self.id, stream, file })
    }

    /// Hands output over as it arrives from now on, after the output that is kept.
    pub(super) fn start_streaming(&mut self) -> Result<()> {
        self.child.output.start_streaming();
        self.leave_turns()?;
        for stream in Stream::BOTH {
            self.shared.events.push_output(self.id, self.child, stream);
            let is_file = self.child.output.spill_as_file;
            let state = self.child.output.stream(stream);
            if state.is_spilled() {
                state.spill_queued = is_file;
                if is_file {
                    self.shared.events.push(QueuedEvent::Spilled(self.id, stream));
                }
                self.shared.memory_waiters.add(self.id, self.child);
            }
            self.shared.events.push_eof(self.id, self.child, stream);
        }
        Ok(())
    }

    /// Leaves the turns: the child does not need one any more, or is done.
    pub(super) fn leave_turns(&mut self) -> Result<()> {
        let is_paused = self.shared.read_turns.leave(self.id, self.child);
        if is_paused { self.resume_streams() } else { Ok(()) }
    }

    /// Tries the streams again that wait for memory or for their spill file.
    pub(super) fn retry_paused(&mut self) -> Result<()> {
        let mut result = Ok(());
        let mut waits = false;
        for stream in Stream::BOTH {
            match self.retry_stream(stream) {
                Ok(stream_waits) => waits |= stream_waits,
                Err(error) => {
                    waits = true;
                    self.shared.memory_waiters.retry_due = true;
                    result = result.and(Err(error));
                }
            }
        }
        self.shared.memory_waiters.keep(self.id, self.child, waits);
        result
    }

    /// Tries one stream again as far as there is room. Returns whether it still waits.
    fn retry_stream(&mut self, stream: Stream) -> Result<bool> {
        while !self.child.is_draining() {
            match self.child.output.retry(stream, &mut self.shared.io)? {
                RetryStep::Finished => return Ok(false),
                RetryStep::Waiting => return Ok(true),
                RetryStep::ReadBack => {
                    self.shared.events.push_output(self.id, self.child, stream);
                    self.shared.events.push_eof(self.id, self.child, stream);
                }
                RetryStep::Resume { again } => {
                    self.resume_stream(stream)?;
                    if !again {
                        return Ok(false);
                    }
                }
            }
        }
        Ok(false)
    }
}

pub(super) fn watch_failed(error: std::io::Error) -> Error {
    Error::new("watch a child", error).during(Operation::Watch)
}
