//! Reads the input, and cuts it into chunks, or into lines for one stream each.

use std::fs::File;
use std::io;
use std::mem;
use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, anyhow};

use crate::splitter::buffer::Buffer;
use crate::splitter::buffer::Bytes;
use crate::splitter::buffer::Pool;
use crate::splitter::buffer::TooLarge;
use crate::splitter::chunker::BlockEnd;
use crate::splitter::chunker::Chunker;
use crate::splitter::column::{Column, Key};
use crate::splitter::config::{
    BLOCK, BLOCKS_OWN, BlockSize, Distribution, HEADER_MAX, READ, RECORD_MAX, SplitterConfig, SplitterSource,
    StreamSource, TEE_BLOCKS,
};
use crate::splitter::file_cutter::FileCutter;
use crate::splitter::file_range;
use crate::splitter::header::{Header, HeaderMatch};
use crate::splitter::input_queue::InputQueue;
use crate::splitter::input_queue::ReadyBlock;
use crate::splitter::record_bounds::RecordBounds;
use crate::splitter::timed_read::FileFeed;
use crate::splitter::timed_read::TimedRead;
use crate::text::os_error_text;

/// Reads all of the input on one thread, and adds it to its queue.
#[derive(Debug)]
pub(crate) struct InputReader {
    config: SplitterConfig,
    source: SplitterSource,
    /// How many jobs run at once.
    slots: usize,
    /// The blocks that it fills. The queue closes the pool when no more input is needed.
    pool: Arc<Pool>,
    queue: Arc<InputQueue>,
}

/// A block that is being filled.
struct OpenBlock {
    buffer: Buffer,
    /// Its offset in the input.
    base: u64,
    /// The number of bytes that were read into it.
    filled: usize,
    /// The number of bytes to read into it.
    limit: usize,
    is_last: bool,
}

/// A block that was distributed and is not written to any more.
struct SealedBlock {
    buffer: Arc<Buffer>,
    base: u64,
    filled: usize,
    is_last: bool,
}

impl OpenBlock {
    fn bytes(&self) -> &[u8] {
        &self.buffer[..self.filled]
    }

    fn is_full(&self) -> bool {
        self.filled == self.limit
    }

    /// Reads once, if there is room. Returns `false` if the deadline passed first.
    fn read(&mut self, feed: &mut impl TimedRead, deadline: Option<Instant>) -> Result<bool, String> {
        if self.is_last || self.is_full() {
            return Ok(true);
        }
        let room = &mut self.buffer.as_mut()[self.filled..self.limit];
        match feed.read(room, deadline).map_err(|error| unreadable(&error))? {
            None => return Ok(false),
            Some(0) => self.is_last = true,
            Some(count) => self.filled += count,
        }
        Ok(true)
    }

    /// Drops the first bytes.
    fn pass(&mut self, count: usize, limit: usize) {
        self.buffer.as_mut().copy_within(count..self.filled, 0);
        self.filled -= count;
        self.base += count as u64;
        // Bytes that were read beyond the block, to find the header, are not read again.
        self.limit = self.filled.max(limit.min(self.buffer.len()));
    }

    /// Skips the first line, however long it is.
    fn skip_line(&mut self, feed: &mut impl TimedRead, limit: usize) -> Result<(), String> {
        loop {
            let end = memchr::memchr(b'\n', self.bytes());
            let passed = end.map_or(self.filled, |at| at + 1);
            self.pass(passed, limit);
            if end.is_some() || self.is_last {
                return Ok(());
            }
            self.read(feed, None)?;
        }
    }

    /// Makes room up to `limit`.
    fn grow(&mut self, limit: usize) -> Result<(), String> {
        self.buffer.grow(limit).map_err(|TooLarge| no_memory(limit))?;
        self.limit = limit;
        Ok(())
    }
}

fn unreadable(error: &io::Error) -> String {
    format!("cannot read the input: {}", os_error_text(error))
}

fn no_memory(len: usize) -> String {
    format!("no memory for a block of {len} bytes (`--block` and the length of records decide)")
}

/// Returns the checksum of a chunk and its header. It is never 0.
fn checksum(header: Option<&Bytes>, chunk: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    if let Some(header) = header {
        hasher.update(header);
    }
    hasher.update(chunk);
    hasher.finalize().max(1)
}

