//! The standard streams: writes bytes to them, and remembers whether that failed.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::os::wait_ready;
use minder::poll::Interest;
use minder::{Chunk, Stream};
use minder_os::files::read_at;
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::sync::Mutex;

use crate::blocking_io;
use crate::observer::Observer;
use crate::output::stream::{Done, OutputStream, StreamError, missing};
use crate::text::{cannot_save_in, os_error_text};

/// The most bytes of a file that are read at once.
const READ_SIZE: usize = 128 << 10;
/// From this length on, the kernel moves the bytes of a file without a copy.
const SENDFILE_MIN: u64 = 32 << 10;

/// The standard error of the current run, for messages.
static MESSAGES: Mutex<Option<OutputStream>> = Mutex::new(None);

/// Writes to standard error, without its buffer. Errors are ignored. During a run this does not wait for
/// the reader: what that does not take waits, together with the output of jobs.
pub fn write_stderr(bytes: &[u8]) {
    match messages() {
        Some(stream) => stream.write(bytes, None),
        None => drop(blocking_io::write_all(&io::stderr(), bytes)),
    }
}

/// Returns `true` if bytes wait for the reader of standard error.
pub fn stderr_is_stalled() -> bool {
    messages().is_some_and(|stream| stream.is_stalled())
}

fn messages() -> Option<OutputStream> {
    MESSAGES.lock().clone()
}

/// The standard streams, without buffers, and what became of them. No write waits for a reader.
///
/// `closed`, `abandoned` and `failure` only ever change once, from good to bad. A thread that reads an old
/// value tries one more write, which fails in the same way. `abandoned` is set before anything is dropped
/// that a reader has not taken, so no job whose output is dropped counts as shown.
#[derive(Debug)]
pub(crate) struct StdioWriter {
    observer: Arc<dyn Observer>,
    out: OutputStream,
    err: OutputStream,
    /// The directory for waiting output that is not in memory.
    dir: PathBuf,
    /// `true` if standard output has no reader any more.
    closed: AtomicBool,
    /// `true` if the run ends without the output that its readers have not taken.
    abandoned: AtomicBool,
    failure: Mutex<Option<String>>,
    /// The name of standard output in messages.
    out_name: String,
    /// `true` if standard output was closed before this process started.
    is_shut: bool,
}

impl StdioWriter {
    /// Opens the standard streams. `replacement` is a file that takes the place of standard output,
    /// and its name. Output that cannot wait in memory is saved in `dir`. `on_change` is called with
    /// `true` when bytes begin to wait for the reader of a stream, and with `false` when none waits any
    /// more.
    pub(crate) fn open(
        observer: Arc<dyn Observer>,
        replacement: Option<(File, String)>,
        dir: &Path,
        on_change: impl Fn(bool) + Clone + Send + Sync + 'static,
    ) -> io::Result<Self> {
        // Rust's runtime opens the null device in place of a closed standard output, and that would
        // accept everything.
        let is_shut = replacement.is_none() && std_was_closed(StdStream::Output);
        let (out, out_name) = match replacement {
            Some(replacement) => replacement,
            None => (std_file(StdStream::Output)?, "standard output".to_owned()),
        };
        minder_os::stdio::grow_pipe(&out);
        let out = OutputStream::new(out, dir.to_owned(), on_change.clone());
        let err = OutputStream::new(std_file(StdStream::Error)?, dir.to_owned(), on_change);
        // Two queues would mix what waits for one reader.
        let err = if err.has_same_reader(&out) { out.clone() } else { err };
        *MESSAGES.lock() = Some(err.clone());
        Ok(Self {
            observer,
            out,
            err,
            dir: dir.to_owned(),
            closed: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
            failure: Mutex::new(None),
            out_name,
            is_shut,
        })
    }

    /// Returns the observer of the run.
    pub(crate) fn observer(&self) -> &dyn Observer {
        &*self.observer
    }

    /// Notes that the kernel moved bytes to standard output.
    pub(crate) fn note_forwarded(&self) {
        self.out.note_written();
    }

    /// Returns how long nothing has been written.
    pub(crate) fn silence(&self) -> Duration {
        self.out.silence().min(self.err.silence())
    }

    /// Returns `true` if standard output has no reader any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns `false` if a write to standard output would wait for its reader.
    pub(crate) fn takes_output(&self) -> bool {
        wait_ready(&**self.out.file(), Interest::WRITABLE, Some(Instant::now())).unwrap_or(true)
    }

    /// Returns `true` if output can no longer be written, for any reason.
    pub(crate) fn is_broken(&self) -> bool {
        for (stream, writer) in [(Stream::Stdout, &self.out), (Stream::Stderr, &self.err)] {
            self.note_failure(stream, writer);
        }
        self.is_closed() || self.is_abandoned() || self.failure.lock().is_some()
    }

