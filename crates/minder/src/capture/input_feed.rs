//! The input of a captured child, on its way to it.

use std::io::Read;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};

use super::options::CaptureInput;
use crate::poll::Waker;
use crate::sys::thread::without_signals;
use crate::{Error, Operation, Result};

/// The size of a read from a reader that is the input.
const INPUT_READ_BYTES: usize = 64 << 10;

/// The input on its way to the child.
pub(super) struct InputFeed {
    /// The bytes to write next, of which `written` are written.
    bytes: Vec<u8>,
    pub(super) written: usize,
    /// The blocks of a reader that follow.
    blocks: Option<Receiver<std::io::Result<Vec<u8>>>>,
    /// The error of the reader.
    pub(super) error: Option<std::io::Error>,
}

/// The next step of the input.
pub(super) enum InputStep<'a> {
    Bytes(&'a [u8]),
    /// The reader has no bytes now. It wakes the set when it has some.
    Pending,
    Ended,
}

impl InputFeed {
    pub(super) fn start(input: CaptureInput, waker: Waker) -> Result<Self> {
        let (bytes, blocks) = match input {
            CaptureInput::Bytes(bytes) => (bytes, None),
            CaptureInput::Reader(reader) => {
                let (sender, receiver) = sync_channel(1);
                let body = move || {
                    let read = AssertUnwindSafe(|| read_blocks(reader, &sender, &waker));
                    if catch_unwind(read).is_err() {
                        // Without this, the child would wait for input for ever.
                        let _ = sender.send(Err(std::io::Error::other("the reader panicked")));
                    }
                    // The set finds the end of the input when it wakes, so the sender goes first.
                    drop(sender);
                    let _ = waker.wake();
                };
                let thread =
                    without_signals(|| std::thread::Builder::new().name("minder-input".into()).spawn(body));
                thread.map_err(|error| {
                    Error::new("start the thread that reads the input", error).during(Operation::Spawn)
                })?;
                (Vec::new(), Some(receiver))
            }
        };
        Ok(Self { bytes, written: 0, blocks, error: None })
    }

    pub(super) fn next(&mut self) -> InputStep<'_> {
        if self.written == self.bytes.len()
            && let Some(blocks) = &self.blocks
        {
            match blocks.try_recv() {
                Ok(Ok(bytes)) => (self.bytes, self.written) = (bytes, 0),
                Ok(Err(error)) => {
                    self.error = Some(error);
                    self.stop();
                }
                Err(TryRecvError::Empty) => return InputStep::Pending,
                Err(TryRecvError::Disconnected) => self.stop(),
            }
        }
        match &self.bytes[self.written..] {
            [] => InputStep::Ended,
            rest => InputStep::Bytes(rest),
        }
    }

    /// Drops the rest of the input. The thread of a reader ends with its next block.
    pub(super) fn stop(&mut self) {
        self.blocks = None;
        self.bytes.clear();
        self.written = 0;
    }
}

/// Reads to the end, to an error, or until no more blocks are wanted, and hands the blocks over.
fn read_blocks(
    mut reader: Box<dyn Read + Send>,
    sender: &SyncSender<std::io::Result<Vec<u8>>>,
    waker: &Waker,
) {
    loop {
        let mut bytes = vec![0; INPUT_READ_BYTES];
        let block = match reader.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => {
                bytes.truncate(count);
                Ok(bytes)
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => Err(error),
        };
        let is_last = block.is_err();
        if sender.send(block).is_err() || is_last {
            return;
        }
        // It fails only if many wake-ups are pending already.
        let _ = waker.wake();
    }
}
