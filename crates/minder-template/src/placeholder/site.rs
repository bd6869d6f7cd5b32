//! Where a placeholder was found in a shell line.

use crate::placeholder::expression::Placeholder;

/// The quotes around a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    Bare,
    Double,
    Single,
    /// Inside of `$((…))` or `${…}`, where quotes would be read as more than quotes.
    Inner,
}

/// A placeholder as it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceholderSite {
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) placeholder: Placeholder,
    pub(crate) quote: Quote,
}
