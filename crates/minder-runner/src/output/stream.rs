//! A standard stream that no caller waits for.
//!
//! A write goes to the stream at once, as far as its reader takes it. The rest waits in a queue, and so
//! does all that comes later, until a thread has written it: the thread may wait for the reader. It is
//! started when it is needed first, so a run whose reader keeps up has none.
//!
//! The queue keeps little in memory ([`MEMORY_MAX`]) and the rest in a file without a name. Its callers
//! bound it: while a stream is stalled, no further job is shown ([`super::sequencer`]).
//!
//! # Locking
//!
//! `state` is held for a write that does not wait, and for changes of the queue, never while the thread
//! waits for the reader. `stalled` changes under the lock and is read without it. It becomes false only
//! after the last queued byte was written, and only then is `on_change` called: what its callers put off
//! because the stream was stalled, they do after that call.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use minder::Chunk;
use minder_os::files::{create_unnamed_file, read_at, write_all_at};
use minder_os::stdio::NonblockingWriter;
use minder_os::sync::{Condvar, Mutex, MutexGuard};
use minder_os::terminal::write_console;

use crate::blocking_io;

/// The most bytes in memory that wait for a reader, without those that count in the memory of a job.
const MEMORY_MAX: usize = 1 << 20;
/// The most bytes that one system call moves.
const SEND_MAX: u64 = 1 << 20;
/// The most bytes of a file that are read at once.
const READ_SIZE: usize = 64 << 10;

/// A standard stream, or the file in its place. The last clone ends the thread.
#[derive(Clone, Debug)]
pub(crate) struct OutputStream(
    Arc<Inner>,
    #[expect(dead_code, reason = "ends the thread when it is dropped")] Arc<Closer>,
);

struct Inner {
    file: Arc<File>,
    is_terminal: bool,
    /// The directory for waiting output that does not fit into memory.
    overflow_dir: PathBuf,
    state: Mutex<State>,
    /// The queue is not empty any more, or the stream is closed.
    filled: Condvar,
    /// The queue is empty, or cannot be written.
    drained: Condvar,
    stalled: AtomicBool,
    failed: AtomicBool,
    /// The time of the last write, in milliseconds since `opened_at`.
    written_at: AtomicU64,
    opened_at: Instant,
    /// Called with `true` when bytes begin to wait, under the lock, and with `false` when none waits any
    /// more.
    on_change: Box<dyn Fn(bool) + Send + Sync>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OutputStream").field("file", &self.file).finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct State {
    writer: NonblockingWriter,
    queue: VecDeque<Item>,
    /// The number of items that were queued, and of those that were written.
    queued: u64,
    written: u64,
    /// The number of bytes of the queue that are in memory and count in no other limit.
    memory: usize,
    overflow: Option<(Arc<File>, u64)>,
    has_thread: bool,
    is_closed: bool,
    failure: Option<StreamError>,
}

/// Why a stream can no longer be written.
#[derive(Debug)]
pub(crate) enum StreamError {
    /// A write failed.
    Write(io::Error),
    /// Waiting output could not be saved.
    Save(io::Error),
    /// Waiting output could not be read.
    Read(io::Error),
}

/// Output that waits for the reader, and the function to call once it was written.
#[derive(Debug)]
struct Item {
    content: Content,
    done: Option<Done>,
}

#[derive(Debug)]
enum Content {
    Bytes(Vec<u8>),
    /// The rest of a chunk, from an offset on. It counts in the memory of its job.
    Chunk(Arc<Chunk>, usize),
    Range {
        file: Arc<File>,
        at: u64,
        end: u64,
    },
}

/// A function to be called when something has been written.
pub(crate) struct Done(pub(crate) Box<dyn FnOnce() + Send>);

impl std::fmt::Debug for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Done")
    }
}

/// Ends the thread of a stream.
#[derive(Debug)]
struct Closer(Arc<Inner>);

impl Drop for Closer {
    fn drop(&mut self) {
        self.0.state.lock().is_closed = true;
        self.0.filled.notify_all();
    }
}

impl OutputStream {
    /// Writes to `file`. `on_change` is called with `true` when bytes begin to wait, and with `false` when
    /// none waits any more. It must not use the stream.
    pub(crate) fn new(
        file: File,
        overflow_dir: PathBuf,
        on_change: impl Fn(bool) + Send + Sync + 'static,
    ) -> Self {
        let writer = NonblockingWriter::new(&file);
        let inner = Arc::new(Inner {
            is_terminal: writer.is_terminal(),
            file: Arc::new(file),
            overflow_dir,
            state: Mutex::new(State {
                writer,
                queue: VecDeque::new(),
                queued: 0,
                written: 0,
                memory: 0,
                overflow: None,
                has_thread: false,
                is_closed: false,
                failure: None,
            }),
            filled: Condvar::new(),
            drained: Condvar::new(),
            stalled: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            written_at: AtomicU64::new(0),
            opened_at: Instant::now(),
            on_change: Box::new(on_change),
        });
        Self(Arc::clone(&inner), Arc::new(Closer(inner)))
    }

