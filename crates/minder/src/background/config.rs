//! The configuration of a background set.

use std::time::Duration;

use crate::set::ChildSetConfig;

/// The limits and options of a [`BackgroundSet`](crate::BackgroundSet).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackgroundSetConfig {
    /// The configuration of its set.
    pub set: ChildSetConfig,
    /// How long the worker waits for more output after a small chunk, before it notifies the host.
    /// Default: zero.
    ///
    /// With 300 children that each wrote 40 lines a second, one millisecond saved 60 % of the
    /// processor time of host and worker (measured, Linux 6.18, 2 processors). A child that writes
    /// much is not delayed.
    pub coalesce_delay: Duration,
    /// The most bytes that wait to be written to one child. Default: 256 KiB.
    pub max_input_bytes: usize,
    /// How long a call waits for the worker thread. Default: 30 s, because a program may be on a slow
    /// file server.
    pub call_timeout: Duration,
    /// Whether `Exited` is reported when a child exits, even before its last bytes were read.
    /// Default: `false`.
    pub eager_exit: bool,
}

impl Default for BackgroundSetConfig {
    fn default() -> Self {
        Self {
            set: ChildSetConfig::default(),
            coalesce_delay: Duration::ZERO,
            max_input_bytes: 256 << 10,
            call_timeout: Duration::from_secs(30),
            eager_exit: false,
        }
    }
}