/// Returns the next size for a block without a complete record, as in GNU parallel.
fn larger(limit: usize, most: usize) -> Option<usize> {
    let next = (limit.saturating_mul(13).div_ceil(10).saturating_add(1)).min(most);
    (next > limit).then_some(next)
}

impl InputReader {
    /// Checks the configuration. `slots` is how many jobs run at once, and how many streams there
    /// are. Streams have to run all at once, or `--tee` would wait for those that do not.
    ///
    /// # Errors
    /// The options contradict each other, or a pattern is invalid.
    pub(crate) fn open(mut config: SplitterConfig, source: SplitterSource, slots: usize) -> Result<Self> {
        let slots = slots.max(1);
        config.check(&source)?;
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
        // An invalid pattern is reported before anything is read.
        Chunker::new(&config)
            .and_then(|_| config.stream_key())
            .and_then(|_| config.header_parser())
            .map_err(|why| anyhow!(why))?;
        let pool = Pool::new(blocks);
        let queue = InputQueue::new(&config, streams, Arc::clone(&pool));
        Ok(Self { config, source, slots, pool, queue })
    }

    /// Returns the queue that jobs take the input from.
    pub(crate) fn queue(&self) -> &Arc<InputQueue> {
        &self.queue
    }

    /// Reads all of the source on the calling thread. Returns when everything was distributed, or
    /// when no job takes more. `wake` is called whenever a job that had to wait may continue, see
    /// [`InputQueue::set_wake`].
    pub(crate) fn read(mut self, wake: impl Fn() + Send + Sync + 'static) {
        self.queue.set_wake(wake);
        let result = match mem::replace(&mut self.source, SplitterSource::Files(Vec::new())) {
            SplitterSource::Streams(sources) => self.read_streams(sources),
            SplitterSource::Files(paths) if self.config.spread == Distribution::Blocks => {
                FileCutter::new(&self.config, self.slots, &self.queue).cut_files(&paths)
            }
            SplitterSource::Files(paths) => {
                self.read_streams(paths.into_iter().map(StreamSource::Path).collect())
            }
        };
        self.queue.finish(result);
    }

    /// Reads one source after the other.
    fn read_streams(&self, sources: Vec<StreamSource>) -> Result<(), String> {
        let mut base = 0;
        for (index, source) in sources.into_iter().enumerate() {
            let file = match source {
                StreamSource::Open(file) => file,
                StreamSource::Path(path) => {
                    File::open(&path).map_err(|error| file_range::unreadable(&path, &error))?
                }
            };
            let mut feed = FileFeed::new(file);
            self.read_source(&mut feed, index == 0, base)?;
            base += feed.taken();
        }
        Ok(())
    }

    /// Reads all of a source, which starts at `base` in the input. If a job gets input from several
    /// sources, it gets the header of the first one only.
    pub(super) fn read_source(
        &self,
        feed: &mut impl TimedRead,
        is_first: bool,
        base: u64,
    ) -> Result<(), String> {
        let limit = match (self.config.block, &self.config.spread) {
            (_, Distribution::Tee) if !self.config.remove_separator => READ,
            (_, Distribution::Shard(_) | Distribution::Bin(_)) => READ,
            (BlockSize::Bytes(bytes), _) => usize::try_from(bytes).unwrap_or(usize::MAX),
            // Ranges of files are not read here.
            (BlockSize::Shares(_), _) => BLOCK as usize,
        };
        let Some(mut filling) = self.fresh(limit, &[], base)? else { return Ok(()) };
        if self.config.skip_first && is_first {
            filling.skip_line(feed, limit)?;
        }
        let header = self.take_header(feed, &mut filling, limit)?.map(Bytes::from);
        let own = header.as_deref().unwrap_or_default();
        let mut chunker = Chunker::new(&self.config)?;
        let mut key = self.config.stream_key()?;
        if let RecordBounds::Group(key) = chunker.bounds_mut() {
            key.resolve(own)?;
        }
        if let Some(key) = &mut key {
            key.resolve(own)?;
        }
        // With these, a job gets the header of the source that its first block is from.
        let starts_with_block = matches!(self.config.spread, Distribution::Blocks | Distribution::RoundRobin);
        let keeps_header = is_first || starts_with_block;
        let header = if keeps_header { header } else { None };
        if let Some(key) = key {
            return self.shard(feed, filling, header, &key);
        }
        if let (Distribution::Tee, Some(header)) = (&self.config.spread, &header)
            && !self.queue.push_to_all(header)
        {
            return Ok(());
        }
        self.cut_all(feed, filling, header, &mut chunker)
    }

