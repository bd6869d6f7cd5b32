//! Cuts a block into chunks: the records for one job.

use std::ops::Range;

use crate::splitter::column::Key;
use crate::splitter::config::{Distribution, SplitterConfig};
use crate::splitter::record_bounds::RecordBounds;

/// The end of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkSize {
    /// The end of a read.
    Reads,
    /// The last complete record of a block.
    Blocks,
    /// This many records.
    Records(u64),
}

/// Cuts blocks one after the other. Each block starts with what was left of the one before.
#[derive(Debug)]
pub(crate) struct Chunker {
    bounds: RecordBounds,
    size: ChunkSize,
    /// The number of records of the incomplete chunk, where the last of them ends, and up to where
    /// its end was searched for.
    records: u64,
    split: usize,
    known: usize,
}

/// The input after the bytes of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnd {
    /// More input, and there is room for it.
    Open,
    /// More input, which is not waited for.
    Full,
    /// The end of the input.
    Last,
}

impl Chunker {
    /// Creates the chunker that a configuration describes.
    ///
    /// # Errors
    /// A separator or a column is invalid.
    pub(crate) fn new(config: &SplitterConfig) -> Result<Self, String> {
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
        Ok(Self { bounds, size, records: 0, split: 0, known: 0 })
    }

    /// Returns the chunks of `bytes`, and where the rest starts that belongs to the next block.
    pub(crate) fn cut(&mut self, bytes: &[u8], extent: BlockEnd) -> (Vec<Range<usize>>, usize) {
        let whole = 0..bytes.len();
        match self.size {
            ChunkSize::Reads => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
            ChunkSize::Records(count) => self.cut_records(bytes, count, extent),
            ChunkSize::Blocks => match extent {
                BlockEnd::Open => (Vec::new(), 0),
                BlockEnd::Last => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
                BlockEnd::Full => match self.bounds.last(bytes) {
                    Some(end) => (Vec::from_iter(Some(0..end)), end),
                    None => (Vec::new(), 0),
                },
            },
        }
    }

    fn cut_records(&mut self, bytes: &[u8], count: u64, extent: BlockEnd) -> (Vec<Range<usize>>, usize) {
        let mut chunks = Vec::new();
        let mut begin = 0;
        // A search that starts from the beginning of the chunk is not repeated after each read.
        let is_cheap = matches!(self.bounds, RecordBounds::Anywhere | RecordBounds::Fixed(_));
        if is_cheap || extent != BlockEnd::Open {
            let whole = extent == BlockEnd::Last;
            while let Some(split) = self.next(bytes, count, whole) {
                self.records += match self.bounds {
                    RecordBounds::Anywhere => (split - self.split) as u64,
                    _ => 1,
                };
                self.split = split;
                self.known = split;
                if self.records == count {
                    chunks.push(begin..split);
                    self.records = 0;
                    begin = split;
                }
            }
            self.known = bytes.len();
        }
        if extent == BlockEnd::Last {
            if begin < bytes.len() {
                chunks.push(begin..bytes.len());
            }
            self.records = 0;
            self.split = 0;
            self.known = 0;
            return (chunks, bytes.len());
        }
        self.split -= begin;
        self.known = self.known.saturating_sub(begin);
        (chunks, begin)
    }

    /// Returns the next split. If each byte is a record, it skips many at once.
    fn next(&self, bytes: &[u8], count: u64, whole: bool) -> Option<usize> {
        if let RecordBounds::Anywhere = self.bounds {
            let wanted = usize::try_from(count - self.records).unwrap_or(usize::MAX);
            let end = bytes.len().min(self.split.saturating_add(wanted));
            return (end > self.split).then_some(end);
        }
        self.bounds.next(bytes, self.split, self.known, whole)
    }

    pub(crate) fn bounds(&self) -> &RecordBounds {
        &self.bounds
    }

    pub(crate) fn bounds_mut(&mut self) -> &mut RecordBounds {
        &mut self.bounds
    }

    /// Returns `true` if blocks are not cut.
    pub(crate) fn is_raw(&self) -> bool {
        self.size == ChunkSize::Reads
    }

    /// Returns `true` if chunks may be complete before a block is full.
    pub(crate) fn is_eager(&self) -> bool {
        match self.size {
            ChunkSize::Reads => true,
            ChunkSize::Records(_) => {
                !matches!(self.bounds, RecordBounds::Pattern(_) | RecordBounds::Group(_))
            }
            ChunkSize::Blocks => false,
        }
    }
}
