//! Warnings about options that have another effect than under GNU parallel.

use crate::ui::message;

/// Prints one line on stderr.
pub(super) fn warn(line: &str) {
    message(line);
}
