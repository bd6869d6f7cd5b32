//! Input for the jobs: standard input, or files, given out in parts. A part is never cut within a
//! record.
//!
//! One thread reads and cuts, and stays little ahead of the jobs. A block of input is read into
//! once; jobs get pieces of it, and it is used again when none is left. What a job has not read
//! holds its block, so that a retry can have the same bytes.
//!
//! There are two ways of giving out. By *parts*: each has a job of its own, and is all there when
//! the job begins. By *streams*: a fixed number of jobs, each of which gets what falls to it while
//! it runs.

mod buffer;
mod column;
mod cutter;
mod feed;
mod header;
mod intake;
mod span;
mod regexp;
mod split;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::num::NonZeroU64;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::vec;

use anyhow::{Context, Result, anyhow, bail};
use minder::jobs::NextJob;
use regex::bytes::{Regex, RegexBuilder};

pub(super) use self::buffer::Bytes;
use self::buffer::{Buffer, Pool};
pub(super) use self::column::Column;
use self::column::Key;
use self::cutter::{ChunkSize, Chunker};
use self::feed::FileFeed;
pub(super) use self::header::Header;
use self::span::FileRange;
use self::split::RecordBounds;

/// The size of a block where none is asked for.
pub(super) const BLOCK: u64 = 1 << 20;
/// The largest record: a block grows until it holds one. GNU parallel takes all the memory there
/// is.
const RECORD_MAX: usize = 1 << 30;
/// The longest header.
const HEADER_MAX: usize = 16 << 20;
/// How many blocks wait for a job at most.
const READY_MAX: usize = 2;
/// Parts of files, which hold no memory, that wait for a job at most.
const SPANS_MAX: usize = 256;
/// Blocks beside those that jobs hold: those that wait, and the one that is read into.
const BLOCKS_OWN: usize = READY_MAX + 1;
/// How many blocks there are where all jobs get the same: the slowest job decides when one is used
/// again.
const TEE_BLOCKS: usize = 4;
/// How much is read at once where input is not cut into blocks.
const READ: usize = 256 << 10;
/// How much waits for one stream that gets lines of its own. A single line may be longer.
const STREAM_MAX: usize = 256 << 10;
/// The longest piece that is given at once.
const PIECE: usize = 64 << 10;

/// What was asked for, all decided.
#[derive(Clone, Debug)]
pub(super) struct SplitterConfig {
    pub(super) spread: Distribution,
    pub(super) block: BlockSize,
    /// Records in a chunk, instead of as many as a block has: `-N` times `-L`.
    pub(super) records: Option<NonZeroU64>,
    /// What a record begins and ends with; a line end if neither is said. Escapes are resolved: see
    /// [`unescape`].
    pub(super) start: Option<Vec<u8>>,
    pub(super) end: Option<Vec<u8>>,
    /// Whether these two are regular expressions.
    pub(super) regexp: bool,
    pub(super) remove_separator: bool,
    /// Whether there is no job for blank bytes alone.
    pub(super) skip_blank: bool,
    pub(super) header: Option<Header>,
    /// Records are lines with the same value in this column.
    pub(super) group_by: Option<Column>,
    /// What stands between columns, a regular expression; a tab if not said.
    pub(super) colsep: Option<String>,
    /// Whether the first line of the first source belongs to no part, not even to the header.
    pub(super) skip_first: bool,
    /// Whether streams that get chunks begin also where there is nothing for them.
    pub(super) all_streams: bool,
    /// How long a block is waited for until a job gets what there is of it.
    pub(super) block_timeout: Option<Duration>,
}

/// How large a block is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockSize {
    Bytes(u64),
    /// So many parts of a file for each slot: only of files.
    Shares(NonZeroU64),
}

/// Who gets what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Distribution {
    /// A job for each chunk.
    Blocks,
    /// Each chunk to a stream that has nothing.
    RoundRobin,
    /// All to all streams.
    Tee,
    /// Lines with the same value in a column to the same stream.
    Shard(Column),
    /// The value in a column is the number of the stream, from 1; modulo their number.
    Bin(Column),
}