    pub(crate) fn file(&self) -> &Arc<File> {
        &self.0.file
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.0.is_terminal
    }

    /// Returns whether both write to the same pipe, socket or terminal.
    pub(crate) fn has_same_reader(&self, other: &Self) -> bool {
        self.0.state.lock().writer.has_same_reader(&other.0.state.lock().writer)
    }

    /// Returns whether bytes wait for the reader.
    pub(crate) fn is_stalled(&self) -> bool {
        self.0.stalled.load(Ordering::SeqCst)
    }

    /// Notes that something was written.
    pub(crate) fn note_written(&self) {
        self.0.note_written();
    }

    /// Returns how long nothing has been written.
    pub(crate) fn silence(&self) -> Duration {
        let written_at = Duration::from_millis(self.0.written_at.load(Ordering::Relaxed));
        self.0.opened_at.elapsed().saturating_sub(written_at)
    }

    /// Returns whether the stream can no longer be written.
    pub(crate) fn has_failed(&self) -> bool {
        self.0.failed.load(Ordering::SeqCst)
    }

    /// Takes the reason for that, once.
    pub(crate) fn take_failure(&self) -> Option<StreamError> {
        self.0.state.lock().failure.take()
    }

    /// Returns how many items were queued so far.
    pub(crate) fn queued(&self) -> u64 {
        self.0.state.lock().queued
    }

    /// Returns whether the first `count` items of the queue have been written.
    pub(crate) fn has_written(&self, count: u64) -> bool {
        self.0.state.lock().written >= count
    }

    /// Drops what waits for the reader. If anything did, nothing waits from here on: a reader that takes
    /// nothing gets no more.
    pub(crate) fn abandon(&self) {
        let state = &mut *self.0.state.lock();
        if self.is_stalled() {
            self.0.clear(state);
        }
    }

    /// Waits until nothing waits for the reader any more, or the stream has failed.
    pub(crate) fn wait_drained(&self) {
        let mut state = self.0.state.lock();
        while self.is_stalled() && !self.has_failed() {
            state = self.0.drained.wait(state);
        }
    }

    /// Writes bytes. Those that the reader does not take now wait; `charge` counts them in the memory of a
    /// job until they are written.
    pub(crate) fn write(&self, bytes: &[u8], charge: Option<Arc<Chunk>>) {
        let mut guard = self.0.state.lock();
        let state = &mut *guard;
        let mut rest = bytes;
        if state.queue.is_empty() && !self.is_stalled() {
            match self.0.write_now(&mut state.writer, bytes) {
                Ok(written) => rest = &bytes[written..],
                Err(error) => return self.0.fail(state, StreamError::Write(error)),
            }
        }
        if rest.is_empty() || self.has_failed() {
            return;
        }
        if let Some(chunk) = &charge
            && chunk.as_ptr_range() == bytes.as_ptr_range()
        {
            let content = Content::Chunk(Arc::clone(chunk), bytes.len() - rest.len());
            return self.push(guard, Item { content, done: None });
        }
        // Decorated bytes can be many times as long as the chunk, which only makes the job wait.
        let content = if state.memory + rest.len() <= MEMORY_MAX {
            state.memory += rest.len();
            Content::Bytes(rest.to_vec())
        } else {
            match self.0.save(state, rest) {
                Ok(saved) => saved,
                Err(error) => return self.0.fail(state, StreamError::Save(error)),
            }
        };
        let done = charge.map(|charge| Done(Box::new(move || drop(charge))));
        self.push(guard, Item { content, done });
    }

    /// Writes what the kernel moves at once of a part of a file. Returns where the rest begins.
    pub(crate) fn send_now(&self, from: &File, at: u64, end: u64) -> u64 {
        let state = &mut *self.0.state.lock();
        let mut at = at;
        while at < end && state.queue.is_empty() && !self.is_stalled() && !self.is_terminal() {
            match state.writer.send_file(&self.0.file, from, at, SEND_MAX.min(end - at)) {
                Ok(sent) if sent > 0 => at += sent,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                // The kernel cannot move bytes between these two files, or not now. A real error occurs
                // again when they are written.
                _ => break,
            }
        }
        at
    }

    /// Queues a part of a file. `done` is called once it was written.
    pub(crate) fn push_range(&self, file: Arc<File>, at: u64, end: u64, done: Option<Done>) {
        self.push(self.0.state.lock(), Item { content: Content::Range { file, at, end }, done });
    }

    fn push(&self, mut state: MutexGuard<'_, State>, item: Item) {
        if self.has_failed() {
            return;
        }
        state.queue.push_back(item);
        state.queued += 1;
        if !self.0.stalled.swap(true, Ordering::SeqCst) {
            (self.0.on_change)(true);
        }
        if !state.has_thread {
            let inner = Arc::clone(&self.0);
            let thread = thread::Builder::new().name("output".to_owned()).stack_size(256 << 10);
            state.has_thread = thread.spawn(move || inner.write_queue(false)).is_ok();
        }
        if state.has_thread {
            self.0.filled.notify_one();
            return;
        }
        // Without a thread there is no other way than to wait here.
        state.has_thread = true;
        drop(state);
        self.0.write_queue(true);
    }
}

