//! How many bytes a job's arguments take, before it is made.

use std::ffi::OsStr;

use super::Template;
use super::cut::Cut;
use super::placeholder::{Piece, Placeholder, Source};

/// The bytes that the words of a job take at most, each with the byte that ends it, while arguments are added.
///
/// ```
/// use minder_cli::template::{Options, Template};
///
/// let template = Template::parse(&["rm".into(), "{}".into()], &Options::default())?;
/// let mut size = template.size();
/// size.add(&template, "a b".as_ref());
/// assert!((7..10).contains(&size.bytes()));
/// # Ok::<(), minder_cli::template::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    count: usize,
    /// What is there once, and what is there for each argument.
    pub(super) once: usize,
    pub(super) each: usize,
    /// The same for what the last arguments add: which ones they are is known at the end only, so this is the most.
    last: usize,
    last_each: usize,
}

impl Size {
    /// Adds an argument.
    pub fn add(&mut self, template: &Template, argument: &OsStr) {
        let mut cost = Size::default();
        template.reckon(Some((self.count, argument)), &mut cost);
        self.count += 1;
        self.once += cost.once;
        self.each += cost.each;
        self.last = self.last.max(cost.last);
        self.last_each = self.last_each.max(cost.last_each);
    }

    /// The bytes so far.
    pub fn bytes(&self) -> usize {
        // Without any argument, what would be repeated may stand there once.
        self.once + self.last + self.count.max(1) * (self.each + self.last_each)
    }

    pub(super) fn sum(&self) -> usize {
        self.once + self.each + self.last + self.last_each
    }

    pub(super) fn constant(&mut self, repeated: bool, bytes: usize) {
        if repeated { self.each += bytes } else { self.once += bytes }
    }
}

/// The length of a job's command as it is written: its words with a blank between them, and one byte
/// that ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lengths {
    /// What is there once. The blank behind the last argument, which is not there, is taken off.
    pub once: usize,
    /// What each argument adds beside itself: blanks, and what stands around it in words that are repeated.
    pub each: usize,
    /// How often each argument is there.
    pub times: usize,
}

impl Lengths {
    /// Adds places at which arguments stand one behind the other.
    pub(super) fn joined(&mut self, places: usize) {
        self.each += places;
        self.once = self.once.saturating_sub(places);
    }

    /// What one more argument adds.
    pub fn cost(&self, argument: &OsStr) -> usize {
        (argument.len() * self.times + self.each).max(1)
    }
}

/// The place of an argument that may be any column.
pub(super) const ANY: usize = usize::MAX;

/// The digits of the largest number of a job.
const NUMBER_MAX: usize = 20;

impl Piece {
    /// Adds what an argument and its place, from 0, cost here; without one, what is there anyway. `outer`: what a placeholder
    /// without a number takes.
    pub(super) fn reckon(
        &self,
        argument: Option<(usize, &OsStr)>,
        repeated: bool,
        outer: Source,
        size: &mut Size,
    ) {
        match self {
            Piece::Text(text) if argument.is_none() => size.constant(repeated, text.len()),
            Piece::Text(_) => {}
            Piece::Value(placeholder) => placeholder.reckon(argument, repeated, outer, size),
        }
    }
}

impl Placeholder {
    /// See [`Piece::reckon`].
    pub(super) fn reckon(
        self,
        argument: Option<(usize, &OsStr)>,
        repeated: bool,
        outer: Source,
        size: &mut Size,
    ) {
        let source = if self.source == Source::Each { outer } else { self.source };
        if let Cut::Own(pieces) = self.cut {
            let each = source == Source::Each;
            if each && argument.is_none() {
                size.each += 1;
            }
            for piece in pieces {
                piece.reckon(argument, repeated || each, source, size);
            }
            return;
        }
        let bytes = |value: &OsStr| self.cut.apply(value.as_encoded_bytes()).len();
        match (source, argument) {
            (Source::Each, Some((_, value))) => size.once += bytes(value) + 1,
            (Source::Nth(n), Some((nth, value))) if nth == ANY || n as usize - 1 == nth => {
                size.constant(repeated, bytes(value))
            }
            (Source::Last(_), Some((_, value))) if repeated => size.last_each += bytes(value),
            (Source::Last(_), Some((_, value))) => size.last += bytes(value),
            (Source::Each | Source::Nth(_) | Source::Last(_), None) | (_, Some(_)) => {}
            (_, None) => size.constant(repeated, NUMBER_MAX),
        }
    }
}