    /// Returns a block that starts with `rest`, at `base` in the input; `None` if no more input is
    /// needed.
    fn fresh(&self, limit: usize, rest: &[u8], base: u64) -> Result<Option<OpenBlock>, String> {
        let limit = limit.max(rest.len());
        // A block of gigabytes grows with the input.
        let first = limit.min(rest.len().max(READ.max(BLOCK as usize)));
        let Some(buffer) = self.pool.take(first) else { return Ok(None) };
        let mut buffer = buffer.map_err(|TooLarge| no_memory(first))?;
        buffer.as_mut()[..rest.len()].copy_from_slice(rest);
        Ok(Some(OpenBlock { buffer, base, filled: rest.len(), limit: first, is_last: false }))
    }

    /// Takes the header from the beginning.
    fn take_header(
        &self,
        feed: &mut impl TimedRead,
        filling: &mut OpenBlock,
        limit: usize,
    ) -> Result<Option<Vec<u8>>, String> {
        let Some(finder) = self.config.header_parser()? else { return Ok(None) };
        let end = loop {
            match finder.find(filling.bytes(), filling.is_last) {
                HeaderMatch::At(end) => break end,
                HeaderMatch::Nowhere => break 0,
                HeaderMatch::Later => {}
            }
            if filling.is_full() {
                let Some(next) = larger(filling.limit, HEADER_MAX) else {
                    return Err(format!(
                        "the header does not end within {} MiB (`--header`)",
                        HEADER_MAX >> 20
                    ));
                };
                filling.grow(next)?;
            }
            filling.read(feed, None)?;
        };
        let header = filling.bytes()[..end].to_vec();
        filling.pass(end, limit);
        Ok(Some(header))
    }

    fn cut_all(
        &self,
        feed: &mut impl TimedRead,
        mut filling: OpenBlock,
        header: Option<Bytes>,
        chunker: &mut Chunker,
    ) -> Result<(), String> {
        let wanted = match (self.config.block, chunker.is_raw()) {
            (BlockSize::Bytes(bytes), false) => usize::try_from(bytes).unwrap_or(usize::MAX),
            _ => filling.limit,
        };
        let mut limit = wanted;
        let most = wanted.max(RECORD_MAX);
        let mut deadline = self.deadline();
        loop {
            let mut in_time = true;
            if filling.filled < limit {
                if filling.is_full() {
                    filling.grow(limit.min(filling.limit.saturating_mul(2)))?;
                }
                in_time = filling.read(feed, deadline)?;
            }
            // To find the header, more than a block may have been read.
            let extent = if filling.filled >= limit || !in_time {
                BlockEnd::Full
            } else if filling.is_last {
                BlockEnd::Last
            } else if chunker.is_eager() {
                BlockEnd::Open
            } else {
                continue;
            };
            if !in_time {
                deadline = self.deadline();
            }
            let (chunks, rest) = chunker.cut(&filling.bytes()[..filling.filled.min(limit)], extent);
            if chunks.is_empty() && extent != BlockEnd::Last {
                if filling.filled >= limit {
                    limit = larger(limit, most).ok_or_else(|| self.too_long(most))?;
                    if let BlockSize::Bytes(bytes) = self.config.block {
                        self.queue.set_growth(bytes, limit as u64);
                    }
                }
                continue;
            }
            let is_last = extent == BlockEnd::Last;
            let next = self.hand_out(filling, header.as_ref(), chunks, chunker);
            if is_last {
                return Ok(());
            }
            let Some(block) = next else { return Ok(()) };
            match self.fresh(limit, &block.buffer[rest..block.filled], block.base + rest as u64)? {
                Some(next) => filling = OpenBlock { is_last: block.is_last, ..next },
                None => return Ok(()),
            }
            deadline = self.deadline();
        }
    }

