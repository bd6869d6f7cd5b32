//! The result of scanning a line for a Windows shell.

use std::ops::Range;

use crate::placeholder::site::PlaceholderSite;

/// The properties of a site that rendering needs besides its quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SiteContext {
    /// A program parses the word by the rules of the MSVC runtime: backslashes before a quote are
    /// doubled.
    pub(crate) follows_msvc_rules: bool,
    /// cmd may expand variables a second time there.
    pub(crate) expanded_twice: bool,
}

/// The result of scanning a line.
#[derive(Debug)]
pub(crate) struct ScannedLine {
    pub(crate) sites: Vec<PlaceholderSite>,
    /// One for each site.
    pub(crate) contexts: Vec<SiteContext>,
    /// The words that are repeated for each argument.
    pub(crate) spans: Vec<Range<usize>>,
    /// The position for another argument of the last command, if the line ends in a simple command.
    pub(crate) tail: Option<usize>,
}
