//! Writes a job's block to its standard input, as fast as the job reads it.

use minder::ChildId;
use minder::jobs::ChildControl;

use crate::splitter::buffer::Bytes;
use crate::splitter::input_queue::InputQueue;
use crate::splitter::input_queue::JobInput;
use crate::splitter::input_queue::ReadResult;
use crate::text::format_error;

/// Returns `true` if a failed write means that the job takes no more: it closed its input, as
/// `head` does, or has exited.
fn is_closed(error: &minder::Error) -> bool {
    error.kind() == minder::ErrorKind::Unknown || error.io_error().kind() == std::io::ErrorKind::BrokenPipe
}

/// The most chunks that a job gets before other jobs have their turn.
const CHUNKS_PER_TURN: usize = 16;

/// The input of a job, on its way into its standard input.
#[derive(Debug)]
pub(crate) struct StdinFeeder {
    input: Box<JobInput>,
    /// The chunk that is not written completely, and how much of it is.
    left: Option<(Bytes, usize)>,
    /// `true` if there was no input, or other jobs had their turn: it is fed again when the worker
    /// thread is woken.
    pub(crate) waiting: bool,
    /// The number of bytes that the job accepted.
    pub(crate) sent: u64,
    finished: bool,
    /// `true` if its input could not be written to its end.
    is_broken: bool,
}

impl StdinFeeder {
    pub(crate) fn new(input: Box<JobInput>) -> Self {
        Self { input, left: None, waiting: false, sent: 0, finished: false, is_broken: false }
    }

    /// Writes as much as the job accepts. Returns `true` if it stopped so that other jobs have
    /// their turn: the worker thread then has to call it again.
    pub(crate) fn write(
        &mut self,
        queue: &InputQueue,
        child: ChildId,
        children: &mut ChildControl<'_>,
    ) -> bool {
        self.waiting = false;
        for _ in 0..CHUNKS_PER_TURN {
            if self.finished {
                return false;
            }
            let (bytes, from) = match self.left.take() {
                Some(left) => left,
                None => match queue.more(&mut self.input) {
                    ReadResult::Bytes(bytes) => (bytes, 0),
                    ReadResult::Pending => {
                        self.waiting = true;
                        return false;
                    }
                    ReadResult::Eof => {
                        self.end(queue);
                        // It fails only for a child that has exited.
                        let _ = children.close_stdin(child);
                        return false;
                    }
                },
            };
            let written = children.write(child, &bytes[from..]);
            self.sent += written.as_ref().map_or(0, |count| *count as u64);
            match written {
                Ok(count) if from + count == bytes.len() => (),
                // The child set reports when the job accepts more.
                Ok(count) => {
                    self.left = Some((bytes, from + count));
                    return false;
                }
                Err(error) => {
                    if !is_closed(&error) {
                        // The job takes the part that it has read for the whole input. `is_torn`
                        // makes sure that its result does not count.
                        self.is_broken = true;
                        queue.fail(format_error(&error.into()));
                    }
                    self.end(queue);
                    return false;
                }
            }
        }
        self.waiting = true;
        true
    }

    /// Ends the input: the job takes no more.
    pub(crate) fn end(&mut self, queue: &InputQueue) {
        self.finished = true;
        self.left = None;
        queue.give_up(&mut self.input);
    }

    /// Returns `true` if the job got less than its input, since reading or writing it failed.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_broken || self.input.is_torn()
    }

    /// Returns the input for the job to run again, if it can be read from the start.
    pub(crate) fn rewind(mut self, queue: &InputQueue) -> Option<Box<JobInput>> {
        queue.rewind(&mut self.input).then_some(self.input)
    }

    /// Passes all of the input to `take`, chunk by chunk.
    pub(crate) fn read_all<E>(
        &mut self,
        queue: &InputQueue,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        while let ReadResult::Bytes(bytes) = queue.more(&mut self.input) {
            take(&bytes)?;
            self.sent += bytes.len() as u64;
        }
        self.finished = true;
        Ok(())
    }
}
