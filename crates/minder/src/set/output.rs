//! Hearing one child: from a report to bytes in memory, in a file, or dropped, and on to the caller
//! when there is room.

use std::time::Instant;

use super::spill::Spill;
use super::{
    ChildSet, Chunk, Delivery, Error, INTERVAL_MIN, Kind, Notice, Report, Result, Stream, Token, WhenFull,
};
use crate::sys::pipe::Progress;
use crate::sys::wait::is_full;

impl ChildSet {
    /// Arms the outputs that are not held.
    pub(super) fn listen_to_outputs(&mut self, token: Token) -> std::io::Result<()> {
        let tokens = [Kind::Stdout, Kind::Stderr].map(|kind| self.kids.port_token(token, kind));
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        for (out, token) in kid.outs.iter_mut().zip(tokens) {
            if let Some(reader) = out.reader.as_mut().filter(|_| !out.held) {
                reader.listen(&mut self.port, token)?;
            }
        }
        Ok(())
    }

    /// The child's input takes bytes again.
    pub(super) fn writable(&mut self, token: Token, report: &Report) -> Result<()> {
        let Some(writer) = self.kids.get_mut(token).and_then(|kid| kid.stdin.as_mut()) else { return Ok(()) };
        if writer.ready(&mut self.port, report).map_err(|error| Error::new("write to a child", error))? {
            self.notices.push_back(Notice::Writable(token));
        }
        Ok(())
    }

