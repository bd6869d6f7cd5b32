//! Which bytes of a block make a chunk: the records for one job.

use std::ops::Range;

use crate::splitter::record_bounds::RecordBounds;

/// How a block is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkSize {
    /// As it was read.
    Reads,
    /// As many whole records as there are.
    Blocks,
    /// So many records each.
    Records(u64),
}

/// Cuts one block after the other, each of which begins with what was left of the one before.
#[derive(Debug)]
pub(crate) struct Chunker {
    splitter: RecordBounds,
    measure: ChunkSize,
    /// Records of a chunk whose end has not come, where the last of them ends, and how far its end
    /// was looked for.
    records: u64,
    split: usize,
    known: usize,
}

/// What there is of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockEnd {
    /// More comes, and there is room for it.
    Open,
    /// More comes, and is not waited for.
    Full,
    /// Nothing more comes.
    Last,
}

impl Chunker {
    pub(crate) fn new(splitter: RecordBounds, measure: ChunkSize) -> Self {
        Self { splitter, measure, records: 0, split: 0, known: 0 }
    }

    /// The chunks of `bytes`, and where those bytes begin that the next block is to begin with.
    pub(crate) fn cut(&mut self, bytes: &[u8], extent: BlockEnd) -> (Vec<Range<usize>>, usize) {
        let whole = 0..bytes.len();
        match self.measure {
            ChunkSize::Reads => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
            ChunkSize::Records(count) => self.cut_records(bytes, count, extent),
            ChunkSize::Blocks => match extent {
                BlockEnd::Open => (Vec::new(), 0),
                BlockEnd::Last => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
                BlockEnd::Full => match self.splitter.last(bytes) {
                    Some(end) => (Vec::from_iter(Some(0..end)), end),
                    None => (Vec::new(), 0),
                },
            },
        }
    }

    fn cut_records(&mut self, bytes: &[u8], count: u64, extent: BlockEnd) -> (Vec<Range<usize>>, usize) {
        let mut chunks = Vec::new();
        let mut begin = 0;
        // What is looked for in all that came each time is not looked for at each read.
        let is_cheap = matches!(self.splitter, RecordBounds::Anywhere | RecordBounds::Fixed(_));
        if is_cheap || extent != BlockEnd::Open {
            let whole = extent == BlockEnd::Last;
            while let Some(split) = self.next(bytes, count, whole) {
                self.records += match self.splitter {
                    RecordBounds::Anywhere => (split - self.split) as u64,
                    _ => 1,
                };
                (self.split, self.known) = (split, split);
                if self.records == count {
                    chunks.push(begin..split);
                    (self.records, begin) = (0, split);
                }
            }
            self.known = bytes.len();
        }
        if extent == BlockEnd::Last {
            if begin < bytes.len() {
                chunks.push(begin..bytes.len());
            }
            (self.records, self.split, self.known) = (0, 0, 0);
            return (chunks, bytes.len());
        }
        self.split -= begin;
        self.known = self.known.saturating_sub(begin);
        (chunks, begin)
    }

    /// The next split. Where each byte is a record, many are taken at once.
    fn next(&self, bytes: &[u8], count: u64, whole: bool) -> Option<usize> {
        if let RecordBounds::Anywhere = self.splitter {
            let wanted = usize::try_from(count - self.records).unwrap_or(usize::MAX);
            let end = bytes.len().min(self.split.saturating_add(wanted));
            return (end > self.split).then_some(end);
        }
        self.splitter.next(bytes, self.split, self.known, whole)
    }

    pub(crate) fn splitter(&self) -> &RecordBounds {
        &self.splitter
    }

    pub(crate) fn splitter_mut(&mut self) -> &mut RecordBounds {
        &mut self.splitter
    }

    /// Whether blocks are not cut at all.
    pub(crate) fn is_raw(&self) -> bool {
        self.measure == ChunkSize::Reads
    }

    /// Whether chunks may be there before a block is full.
    pub(crate) fn is_eager(&self) -> bool {
        match self.measure {
            ChunkSize::Reads => true,
            ChunkSize::Records(_) => {
                !matches!(self.splitter, RecordBounds::Pattern(_) | RecordBounds::Group(_))
            }
            ChunkSize::Blocks => false,
        }
    }
}
