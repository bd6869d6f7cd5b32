//! The threads that wait in reads and writes: one writes the output, one passes on the input.

use std::fs::File;
use std::io::{self, Read};

use minder::poll::Waker;
use minder::{ChildStdin, ChildStdout};
use minder_os::stdio::{StdStream, close_std};
use minder_os::sync::Mutex;
use minder_runner::blocking_io;

use super::buffer::{OutputBuffer, Phase};
use crate::ui::{message, os_error_text};

/// The most bytes of one read: the size of a pipe.
pub(super) const READ_MAX: usize = 64 << 10;

/// The input of the child, until it is closed.
#[derive(Debug)]
pub(super) struct ChildInput {
    stdin: Mutex<Option<ChildStdin>>,
    is_terminal: bool,
}

impl ChildInput {
    pub(super) fn new(stdin: Option<ChildStdin>, is_terminal: bool) -> Self {
        Self { stdin: Mutex::new(stdin), is_terminal }
    }

    /// Returns whether there is an input to pass on.
    pub(super) fn is_open(&self) -> bool {
        self.stdin.lock().is_some()
    }

    /// Closes the input without waiting. Returns false if another thread waits in a write.
    pub(super) fn try_close(&self) -> bool {
        self.stdin.try_lock().is_some_and(|mut stdin| {
            *stdin = None;
            true
        })
    }

    /// Passes bytes on. An error means that the child takes nothing more.
    fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match &*self.stdin.lock() {
            Some(stdin) => blocking_io::write_all(stdin, bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// Ends the input. A terminal stays open: its output may follow.
    fn end(&self) {
        let mut stdin = self.stdin.lock();
        if !self.is_terminal {
            *stdin = None;
        } else if let Some(terminal) = &*stdin {
            // It fails if the child has ended.
            let _ = terminal.send_eof();
        }
    }
}

/// Passes on what the standard input of minder has, until its end.
pub(super) fn pass_input(mut from: File, to: &ChildInput) {
    let mut piece = vec![0; READ_MAX];
    loop {
        match blocking_io::read(&mut from, &mut piece) {
            Ok(0) | Err(_) => return to.end(),
            Ok(count) => {
                if to.write(&piece[..count]).is_err() {
                    break;
                }
            }
        }
    }
    // The process that writes to us gets what it would get of the child: a broken pipe.
    to.try_close();
    drop(from);
    let _ = close_std(StdStream::Input);
}

/// Writes the output, until its end or until the reader takes nothing more.
pub(super) fn write_output(buffer: &OutputBuffer, to: &File, waker: &Waker) {
    let mut piece = Vec::new();
    while let Some(has_room_again) = buffer.take(&mut piece) {
        if has_room_again {
            wake(waker);
        }
        if let Err(error) = blocking_io::write_all(to, &piece) {
            if error.kind() != io::ErrorKind::BrokenPipe {
                message(&format!("cannot write to standard output: {}", os_error_text(&error)));
            }
            buffer.advance(Phase::Closed);
            break;
        }
    }
    buffer.advance(Phase::Written);
    wake(waker);
}

/// Reads the output of a child whose pipe no poller can watch, as on Windows.
pub(super) fn read_output(mut from: ChildStdout, buffer: &OutputBuffer, waker: &Waker) {
    let mut piece = vec![0; READ_MAX];
    while let Some(room) = buffer.wait_for_room() {
        match from.read(&mut piece[..room.min(READ_MAX)]) {
            Ok(count @ 1..) => buffer.push(&piece[..count]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Ok(0) | Err(_) => break,
        }
    }
    buffer.advance(Phase::Ended);
    wake(waker);
}

/// Wakes the main thread.
fn wake(waker: &Waker) {
    // It fails only for an invalid descriptor.
    let _ = waker.wake();
}

/// Starts a thread.
pub(super) fn start(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(run).map(drop)
}
