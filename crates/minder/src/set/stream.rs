//! One output of a child: its pipe, and the bytes that wait for the caller.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::config::ChildSetOptions;
use super::spill::SpillBuffer;
use crate::chunk::{Chunk, MemoryBudget};
use crate::sys::error::is_registration_limit;
use crate::sys::pipe::Reader;
use crate::sys::reactor::Reactor;

/// The state that the streams of all children use together. It belongs to the set.
#[derive(Debug)]
pub(super) struct StreamIo {
    pub(super) reactor: Reactor,
    pub(super) config: ChildSetOptions,
    pub(super) budget: Arc<MemoryBudget>,
    /// The bytes of the last read. Its capacity is the size of a read.
    pub(super) buffer: Vec<u8>,
    /// The number in the name of the next spill file.
    pub(super) spill_number: u64,
    /// The time that this call of `poll_once` may still wait for files that accept no forwarded bytes.
    pub(super) splice_wait: Option<Duration>,
    /// The time at which this call of `poll_once` ends at the latest.
    pub(super) poll_until: Option<Instant>,
}

/// The life of a stream's pipe. It only moves down, except that a paused stream can be resumed.
#[derive(Debug)]
enum PipeState {
    /// The pipe is read when the reactor, or the timer of deferred reads, reports it.
    Reading(Reader),
    /// The pipe is open and not read, because there is no room or the child waits for its turn.
    Paused(Reader),
    /// The pipe is closed, and `Event::Eof` is not queued yet.
    AtEof,
    /// There was no pipe, or `Event::Eof` is queued.
    Closed,
}

/// One output of a child.
#[derive(Debug)]
pub(super) struct StreamState {
    pipe: PipeState,
    /// Our side of a terminal that no process has open any more. It stays open until the child is
    /// done: if it were closed while the child closes the other side, the kernel would send SIGHUP.
    pub(super) hung_up: Option<Reader>,
    /// Bytes in memory, oldest first. Those in the spill file follow them.
    pub(super) buffered: VecDeque<Chunk>,
    /// The number of queued output events. After a chunk was dropped this is more than there are
    /// chunks; the next chunk uses the event that is left.
    pub(super) queued_events: usize,
    pub(super) spill: Option<SpillBuffer>,
    /// Bytes that the spill file refused. They follow those in the file. The stream is paused while
    /// there are any.
    pub(super) unwritten: Vec<u8>,
    /// `true` if `QueuedEvent::Spilled` is queued. Until the caller takes it, spilled bytes stay
    /// where they are.
    pub(super) spill_queued: bool,
    /// `true` if bytes must pass through our memory on their way to the spill file.
    pub(super) splice_unsupported: bool,
    /// The file that receives the bytes without a copy through our memory.
    pub(super) forward: Option<Arc<File>>,
    /// Bytes that went to `forward` since the last `Event::Forwarded`.
    pub(super) forwarded: u64,
}

impl StreamState {
    pub(super) fn new(reader: Option<Reader>) -> Self {
        Self {
            pipe: reader.map_or(PipeState::Closed, PipeState::Reading),
            hung_up: None,
            buffered: VecDeque::new(),
            queued_events: 0,
            spill: None,
            unwritten: Vec::new(),
            spill_queued: false,
            splice_unsupported: false,
            forward: None,
            forwarded: 0,
        }
    }

    /// Returns the open pipe, paused or not.
    pub(super) fn reader(&mut self) -> Option<&mut Reader> {
        match &mut self.pipe {
            PipeState::Reading(reader) | PipeState::Paused(reader) => Some(reader),
            PipeState::AtEof | PipeState::Closed => None,
        }
    }

    /// Returns the open pipe and the file that its bytes are forwarded to.
    pub(super) fn reader_and_forward(&mut self) -> Option<(&mut Reader, &File)> {
        let file = self.forward.as_deref()?;
        match &mut self.pipe {
            PipeState::Reading(reader) | PipeState::Paused(reader) => Some((reader, file)),
            PipeState::AtEof | PipeState::Closed => None,
        }
    }

