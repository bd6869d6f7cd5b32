//! What was read of the input and waits for jobs. The reader thread adds it, and jobs take it.
//!
//! There are two modes. With *blocks*, each chunk has its own job, and is complete when the job
//! starts. With *streams*, a fixed number of jobs runs, and each gets its share of the input while
//! it runs. A job keeps the chunks that it has not read, so that a retry can read the same bytes.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::vec;

use minder::jobs::NextJob;
use minder_os::sync::{Condvar, Mutex, MutexGuard};

use crate::splitter::buffer::Pool;
use crate::splitter::buffer::{Buffer, Bytes};
use crate::splitter::config::{CHUNK_MAX, Distribution, READY_MAX, SPANS_MAX, STREAM_MAX, SplitterConfig};
use crate::splitter::file_range::FileRange;

/// A queue of input between the reader thread and the jobs. `state` protects everything that
/// changes, and `room` belongs to it: the reader waits there. A job that finds nothing sets
/// `is_starved` under the lock. The reader takes the flag under the same lock when it adds input,
/// and calls `wake` after it has released the lock, so no wake-up is lost.
pub(crate) struct InputQueue {
    spread: Distribution,
    /// `true` if streams start even if there is no input for them.
    all_streams: bool,
    /// Closed when no more input is needed.
    pool: Arc<Pool>,
    state: Mutex<State>,
    /// Notified when the reader may continue.
    room: Condvar,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    ready: VecDeque<ReadyBlock>,
    streams: Vec<Stream>,
    /// The number of jobs that were given their input.
    given: usize,
    /// `true` if the input was read to its end, or until an error.
    ended: bool,
    /// `true` if no more input is needed.
    stopped: bool,
    /// `true` if no more jobs start.
    closed: bool,
    /// `true` if a job found nothing since `wake` was last called.
    is_starved: bool,
    error: Option<String>,
    /// `true` if an error kept the input from being read to its end.
    failed: bool,
    wake: Option<Wake>,
    /// The requested size of a block and the size that a record made of it, if that is larger.
    growth: Option<(u64, u64)>,
}

/// Input that waits for a job.
pub(super) enum ReadyBlock {
    Held {
        header: Option<Bytes>,
        buffer: Arc<Buffer>,
        /// The offset of the buffer in the input.
        base: u64,
        chunks: vec::IntoIter<Range<usize>>,
        /// The checksum of each chunk, if they are wanted.
        checksums: vec::IntoIter<u32>,
    },
    Span(FileRange),
}

/// The input of one job of a fixed number.
#[derive(Default)]
struct Stream {
    queue: VecDeque<Bytes>,
    /// The size of `queue`.
    bytes: usize,
    started: bool,
    /// `true` if the job takes no more.
    finished: bool,
}

/// A block as the record knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InputBlock {
    /// The bytes of the input that it has.
    pub(crate) range: Range<u64>,
    /// Its checksum with the header, if it was read and checksums are wanted.
    pub(crate) checksum: Option<u32>,
}

/// The input of one job. Dropping it releases what it holds.
pub(crate) struct JobInput {
    queue: Arc<InputQueue>,
    /// Its number, from 0, in the order of the input; or the number of its stream.
    pub(crate) place: usize,
    /// Its block; `None` if it gets its input gradually.
    pub(crate) block: Option<InputBlock>,
    content: Content,
    /// The number of bytes that were taken.
    at: u64,
    given_up: bool,
    /// `true` if it is incomplete because the input could not be read.
    torn: bool,
}

enum Content {
    Held { header: Option<Bytes>, chunk: Bytes },
    Span(FileRange),
    Stream,
}

/// The result of [`InputQueue::more`].
#[derive(Clone, Debug)]
pub(crate) enum ReadResult {
    /// The next bytes, at least one.
    Bytes(Bytes),
    /// Nothing now; `wake` is called when there is more.
    Pending,
    /// The end.
    Eof,
}

impl InputQueue {
    /// Creates the queue. `streams` is the number of streams, or 0 with blocks. `pool` has the
    /// blocks that the reader fills.
    pub(super) fn new(config: &SplitterConfig, streams: usize, pool: Arc<Pool>) -> Arc<Self> {
        let mut state = State::default();
        state.streams.resize_with(streams, Stream::default);
        Arc::new(Self {
            spread: config.spread.clone(),
            all_streams: config.all_streams,
            pool,
            state: Mutex::new(state),
            room: Condvar::new(),
        })
    }

