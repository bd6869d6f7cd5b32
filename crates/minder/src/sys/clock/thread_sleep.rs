//! The sleep of the standard library, which needs no descriptor and cannot fail.

use std::io;

use super::types::SleepCall;

/// Returns the sleep of the thread.
pub(crate) fn thread_sleep() -> SleepCall {
    Box::new(|time| {
        minder_os::time::pause(time, None);
        Ok(())
    })
}

/// Prepares it for the table.
#[expect(clippy::unnecessary_wraps, reason = "the form of the table")]
pub(super) fn open_thread_sleep() -> io::Result<SleepCall> {
    Ok(thread_sleep())
}
