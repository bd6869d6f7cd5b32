//! Writes a job's block to its standard input, as fast as the job reads it.

use minder::Token;
use minder::jobs::ChildControl;

use crate::splitter::buffer::Bytes;
use crate::splitter::input_splitter::InputSplitter;
use crate::splitter::input_splitter::JobInput;
use crate::splitter::input_splitter::ReadResult;
use crate::text::format_error;

/// Whether a failed write means that the job takes no more: it closed its input, as `head` does, or
/// is over.
fn is_closed(error: &minder::Error) -> bool {
    error.kind() == minder::ErrorKind::Unknown || error.io_error().kind() == std::io::ErrorKind::BrokenPipe
}

/// How many pieces a job gets before others have their turn.
const PIECES: usize = 16;

/// A job's part, on its way into its standard input.
#[derive(Debug)]
pub(crate) struct StdinFeeder {
    part: Box<JobInput>,
    /// What was taken from the part and not written yet.
    left: Option<(Bytes, usize)>,
    /// Whether there was nothing, or others had their turn: it is to be fed again when the loop is
    /// woken.
    pub(crate) waiting: bool,
    /// How many bytes the job took.
    pub(crate) sent: u64,
    over: bool,
    /// Whether its input could not be written to its end.
    is_broken: bool,
}

impl StdinFeeder {
    pub(crate) fn new(part: Box<JobInput>) -> Self {
        Self { part, left: None, waiting: false, sent: 0, over: false, is_broken: false }
    }

    /// Writes as much as the job takes. Says whether others had their turn in between, so that the
    /// loop has to come again.
    pub(crate) fn write(
        &mut self,
        pipe: &InputSplitter,
        token: Token,
        outputs: &mut ChildControl<'_>,
    ) -> bool {
        self.waiting = false;
        for _ in 0..PIECES {
            if self.over {
                return false;
            }
            let (bytes, from) = match self.left.take() {
                Some(left) => left,
                None => match pipe.more(&mut self.part) {
                    ReadResult::Bytes(bytes) => (bytes, 0),
                    ReadResult::Pending => {
                        self.waiting = true;
                        return false;
                    }
                    ReadResult::Eof => {
                        self.end(pipe);
                        // It fails only for a child that is over.
                        let _ = outputs.close_stdin(token);
                        return false;
                    }
                },
            };
            let written = outputs.write(token, &bytes[from..]);
            self.sent += written.as_ref().map_or(0, |count| *count as u64);
            match written {
                Ok(count) if from + count == bytes.len() => (),
                // The job is told of when it takes more.
                Ok(count) => {
                    self.left = Some((bytes, from + count));
                    return false;
                }
                Err(error) => {
                    if !is_closed(&error) {
                        // It has read a part, and takes that for all. `is_torn` keeps it from counting.
                        self.is_broken = true;
                        pipe.fail(format_error(&error.into()));
                    }
                    self.end(pipe);
                    return false;
                }
            }
        }
        self.waiting = true;
        true
    }

    /// The job takes nothing more.
    pub(crate) fn end(&mut self, pipe: &InputSplitter) {
        self.over = true;
        self.left = None;
        pipe.give_up(&mut self.part);
    }

    /// Whether the job got less than its part, since the input could not be read or not be written.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_broken || self.part.is_torn()
    }

    /// The part, for the job to run again, if it can be had from the start.
    pub(crate) fn again(mut self, pipe: &InputSplitter) -> Option<Box<JobInput>> {
        pipe.again(&mut self.part).then_some(self.part)
    }

    /// All of the part, piece by piece.
    pub(crate) fn write_all<E>(
        &mut self,
        pipe: &InputSplitter,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let ReadResult::Bytes(bytes) = pipe.more(&mut self.part) {
            take(&bytes)?;
            self.sent += bytes.len() as u64;
        }
        self.over = true;
        Ok(())
    }
}
