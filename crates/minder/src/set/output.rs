//! Hearing one child: from a report to bytes in memory, in a file, or dropped, and on to the caller
//! when there is room.

use std::time::Instant;

use super::spill::SpillBuffer;
use super::{
    ChildSet, Chunk, Error, INTERVAL_MIN, Kind, OutputMode, OverflowPolicy, QueuedEvent, Report, Result,
    Stream, Token,
};
use crate::sys::error::is_registration_limit;
use crate::sys::pipe::ReadOutcome;

impl ChildSet {
    /// Arms the outputs that are not held.
    pub(super) fn register_streams(&mut self, token: Token) -> std::io::Result<()> {
        let tokens = [Kind::Stdout, Kind::Stderr].map(|kind| self.children.port_token(token, kind));
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        for (out, token) in kid.streams.iter_mut().zip(tokens) {
            if let Some(reader) = out.reader.as_mut().filter(|_| !out.paused) {
                reader.register(&mut self.reactor, token)?;
            }
        }
        Ok(())
    }

    /// The child's input takes bytes again.
    pub(super) fn writable(&mut self, token: Token, report: &Report) -> Result<()> {
        let Some(writer) = self.children.get_mut(token).and_then(|kid| kid.stdin.as_mut()) else {
            return Ok(());
        };
        if writer.ready(&mut self.reactor, report).map_err(|error| Error::new("write to a child", error))? {
            self.events.push_back(QueuedEvent::Writable(token));
        }
        Ok(())
    }

    /// One read of a stream, by a report or (after the exit) without.
    pub(super) fn readable(
        &mut self,
        token: Token,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<ReadOutcome> {
        let Some(kid) = self.children.get(token) else { return Ok(ReadOutcome::WouldBlock) };
        let out = &kid.streams[stream as usize];
        if out.reader.is_none() || out.paused || !self.has_turn(token, stream)? {
            return Ok(ReadOutcome::WouldBlock);
        }
        let progress = self.read(token, stream, report)?;
        if let ReadOutcome::Data(count) = progress {
            self.count_turn(token, count as u64);
        }
        Ok(progress)
    }

    /// One read of a stream that may be read.
    pub(super) fn read(
        &mut self,
        token: Token,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<ReadOutcome> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(ReadOutcome::WouldBlock) };
        let out = &mut kid.streams[stream as usize];
        if out.forwards() {
            return self.splice_output(token, stream, report);
        }
        // What is in a file since before it went live is brought back first.
        let full = out.spilled() || !kid.quota.has_room(self.limits.read_buffer_bytes);
        if kid.options.overflow == OverflowPolicy::Block && full {
            return self.pause_for_memory(token, stream);
        }
        if let Some(progress) = self.store(token, stream) {
            return Ok(progress);
        }
        let Some(kid) = self.children.get_mut(token) else { return Ok(ReadOutcome::WouldBlock) };
        let Some(reader) = &mut kid.streams[stream as usize].reader else {
            return Ok(ReadOutcome::WouldBlock);
        };
        self.buffer.clear();
        let progress = match report {
            Some(report) => reader.read(&mut self.reactor, report, &mut self.buffer),
            None => reader.drain(&mut self.buffer),
        };
        match progress.map_err(|error| Error::new("read the output of a child", error))? {
            ReadOutcome::Data(count) => self.buffer_chunk(token, stream).map(|()| ReadOutcome::Data(count)),
            ReadOutcome::Eof => {
                self.handle_eof(token, stream);
                Ok(ReadOutcome::Eof)
            }
            ReadOutcome::WouldBlock => Ok(ReadOutcome::WouldBlock),
        }
    }

    /// Moves what is there straight to the stream's file, if it has one already and its output is
    /// kept until the end. What the file or the system refuses is read as usual.
    fn store(&mut self, token: Token, stream: Stream) -> Option<ReadOutcome> {
        let kid = self.children.get_mut(token)?;
        let out = &mut kid.streams[stream as usize];
        if out.splice_unsupported
            || kid.options.output_mode == OutputMode::Stream
            || !out.unwritten.is_empty()
        {
            return None;
        }
        let spill = out.spill.as_mut().filter(|spill| spill.len() > 0)?;
        match spill.store(out.reader.as_mut()?) {
            Ok(ReadOutcome::Eof) => self.handle_eof(token, stream),
            Ok(ReadOutcome::Data(count)) => {
                kid.last_activity = kid.exit.map(|_| Instant::now());
                return Some(ReadOutcome::Data(count));
            }
            Ok(ReadOutcome::WouldBlock) => return Some(ReadOutcome::WouldBlock),
            Err(_) => {
                out.splice_unsupported = true;
                return None;
            }
        }
        Some(ReadOutcome::Eof)
    }

