//! What the scanners of Windows shells find in a line.

use std::ops::Range;

use crate::placeholder::site::PlaceholderSite;

/// What is to be known of a place beside its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// A program takes the word, by the rules of the MSVC runtime: backslashes before a quote are
    /// doubled.
    pub(crate) program: bool,
    /// Variables are expanded once more there.
    pub(crate) twice: bool,
}

/// What a look at a line gives.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) seen: Vec<PlaceholderSite>,
    pub(crate) places: Vec<Place>,
    /// See [`TemplateLine`].
    pub(crate) spans: Vec<Range<usize>>,
    /// Where a further word of the last command belongs, if the line ends in a simple command.
    pub(crate) tail: Option<usize>,
}
