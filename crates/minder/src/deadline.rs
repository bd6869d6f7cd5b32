//! From time-outs to deadlines.

use std::time::{Duration, Instant};

/// Returns the end of a time-out that begins now. `None` is never reached: there is no time-out, or the
/// clock cannot represent its end.
pub(crate) fn deadline_after(timeout: Option<Duration>) -> Option<Instant> {
    timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}