    /// Drops what waits for readers that take nothing, and writes no more output of jobs. Output of
    /// recorded jobs stays owed.
    pub(crate) fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
        self.out.abandon();
        self.err.abandon();
    }

    /// Returns `true` if [`abandon`](Self::abandon) was called.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.abandoned.load(Ordering::SeqCst)
    }

    /// Returns `true` if bytes wait for the reader of a stream.
    pub(crate) fn is_stalled(&self) -> bool {
        self.out.is_stalled() || self.err.is_stalled()
    }

    /// Returns how much was queued for the readers so far.
    pub(crate) fn queued(&self) -> [u64; 2] {
        [self.out.queued(), self.err.queued()]
    }

    /// Returns `true` if the readers have taken everything up to there.
    pub(crate) fn has_written(&self, queued: [u64; 2]) -> bool {
        self.out.has_written(queued[0]) && self.err.has_written(queued[1])
    }

    /// Waits until nothing waits for a reader any more, or output can no longer be written.
    pub(crate) fn wait_drained(&self) {
        self.out.wait_drained();
        self.err.wait_drained();
    }

    /// Takes the reason why output can no longer be written, unless standard output was just
    /// closed.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.failure.lock().take()
    }

    /// Returns standard output, if the kernel may forward bytes to it.
    pub(crate) fn open_to_forward(&self) -> Option<Arc<File>> {
        (!self.is_shut && !self.out.is_terminal()).then(|| Arc::clone(self.out.file()))
    }

    /// Writes to one of the streams. After a failure it writes nothing. `charge` counts the bytes in the
    /// memory of a job while they wait for a reader.
    pub(crate) fn write(&self, stream: Stream, bytes: &[u8], mut charge: Option<Arc<Chunk>>) {
        if self.is_broken() || bytes.is_empty() {
            return;
        }
        if stream == Stream::Stdout && self.is_shut {
            return self.fail_with(format!("cannot write to {}: it is closed", self.out_name));
        }
        let writer = self.stream(stream);
        if writer.is_terminal() {
            self.observer.suspend_display(bytes, &mut || writer.write(bytes, charge.take()));
        } else {
            writer.write(bytes, charge);
        }
        if !self.note_failure(stream, writer) {
            writer.note_written();
        }
    }

    /// Writes a part of a file. `done` is called once the file is not needed any more.
    ///
    /// # Errors
    /// The file cannot be read, or is too short.
    pub(crate) fn copy(
        &self,
        buffer: &mut Vec<u8>,
        stream: Stream,
        (from, at, end): (&Arc<File>, u64, u64),
        done: Option<Done>,
    ) -> io::Result<()> {
        let writer = self.stream(stream);
        let is_open = !(self.is_broken() || stream == Stream::Stdout && self.is_shut);
        let start = at;
        let mut at = at;
        if end - at >= SENDFILE_MIN && is_open {
            at = writer.send_now(from, at, end);
        }
        if at > start {
            writer.note_written();
        }
        let mut queued = None;
        let copied = for_each_chunk(buffer, from, at, end, |at, bytes| {
            // The display follows all bytes that go to a terminal.
            if writer.is_stalled() && !writer.is_terminal() {
                queued = Some(at);
                return false;
            }
            self.write(stream, bytes, None);
            !self.is_broken()
        });
        match (queued, done) {
            (Some(at), done) => writer.push_range(Arc::clone(from), at, end, done),
            (None, Some(done)) => (done.0)(),
            (None, None) => (),
        }
        copied
    }

    /// Notes why a stream can no longer be written. Returns `true` if there is a reason.
    fn note_failure(&self, stream: Stream, writer: &OutputStream) -> bool {
        let failure = if writer.has_failed() { writer.take_failure() } else { None };
        match &failure {
            Some(StreamError::Write(error)) => self.fail(stream, error),
            Some(StreamError::Read(error)) => self.fail_reading(error),
            Some(StreamError::Save(error)) => {
                self.fail_with(cannot_save_in(&self.dir.display().to_string(), &os_error_text(error)));
            }
            None => (),
        }
        failure.is_some()
    }

    fn stream(&self, stream: Stream) -> &OutputStream {
        match stream {
            Stream::Stdout => &self.out,
            Stream::Stderr => &self.err,
        }
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
        self.failure.lock().get_or_insert(failure);
    }
}

impl Drop for StdioWriter {
    fn drop(&mut self) {
        *MESSAGES.lock() = None;
    }
}

/// Reads a part of a file and passes it to `take`, chunk by chunk, with the offset of each, while that
/// returns `true`.
///
/// # Errors
/// The file cannot be read, or is too short.
pub(crate) fn for_each_chunk(
    buffer: &mut Vec<u8>,
    from: &File,
    mut at: u64,
    end: u64,
    mut take: impl FnMut(u64, &[u8]) -> bool,
) -> io::Result<()> {
    buffer.resize(READ_SIZE, 0);
    while at < end {
        let want = usize::try_from(end - at).unwrap_or(READ_SIZE).min(READ_SIZE);
        match read_at(from, &mut buffer[..want], at) {
            Ok(0) => return Err(missing(end - at)),
            Ok(read) if !take(at, &buffer[..read]) => break,
            Ok(read) => at += read as u64,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
