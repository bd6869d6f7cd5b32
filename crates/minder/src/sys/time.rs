//! Times in the form that system calls take.

use std::time::Duration;

use rustix::event::Timespec;

/// Returns a time-out. One that is too long for the type becomes the longest.
pub(crate) fn timespec(time: Duration) -> Timespec {
    Timespec { tv_sec: time.as_secs().try_into().unwrap_or(i64::MAX), tv_nsec: time.subsec_nanos().into() }
}
