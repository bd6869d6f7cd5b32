//! Output as it comes, of a child whose output waited so far; and output that passes on without a
//! copy.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{
    ChildSet, Chunk, Error, Event, OutputMode, OverflowPolicy, QueuedEvent, Report, Result, Stream, Token,
    gone,
};
use crate::sys::pipe::ReadOutcome;

/// How long a file that takes nothing is waited for in one turn.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

impl ChildSet {
    /// Hands a child's output over as it comes from here on, after what waited of it. The child is
    /// held while there is no room in memory. Without effect on a child that is over, whose
    /// last events are under way.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn start_streaming(&mut self, token: Token) -> Result<()> {
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        if kid.done_queued || kid.options.output_mode == OutputMode::Stream {
            return Ok(());
        }
        (kid.options.output_mode, kid.options.overflow) = (OutputMode::Stream, OverflowPolicy::Block);
        self.leave_turns(token)?;
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        let files = kid.options.spill_as_file;
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.queue_output(token, stream);
            let Some(kid) = self.children.get_mut(token) else { break };
            let out = &mut kid.streams[stream as usize];
            if out.spilled() {
                out.spill_queued = files;
                self.events.extend(files.then_some(QueuedEvent::Spilled(token, stream)));
                if !std::mem::replace(&mut kid.waiting_for_memory, true) {
                    self.memory_waiters.push(token);
                }
            }
            self.queue_eof(token, stream);
        }
        // What a file refuses, of this child or of another, is told by the next call of `next`.
        let _ = self.retry_paused();
        self.update_poll_handle()
    }

    /// Passes the bytes of an output on to `file` as they come, without a copy through our memory
    /// where the system can (Linux: splice(2) from pipe to pipe, both enlarged to 1 MiB), after
    /// what waits of it was handed over. [`Event::Forwarded`] counts them. Where the system or
    /// the file refuses, be it later, the output comes as [`Event::Output`] again: whoever
    /// forwards must be ready to write.
    ///
    /// A file that takes nothing makes the set wait for it, at most 100 ms a call of
    /// [`next`](Self::next).
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `InvalidInput` for one whose output is not handed over
    /// as it comes.
    pub fn forward(&mut self, token: Token, stream: Stream, file: &Arc<File>) -> Result<()> {
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        if kid.options.output_mode != OutputMode::Stream {
            let why = "its output is kept until its end: `go_live` comes first";
            return Err(Error::of_kind(crate::ErrorKind::InvalidInput, "forward the output of a child", why));
        }
        let out = &mut kid.streams[stream as usize];
        if let Some(reader) = out.reader.as_mut().filter(|reader| reader.can_forward(file)) {
            reader.enlarge(Some(file));
            out.forward = Some(Arc::clone(file));
        }
        Ok(())
    }

    /// One step of a stream that is forwarded. What refuses is no error: the bytes are still there,
    /// and are read.
    pub(super) fn splice_output(
        &mut self,
        token: Token,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<ReadOutcome> {
        let Some(kid) = self.children.get_mut(token) else { return Ok(ReadOutcome::WouldBlock) };
        let out = &mut kid.streams[stream as usize];
        let (Some(reader), Some(file)) = (&mut out.reader, &out.forward) else {
            return Ok(ReadOutcome::WouldBlock);
        };
        match reader.forward(file) {
            Ok(ReadOutcome::Data(count)) => {
                if kid.exit.is_some() {
                    kid.last_activity = Some(Instant::now());
                }
                if out.forwarded == 0 {
                    self.events.push_back(QueuedEvent::Forwarded(token, stream));
                }
                out.forwarded += count as u64;
                Ok(ReadOutcome::Data(count))
            }
            Ok(ReadOutcome::Eof) => {
                self.handle_eof(token, stream);
                Ok(ReadOutcome::Eof)
            }
            Ok(ReadOutcome::WouldBlock) => Ok(ReadOutcome::WouldBlock),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                // It is the file that takes nothing: the child is not silent. One wait a turn, so that many
                // such files make no sum.
                let now = Instant::now();
                kid.last_activity = kid.exit.map(|_| now);
                if let Some(patience) = self.patience.take() {
                    let left = self.until.map(|until| until.saturating_duration_since(now));
                    reader.wait_for_room(file, left.map_or(patience, |left| left.min(patience)));
                }
                self.keep_turn(token);
                Ok(ReadOutcome::WouldBlock)
            }
            Err(_) => {
                out.forward = None;
                self.read(token, stream, report)
            }
        }
    }

    /// Takes the file of a stream's spilled output. What it did not take follows from memory: a
    /// disk that is full must not keep the others waiting.
    pub(super) fn take_spill_file(&mut self, token: Token, stream: Stream) -> Option<Event> {
        let kid = self.children.get_mut(token)?;
        let out = &mut kid.streams[stream as usize];
        out.spill_queued = false;
        if !out.unwritten.is_empty() {
            out.buffered.push_front(Chunk::new(std::mem::take(&mut out.unwritten), &kid.quota));
            out.queued_events += 1;
            self.events.push_front(QueuedEvent::Output(token, stream));
        }
        let spill = out.spill.take_if(|spill| spill.len() > 0);
        if !kid.done_queued {
            // The next turn listens again to what was held.
            self.unwritten = true;
            self.queue_eof(token, stream);
        }
        spill.map(|spill| Event::Spilled(token, stream, spill.into_spilled()))
    }

    pub(super) fn queue_forwarded(&mut self, token: Token, stream: Stream) -> Option<Event> {
        let out = &mut self.children.get_mut(token)?.streams[stream as usize];
        let count = std::mem::take(&mut out.forwarded);
        (count > 0).then_some(Event::Forwarded(token, stream, count))
    }
}