    /// Sets `wake`, which is called whenever a job that had to wait may continue. The reader,
    /// [`more`](Self::more), [`give_up`](Self::give_up) and [`close`](Self::close) call it, never
    /// with a lock held.
    pub(super) fn set_wake(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.lock().wake = Some(Arc::new(wake));
    }

    /// Ends the input: the reader adds no more.
    pub(super) fn finish(&self, result: Result<(), String>) {
        let mut state = self.lock();
        state.ended = true;
        if let Err(why) = result {
            state.error.get_or_insert(why);
            state.failed = true;
        }
        state.is_starved = true;
        call(state.take_wake(), state);
    }

    /// Returns the input of the next job. Never blocks, and wakes no thread.
    ///
    /// With blocks, there is one for each chunk. Streams of chunks start with one chunk each: with
    /// little input there are fewer jobs, unless all of them are requested. All other streams exist
    /// from the start, even if they will get nothing.
    pub(crate) fn next(self: &Arc<Self>) -> NextJob<JobInput> {
        let mut state = self.lock();
        if state.closed {
            return NextJob::Exhausted;
        }
        let streams = state.streams.len();
        if streams > 0 && state.given == streams {
            return NextJob::Exhausted;
        }
        let place = state.given;
        let (content, block) = match self.spread {
            Distribution::Tee | Distribution::Shard(_) | Distribution::Bin(_) => (Content::Stream, None),
            Distribution::Blocks | Distribution::RoundRobin => match self.pop(&mut state) {
                Some((content, block)) => (content, (streams == 0).then_some(block)),
                None if state.ended && streams > 0 && self.all_streams && !state.failed => {
                    (Content::Stream, None)
                }
                None if state.ended || state.stopped => return NextJob::Exhausted,
                None => {
                    state.is_starved = true;
                    return NextJob::Pending;
                }
            },
        };
        state.given += 1;
        let content = if streams > 0 { state.begin(place, content) } else { content };
        drop(state);
        NextJob::Ready(JobInput {
            queue: Arc::clone(self),
            place,
            block,
            content,
            at: 0,
            given_up: false,
            torn: false,
        })
    }

    /// Returns the requested size of a block and the size that a record made of it, if that is larger.
    pub(crate) fn growth(&self) -> Option<(u64, u64)> {
        self.lock().growth
    }

    /// Records the requested size of a block, and the larger one that a record needs.
    pub(super) fn set_growth(&self, from: u64, to: u64) {
        self.lock().growth = Some((from, to));
    }

    /// Returns `true` if all jobs read all of the input.
    pub(crate) fn is_tee(&self) -> bool {
        self.spread == Distribution::Tee
    }

    /// Returns `true` if some input is not distributed, and the jobs that run may get none of it before
    /// all jobs have started.
    pub(crate) fn waits_for_starts(&self) -> bool {
        let state = self.lock();
        !state.streams.is_empty() && !state.ended && !state.stopped && !state.closed
    }

    /// Returns the next bytes for the standard input of a job, at most 64 KiB. It waits only for a
    /// disk.
    pub(crate) fn more(&self, part: &mut JobInput) -> ReadResult {
        if part.given_up {
            return ReadResult::Eof;
        }
        let segment = match &part.content {
            Content::Held { header, chunk } => held(header.as_ref(), chunk, part.at),
            Content::Span(span) => match span.read(part.at) {
                Ok(segment) => segment,
                Err(why) => {
                    self.lock().error.get_or_insert(why);
                    part.torn = true;
                    return ReadResult::Eof;
                }
            },
            Content::Stream => {
                let result = self.more_of_stream(part);
                if let ReadResult::Bytes(bytes) = &result {
                    part.at += bytes.len() as u64;
                }
                return result;
            }
        };
        part.at += segment.len() as u64;
        if segment.is_empty() { ReadResult::Eof } else { ReadResult::Bytes(segment) }
    }

