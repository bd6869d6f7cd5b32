//! The standard streams: writes bytes to them, and remembers whether that failed.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use minder::Stream;
use minder_os::files::{read_at, send_file};
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::terminal::write_console;

use crate::blocking_io;
use crate::observer::Observer;
use crate::text::os_error_text;

/// The most bytes of a file that are read at once.
const READ_SIZE: usize = 128 << 10;
/// The most bytes that one sendfile(2) moves.
const SEND_MAX: u64 = 1 << 20;

/// Standard output and standard error, without buffers. They are part of the state that the lock of
/// the sequencer protects, so one thread at a time writes.
#[derive(Debug)]
pub(crate) struct StdStreams {
    out: Arc<File>,
    err: Arc<File>,
    /// For reading files; kept to save allocations.
    buffer: Vec<u8>,
}

/// The state of the standard streams. Every thread may read it at any time; only the thread that
/// holds the lock of the sequencer writes bytes.
///
/// `closed` and `failure` only ever change once, from good to bad. A thread that reads an old value
/// tries one more write, which fails in the same way.
#[derive(Debug)]
pub(crate) struct StdioWriter {
    observer: Arc<dyn Observer>,
    /// Whether standard output has no reader any more.
    closed: AtomicBool,
    failure: Mutex<Option<String>>,
    /// What messages call standard output.
    out_name: String,
    /// Whether standard output was closed before this process started.
    is_shut: bool,
    opened_at: Instant,
    /// When output was last written, in milliseconds since `opened_at`.
    written_at: AtomicU64,
}

impl StdioWriter {
    /// Opens the standard streams. `replacement` is a file that takes the place of standard output,
    /// and its name.
    pub(crate) fn open(
        observer: Arc<dyn Observer>,
        replacement: Option<(File, String)>,
    ) -> io::Result<(Self, StdStreams)> {
        // Rust's runtime opens the null device in place of a closed standard output, and that would
        // accept everything.
        let is_shut = replacement.is_none() && std_was_closed(StdStream::Output);
        let (out, name) = match replacement {
            Some(replacement) => replacement,
            None => (std_file(StdStream::Output)?, "standard output".to_owned()),
        };
        let out = Arc::new(out);
        minder_os::stdio::grow_pipe(&out);
        let streams = StdStreams { out, err: Arc::new(std_file(StdStream::Error)?), buffer: Vec::new() };
        let writer = Self {
            observer,
            closed: AtomicBool::new(false),
            failure: Mutex::new(None),
            out_name: name,
            is_shut,
            opened_at: Instant::now(),
            written_at: AtomicU64::new(0),
        };
        Ok((writer, streams))
    }

    /// Returns the observer of the run.
    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// Notes that output was written, or moved by the kernel.
    pub(crate) fn note_written(&self) {
        let now = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.written_at.store(now, Ordering::Relaxed);
    }

    /// Returns how long nothing has been written.
    pub(crate) fn silence(&self) -> Duration {
        let written_at = Duration::from_millis(self.written_at.load(Ordering::Relaxed));
        self.opened_at.elapsed().saturating_sub(written_at)
    }

    /// Returns `true` if standard output has no reader any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns `true` if output can no longer be written, for any reason.
    pub(crate) fn is_broken(&self) -> bool {
        self.is_closed() || self.lock().is_some()
    }

    /// Takes the reason why output can no longer be written, unless standard output was just
    /// closed.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.lock().take()
    }

    /// Returns `true` if the kernel may forward bytes to standard output.
    pub(crate) fn may_forward(&self, streams: &StdStreams) -> bool {
        !self.is_shut && !streams.out.is_terminal()
    }

    /// Writes to one of the streams. After a failure it writes nothing.
    pub(crate) fn write(&self, streams: &StdStreams, stream: Stream, bytes: &[u8]) {
        if self.is_broken() || bytes.is_empty() {
            return;
        }
        if stream == Stream::Stdout && self.is_shut {
            return self.fail_with(format!("cannot write to {}: it is closed", self.out_name));
        }
        let file = streams.file(stream);
        // The lock of the progress display is held only for writes to a terminal. A write to a pipe
        // may block for long, and the main thread needs the lock while it handles signals.
        let result = if file.is_terminal() {
            let mut result = Ok(());
            self.observer.suspend_display(bytes, &mut || {
                result = match write_console(file, bytes) {
                    Ok(false) => blocking_io::write_all(file, bytes),
                    written => written.map(drop),
                };
            });
            result
        } else {
            blocking_io::write_all(file, bytes)
        };
        match result {
            Ok(()) => self.note_written(),
            Err(error) => self.fail(stream, &error),
        }
    }

    /// Writes a part of a file.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(crate) fn copy(
        &self,
        streams: &mut StdStreams,
        stream: Stream,
        from: &File,
        at: u64,
        len: u64,
    ) -> io::Result<()> {
        let end = at + len;
        let mut at = at;
        let shut = stream == Stream::Stdout && self.is_shut;
        while at < end && !shut && !self.is_broken() && !streams.file(stream).is_terminal() {
            match blocking_io::write_with(streams.file(stream), || {
                send_file(from, at, SEND_MAX.min(end - at), streams.file(stream))
            }) {
                Ok(0) => break,
                Ok(moved) => {
                    at += moved;
                    self.note_written();
                }
                // The kernel cannot move bytes between these two files; the rest is copied. A real
                // error occurs again there.
                Err(_) => break,
            }
        }
        self.for_each_chunk(streams, from, at, end, |writer, streams, bytes| {
            writer.write(streams, stream, bytes)
        })
    }

    /// Reads a part of a file and passes it to `take`, chunk by chunk.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(crate) fn for_each_chunk(
        &self,
        streams: &mut StdStreams,
        from: &File,
        mut at: u64,
        end: u64,
        mut take: impl FnMut(&Self, &StdStreams, &[u8]),
    ) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut streams.buffer);
        buffer.resize(READ_SIZE, 0);
        let mut result = Ok(());
        while at < end && result.is_ok() && !self.is_broken() {
            let want = usize::try_from(end - at).unwrap_or(READ_SIZE).min(READ_SIZE);
            match read_at(from, &mut buffer[..want], at) {
                Ok(0) => result = Err(io::Error::other(format!("{} bytes of it are missing", end - at))),
                Ok(read) => {
                    take(self, streams, &buffer[..read]);
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => result = Err(error),
            }
        }
        streams.buffer = buffer;
        result
    }

    fn fail(&self, stream: Stream, error: &io::Error) {
        match stream {
            // A closed standard error is not a failure: no message could be read there.
            Stream::Stderr if error.kind() == io::ErrorKind::BrokenPipe => (),
            Stream::Stdout if error.kind() == io::ErrorKind::BrokenPipe => {
                self.closed.store(true, Ordering::SeqCst);
            }
            stream => {
                let name = if stream == Stream::Stdout { &self.out_name } else { "standard error" };
                self.fail_with(format!("cannot write to {name}: {}", os_error_text(error)));
            }
        }
    }

    /// Records that saved output of this attempt cannot be read, which ends the run.
    pub(crate) fn fail_reading(&self, error: &io::Error) {
        self.fail_with(format!("cannot read output that waited in a file: {}", os_error_text(error)));
    }

    fn fail_with(&self, failure: String) {
        self.lock().get_or_insert(failure);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<String>> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StdStreams {
    fn file(&self, stream: Stream) -> &File {
        match stream {
            Stream::Stdout => &self.out,
            Stream::Stderr => &self.err,
        }
    }

    /// Returns standard output, for forwarding.
    pub(crate) fn out(&self) -> &Arc<File> {
        &self.out
    }
}