/// Where input comes from.
#[derive(Debug)]
pub(super) enum SplitterSource {
    /// Anything that can be read; it may be set to be non-blocking.
    Reader(File),
    /// Regular files, which are not read to be cut.
    Files(Vec<PathBuf>),
}

impl Default for SplitterConfig {
    fn default() -> Self {
        Self {
            spread: Distribution::Blocks,
            block: BlockSize::Bytes(BLOCK),
            records: None,
            start: None,
            end: None,
            regexp: false,
            remove_separator: false,
            skip_blank: false,
            header: None,
            group_by: None,
            colsep: None,
            skip_first: false,
            all_streams: false,
            block_timeout: None,
        }
    }
}

/// Input that is given out.
pub(super) struct InputSplitter {
    plan: SplitterConfig,
    slots: usize,
    source: Mutex<Option<SplitterSource>>,
    pool: Arc<Pool>,
    state: Mutex<State>,
    /// Told when the reader may go on.
    room: Condvar,
}

type Wake = Arc<dyn Fn() + Send + Sync>;

#[derive(Default)]
struct State {
    ready: VecDeque<ReadyBlock>,
    streams: Vec<Stream>,
    /// How many parts were handed out.
    given: usize,
    /// Nothing more is read.
    ended: bool,
    /// Nothing more is wanted.
    stopped: bool,
    /// No more jobs are started.
    closed: bool,
    /// Whether somebody asked while there was nothing.
    asked: bool,
    error: Option<String>,
    /// Whether there was an error that kept input from being read to its end.
    failed: bool,
    wake: Option<Wake>,
}

/// What waits for jobs.
enum ReadyBlock {
    Held { header: Option<Bytes>, buffer: Arc<Buffer>, chunks: vec::IntoIter<Range<usize>> },
    Span(FileRange),
}

/// A job that gets what falls to it.
#[derive(Default)]
struct Stream {
    queue: VecDeque<Bytes>,
    /// Bytes in `queue`.
    bytes: usize,
    started: bool,
    /// It takes nothing more.
    over: bool,
}

/// The input of one job. Whatever it holds is let go when it is dropped.
pub(super) struct JobInput {
    pipe: Arc<InputSplitter>,
    /// Which one, from 0, in the order of the input; of a stream: which stream.
    pub(super) place: usize,
    content: Content,
    /// How much was taken.
    at: u64,
    given_up: bool,
    /// Whether its end came too early: the input could not be read.
    torn: bool,
}

enum Content {
    Held { header: Option<Bytes>, chunk: Bytes },
    Span(FileRange),
    Stream,
}

/// What [`InputSplitter::more`] says.
#[derive(Clone, Debug)]
pub(super) enum ReadResult {
    /// The next bytes, at least one.
    Bytes(Bytes),
    /// Nothing now; the reader wakes when there is something.
    Pending,
    /// Nothing more.
    Eof,
}

impl InputSplitter {
    /// Checks the plan. `slots` is how many jobs run at once, and how many streams there are: they
    /// have to run all at once, or a `--tee` would wait for those that do not.
    pub(super) fn open(mut plan: SplitterConfig, source: SplitterSource, slots: usize) -> Result<Arc<Self>> {
        let slots = slots.max(1);
        check(&plan, &source)?;
        let names = match &plan.spread {
            Distribution::Shard(Column::Name(_)) | Distribution::Bin(Column::Name(_)) => true,
            _ => matches!(plan.group_by, Some(Column::Name(_))),
        };
        // A name is one of the first line.
        if names && plan.header.is_none() {
            plan.header = Some(Header::Lines(1));
        }
        let (streams, blocks) = match plan.spread {
            Distribution::Blocks => (0, slots.saturating_add(BLOCKS_OWN)),
            Distribution::RoundRobin => (slots, slots.saturating_add(BLOCKS_OWN)),
            Distribution::Tee => (slots, TEE_BLOCKS),
            Distribution::Shard(_) | Distribution::Bin(_) => (slots, 1),
        };
        let mut state = State::default();
        state.streams.resize_with(streams, Stream::default);
        let pipe = Self {
            plan,
            slots,
            source: Mutex::new(Some(source)),
            pool: Pool::new(blocks),
            state: Mutex::new(state),
            room: Condvar::new(),
        };
        // What is wrong with a pattern is said before anything is read.
        pipe.cutter().and_then(|_| pipe.key()).and_then(|_| pipe.finder()).map_err(|why| anyhow!(why))?;
        Ok(Arc::new(pipe))
    }