    /// Ends the input of a job that takes no more: it closed its input or has exited. Other jobs
    /// continue.
    pub(crate) fn give_up(&self, part: &mut JobInput) {
        if !std::mem::replace(&mut part.given_up, true) && matches!(part.content, Content::Stream) {
            let mut state = self.lock();
            let stream = &mut state.streams[part.place];
            stream.finished = true;
            let dropped = std::mem::take(&mut stream.queue);
            self.check_wanted(&mut state);
            call(state.take_wake(), state);
            drop(dropped);
        }
    }

    /// Rewinds the input of a job that runs again. Returns `false` if that is not possible: the
    /// bytes that were taken of a stream are gone.
    pub(crate) fn rewind(&self, part: &mut JobInput) -> bool {
        let is_whole = part.at == 0 && !part.given_up;
        let can_rewind = is_whole || !matches!(part.content, Content::Stream);
        if can_rewind {
            part.at = 0;
            part.given_up = false;
        }
        can_rewind
    }

    /// Starts no more jobs. Waiting chunks go to the streams that run, if there are any.
    pub(crate) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut dropped = Vec::new();
        for stream in state.streams.iter_mut().filter(|stream| !stream.started) {
            stream.finished = true;
            dropped.push(std::mem::take(&mut stream.queue));
        }
        if state.streams.is_empty() {
            state.stopped = true;
        }
        self.check_wanted(&mut state);
        call(state.take_wake(), state);
    }

    /// Records why a job could not get all of its input.
    pub(crate) fn fail(&self, why: String) {
        self.lock().error.get_or_insert(why);
    }

    /// Returns why the input could not be read or distributed completely.
    pub(crate) fn error(&self) -> Option<String> {
        self.lock().error.take()
    }

    fn more_of_stream(&self, part: &mut JobInput) -> ReadResult {
        let place = part.place;
        let mut state = self.lock();
        let all_started = state.closed || state.given == state.streams.len();
        let stream = &mut state.streams[place];
        if stream.finished {
            return ReadResult::Eof;
        }
        if let Some(segment) = stream.pop() {
            if stream.bytes <= STREAM_MAX {
                self.room.notify_all();
            }
            // Before the last stream started, no thread was woken for the chunks that were left.
            let wake = (all_started && !state.ready.is_empty()).then(|| state.take_wake()).flatten();
            call(wake, state);
            return ReadResult::Bytes(segment);
        }
        // While there are jobs to start, a chunk starts one.
        if all_started
            && self.spread == Distribution::RoundRobin
            && let Some((Content::Held { chunk, .. }, _)) = self.pop(&mut state)
        {
            let stream = &mut state.streams[place];
            stream.push(chunk);
            return stream.pop().map_or(ReadResult::Eof, ReadResult::Bytes);
        }
        if state.ended || state.stopped {
            part.torn = state.failed;
            return ReadResult::Eof;
        }
        state.is_starved = true;
        ReadResult::Pending
    }

    /// Takes a waiting chunk.
    fn pop(&self, state: &mut State) -> Option<(Content, InputBlock)> {
        loop {
            let (content, is_used) = match state.ready.front_mut()? {
                ReadyBlock::Span(span) => {
                    let block = InputBlock { range: span.in_input(), checksum: None };
                    (Some((Content::Span(span.clone()), block)), true)
                }
                ReadyBlock::Held { header, buffer, base, chunks, checksums } => {
                    let content = chunks.next().map(|range| {
                        let in_input = *base + range.start as u64..*base + range.end as u64;
                        let block = InputBlock { range: in_input, checksum: checksums.next() };
                        let chunk = Bytes::new(buffer, range);
                        (Content::Held { header: header.clone(), chunk }, block)
                    });
                    (content, chunks.as_slice().is_empty())
                }
            };
            if is_used {
                state.ready.pop_front();
                self.room.notify_all();
            }
            if content.is_some() {
                return content;
            }
        }
    }

    /// Stops the reader if no job takes more.
    fn check_wanted(&self, state: &mut State) {
        if !state.streams.is_empty() && state.streams.iter().all(|stream| stream.finished) {
            state.stopped = true;
        }
        if state.stopped {
            state.ready.clear();
            self.pool.close();
        }
        // The queue of a stream that ended makes room.
        self.room.notify_all();
    }

    /// Adds a chunk when there is room. Returns `false` if no more input is needed.
    pub(super) fn push(&self, block: ReadyBlock) -> bool {
        let most = if matches!(block, ReadyBlock::Span(_)) { SPANS_MAX } else { READY_MAX };
        let mut state = self.lock();
        while state.ready.len() >= most && !state.stopped {
            state = self.room.wait(state);
        }
        if state.stopped {
            return false;
        }
        state.ready.push_back(block);
        call(state.take_wake(), state);
        true
    }

    /// Gives the same chunk to all streams. Returns `false` if no more input is needed.
    pub(super) fn push_to_all(&self, segment: &Bytes) -> bool {
        let mut state = self.lock();
        if !segment.is_empty() {
            state
                .streams
                .iter_mut()
                .filter(|stream| !stream.finished)
                .for_each(|stream| stream.push(segment.clone()));
        }
        let is_wanted = !state.stopped;
        call(state.take_wake(), state);
        is_wanted
    }

    /// Gives bytes to one stream when there is room. Returns `false` if no stream takes more.
    pub(super) fn push_to(&self, place: usize, bytes: Vec<u8>) -> bool {
        let mut state = self.lock();
        while state.streams[place].bytes > STREAM_MAX && !state.streams[place].finished && !state.stopped {
            state = self.room.wait(state);
        }
        if !state.streams[place].finished {
            state.streams[place].push(Bytes::from(bytes));
        }
        let is_wanted = !state.stopped;
        call(state.take_wake(), state);
        is_wanted
    }

    /// Returns how many blocks wait for a job.
    #[cfg(test)]
    pub(super) fn ready(&self) -> usize {
        self.lock().ready.len()
    }

    /// Returns how many blocks are in use.
    #[cfg(test)]
    pub(super) fn live(&self) -> usize {
        self.pool.live()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Takes the callback to be called, if a job waits.
    fn take_wake(&mut self) -> Option<Wake> {
        if std::mem::take(&mut self.is_starved) { self.wake.clone() } else { None }
    }

    /// Starts a stream with its first content.
    fn begin(&mut self, place: usize, content: Content) -> Content {
        let stream = &mut self.streams[place];
        stream.started = true;
        if let Content::Held { header, chunk } = content {
            header.into_iter().chain([chunk]).for_each(|segment| stream.push(segment));
        }
        Content::Stream
    }
}