    /// Keeps what was read last: in memory, in the file, or by dropping what is oldest.
    pub(super) fn buffer_chunk(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        if kid.exit.is_some() {
            kid.last_activity = Some(Instant::now());
        }
        let fits = kid.quota.has_strict_room(self.buffer.len());
        if kid.streams[stream as usize].spilled() || (kid.options.overflow == OverflowPolicy::Spill && !fits)
        {
            return self.spill(token, stream);
        }
        while kid.options.overflow == OverflowPolicy::DropOldest
            && !kid.quota.has_strict_room(self.buffer.len())
        {
            // Its own oldest, from this stream or the other. Without any, all of its share is in the caller's
            // hands, and the oldest that is not is what just came.
            let [own, other] = [stream as usize, 1 - stream as usize];
            let oldest =
                kid.streams[own].buffered.pop_front().or_else(|| kid.streams[other].buffered.pop_front());
            match oldest {
                Some(chunk) => kid.dropped += chunk.len() as u64,
                None if kid.quota.has_room(self.buffer.len()) => break,
                None => {
                    kid.dropped += self.buffer.len() as u64;
                    return Ok(());
                }
            }
        }
        let budget = &self.budget;
        let live = kid.options.output_mode == OutputMode::Stream;
        kid.buffer(stream, &mut self.buffer, || budget.buffer(), self.limits.read_buffer_bytes);
        if live {
            self.queue_output(token, stream);
        }
        Ok(())
    }

    /// Writes what was read last to the stream's file. If that fails, it is kept apart and the
    /// child is held.
    pub(super) fn spill(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        let out = &mut kid.streams[stream as usize];
        let live = kid.options.output_mode == OutputMode::Stream;
        let pushed = match &mut out.spill {
            Some(spill) => spill.push(&self.buffer),
            // It stays even if it takes nothing: one with a name must not be forgotten.
            None => SpillBuffer::create(&self.limits, &mut self.spill_count)
                .and_then(|spill| out.spill.insert(spill).push(&self.buffer)),
        };
        if let Err(error) = pushed {
            out.unwritten.append(&mut self.buffer);
            if let Some(reader) = &mut out.reader {
                reader.pause(&mut self.reactor).map_err(|error| Error::new("hold a child", error))?;
            }
            (out.paused, self.unwritten) = (true, true);
            if !std::mem::replace(&mut kid.waiting_for_memory, true) {
                self.memory_waiters.push(token);
            }
            return Err(error);
        }
        if live && !std::mem::replace(&mut kid.waiting_for_memory, true) {
            self.memory_waiters.push(token);
            self.budget.request_wakeup();
            self.retry_paused()?;
        }
        Ok(())
    }

