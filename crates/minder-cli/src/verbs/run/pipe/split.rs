//! Where a record ends and the next begins.

use std::ops::Range;

use memchr::memmem::{Finder, FinderRev};
use regex::bytes::Regex;

use super::column::Key;
use super::pattern;

/// How far from the end the last match of a pattern is looked for at first.
const TAIL: usize = 4 << 10;

/// What separates records.
#[derive(Debug)]
pub(super) enum Splitter {
    /// Nothing does: each byte is a record.
    Anywhere,
    /// A split is after `end` and before `start`.
    Fixed(Box<Fixed>),
    Pattern(Pattern),
    /// A split is before a line whose value is another than that of the line before.
    Group(Key),
}

#[derive(Debug)]
pub(super) struct Fixed {
    end: usize,
    both: Finder<'static>,
    from_the_end: FinderRev<'static>,
}

#[derive(Debug)]
pub(super) struct Pattern {
    /// The end, then the start as group 1 if there is one.
    both: Regex,
    has_end: bool,
    has_start: bool,
    at_start: Option<Regex>,
    at_end: Option<Regex>,
}

impl Splitter {
    pub(super) fn fixed(end: &[u8], start: &[u8]) -> Self {
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

    pub(super) fn pattern(end: &[u8], start: &[u8]) -> Result<Self, String> {
        if end.is_empty() && start.is_empty() {
            return Ok(Self::Anywhere);
        }
        // Each alone first: the error names the right flag.
        let _ = (pattern("--recend", end)?, pattern("--recstart", start)?);
        let (end_text, start_text) = (String::from_utf8_lossy(end), String::from_utf8_lossy(start));
        let edge = |wanted: bool, text: String| match wanted {
            true => pattern("--regexp", text.as_bytes()).map(Some),
            false => Ok(None),
        };
        Ok(Self::Pattern(Pattern {
            // A group of either's own does not come before ours, for ours is named.
            both: pattern("--regexp", format!("(?:{end_text})(?P<minder_start>{start_text})").as_bytes())?,
            has_end: !end.is_empty(),
            has_start: !start.is_empty(),
            at_start: edge(!start.is_empty(), format!(r"\A(?:{start_text})"))?,
            at_end: edge(!end.is_empty(), format!(r"(?:{end_text})\z"))?,
        }))
    }

    /// The last split of `bytes`, after its first byte.
    pub(super) fn last(&self, bytes: &[u8]) -> Option<usize> {
        match self {
            Self::Anywhere => Some(bytes.len()),
            Self::Fixed(fixed) => fixed.from_the_end.rfind(bytes).map(|at| at + fixed.end),
            Self::Pattern(pattern) => pattern.last(bytes),
            Self::Group(key) => last_change(key, bytes),
        }
        .filter(|&at| at > 0)
    }

    /// The first split after `from`, where the split before is; up to `known` none was found before. The last line
    /// counts as one if `whole`: it may go on otherwise.
    pub(super) fn next(&self, bytes: &[u8], from: usize, known: usize, whole: bool) -> Option<usize> {
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
            Self::Pattern(pattern) => {
                // A match at the end may be longer when more has come.
                pattern.next(bytes, from).filter(|&(_, end)| whole || end < bytes.len()).map(|(at, _)| at)
            }
            Self::Group(key) => next_change(key, bytes, from, whole),
        }
    }

    /// The first split whose separator begins at `from` or behind. `whole` as for [`next`](Self::next).
    pub(super) fn first(&self, bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
        match self {
            Self::Fixed(fixed) => fixed.both.find(&bytes[from..]).map(|at| from + at + fixed.end),
            Self::Pattern(pattern) => {
                let found = pattern.at_or_after(bytes, from)?;
                (whole || found.1 < bytes.len()).then_some(found.0)
            }
            Self::Anywhere | Self::Group(_) => self.next(bytes, from, from, whole),
        }
    }

    /// How many of the first bytes are not needed to find the first split behind `bytes`, in which there is none.
    pub(super) fn passed(&self, bytes: &[u8]) -> usize {
        match self {
            Self::Anywhere => bytes.len(),
            Self::Fixed(fixed) => bytes.len().saturating_sub(fixed.both.needle().len() - 1),
            Self::Pattern(_) => 0,
            // The last whole line is what the next is compared with.
            Self::Group(_) => match memchr::memrchr(b'\n', bytes) {
                Some(end) => memchr::memrchr(b'\n', &bytes[..end]).map_or(0, |at| at + 1),
                None => 0,
            },
        }
    }

    /// Takes what separates out of a chunk: all between its records, the start at its beginning, the end at its end. What
    /// is left is at the front, and so long.
    pub(super) fn remove(&self, chunk: &mut [u8]) -> usize {
        let found: Vec<Range<usize>> = match self {
            Self::Anywhere | Self::Group(_) => return chunk.len(),
            Self::Fixed(fixed) => fixed.separators(chunk),
            Self::Pattern(pattern) => pattern.separators(chunk),
        };
        let (mut kept, mut at) = (0, 0);
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

impl Pattern {
    /// The first split after `from`, and where what matched ends.
    fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let mut begin = from;
        while begin <= bytes.len() {
            let (at, end) = self.at_or_after(bytes, begin)?;
            if at > from {
                return Some((at, end));
            }
            // At the split before, or of no bytes.
            begin = begin.max(at) + 1;
        }
        None
    }

    /// The first split whose separator begins at `begin` or behind, and where that separator ends.
    fn at_or_after(&self, bytes: &[u8], begin: usize) -> Option<(usize, usize)> {
        if self.has_end && self.has_start {
            let found = self.both.captures_at(bytes, begin)?;
            return Some((found.name("minder_start")?.start(), found.get(0)?.end()));
        }
        let found = self.both.find_at(bytes, begin)?;
        Some((if self.has_end { found.end() } else { found.start() }, found.end()))
    }

    /// From near the end first: a block has many records, and one split is enough.
    fn last(&self, bytes: &[u8]) -> Option<usize> {
        let mut tail = TAIL;
        loop {
            let begin = bytes.len().saturating_sub(tail);
            let (mut last, mut from) = (None, begin);
            while let Some((at, _)) = self.next(bytes, from) {
                (last, from) = (Some(at), at);
            }
            if last.is_some() || begin == 0 {
                return last;
            }
            tail = tail.saturating_mul(4);
        }
    }

    fn separators(&self, chunk: &[u8]) -> Vec<Range<usize>> {
        let edge = |regex: &Option<Regex>| {
            regex.as_ref().and_then(|regex| regex.find(chunk)).map(|found| found.range())
        };
        let first = edge(&self.at_start);
        let from = first.as_ref().map_or(0, |range| range.end);
        let between =
            self.both.find_iter(&chunk[from..]).map(|found| from + found.start()..from + found.end());
        first.into_iter().chain(between).chain(edge(&self.at_end)).collect()
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
            _ => (later, end) = (Some((start, value)), start),
        }
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
