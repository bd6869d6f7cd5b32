//! Distributes standard input, or files, over the jobs. A record is never cut.
//!
//! One thread reads and cuts, and stays a little ahead of the jobs. A block of input is read into
//! once. Jobs share chunks of it, and it is reused when no chunk is left. A job keeps the chunks
//! that it has not read, so that a retry can read the same bytes.
//!
//! There are two modes. With *blocks*, each chunk has its own job, and is complete when the job
//! starts. With *streams*, a fixed number of jobs runs, and each gets its share of the input while
//! it runs.

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::vec;

use anyhow::{Context, Result, anyhow, bail};
use minder::jobs::NextJob;
use minder_os::sync::{Condvar, Mutex, MutexGuard};

use crate::splitter::buffer::Pool;
use crate::splitter::buffer::{Buffer, Bytes};
use crate::splitter::chunker::ChunkSize;
use crate::splitter::chunker::Chunker;
use crate::splitter::column::Column;
use crate::splitter::column::Key;
use crate::splitter::config::{
    BLOCKS_OWN, BlockSize, CHUNK_MAX, Distribution, READY_MAX, SPANS_MAX, STREAM_MAX, SplitterConfig,
    SplitterSource, StreamSource, TEE_BLOCKS,
};
use crate::splitter::file_range::FileRange;
use crate::splitter::header::{self, Header};
use crate::splitter::record_bounds::RecordBounds;

/// The splitter. `state` protects everything that changes, and `room` belongs to it: the reader
/// waits there. A job that finds nothing sets `is_starved` under the lock. The reader takes the flag
/// under the same lock when it adds input, and calls `wake` after it has released the lock, so no
/// wake-up is lost.
pub(crate) struct InputSplitter {
    pub(super) config: SplitterConfig,
    pub(super) slots: usize,
    pub(super) source: Mutex<Option<SplitterSource>>,
    pub(super) pool: Arc<Pool>,
    pub(super) state: Mutex<State>,
    /// Notified when the reader may continue.
    pub(super) room: Condvar,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
pub(super) struct State {
    pub(super) ready: VecDeque<ReadyBlock>,
    pub(super) streams: Vec<Stream>,
    /// The number of jobs that were given their input.
    pub(super) given: usize,
    /// `true` if the input was read to its end, or until an error.
    pub(super) ended: bool,
    /// `true` if no more input is needed.
    pub(super) stopped: bool,
    /// `true` if no more jobs start.
    pub(super) closed: bool,
    /// `true` if a job found nothing since `wake` was last called.
    pub(super) is_starved: bool,
    pub(super) error: Option<String>,
    /// `true` if an error kept the input from being read to its end.
    pub(super) failed: bool,
    pub(super) wake: Option<Wake>,
    /// The size that blocks of `--block` had to grow to, if they had to.
    pub(super) grown_to: Option<usize>,
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
pub(super) struct Stream {
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
    splitter: Arc<InputSplitter>,
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

pub(super) enum Content {
    Held { header: Option<Bytes>, chunk: Bytes },
    Span(FileRange),
    Stream,
}

/// The result of [`InputSplitter::more`].
#[derive(Clone, Debug)]
pub(crate) enum ReadResult {
    /// The next bytes, at least one.
    Bytes(Bytes),
    /// Nothing now; `wake` is called when there is more.
    Pending,
    /// The end.
    Eof,
}

impl InputSplitter {
    /// Checks the configuration. `slots` is how many jobs run at once, and how many streams there
    /// are. Streams have to run all at once, or `--tee` would wait for those that do not.
    ///
    /// # Errors
    /// The options contradict each other, or a pattern is invalid.
    pub(crate) fn open(
        mut config: SplitterConfig,
        source: SplitterSource,
        slots: usize,
    ) -> Result<Arc<Self>> {
        let slots = slots.max(1);
        check(&config, &source)?;
        let names = match &config.spread {
            Distribution::Shard(Column::Name(_)) | Distribution::Bin(Column::Name(_)) => true,
            _ => matches!(config.group_by, Some(Column::Name(_))),
        };
        // A named column needs the first line as the header.
        if names && config.header.is_none() {
            config.header = Some(Header::Lines(1));
        }
        let (streams, blocks) = match config.spread {
            Distribution::Blocks => (0, slots.saturating_add(BLOCKS_OWN)),
            Distribution::RoundRobin => (slots, slots.saturating_add(BLOCKS_OWN)),
            Distribution::Tee => (slots, TEE_BLOCKS),
            Distribution::Shard(_) | Distribution::Bin(_) => (slots, 1),
        };
        let mut state = State::default();
        state.streams.resize_with(streams, Stream::default);
        let this = Self {
            config,
            slots,
            source: Mutex::new(Some(source)),
            pool: Pool::new(blocks),
            state: Mutex::new(state),
            room: Condvar::new(),
        };
        // An invalid pattern is reported before anything is read.
        this.chunker().and_then(|_| this.key()).and_then(|_| this.finder()).map_err(|why| anyhow!(why))?;
        Ok(Arc::new(this))
    }

