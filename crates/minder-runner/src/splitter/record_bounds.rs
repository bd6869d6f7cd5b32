//! Finds where a record ends and the next one starts.

use std::ops::Range;

use memchr::memmem::{Finder, FinderRev};

use crate::splitter::column::Key;
use crate::splitter::pattern::Pattern;

/// The separator of records.
#[derive(Debug)]
pub(crate) enum RecordBounds {
    /// None: each byte is a record.
    Anywhere,
    /// A split is after `end` and before `start`.
    Fixed(Box<Fixed>),
    Pattern(Box<Pattern>),
    /// A split is before a line whose value differs from that of the line before.
    Group(Key),
}

#[derive(Debug)]
pub(crate) struct Fixed {
    end: usize,
    both: Finder<'static>,
    from_the_end: FinderRev<'static>,
}

impl RecordBounds {
    pub(crate) fn fixed(end: &[u8], start: &[u8]) -> Self {
        let both = [end, start].concat();
        if both.is_empty() {
            return Self::Anywhere;
        }
        Self::Fixed(Box::new(Fixed {
            end: end.len(),
            from_the_end: FinderRev::new(&both).into_owned(),
            both: Finder::new(&both).into_owned(),
        }))
    }

    pub(crate) fn pattern(end: &[u8], start: &[u8]) -> Result<Self, String> {
        if end.is_empty() && start.is_empty() {
            return Ok(Self::Anywhere);
        }
        Pattern::new(end, start).map(|pattern| Self::Pattern(Box::new(pattern)))
    }

    /// Returns the last split of `bytes`, after its first byte.
    pub(crate) fn last(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Anywhere => Some(bytes.len()),
            Self::Fixed(fixed) => fixed.from_the_end.rfind(bytes).map(|at| at + fixed.end),
            Self::Pattern(pattern) => pattern.last(bytes),
            Self::Group(key) => last_change(key, bytes),
        }
        .filter(|&at| at > 0)
    }

    /// Returns the first split after `from`, which is the split before it. Up to `known`, none was
    /// found before. The last line counts as complete only if `whole`.
    pub(crate) fn next(&self, bytes: &[u8], from: usize, known: usize, whole: bool) -> Option<usize> {
        match self {
            Self::Anywhere => (from < bytes.len()).then_some(from + 1),
            Self::Fixed(fixed) => {
                let least = from + usize::from(fixed.end == 0);
                let begin = least.max(known.saturating_sub(fixed.both.needle().len() - 1)).min(bytes.len());
                let found = match fixed.both.needle() {
                    [byte] => memchr::memchr(*byte, &bytes[begin..]),
                    _ => fixed.both.find(&bytes[begin..]),
                };
                found.map(|at| begin + at + fixed.end)
            }
            Self::Pattern(pattern) => pattern.next(bytes, from, whole),
            Self::Group(key) => next_change(key, bytes, from, whole),
        }
    }

    /// Returns the first split whose separator starts at `from` or later. `whole` is as for
    /// [`next`](Self::next). A pattern is searched for from the beginning of `bytes`.
    pub(crate) fn first(&self, bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
        match self {
            Self::Fixed(fixed) => fixed.both.find(&bytes[from..]).map(|at| from + at + fixed.end),
            Self::Pattern(pattern) => pattern.first(bytes, from, whole),
            Self::Anywhere | Self::Group(_) => self.next(bytes, from, from, whole),
        }
    }

    /// Returns how many of the first bytes are not needed to find the first split after `bytes`,
    /// which contain none.
    pub(crate) fn passed(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Anywhere => bytes.len(),
            Self::Fixed(fixed) => bytes.len().saturating_sub(fixed.both.needle().len() - 1),
            Self::Pattern(_) => 0,
            // The next line is compared with the last complete one.
            Self::Group(_) => match memchr::memrchr(b'\n', bytes) {
                Some(end) => memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |at| at + 1),
                None => 0,
            },
        }
    }

    /// Removes separators from a chunk: all between its records, the start at its beginning, the
    /// end at its end. Returns the length of the rest, which is at the front.
    pub(crate) fn remove(&self, chunk: &mut [u8]) -> usize {
        let found: Vec<Range<usize>> = match self {
            Self::Anywhere | Self::Group(_) => return chunk.len(),
            Self::Fixed(fixed) => fixed.separators(chunk),
            Self::Pattern(pattern) => pattern.separators(chunk),
        };
        let mut kept = 0;
        let mut at = 0;
        for range in found.into_iter().chain(Some(chunk.len()..chunk.len())) {
            let begin = range.start.max(at);
            chunk.copy_within(at..begin, kept);
            kept += begin - at;
            at = range.end.max(at);
        }
        kept
    }
}

impl Fixed {
    fn separators(&self, chunk: &[u8]) -> Vec<Range<usize>> {
        let both = self.both.needle();
        let (end, start) = both.split_at(self.end);
        let mut found = Vec::new();
        if !start.is_empty() && chunk.starts_with(start) {
            found.push(0..start.len());
        }
        let from = found.last().map_or(0, |range| range.end);
        found.extend(self.both.find_iter(&chunk[from..]).map(|at| from + at..from + at + both.len()));
        if !end.is_empty() && chunk.ends_with(end) {
            found.push(chunk.len() - end.len()..chunk.len());
        }
        found
    }
}

fn last_change(key: &Key, bytes: &[u8]) -> Option<usize> {
    let mut end = memchr::memrchr(b'\n', bytes)? + 1;
    let mut later: Option<(usize, &[u8])> = None;
    while end > 0 {
        let start = memchr::memrchr(b'\n', &bytes[..end - 1]).map_or(0, |at| at + 1);
        let value = key.of(&bytes[start..end]);
        match later {
            Some((split, other)) if other != value => return Some(split),
            _ => later = Some((start, value)),
        }
        end = start;
    }
    None
}

fn next_change(key: &Key, bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
    let line = |start: usize| match memchr::memchr(b'\n', &bytes[start..]) {
        Some(len) => Some(start + len + 1),
        None => (whole && start < bytes.len()).then_some(bytes.len()),
    };
    let mut end = line(from)?;
    let value = key.of(&bytes[from..end]);
    while let Some(next) = line(end) {
        if key.of(&bytes[end..next]) != value {
            return Some(end);
        }
        end = next;
    }
    None
}
