//! The input of a captured child, on its way to it.

use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::{Context, Poll, ready};

use minder::{CaptureInput, ChildStdin, Error, Operation, Result};
use tokio::sync::mpsc::{Receiver, Sender, channel};

use crate::sys::Writer;

/// The size of a read from a reader that is the input.
const READ_BYTES: usize = 64 << 10;

/// Writes the input to the child. Dropping it ends the input.
#[derive(Debug)]
pub(crate) struct Feed {
    pipe: Writer,
    /// The bytes to write next, of which `written` are written.
    bytes: Vec<u8>,
    written: usize,
    /// The blocks of a reader that follow.
    blocks: Option<Receiver<io::Result<Vec<u8>>>>,
    is_line_open: bool,
    /// The number of end-of-file characters of a terminal that are to be written, once all bytes
    /// are.
    ends_left: Option<u8>,
}

impl Feed {
    pub(crate) fn start(pipe: ChildStdin, input: CaptureInput, subject: &std::ffi::OsStr) -> Result<Self> {
        let pipe = Writer::new(pipe).map_err(|error| Error::from_io(Operation::Watch, subject, error))?;
        let (bytes, blocks) = match input {
            CaptureInput::Bytes(bytes) => (bytes, None),
            CaptureInput::Reader(reader) => {
                let (sender, receiver) = channel(1);
                // Not a thread of the runtime: its end would wait for a read that blocks.
                let thread = std::thread::Builder::new().name("minder-input".into());
                thread
                    .spawn(move || send_blocks(reader, &sender))
                    .map_err(|error| Error::from_io(Operation::Write, subject, error))?;
                (Vec::new(), Some(receiver))
            }
            _ => (Vec::new(), None),
        };
        Ok(Self { pipe, bytes, written: 0, blocks, is_line_open: false, ends_left: None })
    }

    /// Writes as much as there is room for. Returns when all is written, or the child takes no more.
    ///
    /// # Errors
    /// That of the reader, or of the pipe.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            while let rest @ [.., last] = &self.bytes[self.written..] {
                match ready!(self.pipe.poll_write(cx, rest)) {
                    Ok(count) => self.written += count,
                    // The child closed its input or exited: it does not want the rest.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Poll::Ready(Ok(())),
                    Err(error) => return Poll::Ready(Err(error)),
                }
                self.is_line_open = *last != b'\n';
            }
            let block = match &mut self.blocks {
                Some(blocks) => ready!(blocks.poll_recv(cx)),
                None => None,
            };
            let Some(block) = block else {
                // The first of them only ends the line if that is open.
                let left = self.ends_left.get_or_insert(1 + u8::from(self.is_line_open));
                ready!(self.pipe.poll_end_terminal(cx, left));
                return Poll::Ready(Ok(()));
            };
            self.bytes = block?;
            self.written = 0;
        }
    }
}

/// Reads to the end, to an error, or until no more blocks are wanted, and hands the blocks over.
fn send_blocks(mut reader: Box<dyn Read + Send>, sender: &Sender<io::Result<Vec<u8>>>) {
    loop {
        let read = AssertUnwindSafe(|| {
            let mut bytes = vec![0; READ_BYTES];
            let count = reader.read(&mut bytes)?;
            bytes.truncate(count);
            Ok(bytes)
        });
        let block = match catch_unwind(read) {
            Ok(Err(error)) if io::Error::kind(&error) == io::ErrorKind::Interrupted => continue,
            Ok(Ok(bytes)) if bytes.is_empty() => return,
            Ok(block) => block,
            // Without this, the child would take it for the end of the input.
            Err(_) => Err(io::Error::other("the reader panicked")),
        };
        let is_last = block.is_err();
        if sender.blocking_send(block).is_err() || is_last {
            return;
        }
    }
}
