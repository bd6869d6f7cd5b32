//! Unix: timers do not wait for a tick, so there is none to ask for.

use std::io;
use std::time::Duration;

/// A tick that was requested. No request succeeds.
#[derive(Debug)]
pub(crate) struct TickRequest {
    period: Duration,
}

impl TickRequest {
    /// Requests a tick.
    ///
    /// # Errors
    /// Always `Unsupported`.
    pub(crate) fn new(_period: Duration) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Returns its period.
    pub(crate) fn period(&self) -> Duration {
        self.period
    }
}
