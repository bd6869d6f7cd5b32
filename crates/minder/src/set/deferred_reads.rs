//! Deferred reads: the outputs of young children are polled now and then before they are registered
//! with the backend. Pipes for which the backend has no room are polled in the same way.
//!
//! Registering and removing two pipes are four system calls. A child that exits within milliseconds
//! needs none of them: its outputs are read at its exit.

use std::time::{Duration, Instant};

use super::child_set::ChildSet;
use super::slab::Endpoint;
use super::timers::{DeferredRead, INTERVAL_MIN};
use crate::event::{ChildId, Stream};
use crate::sys::error::is_registration_limit;
use crate::sys::pipe::ReadOutcome;
use crate::{Error, Operation, Result};

/// From this interval on, a silent child is registered instead of being polled again.
const INTERVAL_MAX: Duration = Duration::from_millis(16);

impl ChildSet {
    /// Polls the outputs of a child after `interval`, unless a poll is due already.
    pub(super) fn defer_read(&mut self, id: ChildId, interval: Duration) {
        let child = self.children.get_mut(id);
        if child.is_none_or(|child| std::mem::replace(&mut child.read_deferred, true)) {
            return;
        }
        let due = Instant::now() + interval;
        self.deferred_reads.push(DeferredRead { id, due, interval });
        self.timers.schedule_deferred_reads(due);
    }

    /// Registers the outputs of a child with the backend. If the backend is full, the outputs are
    /// polled after `interval`, until it has room.
    pub(super) fn register_streams(&mut self, id: ChildId, interval: Duration) -> std::io::Result<()> {
        let keys = [Stream::Stdout, Stream::Stderr].map(|stream| self.children.key(id, stream.into()));
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        for (stream, key) in child.streams.iter_mut().zip(keys) {
            if let Err(error) = stream.register(&mut self.io.reactor, key) {
                self.defer_read(id, interval);
                return if is_registration_limit(&error) { Ok(()) } else { Err(error) };
            }
        }
        Ok(())
    }

    /// Polls the outputs that are due. A child that wrote something is registered with the backend. A
    /// silent child is polled again after twice the time, and registered in the end: most children
    /// that exit soon have exited by then.
    pub(super) fn poll_deferred_reads(&mut self, now: Instant) -> Result<()> {
        let mut result = Ok(());
        for deferred in std::mem::take(&mut self.deferred_reads) {
            let DeferredRead { id, due, interval } = deferred;
            if due > now {
                self.deferred_reads.push(deferred);
                self.timers.schedule_deferred_reads(due);
                continue;
            }
            let mut is_silent = interval < INTERVAL_MAX;
            let mut has_data = false;
            for stream in [Stream::Stdout, Stream::Stderr] {
                let outcome = self.on_readable(id, stream, None);
                has_data |= matches!(outcome, Ok(ReadOutcome::Data(_)));
                is_silent &= matches!(outcome, Ok(ReadOutcome::WouldBlock | ReadOutcome::Eof));
                result = result.and(outcome.map(drop));
            }
            let stdin_waits = self.poll_stdin(id);
            let Some(child) = self.children.get_mut(id) else { continue };
            child.read_deferred = false;
            if is_silent && !child.has_exited() {
                self.defer_read(id, interval * 2);
                continue;
            }
            // If the backend is still full, the outputs are polled again. No child is forgotten.
            let interval = if has_data { INTERVAL_MIN } else { (interval * 2).min(INTERVAL_MAX) };
            if let Err(error) = self.register_streams(id, interval) {
                result = result.and(Err(watch_failed(error)));
            }
            match stdin_waits {
                Ok(true) => self.defer_read(id, interval),
                Ok(false) => (),
                Err(error) => result = result.and(Err(error)),
            }
        }
        result
    }

    /// Reads the streams of a child again that were paused until its turn. One whose spill file refused bytes
    /// waits for that file.
    pub(super) fn resume_child(&mut self, id: ChildId) -> Result<()> {
        let mut result = Ok(());
        for stream in [Stream::Stdout, Stream::Stderr] {
            let state = self.children.get(id).map(|child| &child.streams[stream as usize]);
            if state.is_some_and(|state| state.unwritten.is_empty()) {
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

    /// Polls the input of a child for room, if the backend had none for it. Returns whether it has to
    /// be polled again.
    fn poll_stdin(&mut self, id: ChildId) -> Result<bool> {
        let key = self.children.key(id, Endpoint::Stdin);
        let Some(writer) = self.children.get_mut(id).and_then(|child| child.stdin.as_mut()) else {
            return Ok(false);
        };
        if !writer.is_unwatched() {
            return Ok(false);
        }
        let is_ready = writer
            .poll(&mut self.io.reactor, key)
            .map_err(|error| Error::new("write to a child", error).during(Operation::Write))?;
        let waits = writer.is_unwatched();
        if is_ready {
            self.on_room(id)?;
        }
        Ok(waits)
    }
}

pub(super) fn watch_failed(error: std::io::Error) -> Error {
    Error::new("watch a child", error).during(Operation::Watch)
}
