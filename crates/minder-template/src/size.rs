//! How many bytes a job's arguments take, before it is made.

use std::ffi::OsStr;

use crate::placeholder::expression::{DefinitionPart, Placeholder, Source};
use crate::placeholder::transform::Transform;

/// The bytes that the words of a job take at most, each with the byte that ends it, while arguments
/// are added.
///
/// ```
/// use minder_template::{Options, Template};
///
/// let template = Template::parse(&["rm".into(), "{}".into()], &Options::default())?;
/// let mut size = template.size();
/// template.add_argument(&mut size, "a b".as_ref());
/// assert!((7..10).contains(&size.bytes()));
/// # Ok::<(), minder_template::Error>(())
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Size {
    count: usize,
    /// What is there once, and what is there for each argument.
    pub(crate) once: usize,
    pub(crate) each: usize,
    /// The same for what the last arguments add: which ones they are is known at the end only, so
    /// this is the most.
    last: usize,
    last_each: usize,
}

impl Size {
    /// Returns the number of arguments.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Counts one more argument, and what it adds.
    pub(crate) fn add(&mut self, cost: Size) {
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

    pub(crate) fn sum(&self) -> usize {
        self.once + self.each + self.last + self.last_each
    }

    pub(crate) fn constant(&mut self, repeated: bool, bytes: usize) {
        if repeated { self.each += bytes } else { self.once += bytes }
    }
}

/// The length of a job's command as it is written: its words with a blank between them, and one
/// byte that ends it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandLength {
    /// What is there once. The blank behind the last argument, which is not there, is taken off.
    pub once: usize,
    /// What each argument adds beside itself: blanks, and what stands around it in words that are
    /// repeated.
    pub each: usize,
    /// How often each argument is there.
    pub times: usize,
}

impl CommandLength {
    /// Adds places at which arguments stand one behind the other.
    pub(crate) fn joined(&mut self, places: usize) {
        self.each += places;
        self.once = self.once.saturating_sub(places);
    }

    /// What one more argument adds.
    pub fn cost(&self, argument: &OsStr) -> usize {
        (argument.len() * self.times + self.each).max(1)
    }
}

/// The place of an argument that may be any column.
pub(crate) const ANY: usize = usize::MAX;

/// The digits of the largest number of a job.
const NUMBER_MAX: usize = 20;

impl DefinitionPart {
    /// Adds what an argument and its place, from 0, cost here; without one, what is there anyway.
    /// `outer`: what a placeholder without a number takes.
    pub(crate) fn measure(
        &self,
        argument: Option<(usize, &OsStr)>,
        repeated: bool,
        outer: Source,
        size: &mut Size,
    ) {
        match self {
            DefinitionPart::Text(text) if argument.is_none() => size.constant(repeated, text.len()),
            DefinitionPart::Text(_) => {}
            DefinitionPart::Value(placeholder) => placeholder.measure(argument, repeated, outer, size),
        }
    }
}

impl Placeholder {
    /// See [`DefinitionPart::measure`].
    pub(crate) fn measure(
        self,
        argument: Option<(usize, &OsStr)>,
        repeated: bool,
        outer: Source,
        size: &mut Size,
    ) {
        let source = if self.source == Source::Each { outer } else { self.source };
        if let Transform::Own(pieces) = self.cut {
            let each = source == Source::Each;
            if each && argument.is_none() {
                size.each += 1;
            }
            for piece in pieces {
                piece.measure(argument, repeated || each, source, size);
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