    /// Stops reading a stream until there is room.
    pub(super) fn pause_for_memory(&mut self, token: Token, stream: Stream) -> Result<ReadOutcome> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(ReadOutcome::WouldBlock) };
        let out = &mut kid.streams[stream as usize];
        if let Some(reader) = &mut out.reader {
            reader.pause(&mut self.reactor).map_err(|error| Error::new("hold a child", error))?;
            out.paused = true;
        }
        if kid.exit.is_some() {
            // It is we who do not listen: there may be room in a moment, and that must not look like silence.
            kid.last_activity = Some(Instant::now());
        }
        if !std::mem::replace(&mut kid.waiting_for_memory, true) {
            self.memory_waiters.push(token);
        }
        // Asked first, looked second: room that came in between is seen by the look.
        self.budget.request_wakeup();
        self.retry_paused()?;
        Ok(ReadOutcome::WouldBlock)
    }

    /// Serves the children that wait for room, as far as there is some.
    pub(super) fn retry_paused(&mut self) -> Result<()> {
        if self.memory_waiters.is_empty() {
            return Ok(());
        }
        self.budget.request_wakeup();
        let mut result = Ok(());
        for token in std::mem::take(&mut self.memory_waiters) {
            let streams = [(Kind::Stdout, Stream::Stdout), (Kind::Stderr, Stream::Stderr)];
            let mut waits = false;
            for (kind, stream) in streams {
                let port_token = self.children.port_token(token, kind);
                match self.retry_paused_stream(token, stream, port_token) {
                    Ok(more) => waits |= more,
                    Err(error) => {
                        (waits, self.unwritten) = (true, true);
                        result = result.and(Err(error));
                    }
                }
            }
            if let Some(kid) = self.children.get_mut(token) {
                kid.waiting_for_memory = waits;
                if waits {
                    self.memory_waiters.push(token);
                }
            }
        }
        result
    }

    /// Goes on with one stream; says whether it still waits for room.
    pub(super) fn retry_paused_stream(
        &mut self,
        token: Token,
        stream: Stream,
        port_token: u64,
    ) -> Result<bool> {
        let piece = self.limits.read_buffer_bytes;
        loop {
            let Some(kid) = self.children.get_mut(token) else { return Ok(false) };
            let out = &mut kid.streams[stream as usize];
            if kid.done_queued || (!out.paused && !out.spilled()) {
                return Ok(false);
            }
            if out.spill_queued {
                return Ok(true);
            }
            let live = kid.options.output_mode == OutputMode::Stream;
            if live && kid.quota.has_room(piece) {
                if self.read_back(token, stream)? {
                    self.queue_output(token, stream);
                    self.queue_eof(token, stream);
                    continue;
                }
            } else if !out.unwritten.is_empty() && kid.options.overflow != OverflowPolicy::Block {
                self.write_unwritten(token, stream)?;
            } else if live {
                return Ok(true);
            }
            self.read_on(token, stream, port_token)?;
            if !live {
                return Ok(false);
            }
        }
    }

    /// Listens again to a stream that was held.
    pub(super) fn read_on(&mut self, token: Token, stream: Stream, port_token: u64) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        let out = &mut kid.streams[stream as usize];
        let listened = match out.reader.as_mut().filter(|_| out.paused) {
            Some(reader) => reader.register(&mut self.reactor, port_token),
            None => Ok(()),
        };
        match listened {
            Err(error) if !is_registration_limit(&error) => Err(Error::new("read on", error)),
            listened => {
                out.paused = false;
                if listened.is_err() {
                    self.defer_read(token, INTERVAL_MIN);
                }
                Ok(())
            }
        }
    }

    /// Tries once more to write what the stream's file did not take.
    pub(super) fn write_unwritten(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        let out = &mut kid.streams[stream as usize];
        let spill = match out.spill.take() {
            Some(spill) => spill,
            None => SpillBuffer::create(&self.limits, &mut self.spill_count)?,
        };
        out.spill.insert(spill).push(&out.unwritten)?;
        out.unwritten.clear();
        Ok(())
    }

    /// Brings one piece back from the stream's file into memory; says whether there was one.
    pub(super) fn read_back(&mut self, token: Token, stream: Stream) -> Result<bool> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(false) };
        let out = &mut kid.streams[stream as usize];
        let mut bytes = self.budget.buffer();
        let brought = out.spill.as_mut().map_or(Ok(0), |spill| spill.pop(&mut bytes))?;
        if brought == 0 {
            if out.unwritten.is_empty() {
                return Ok(false);
            }
            bytes = std::mem::take(&mut out.unwritten);
        }
        out.buffered.push_back(Chunk::new(bytes, &kid.quota));
        Ok(true)
    }

    /// A stream is at its end.
    pub(super) fn handle_eof(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.children.get_mut(token) else { return };
        if let Some(reader) = kid.streams[stream as usize].reader.take() {
            let _ = reader.close(&mut self.reactor);
        }
        self.queue_eof(token, stream);
        self.finish_if_drained(token);
    }

    /// Queues a notice for each piece that waits and has none.
    pub(super) fn queue_output(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.children.get_mut(token) else { return };
        let out = &mut kid.streams[stream as usize];
        while out.queued_events < out.buffered.len() {
            out.queued_events += 1;
            self.events.push_back(QueuedEvent::Output(token, stream));
        }
    }

    /// Tells the end of a live stream, once all of it was.
    pub(super) fn queue_eof(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.children.get_mut(token) else { return };
        let out = &mut kid.streams[stream as usize];
        let live = kid.options.output_mode == OutputMode::Stream;
        if live && out.reader.is_none() && out.eof_pending && !out.spilled() {
            out.eof_pending = false;
            self.events.push_back(QueuedEvent::Eof(token, stream));
        }
    }
}