    /// Reads all of the source on the calling thread. Returns when everything was distributed, or
    /// when no job takes more. `wake` is called whenever a job that had to wait may continue;
    /// [`more`](Self::more), [`give_up`](Self::give_up) and [`close`](Self::close) call it too. It
    /// is never called with a lock held.
    pub(crate) fn read(&self, wake: impl Fn() + Send + Sync + 'static) {
        let source = self.source.lock().take();
        self.lock().wake = Some(Arc::new(wake));
        let result = match source {
            Some(SplitterSource::Streams(sources)) => self.take_streams(sources),
            Some(SplitterSource::Files(paths)) if self.config.spread == Distribution::Blocks => {
                self.take_files(&paths)
            }
            Some(SplitterSource::Files(paths)) => {
                self.take_streams(paths.into_iter().map(StreamSource::Path).collect())
            }
            None => Ok(()),
        };
        self.finish(result);
    }

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
        let (content, block) = match self.config.spread {
            Distribution::Tee | Distribution::Shard(_) | Distribution::Bin(_) => (Content::Stream, None),
            Distribution::Blocks | Distribution::RoundRobin => match self.pop(&mut state) {
                Some((content, block)) => (content, (streams == 0).then_some(block)),
                None if state.ended && streams > 0 && self.config.all_streams && !state.failed => {
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
            splitter: Arc::clone(self),
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
        let to = self.lock().grown_to? as u64;
        match self.config.block {
            BlockSize::Bytes(from) => Some((from, to)),
            BlockSize::Shares(_) => None,
        }
    }

    /// Returns `true` if all jobs read all of the input.
    pub(crate) fn is_tee(&self) -> bool {
        self.config.spread == Distribution::Tee
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
            && self.config.spread == Distribution::RoundRobin
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

    /// Returns the chunker for this configuration.
    pub(super) fn chunker(&self) -> Result<Chunker, String> {
        let config = &self.config;
        let bounds = match &config.group_by {
            Some(column) => RecordBounds::Group(Key::new(column.clone(), config.colsep.as_deref())?),
            None => {
                let start = config.start.as_deref().unwrap_or_default();
                let default: &[u8] = if config.start.is_some() { b"" } else { b"\n" };
                let end = config.end.as_deref().unwrap_or(default);
                if config.regexp {
                    RecordBounds::pattern(end, start)?
                } else {
                    RecordBounds::fixed(end, start)
                }
            }
        };
        let size = match (config.records, &config.spread) {
            // Every job gets the same bytes, however they are cut.
            (_, Distribution::Tee) if !config.remove_separator => ChunkSize::Reads,
            (Some(records), _) => ChunkSize::Records(records.get()),
            (None, _) => ChunkSize::Blocks,
        };
        Ok(Chunker::new(bounds, size))
    }

    /// Returns how the stream of a line is found.
    pub(super) fn key(&self) -> Result<Option<Key>, String> {
        match &self.config.spread {
            Distribution::Shard(column) | Distribution::Bin(column) => {
                Key::new(column.clone(), self.config.colsep.as_deref()).map(Some)
            }
            _ => Ok(None),
        }
    }

    pub(super) fn finder(&self) -> Result<Option<header::HeaderParser>, String> {
        self.config.header.as_ref().map(header::HeaderParser::new).transpose()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl State {
    /// Takes the callback to be called, if a job waits.
    pub(super) fn take_wake(&mut self) -> Option<Wake> {
        if std::mem::take(&mut self.is_starved) { self.wake.clone() } else { None }
    }

    /// Starts a stream with its first content.
    pub(super) fn begin(&mut self, place: usize, content: Content) -> Content {
        let stream = &mut self.streams[place];
        stream.started = true;
        if let Content::Held { header, chunk } = content {
            header.into_iter().chain([chunk]).for_each(|segment| stream.push(segment));
        }
        Content::Stream
    }
}

impl Stream {
    pub(super) fn push(&mut self, segment: Bytes) {
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
        let splitter = Arc::clone(&self.splitter);
        splitter.give_up(self);
    }
}

impl fmt::Debug for JobInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobInput").field("place", &self.place).field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for InputSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputSplitter").field("config", &self.config).finish_non_exhaustive()
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

/// Rejects options that exclude each other, and files that cannot be split.
fn check(config: &SplitterConfig, source: &SplitterSource) -> Result<()> {
    let by_line = match config.spread {
        Distribution::Shard(_) => Some("--shard"),
        Distribution::Bin(_) => Some("--bin"),
        _ => None,
    };
    if let Some(flag) = by_line {
        let others = [
            (config.group_by.is_some(), "--group-by"),
            (config.records.is_some(), "-N"),
            (config.start.is_some(), "--recstart"),
            (config.end.as_ref().is_some_and(|end| end != b"\n"), "--recend"),
            (config.remove_separator, "--remove-rec-sep"),
        ];
        if let Some((_, other)) = others.iter().find(|(is_set, _)| *is_set) {
            bail!("`{flag}` distributes lines: it cannot be used with `{other}`");
        }
    }
    if config.group_by.is_some() && (config.start.is_some() || config.end.is_some()) {
        bail!("`--group-by` groups lines: it cannot be used with `--recstart` and `--recend`");
    }
    match (source, config.block) {
        (_, BlockSize::Bytes(0)) => bail!("`--block` is 0, the minimum is 1"),
        (SplitterSource::Streams(_), BlockSize::Shares(_)) => {
            bail!("a negative `--block` divides files: it requires `--pipe-part`")
        }
        _ => {}
    }
    if matches!((source, &config.spread), (SplitterSource::Files(_), Distribution::Blocks)) {
        if config.records.is_some() {
            bail!("`--pipe-part` does not count records: `-N` and `-L` require `--pipe`");
        }
        if config.remove_separator {
            bail!("`--pipe-part` does not edit the input: `--remove-rec-sep` requires `--pipe`");
        }
    }
    check_files(source)
}

/// Rejects files that cannot be read, so that no job starts before that is known.
fn check_files(source: &SplitterSource) -> Result<()> {
    let about = |path: &Path| std::fs::metadata(path).with_context(|| cannot_read(path));
    match source {
        SplitterSource::Streams(sources) => {
            for source in sources {
                if let StreamSource::Path(path) = source
                    && about(path)?.is_dir()
                {
                    return Err(anyhow!("is a directory").context(cannot_read(path)));
                }
            }
        }
        SplitterSource::Files(paths) => {
            for path in paths {
                if !about(path)?.is_file() {
                    bail!(
                        "`{}` is not a regular file, which --pipe-part requires (`--pipe` reads standard \
                         input)",
                        path.display()
                    );
                }
            }
        }
    }
    Ok(())
}

fn cannot_read(path: &Path) -> String {
    format!("cannot read `{}`", path.display())
}
