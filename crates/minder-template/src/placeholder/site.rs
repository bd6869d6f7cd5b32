//! The places in a shell line that contain a placeholder.

use crate::placeholder::expression::Placeholder;

/// The quotes around a site.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    Bare,
    Double,
    Single,
    /// Inside of `$((…))` or `${…}`, where the shell does not read quotes as quotes only.
    Inner,
}

/// A placeholder in a shell line.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceholderSite {
    /// The index of its first byte in the line.
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) placeholder: Placeholder,
    pub(crate) quote: Quote,
    /// The shell takes exactly one word here, which does not disappear.
    pub(crate) is_required: bool,
}
