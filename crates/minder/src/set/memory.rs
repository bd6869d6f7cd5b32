//! Children that wait for memory, or for a spill file that refused their bytes.
//!
//! Chunks are dropped on any thread. The protocol that no freed room is missed is in `chunk.rs`:
//! the set requests a wake-up first and checks the room afterwards.

use super::child_set::ChildSet;
use super::output::RetryStep;
use crate::event::{ChildId, Stream};
use crate::{Error, ErrorKind, Operation, Result};

impl ChildSet {
    /// Adds a child to those that wait for memory, unless it is one.
    pub(super) fn add_memory_waiter(&mut self, id: ChildId) {
        let child = self.children.get_mut(id);
        if child.is_some_and(|child| !std::mem::replace(&mut child.waits_for_memory, true)) {
            self.memory_waiters.push(id);
        }
    }

    /// Retries the streams that wait for memory or for their spill file.
    pub(super) fn retry_paused(&mut self) -> Result<()> {
        if self.memory_waiters.is_empty() {
            return Ok(());
        }
        // Before the room is checked: room that becomes free in between wakes the set.
        self.io.budget.request_wakeup();
        let mut result = Ok(());
        for id in std::mem::take(&mut self.memory_waiters) {
            let mut waits = false;
            for stream in [Stream::Stdout, Stream::Stderr] {
                match self.retry_paused_stream(id, stream) {
                    Ok(stream_waits) => waits |= stream_waits,
                    Err(error) => {
                        waits = true;
                        self.retry_due = true;
                        result = result.and(Err(error));
                    }
                }
            }
            if let Some(child) = self.children.get_mut(id) {
                child.waits_for_memory = waits;
                if waits {
                    self.memory_waiters.push(id);
                }
            }
        }
        result
    }

    /// Retries one stream as far as there is room. Returns whether it still waits.
    fn retry_paused_stream(&mut self, id: ChildId, stream: Stream) -> Result<bool> {
        loop {
            let Some(child) = self.children.get_mut(id) else { return Ok(false) };
            match child.retry(stream, &mut self.io)? {
                RetryStep::Finished => return Ok(false),
                RetryStep::Waiting => return Ok(true),
                RetryStep::ReadBack => {
                    self.queue_output(id, stream);
                    self.queue_eof(id, stream);
                }
                RetryStep::Resume { again } => {
                    self.resume_stream(id, stream)?;
                    if !again {
                        return Ok(false);
                    }
                }
            }
        }
    }

    /// Fails if all children wait for memory that chunks of the caller hold: a wait in the thread that
    /// keeps them would not end. The caller has taken all events.
    pub(crate) fn check_starved(&self) -> Result<()> {
        if self.memory_waiters.is_empty() || self.memory_waiters.len() < self.children.len() {
            return Ok(());
        }
        let read_size = self.io.config.read_buffer_bytes;
        let is_starved = |id| {
            let child = self.children.get(id);
            child.is_some_and(|child| child.is_starved(read_size) && !self.read_turns.is_waiting(id, child))
        };
        let (true, Some(first)) =
            (self.memory_waiters.iter().all(|id| is_starved(*id)), self.memory_waiters.first())
        else {
            return Ok(());
        };
        let reason = "chunks of output that the caller keeps fill the memory of every child: drop them, or \
                      take their bytes by `Chunk::into_vec`";
        let error = Error::of_kind(ErrorKind::Limit, "wait for", reason).during(Operation::Wait);
        let pid = self.children.get(*first).map(|child| child.process.pid().to_string());
        Err(error.with_subject(pid.unwrap_or_default()))
    }

    /// Ignores an error that no descriptor is free for a spill file, while a child that is being
    /// read may exit and free some. The bytes wait, their stream is paused, and the next poll
    /// retries.
    pub(super) fn ignore_transient(&self, error: Error) -> Result<()> {
        let may_exit = |id| {
            self.children.get(id).is_some_and(|child| {
                self.read_turns.is_waiting(id, child)
                    || child.streams.iter().all(|stream| !stream.is_paused())
            })
        };
        let is_transient = error.kind() == ErrorKind::Exhausted
            && self.retry_due
            && self.children.ids().into_iter().any(may_exit);
        if is_transient { Ok(()) } else { Err(error) }
    }
}
