//! Which bytes of a block make a chunk: the records for one job.

use std::ops::Range;

use super::split::Splitter;

/// How a block is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measure {
    /// As it was read.
    Reads,
    /// As many whole records as there are.
    Blocks,
    /// So many records each.
    Records(u64),
}

/// Cuts one block after the other, each of which begins with what was left of the one before.
#[derive(Debug)]
pub(super) struct Cutter {
    splitter: Splitter,
    measure: Measure,
    /// Records of a chunk whose end has not come, where the last of them ends, and how far its end
    /// was looked for.
    records: u64,
    split: usize,
    known: usize,
}

/// What there is of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// More comes, and there is room for it.
    Open,
    /// More comes, and is not waited for.
    Full,
    /// Nothing more comes.
    Last,
}

impl Cutter {
    pub(super) fn new(splitter: Splitter, measure: Measure) -> Self {
        Self { splitter, measure, records: 0, split: 0, known: 0 }
    }

    /// The chunks of `bytes`, and where those bytes begin that the next block is to begin with.
    pub(super) fn cut(&mut self, bytes: &[u8], extent: Extent) -> (Vec<Range<usize>>, usize) {
        let whole = 0..bytes.len();
        match self.measure {
            Measure::Reads => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
            Measure::Records(count) => self.cut_records(bytes, count, extent),
            Measure::Blocks => match extent {
                Extent::Open => (Vec::new(), 0),
                Extent::Last => (Vec::from_iter((!bytes.is_empty()).then_some(whole)), bytes.len()),
                Extent::Full => match self.splitter.last(bytes) {
                    Some(end) => (Vec::from_iter(Some(0..end)), end),
                    None => (Vec::new(), 0),
                },
            },
        }
    }

    fn cut_records(&mut self, bytes: &[u8], count: u64, extent: Extent) -> (Vec<Range<usize>>, usize) {
        let (mut chunks, mut begin) = (Vec::new(), 0);
        // What is looked for in all that came each time is not looked for at each read.
        let is_cheap = matches!(self.splitter, Splitter::Anywhere | Splitter::Fixed(_));
        if is_cheap || extent != Extent::Open {
            let whole = extent == Extent::Last;
            while let Some(split) = self.next(bytes, count, whole) {
                self.records += match self.splitter {
                    Splitter::Anywhere => (split - self.split) as u64,
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
        if extent == Extent::Last {
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
        if let Splitter::Anywhere = self.splitter {
            let wanted = usize::try_from(count - self.records).unwrap_or(usize::MAX);
            let end = bytes.len().min(self.split.saturating_add(wanted));
            return (end > self.split).then_some(end);
        }
        self.splitter.next(bytes, self.split, self.known, whole)
    }

    pub(super) fn splitter(&self) -> &Splitter {
        &self.splitter
    }

    pub(super) fn splitter_mut(&mut self) -> &mut Splitter {
        &mut self.splitter
    }

    /// Whether blocks are not cut at all.
    pub(super) fn is_raw(&self) -> bool {
        self.measure == Measure::Reads
    }

    /// Whether chunks may be there before a block is full.
    pub(super) fn is_eager(&self) -> bool {
        match self.measure {
            Measure::Reads => true,
            Measure::Records(_) => !matches!(self.splitter, Splitter::Pattern(_) | Splitter::Group(_)),
            Measure::Blocks => false,
        }
    }
}
