//! Warnings about options that have another effect than under GNU parallel.

use crate::ui::message;
use crate::ui::table::escape;

/// Prints one line on stderr, with control characters escaped.
pub(super) fn warn(line: &str) {
    message(&escape(line.as_bytes()));
}