impl Inner {
    /// Writes what the reader takes at once.
    fn write_now(&self, writer: &mut NonblockingWriter, bytes: &[u8]) -> io::Result<usize> {
        if self.is_terminal && write_console(&self.file, bytes)? {
            return Ok(bytes.len());
        }
        let mut written = 0;
        while written < bytes.len() {
            match writer.write(&self.file, &bytes[written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => written += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(error),
            }
        }
        Ok(written)
    }

    /// Saves bytes that do not fit into memory.
    fn save(&self, state: &mut State, bytes: &[u8]) -> io::Result<Content> {
        let (file, at) = match state.overflow.take() {
            Some(overflow) => overflow,
            None => (Arc::new(create_unnamed_file(&self.overflow_dir)?), 0),
        };
        write_all_at(&file, bytes, at)?;
        let end = at + bytes.len() as u64;
        state.overflow = Some((Arc::clone(&file), end));
        Ok(Content::Range { file, at, end })
    }

    fn fail(&self, state: &mut State, failure: StreamError) {
        state.failure.get_or_insert(failure);
        self.clear(state);
    }

    /// Drops what is queued. Nothing is queued from here on.
    fn clear(&self, state: &mut State) {
        state.queue.clear();
        state.written = state.queued;
        self.failed.store(true, Ordering::SeqCst);
        self.end_stall(state);
    }

    /// Notes that nothing waits any more.
    fn end_stall(&self, state: &mut State) {
        state.overflow = None;
        state.memory = 0;
        self.drained.notify_all();
        if self.stalled.swap(false, Ordering::SeqCst) {
            (self.on_change)(false);
        }
    }

    /// The thread: writes what is queued, and waits for the reader.
    fn write_queue(&self, until_empty: bool) {
        let mut state = self.state.lock();
        loop {
            let Some(item) = state.queue.pop_front() else {
                if state.is_closed || until_empty {
                    state.has_thread = false;
                    return;
                }
                state = self.filled.wait(state);
                continue;
            };
            drop(state);
            let written = self.write_item(&item);
            state = self.state.lock();
            self.finish_item(&mut state, item, written);
        }
    }

    /// Notes that an item was written, or why not.
    fn finish_item(&self, state: &mut State, item: Item, written: Result<(), StreamError>) {
        if let Content::Bytes(bytes) = &item.content {
            state.memory = state.memory.saturating_sub(bytes.len());
        }
        if let (Some(done), Ok(())) = (item.done, &written) {
            (done.0)();
        }
        // It may have failed meanwhile, and then nothing is queued any more.
        state.written = (state.written + 1).min(state.queued);
        match written {
            Err(failure) => self.fail(state, failure),
            Ok(()) if state.queue.is_empty() => self.end_stall(state),
            Ok(()) => (),
        }
    }

    /// Writes an item, and waits for the reader.
    fn write_item(&self, item: &Item) -> Result<(), StreamError> {
        match &item.content {
            Content::Bytes(bytes) => self.write_bytes(bytes).map_err(StreamError::Write),
            Content::Chunk(chunk, at) => self.write_bytes(&chunk[*at..]).map_err(StreamError::Write),
            Content::Range { file, at, end } => self.write_range(file, *at, *end),
        }
    }

    fn write_bytes(&self, bytes: &[u8]) -> io::Result<()> {
        let mut written = 0;
        while written < bytes.len() {
            written += self.write_some(|writer| writer.write(&self.file, &bytes[written..]))?;
        }
        Ok(())
    }

    /// Writes once, as soon as the reader takes something.
    fn write_some<T>(&self, mut write: impl FnMut(&mut NonblockingWriter) -> io::Result<T>) -> io::Result<T> {
        let written = blocking_io::write_with(&self.file, || write(&mut self.state.lock().writer))?;
        self.note_written();
        Ok(written)
    }

    fn note_written(&self) {
        let now = u64::try_from(self.opened_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.written_at.store(now, Ordering::Relaxed);
    }

    fn write_range(&self, from: &File, mut at: u64, end: u64) -> Result<(), StreamError> {
        while at < end && !self.is_terminal {
            let send = |writer: &mut NonblockingWriter| {
                writer.send_file(&self.file, from, at, SEND_MAX.min(end - at))
            };
            match self.write_some(send) {
                Ok(sent) if sent > 0 => at += sent,
                // As in `send_now`.
                _ => break,
            }
        }
        let mut buffer = vec![0; READ_SIZE];
        while at < end {
            let want = usize::try_from(end - at).unwrap_or(READ_SIZE).min(READ_SIZE);
            match read_at(from, &mut buffer[..want], at) {
                Ok(0) => return Err(StreamError::Read(missing(end - at))),
                Ok(read) => {
                    self.write_bytes(&buffer[..read]).map_err(StreamError::Write)?;
                    at += read as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
                Err(error) => return Err(StreamError::Read(error)),
            }
        }
        Ok(())
    }
}

/// The error for a file that is too short.
pub(crate) fn missing(bytes: u64) -> io::Error {
    io::Error::other(format!("{bytes} bytes of it are missing"))
}