    /// Reads all of the source, on the thread of the caller, and returns when it was given out or
    /// nobody wants more. `wake` is called whenever somebody who was told to come later may
    /// have something to do; from `more`, `give_up` and `close` too, and never with a lock
    /// held.
    pub(super) fn read(&self, wake: impl Fn() + Send + Sync + 'static) {
        let source = self.source.lock().unwrap_or_else(PoisonError::into_inner).take();
        self.lock().wake = Some(Arc::new(wake));
        let result = match source {
            Some(SplitterSource::Reader(file)) => self.take_in(&mut FileFeed::new(file), true),
            Some(SplitterSource::Files(paths)) => self.take_files(&paths),
            None => Ok(()),
        };
        self.finish(result);
    }

    fn finish(&self, result: Result<(), String>) {
        let mut state = self.lock();
        state.ended = true;
        if let Err(why) = result {
            state.error.get_or_insert(why);
            state.failed = true;
        }
        state.asked = true;
        call(state.news(), state);
    }

    /// The input of the next job. Never blocks, and wakes nobody.
    ///
    /// By parts, one for each chunk. Streams that get chunks begin with one each: where there is
    /// little, there are fewer jobs, unless all of them are asked for. All others are there at
    /// once, also if they will get nothing.
    pub(super) fn next(self: &Arc<Self>) -> NextJob<JobInput> {
        let mut state = self.lock();
        if state.closed {
            return NextJob::Exhausted;
        }
        let streams = state.streams.len();
        if streams > 0 && state.given == streams {
            return NextJob::Exhausted;
        }
        let place = state.given;
        let content = match self.plan.spread {
            Distribution::Tee | Distribution::Shard(_) | Distribution::Bin(_) => Content::Stream,
            Distribution::Blocks | Distribution::RoundRobin => match self.pop(&mut state) {
                Some(content) => content,
                None if state.ended && streams > 0 && self.plan.all_streams && !state.failed => {
                    Content::Stream
                }
                None if state.ended || state.stopped => return NextJob::Exhausted,
                None => {
                    state.asked = true;
                    return NextJob::Pending;
                }
            },
        };
        state.given += 1;
        let content = if streams > 0 { state.begin(place, content) } else { content };
        drop(state);
        NextJob::Ready(JobInput {
            pipe: Arc::clone(self),
            place,
            content,
            at: 0,
            given_up: false,
            torn: false,
        })
    }

    /// Whether all jobs read all of the input.
    pub(super) fn is_tee(&self) -> bool {
        self.plan.spread == Distribution::Tee
    }

    /// The next bytes for the standard input of a job, at most 64 KiB. It waits for nothing but a
    /// disk.
    pub(super) fn more(&self, part: &mut JobInput) -> ReadResult {
        if part.given_up {
            return ReadResult::Eof;
        }
        let piece = match &part.content {
            Content::Held { header, chunk } => held(header.as_ref(), chunk, part.at),
            Content::Span(span) => match span.read(part.at) {
                Ok(piece) => piece,
                Err(why) => {
                    self.lock().error.get_or_insert(why);
                    part.torn = true;
                    return ReadResult::Eof;
                }
            },
            Content::Stream => return self.more_of_stream(part),
        };
        part.at += piece.len() as u64;
        if piece.is_empty() { ReadResult::Eof } else { ReadResult::Bytes(piece) }
    }