    /// One read of a stream, by a report or (after the exit) without.
    pub(super) fn readable(
        &mut self,
        token: Token,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<Progress> {
        let Some(kid) = self.kids.get(token) else { return Ok(Progress::Nothing) };
        let out = &kid.outs[stream as usize];
        if out.reader.is_none() || out.held || !self.has_turn(token, stream)? {
            return Ok(Progress::Nothing);
        }
        let progress = self.read(token, stream, report)?;
        if let Progress::Bytes(count) = progress {
            self.count_turn(token, count as u64);
        }
        Ok(progress)
    }

    /// One read of a stream that may be read.
    pub(super) fn read(&mut self, token: Token, stream: Stream, report: Option<&Report>) -> Result<Progress> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(Progress::Nothing) };
        let out = &mut kid.outs[stream as usize];
        if out.forwards() {
            return self.pass_on(token, stream, report);
        }
        // What is in a file since before it went live is brought back first.
        let full = out.spilled() || !kid.account.has_room(self.limits.buffer_bytes);
        if kid.options.when_full == WhenFull::Hold && full {
            return self.starve(token, stream);
        }
        if let Some(progress) = self.store(token, stream) {
            return Ok(progress);
        }
        let Some(kid) = self.kids.get_mut(token) else { return Ok(Progress::Nothing) };
        let Some(reader) = &mut kid.outs[stream as usize].reader else { return Ok(Progress::Nothing) };
        self.buffer.clear();
        let progress = match report {
            Some(report) => reader.read(&mut self.port, report, &mut self.buffer),
            None => reader.drain(&mut self.buffer),
        };
        match progress.map_err(|error| Error::new("read the output of a child", error))? {
            Progress::Bytes(count) => self.keep(token, stream).map(|()| Progress::Bytes(count)),
            Progress::Eof => {
                self.ended(token, stream);
                Ok(Progress::Eof)
            }
            Progress::Nothing => Ok(Progress::Nothing),
        }
    }

    /// Moves what is there straight to the stream's file, if it has one already and its output is
    /// kept until the end. What the file or the system refuses is read as usual.
    fn store(&mut self, token: Token, stream: Stream) -> Option<Progress> {
        let kid = self.kids.get_mut(token)?;
        let out = &mut kid.outs[stream as usize];
        if out.copies || kid.options.delivery == Delivery::Live || !out.unsaved.is_empty() {
            return None;
        }
        let spill = out.spill.as_mut().filter(|spill| spill.len() > 0)?;
        match spill.store(out.reader.as_mut()?) {
            Ok(Progress::Eof) => self.ended(token, stream),
            Ok(Progress::Bytes(count)) => {
                kid.busy_at = kid.exit.map(|_| Instant::now());
                return Some(Progress::Bytes(count));
            }
            Ok(Progress::Nothing) => return Some(Progress::Nothing),
            Err(_) => {
                out.copies = true;
                return None;
            }
        }
        Some(Progress::Eof)
    }

    /// Keeps what was read last: in memory, in the file, or by dropping what is oldest.
    pub(super) fn keep(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        if kid.exit.is_some() {
            kid.busy_at = Some(Instant::now());
        }
        let fits = kid.account.has_strict_room(self.buffer.len());
        if kid.outs[stream as usize].spilled() || (kid.options.when_full == WhenFull::Spill && !fits) {
            return self.spill(token, stream);
        }
        while kid.options.when_full == WhenFull::DropOldest && !kid.account.has_strict_room(self.buffer.len())
        {
            // Its own oldest, from this stream or the other. Without any, all of its share is in the caller's
            // hands, and the oldest that is not is what just came.
            let [own, other] = [stream as usize, 1 - stream as usize];
            let oldest = kid.outs[own].kept.pop_front().or_else(|| kid.outs[other].kept.pop_front());
            match oldest {
                Some(chunk) => kid.dropped += chunk.len() as u64,
                None if kid.account.has_room(self.buffer.len()) => break,
                None => {
                    kid.dropped += self.buffer.len() as u64;
                    return Ok(());
                }
            }
        }
        let budget = &self.budget;
        let live = kid.options.delivery == Delivery::Live;
        kid.keep(stream, &mut self.buffer, || budget.buffer(), self.limits.buffer_bytes);
        if live {
            self.tell_output(token, stream);
        }
        Ok(())
    }

    /// Writes what was read last to the stream's file. If that fails, it is kept apart and the
    /// child is held.
    pub(super) fn spill(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        let out = &mut kid.outs[stream as usize];
        let live = kid.options.delivery == Delivery::Live;
        let pushed = match &mut out.spill {
            Some(spill) => spill.push(&self.buffer),
            // It stays even if it takes nothing: one with a name must not be forgotten.
            None => Spill::create(&self.limits, &mut self.spills)
                .and_then(|spill| out.spill.insert(spill).push(&self.buffer)),
        };
        if let Err(error) = pushed {
            out.unsaved.append(&mut self.buffer);
            if let Some(reader) = &mut out.reader {
                reader.hold(&mut self.port).map_err(|error| Error::new("hold a child", error))?;
            }
            (out.held, self.unsaved) = (true, true);
            if !std::mem::replace(&mut kid.starved, true) {
                self.starved.push(token);
            }
            return Err(error);
        }
        if live && !std::mem::replace(&mut kid.starved, true) {
            self.starved.push(token);
            self.budget.ask_for_room();
            self.feed()?;
        }
        Ok(())
    }

    /// Stops reading a stream until there is room.
    pub(super) fn starve(&mut self, token: Token, stream: Stream) -> Result<Progress> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(Progress::Nothing) };
        let out = &mut kid.outs[stream as usize];
        if let Some(reader) = &mut out.reader {
            reader.hold(&mut self.port).map_err(|error| Error::new("hold a child", error))?;
            out.held = true;
        }
        if kid.exit.is_some() {
            // It is we who do not listen: there may be room in a moment, and that must not look like silence.
            kid.busy_at = Some(Instant::now());
        }
        if !std::mem::replace(&mut kid.starved, true) {
            self.starved.push(token);
        }
        // Asked first, looked second: room that came in between is seen by the look.
        self.budget.ask_for_room();
        self.feed()?;
        Ok(Progress::Nothing)
    }

    /// Serves the children that wait for room, as far as there is some.
    pub(super) fn feed(&mut self) -> Result<()> {
        if self.starved.is_empty() {
            return Ok(());
        }
        self.budget.ask_for_room();
        let mut result = Ok(());
        for token in std::mem::take(&mut self.starved) {
            let streams = [(Kind::Stdout, Stream::Stdout), (Kind::Stderr, Stream::Stderr)];
            let mut waits = false;
            for (kind, stream) in streams {
                let port_token = self.kids.port_token(token, kind);
                match self.feed_stream(token, stream, port_token) {
                    Ok(more) => waits |= more,
                    Err(error) => {
                        (waits, self.unsaved) = (true, true);
                        result = result.and(Err(error));
                    }
                }
            }
            if let Some(kid) = self.kids.get_mut(token) {
                kid.starved = waits;
                if waits {
                    self.starved.push(token);
                }
            }
        }
        result
    }

    /// Goes on with one stream; says whether it still waits for room.
    pub(super) fn feed_stream(&mut self, token: Token, stream: Stream, port_token: u64) -> Result<bool> {
        let piece = self.limits.buffer_bytes;
        loop {
            let Some(kid) = self.kids.get_mut(token) else { return Ok(false) };
            let out = &mut kid.outs[stream as usize];
            if kid.draining || (!out.held && !out.spilled()) {
                return Ok(false);
            }
            if out.offered {
                return Ok(true);
            }
            let live = kid.options.delivery == Delivery::Live;
            if live && kid.account.has_room(piece) {
                if self.bring_back(token, stream)? {
                    self.tell_output(token, stream);
                    self.tell_eof(token, stream);
                    continue;
                }
            } else if !out.unsaved.is_empty() && kid.options.when_full != WhenFull::Hold {
                self.save(token, stream)?;
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
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        let out = &mut kid.outs[stream as usize];
        let listened = match out.reader.as_mut().filter(|_| out.held) {
            Some(reader) => reader.listen(&mut self.port, port_token),
            None => Ok(()),
        };
        match listened {
            Err(error) if !is_full(&error) => Err(Error::new("read on", error)),
            listened => {
                out.held = false;
                if listened.is_err() {
                    self.look_later(token, INTERVAL_MIN);
                }
                Ok(())
            }
        }
    }

    /// Tries once more to write what the stream's file did not take.
    pub(super) fn save(&mut self, token: Token, stream: Stream) -> Result<()> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        let out = &mut kid.outs[stream as usize];
        let spill = match out.spill.take() {
            Some(spill) => spill,
            None => Spill::create(&self.limits, &mut self.spills)?,
        };
        out.spill.insert(spill).push(&out.unsaved)?;
        out.unsaved.clear();
        Ok(())
    }

    /// Brings one piece back from the stream's file into memory; says whether there was one.
    pub(super) fn bring_back(&mut self, token: Token, stream: Stream) -> Result<bool> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(false) };
        let out = &mut kid.outs[stream as usize];
        let mut bytes = self.budget.buffer();
        let brought = out.spill.as_mut().map_or(Ok(0), |spill| spill.pop(&mut bytes))?;
        if brought == 0 {
            if out.unsaved.is_empty() {
                return Ok(false);
            }
            bytes = std::mem::take(&mut out.unsaved);
        }
        out.kept.push_back(Chunk::new(bytes, &kid.account));
        Ok(true)
    }

    /// A stream is at its end.
    pub(super) fn ended(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.kids.get_mut(token) else { return };
        if let Some(reader) = kid.outs[stream as usize].reader.take() {
            let _ = reader.close(&mut self.port);
        }
        self.tell_eof(token, stream);
        self.check_over(token);
    }

    /// Queues a notice for each piece that waits and has none.
    pub(super) fn tell_output(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.kids.get_mut(token) else { return };
        let out = &mut kid.outs[stream as usize];
        while out.noticed < out.kept.len() {
            out.noticed += 1;
            self.notices.push_back(Notice::Output(token, stream));
        }
    }

    /// Tells the end of a live stream, once all of it was.
    pub(super) fn tell_eof(&mut self, token: Token, stream: Stream) {
        let Some(kid) = self.kids.get_mut(token) else { return };
        let out = &mut kid.outs[stream as usize];
        let live = kid.options.delivery == Delivery::Live;
        if live && out.reader.is_none() && out.owes_eof && !out.spilled() {
            out.owes_eof = false;
            self.notices.push_back(Notice::Eof(token, stream));
        }
    }
}