    /// Returns the open pipe and the spill file, if bytes wait in it.
    pub(super) fn reader_and_spill(&mut self) -> Option<(&mut Reader, &mut SpillBuffer)> {
        let spill = self.spill.as_mut()?;
        match &mut self.pipe {
            PipeState::Reading(reader) | PipeState::Paused(reader) if spill.len() > 0 => {
                Some((reader, spill))
            }
            _ => None,
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.pipe, PipeState::Reading(_) | PipeState::Paused(_))
    }

    pub(super) fn is_reading(&self) -> bool {
        matches!(self.pipe, PipeState::Reading(_))
    }

    pub(super) fn is_paused(&self) -> bool {
        matches!(self.pipe, PipeState::Paused(_))
    }

    /// Returns whether the next bytes go to the file of `forward`: no earlier ones wait here.
    pub(super) fn is_forwarding(&self) -> bool {
        self.forward.is_some() && self.buffered.is_empty() && !self.is_spilled()
    }

    /// Returns whether bytes wait in the spill file, or for it.
    pub(super) fn is_spilled(&self) -> bool {
        self.spill.as_ref().is_some_and(|spill| spill.len() > 0) || !self.unwritten.is_empty()
    }

    /// Registers the pipe with the reactor, unless it is paused or closed.
    pub(super) fn register(&mut self, reactor: &mut Reactor, key: u64) -> io::Result<()> {
        match &mut self.pipe {
            PipeState::Reading(reader) => reader.register(reactor, key),
            PipeState::Paused(_) | PipeState::AtEof | PipeState::Closed => Ok(()),
        }
    }

    /// Stops reading the pipe; the child blocks when it is full. After an error it is still read.
    pub(super) fn pause(&mut self, reactor: &mut Reactor) -> io::Result<()> {
        let PipeState::Reading(reader) = &mut self.pipe else { return Ok(()) };
        reader.pause(reactor)?;
        self.pipe = match std::mem::replace(&mut self.pipe, PipeState::Closed) {
            PipeState::Reading(reader) => PipeState::Paused(reader),
            other => other,
        };
        Ok(())
    }

    /// Reads a paused pipe again. Returns `false` if the backend has no room for it: then the caller
    /// polls the pipe. After an error it is still paused.
    pub(super) fn resume(&mut self, reactor: &mut Reactor, key: u64) -> io::Result<bool> {
        let PipeState::Paused(reader) = &mut self.pipe else { return Ok(true) };
        let registered = match reader.register(reactor, key) {
            Ok(()) => true,
            Err(error) if is_registration_limit(&error) => false,
            Err(error) => return Err(error),
        };
        self.pipe = match std::mem::replace(&mut self.pipe, PipeState::Closed) {
            PipeState::Paused(reader) => PipeState::Reading(reader),
            other => other,
        };
        Ok(registered)
    }

    /// Closes the pipe. `Event::Eof` is then due.
    pub(super) fn close(&mut self, reactor: &mut Reactor) {
        if !self.is_open() {
            return;
        }
        if let PipeState::Reading(mut reader) | PipeState::Paused(mut reader) =
            std::mem::replace(&mut self.pipe, PipeState::AtEof)
        {
            // Both fail only for a descriptor that is not ours.
            if reader.is_hung_up() {
                let _ = reader.pause(reactor);
                self.hung_up = Some(reader);
            } else {
                let _ = reader.close(reactor);
            }
        }
    }

    /// Takes the number of bytes that were forwarded, if there are any.
    pub(super) fn take_forwarded(&mut self) -> Option<u64> {
        let count = std::mem::take(&mut self.forwarded);
        (count > 0).then_some(count)
    }

    /// Returns `true` once, after the pipe was closed: the caller reports `Event::Eof`.
    pub(super) fn take_eof(&mut self) -> bool {
        let is_due = matches!(self.pipe, PipeState::AtEof);
        if is_due {
            self.pipe = PipeState::Closed;
        }
        is_due
    }
}