    /// The job takes nothing more: it closed its input, or ended. Others go on without it.
    pub(super) fn give_up(&self, part: &mut JobInput) {
        if !std::mem::replace(&mut part.given_up, true) && matches!(part.content, Content::Stream) {
            let mut state = self.lock();
            let stream = &mut state.streams[part.place];
            stream.over = true;
            let dropped = std::mem::take(&mut stream.queue);
            self.check_wanted(&mut state);
            call(state.news(), state);
            drop(dropped);
        }
    }

    /// Begins the part anew, for a job that is run again. Says whether that is possible: what a
    /// stream had is gone.
    pub(super) fn again(&self, part: &mut JobInput) -> bool {
        let is_whole = !matches!(part.content, Content::Stream);
        if is_whole {
            (part.at, part.given_up) = (0, false);
        }
        is_whole
    }

    /// No more jobs are started. What waits goes to the streams that run, or to nobody.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let mut dropped = Vec::new();
        for stream in state.streams.iter_mut().filter(|stream| !stream.started) {
            stream.over = true;
            dropped.push(std::mem::take(&mut stream.queue));
        }
        if state.streams.is_empty() {
            state.stopped = true;
        }
        self.check_wanted(&mut state);
        call(state.news(), state);
    }

    /// Notes what kept a job from getting all of its part.
    pub(super) fn fail(&self, why: String) {
        self.lock().error.get_or_insert(why);
    }

    /// What kept input from being read or given out to its end.
    pub(super) fn error(&self) -> Option<String> {
        self.lock().error.take()
    }

    fn more_of_stream(&self, part: &mut JobInput) -> ReadResult {
        let place = part.place;
        let mut state = self.lock();
        let all_begun = state.closed || state.given == state.streams.len();
        let stream = &mut state.streams[place];
        if stream.over {
            return ReadResult::Eof;
        }
        if let Some(piece) = stream.pop() {
            if stream.bytes <= STREAM_MAX {
                self.room.notify_all();
            }
            // When the last stream began, nobody was woken for what was left then.
            let news = (all_begun && !state.ready.is_empty()).then(|| state.news()).flatten();
            call(news, state);
            return ReadResult::Bytes(piece);
        }
        // A chunk begins a job as long as there are jobs to begin.
        if all_begun
            && self.plan.spread == Distribution::RoundRobin
            && let Some(Content::Held { chunk, .. }) = self.pop(&mut state)
        {
            let stream = &mut state.streams[place];
            stream.push(chunk);
            return stream.pop().map_or(ReadResult::Eof, ReadResult::Bytes);
        }
        if state.ended || state.stopped {
            part.torn = state.failed;
            return ReadResult::Eof;
        }
        state.asked = true;
        ReadResult::Pending
    }

    /// Takes a chunk from those that wait.
    fn pop(&self, state: &mut State) -> Option<Content> {
        loop {
            let (content, is_used) = match state.ready.front_mut()? {
                ReadyBlock::Span(span) => (Some(Content::Span(span.clone())), true),
                ReadyBlock::Held { header, buffer, chunks } => {
                    let chunk = chunks.next().map(|range| Bytes::new(buffer, range));
                    let content = chunk.map(|chunk| Content::Held { header: header.clone(), chunk });
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

    /// Stops reading for nobody.
    fn check_wanted(&self, state: &mut State) {
        if !state.streams.is_empty() && state.streams.iter().all(|stream| stream.over) {
            state.stopped = true;
        }
        if state.stopped {
            state.ready.clear();
            self.pool.close();
        }
        // A stream that is over makes room.
        self.room.notify_all();
    }

    /// Adds what was cut, when there is room; says whether more is wanted.
    fn push(&self, portion: ReadyBlock) -> bool {
        let most = if matches!(portion, ReadyBlock::Span(_)) { SPANS_MAX } else { READY_MAX };
        let mut state = self.lock();
        while state.ready.len() >= most && !state.stopped {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if state.stopped {
            return false;
        }
        state.ready.push_back(portion);
        call(state.news(), state);
        true
    }

    /// Gives all streams the same; says whether more is wanted.
    fn push_to_all(&self, piece: &Bytes) -> bool {
        let mut state = self.lock();
        if !piece.is_empty() {
            state
                .streams
                .iter_mut()
                .filter(|stream| !stream.over)
                .for_each(|stream| stream.push(piece.clone()));
        }
        let is_wanted = !state.stopped;
        call(state.news(), state);
        is_wanted
    }

    /// Gives one stream its own, when there is room; says whether more is wanted by anybody.
    fn push_to(&self, place: usize, bytes: Vec<u8>) -> bool {
        let mut state = self.lock();
        while state.streams[place].bytes > STREAM_MAX && !state.streams[place].over && !state.stopped {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if !state.streams[place].over {
            state.streams[place].push(Bytes::from(bytes));
        }
        let is_wanted = !state.stopped;
        call(state.news(), state);
        is_wanted
    }

    /// How records are found.
    fn cutter(&self) -> Result<Chunker, String> {
        let plan = &self.plan;
        let splitter = match &plan.group_by {
            Some(column) => RecordBounds::Group(Key::new(column.clone(), plan.colsep.as_deref())?),
            None => {
                let start = plan.start.as_deref().unwrap_or_default();
                let default: &[u8] = if plan.start.is_some() { b"" } else { b"\n" };
                let end = plan.end.as_deref().unwrap_or(default);
                match plan.regexp {
                    true => RecordBounds::pattern(end, start)?,
                    false => RecordBounds::fixed(end, start),
                }
            }
        };
        let measure = match (plan.records, &plan.spread) {
            // The same bytes, however they are cut.
            (_, Distribution::Tee) if !plan.remove_separator => ChunkSize::Reads,
            (Some(records), _) => ChunkSize::Records(records.get()),
            (None, _) => ChunkSize::Blocks,
        };
        Ok(Chunker::new(splitter, measure))
    }

    /// How the stream of a line is found.
    fn key(&self) -> Result<Option<Key>, String> {
        match &self.plan.spread {
            Distribution::Shard(column) | Distribution::Bin(column) => {
                Key::new(column.clone(), self.plan.colsep.as_deref()).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn finder(&self) -> Result<Option<header::HeaderParser>, String> {
        self.plan.header.as_ref().map(header::HeaderParser::new).transpose()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Who is to be woken, if anybody waits.
    fn news(&mut self) -> Option<Wake> {
        if std::mem::take(&mut self.asked) { self.wake.clone() } else { None }
    }

    /// Starts a stream with what it begins with.
    fn begin(&mut self, place: usize, content: Content) -> Content {
        let stream = &mut self.streams[place];
        stream.started = true;
        if let Content::Held { header, chunk } = content {
            header.into_iter().chain([chunk]).for_each(|piece| stream.push(piece));
        }
        Content::Stream
    }
}

impl Stream {
    fn push(&mut self, piece: Bytes) {
        self.bytes += piece.len();
        self.queue.push_back(piece);
    }

    fn pop(&mut self) -> Option<Bytes> {
        let first = self.queue.front_mut()?;
        let piece = first.slice(0, PIECE);
        self.bytes -= piece.len();
        *first = first.slice(piece.len(), usize::MAX);
        if first.is_empty() {
            self.queue.pop_front();
        }
        Some(piece)
    }
}

impl JobInput {
    /// A command for a POSIX shell that writes this part of a file. `None` where it is in no file,
    /// or the file's name is no text.
    pub(super) fn as_shell(&self) -> Option<String> {
        match &self.content {
            Content::Span(span) => span.as_shell(),
            Content::Held { .. } | Content::Stream => None,
        }
    }

    /// Whether its end came too early, since the input could not be read.
    pub(super) fn is_torn(&self) -> bool {
        self.torn
    }
}

impl Drop for JobInput {
    fn drop(&mut self) {
        let pipe = Arc::clone(&self.pipe);
        pipe.give_up(self);
    }
}

impl fmt::Debug for JobInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part").field("place", &self.place).field("at", &self.at).finish_non_exhaustive()
    }
}

impl fmt::Debug for InputSplitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipe").field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Wakes, without the lock.
fn call(wake: Option<Wake>, state: MutexGuard<'_, State>) {
    drop(state);
    if let Some(wake) = wake {
        wake();
    }
}

/// The piece at `at` of a header and what follows it.
fn held(header: Option<&Bytes>, chunk: &Bytes, at: u64) -> Bytes {
    let at = usize::try_from(at).unwrap_or(usize::MAX);
    match header {
        Some(header) if at < header.len() => header.slice(at, PIECE),
        header => chunk.slice(at - header.map_or(0, |header| header.len()), PIECE),
    }
}

/// Refuses what does not go together.
fn check(plan: &SplitterConfig, source: &SplitterSource) -> Result<()> {
    let by_line = match plan.spread {
        Distribution::Shard(_) => Some("--shard"),
        Distribution::Bin(_) => Some("--bin"),
        _ => None,
    };
    if let Some(flag) = by_line {
        let others = [
            (plan.group_by.is_some(), "--group-by"),
            (plan.records.is_some(), "-N"),
            (plan.start.is_some(), "--recstart"),
            (plan.end.as_ref().is_some_and(|end| end != b"\n"), "--recend"),
            (plan.remove_separator, "--remove-rec-sep"),
        ];
        if let Some((_, other)) = others.iter().find(|(is_set, _)| *is_set) {
            bail!("`{flag}` goes by lines, and does not go with `{other}`");
        }
    }
    if plan.group_by.is_some() && (plan.start.is_some() || plan.end.is_some()) {
        bail!("`--group-by` makes records of lines, and does not go with `--recstart` and `--recend`");
    }
    match (source, plan.block) {
        (_, BlockSize::Bytes(0)) => bail!("a block of 0 bytes holds nothing: `--block` has to be larger"),
        (SplitterSource::Reader(_), BlockSize::Shares(_)) => {
            bail!("a negative `--block` is a share of a file: it goes with `--pipe-part` only")
        }
        _ => {}
    }
    if matches!((source, &plan.spread), (SplitterSource::Files(_), Distribution::Blocks)) {
        if plan.records.is_some() {
            bail!("`--pipe-part` counts no records: `-N` and `-L` go with `--pipe`");
        }
        if plan.remove_separator {
            bail!("`--pipe-part` gives files as they are: `--remove-rec-sep` goes with `--pipe`");
        }
    }
    let SplitterSource::Files(paths) = source else { return Ok(()) };
    for path in paths {
        let found = std::fs::metadata(path).with_context(|| format!("cannot read `{}`", path.display()))?;
        if !found.is_file() {
            bail!("`{}` is no regular file: `--pipe` reads any, from standard input", path.display());
        }
    }
    Ok(())
}

/// A regular expression over bytes, where `^` and `$` are the bounds of lines.
fn pattern(flag: &str, text: &[u8]) -> Result<Regex, String> {
    let Ok(text) = str::from_utf8(text) else {
        return Err(format!("`{flag}` is a regular expression, and has to be UTF-8"));
    };
    let build = |unicode| RegexBuilder::new(text).multi_line(true).unicode(unicode).build();
    // Input is bytes: what matches any character matches any byte. A class of characters beyond ASCII
    // needs Unicode.
    build(false).or_else(|_| build(true)).map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default();
        format!("`{flag}` is no regular expression: {}", why.strip_prefix("error: ").unwrap_or(why))
    })
}

/// Resolves what a separator is written with: `\n`, `\t`, `\r`, `\0`, `\\`, and `\x` with two
/// digits. All else stays.
pub(super) fn unescape(text: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some(&first) = rest.first() {
        let (byte, len) = match rest {
            [b'\\', b'n', ..] => (b'\n', 2),
            [b'\\', b't', ..] => (b'\t', 2),
            [b'\\', b'r', ..] => (b'\r', 2),
            [b'\\', b'0', ..] => (0, 2),
            [b'\\', b'\\', ..] => (b'\\', 2),
            [b'\\', b'x', high, low, ..] => match (digit(*high), digit(*low)) {
                (Some(high), Some(low)) => (high << 4 | low, 4),
                _ => (first, 1),
            },
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[len..];
    }
    bytes
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).map(|digit| digit as u8)
}