    /// Distributes the chunks of a block. Returns `None` if no more input is needed.
    fn hand_out(
        &self,
        mut filling: OpenBlock,
        header: Option<&Bytes>,
        mut chunks: Vec<Range<usize>>,
        chunker: &Chunker,
    ) -> Option<SealedBlock> {
        if self.config.remove_separator {
            for chunk in &mut chunks {
                let kept = chunker.bounds().remove(&mut filling.buffer.as_mut()[chunk.clone()]);
                chunk.end = chunk.start + kept;
            }
            // As in GNU parallel, an empty chunk starts no job.
            chunks.retain(|chunk| !chunk.is_empty());
        }
        if self.config.skip_blank && self.config.spread == Distribution::Blocks {
            let bytes = filling.buffer.as_ref();
            chunks.retain(|chunk| !bytes[chunk.clone()].iter().all(u8::is_ascii_whitespace));
        }
        let OpenBlock { buffer, base, filled, is_last, .. } = filling;
        let buffer = Arc::new(buffer);
        let is_wanted = if self.config.spread == Distribution::Tee {
            chunks.into_iter().all(|chunk| self.queue.push_to_all(&Bytes::new(&buffer, chunk)))
        } else if chunks.is_empty() {
            true
        } else {
            let checksums = if self.config.has_checksums {
                chunks.iter().map(|chunk| checksum(header, &buffer[chunk.clone()])).collect()
            } else {
                Vec::new()
            };
            let checksums = checksums.into_iter();
            let chunks = chunks.into_iter();
            let header = header.cloned();
            self.queue.push(ReadyBlock::Held { header, buffer: Arc::clone(&buffer), base, chunks, checksums })
        };
        is_wanted.then_some(SealedBlock { buffer, base, filled, is_last })
    }

    fn deadline(&self) -> Option<Instant> {
        // A time beyond the range of the clock means no deadline.
        self.config.block_timeout.and_then(|timeout| Instant::now().checked_add(timeout))
    }

    fn too_long(&self, most: usize) -> String {
        let what = match (self.config.group_by.is_some(), self.config.records.is_some()) {
            (true, _) => "a group of lines (`--group-by`) is",
            (_, true) => "the records of a job (`-N`) are",
            _ => "a record (`--recstart`, `--recend`) is",
        };
        format!("{what} longer than {most} bytes")
    }

    /// Gives each line to its stream.
    fn shard(
        &self,
        feed: &mut impl TimedRead,
        mut filling: OpenBlock,
        header: Option<Bytes>,
        key: &Key,
    ) -> Result<(), String> {
        if header.is_some_and(|header| !self.queue.push_to_all(&header)) {
            return Ok(());
        }
        let mut shares = vec![Vec::new(); self.slots];
        // Up to here, no line ends.
        let mut known = 0;
        loop {
            let mut begin = 0;
            let bytes = filling.bytes();
            for end in memchr::memchr_iter(b'\n', &bytes[known..]) {
                let line = &bytes[begin..=known + end];
                shares[self.stream_of(key.of(line))].extend_from_slice(line);
                begin += line.len();
            }
            if filling.is_last && begin < filling.filled {
                let line = &bytes[begin..];
                shares[self.stream_of(key.of(line))].extend_from_slice(line);
            }
            for (place, share) in shares.iter_mut().enumerate().filter(|(_, share)| !share.is_empty()) {
                if !self.queue.push_to(place, std::mem::take(share)) {
                    return Ok(());
                }
            }
            if filling.is_last {
                return Ok(());
            }
            filling.buffer.as_mut().copy_within(begin..filling.filled, 0);
            filling.filled -= begin;
            known = filling.filled;
            if filling.is_full() {
                let next = larger(filling.limit, RECORD_MAX).ok_or_else(|| self.too_long(RECORD_MAX))?;
                filling.grow(next)?;
            }
            filling.read(feed, None)?;
        }
    }

    /// Returns the stream of a value.
    fn stream_of(&self, value: &[u8]) -> usize {
        match self.config.spread {
            Distribution::Bin(_) => {
                let slots = i64::try_from(self.slots).unwrap_or(i64::MAX);
                usize::try_from((leading_number(value).saturating_sub(1)).rem_euclid(slots)).unwrap_or(0)
            }
            _ => crc32fast::hash(value) as usize % self.slots,
        }
    }
}

/// Returns the number that a value starts with, or 0.
fn leading_number(value: &[u8]) -> i64 {
    let value = value.trim_ascii_start();
    let (is_negative, digits) = match value {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, value),
    };
    let number = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |number, byte| number.saturating_mul(10).saturating_add(i64::from(byte - b'0')));
    if is_negative { -number } else { number }
}
