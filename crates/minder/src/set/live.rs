//! Output as it comes, of a child whose output waited so far; and output that passes on without a
//! copy.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{ChildSet, Chunk, Delivery, Error, Event, Notice, Report, Result, Stream, Token, WhenFull, gone};
use crate::sys::pipe::Progress;

/// How long a file that takes nothing is waited for in one turn.
pub(super) const PATIENCE: Duration = Duration::from_millis(100);

impl ChildSet {
    /// Hands a child's output over as it comes from here on, after what waited of it. The child is
    /// held while there is no room in memory. Without effect on a child that is over, whose
    /// last events are under way.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn go_live(&mut self, token: Token) -> Result<()> {
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        if kid.draining || kid.options.delivery == Delivery::Live {
            return Ok(());
        }
        (kid.options.delivery, kid.options.when_full) = (Delivery::Live, WhenFull::Hold);
        self.leave_turns(token)?;
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        let files = kid.options.files;
        for stream in [Stream::Stdout, Stream::Stderr] {
            self.tell_output(token, stream);
            let Some(kid) = self.kids.get_mut(token) else { break };
            let out = &mut kid.outs[stream as usize];
            if out.spilled() {
                out.offered = files;
                self.notices.extend(files.then_some(Notice::Spilled(token, stream)));
                if !std::mem::replace(&mut kid.starved, true) {
                    self.starved.push(token);
                }
            }
            self.tell_eof(token, stream);
        }
        // What a file refuses, of this child or of another, is told by the next call of `next`.
        let _ = self.feed();
        self.announce()
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
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        if kid.options.delivery != Delivery::Live {
            let why = "its output is kept until its end: `go_live` comes first";
            return Err(Error::own(crate::ErrorKind::InvalidInput, "forward the output of a child", why));
        }
        let out = &mut kid.outs[stream as usize];
        if let Some(reader) = out.reader.as_mut().filter(|reader| reader.can_forward(file)) {
            reader.enlarge(Some(file));
            out.forward = Some(Arc::clone(file));
        }
        Ok(())
    }

    /// One step of a stream that is forwarded. What refuses is no error: the bytes are still there,
    /// and are read.
    pub(super) fn pass_on(
        &mut self,
        token: Token,
        stream: Stream,
        report: Option<&Report>,
    ) -> Result<Progress> {
        let Some(kid) = self.kids.get_mut(token) else { return Ok(Progress::Nothing) };
        let out = &mut kid.outs[stream as usize];
        let (Some(reader), Some(file)) = (&mut out.reader, &out.forward) else {
            return Ok(Progress::Nothing);
        };
        match reader.forward(file) {
            Ok(Progress::Bytes(count)) => {
                if kid.exit.is_some() {
                    kid.busy_at = Some(Instant::now());
                }
                if out.forwarded == 0 {
                    self.notices.push_back(Notice::Forwarded(token, stream));
                }
                out.forwarded += count as u64;
                Ok(Progress::Bytes(count))
            }
            Ok(Progress::Eof) => {
                self.ended(token, stream);
                Ok(Progress::Eof)
            }
            Ok(Progress::Nothing) => Ok(Progress::Nothing),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                // It is the file that takes nothing: the child is not silent. One wait a turn, so that many
                // such files make no sum.
                let now = Instant::now();
                kid.busy_at = kid.exit.map(|_| now);
                if let Some(patience) = self.patience.take() {
                    let left = self.until.map(|until| until.saturating_duration_since(now));
                    reader.wait_for_room(file, left.map_or(patience, |left| left.min(patience)));
                }
                self.keep_turn(token);
                Ok(Progress::Nothing)
            }
            Err(_) => {
                out.forward = None;
                self.read(token, stream, report)
            }
        }
    }

    /// Takes the file of a stream's spilled output. What it did not take follows from memory: a
    /// disk that is full must not keep the others waiting.
    pub(super) fn hand_over(&mut self, token: Token, stream: Stream) -> Option<Event> {
        let kid = self.kids.get_mut(token)?;
        let out = &mut kid.outs[stream as usize];
        out.offered = false;
        if !out.unsaved.is_empty() {
            out.kept.push_front(Chunk::new(std::mem::take(&mut out.unsaved), &kid.account));
            out.noticed += 1;
            self.notices.push_front(Notice::Output(token, stream));
        }
        let spill = out.spill.take_if(|spill| spill.len() > 0);
        if !kid.draining {
            // The next turn listens again to what was held.
            self.unsaved = true;
            self.tell_eof(token, stream);
        }
        spill.map(|spill| Event::Spilled(token, stream, spill.into_spilled()))
    }

    pub(super) fn tell_forwarded(&mut self, token: Token, stream: Stream) -> Option<Event> {
        let out = &mut self.kids.get_mut(token)?.outs[stream as usize];
        let count = std::mem::take(&mut out.forwarded);
        (count > 0).then_some(Event::Forwarded(token, stream, count))
    }
}