impl Stream {
    fn push(&mut self, segment: Bytes) {
        self.bytes += segment.len();
        self.queue.push_back(segment);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let first = self.queue.front_mut()?;
        let segment = first.slice(0, CHUNK_MAX);
        self.bytes -= segment.len();
        *first = first.slice(segment.len(), usize::MAX);
        if first.is_empty() {
            self.queue.pop_front();
        }
        Some(segment)
    }
}

impl JobInput {
    /// Returns a POSIX shell command that writes this range of a file. `None` if the input is not
    /// in a file, or the file's name is not UTF-8.
    pub(crate) fn as_shell(&self) -> Option<String> {
        match &self.content {
            Content::Span(span) => span.as_shell(),
            Content::Held { .. } | Content::Stream => None,
        }
    }

    /// Returns `true` if the input is incomplete because it could not be read.
    pub(crate) fn is_torn(&self) -> bool {
        self.torn
    }
}

impl Drop for JobInput {
    fn drop(&mut self) {
        let queue = Arc::clone(&self.queue);
        queue.give_up(self);
    }
}

impl fmt::Debug for JobInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobInput").field("place", &self.place).field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for InputQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputQueue").field("spread", &self.spread).finish_non_exhaustive()
    }
}

/// Releases the lock, then calls `wake`.
fn call(wake: Option<Wake>, state: MutexGuard<'_, State>) {
    drop(state);
    if let Some(wake) = wake {
        wake();
    }
}

/// Returns the chunk at `at` of a header and what follows it.
fn held(header: Option<&Bytes>, chunk: &Bytes, at: u64) -> Bytes {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    match header {
        Some(header) if at < header.len() => header.slice(at, CHUNK_MAX),
        header => chunk.slice(at - header.map_or(0, |header| header.len()), CHUNK_MAX),
    }
}
