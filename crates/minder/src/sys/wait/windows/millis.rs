//! Conversion of a time-out into milliseconds.

use std::time::Duration;

use windows_sys::Win32::System::Threading::INFINITE;

/// Returns the time-out in milliseconds, rounded up. A caller waits for a longer time in steps.
pub(crate) fn millis(left: Option<Duration>) -> u32 {
    let Some(left) = left else { return INFINITE };
    u32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(INFINITE).min(INFINITE - 1)
}
