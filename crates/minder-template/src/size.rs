//! Upper bounds for the length of a command, before its job exists.

use std::ffi::OsStr;

use crate::placeholder::expression::{DefinitionPart, Placeholder, Source, ValueForm};
use crate::placeholder::transform::Transform;

/// An upper bound for the bytes of a job's arguments, each with its terminating byte, while
/// arguments are added.
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
    /// The bytes that occur once.
    pub(crate) once: usize,
    /// The bytes that occur for each argument.
    pub(crate) each: usize,
    /// The same two for placeholders that count from the last argument. Which argument they read is
    /// known only when all are added, so these are the maxima over all arguments.
    last: usize,
    last_each: usize,
}

impl Size {
    /// Returns the number of arguments.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Adds one more argument that costs `cost`.
    pub(crate) fn add(&mut self, cost: Size) {
        self.count += 1;
        self.once += cost.once;
        self.each += cost.each;
        self.last = self.last.max(cost.last);
        self.last_each = self.last_each.max(cost.last_each);
    }

    /// Returns the bound for the arguments so far.
    pub fn bytes(&self) -> usize {
        // Without an argument, text that is repeated for each argument may occur once.
        self.once + self.last + self.count.max(1) * (self.each + self.last_each)
    }

    pub(crate) fn sum(&self) -> usize {
        self.once + self.each + self.last + self.last_each
    }

    /// Adds bytes that occur once, or for each argument if `repeated`.
    pub(crate) fn add_bytes(&mut self, repeated: bool, bytes: usize) {
        if repeated {
            self.each += bytes;
        } else {
            self.once += bytes;
        }
    }
}

/// The length of a job's command as the user would type it: arguments separated by spaces, and one
/// terminating byte.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CommandLength {
    /// The bytes that occur once, minus the spaces after the last arguments, which are not written.
    pub once: usize,
    /// The bytes that each argument adds besides itself: spaces, and the text around it in parts
    /// that are repeated.
    pub each: usize,
    /// The number of times that the command contains each argument as it is.
    pub times: usize,
    /// The forms in which it contains each argument besides: `{.}`, `{/}`.
    pub(crate) transforms: [Option<Transform>; TRANSFORMS_MAX],
}

/// The number of transformed placeholders that are measured exactly. Others count as the whole
/// argument.
const TRANSFORMS_MAX: usize = 4;

impl CommandLength {
    /// Returns the length of a command that is one argument.
    pub(crate) fn of_argument() -> CommandLength {
        CommandLength { times: 1, each: 1, ..CommandLength::default() }
    }

    /// Counts a placeholder for each argument.
    pub(crate) fn add_value(&mut self, placeholder: Placeholder) {
        let free = self.transforms.iter_mut().find(|transform| transform.is_none());
        match (placeholder.form, free) {
            (ValueForm::Transformed(transform), Some(free)) if transform != Transform::Identity => {
                *free = Some(transform);
            }
            _ => self.times += 1,
        }
    }

    /// Returns how often the command contains each argument, in any form.
    pub(crate) fn all_times(&self) -> usize {
        self.times + self.transforms.iter().flatten().count()
    }

    /// Counts `sites` at which the arguments follow each other, separated by spaces.
    pub(crate) fn add_joined(&mut self, sites: usize) {
        self.each += sites;
        self.once = self.once.saturating_sub(sites);
    }

    /// Returns the bytes that one more argument adds.
    pub fn cost(&self, argument: &OsStr) -> usize {
        let bytes = |transform: &Transform| transform.apply(argument.as_encoded_bytes()).len();
        let transformed = self.transforms.iter().flatten().map(bytes).sum::<usize>();
        (argument.len() * self.times + transformed + self.each).max(1)
    }
}

/// The index of an argument that may be any column.
pub(crate) const ANY_COLUMN: usize = usize::MAX;

/// The digits of the largest number of a job.
const NUMBER_LEN_MAX: usize = 20;

impl DefinitionPart {
    /// Adds the bytes of `argument` and its index, counted from 0. Without an argument, adds the
    /// bytes that occur anyway. `outer` is the source for placeholders without a number.
    pub(crate) fn measure(
        &self,
        argument: Option<(usize, &OsStr)>,
        repeated: bool,
        outer: Source,
        size: &mut Size,
    ) {
        match self {
            DefinitionPart::Text(text) if argument.is_none() => size.add_bytes(repeated, text.len()),
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
        let transform = match self.form {
            ValueForm::Transformed(transform) => transform,
            ValueForm::Defined(parts) => {
                let each = source == Source::Each;
                if each && argument.is_none() {
                    size.each += 1;
                }
                for part in parts {
                    part.measure(argument, repeated || each, source, size);
                }
                return;
            }
        };
        let bytes = |value: &OsStr| transform.apply(value.as_encoded_bytes()).len();
        match (source, argument) {
            (Source::Each, Some((_, value))) => size.once += bytes(value) + 1,
            (Source::Nth(n), Some((nth, value))) if nth == ANY_COLUMN || n as usize - 1 == nth => {
                size.add_bytes(repeated, bytes(value))
            }
            (Source::Last(_), Some((_, value))) if repeated => size.last_each += bytes(value),
            (Source::Last(_), Some((_, value))) => size.last += bytes(value),
            (Source::Each | Source::Nth(_) | Source::Last(_), None) | (_, Some(_)) => {}
            (_, None) => size.add_bytes(repeated, NUMBER_LEN_MAX),
        }
    }
}
