//! The parts of the display that are shown, and the conditions for them.

use std::ffi::OsString;
use std::time::Duration;

/// The interval between two lines if stderr is not a terminal, unless [`Heartbeat`] has another.
pub(super) const LINE_INTERVAL: Duration = Duration::from_secs(30);

/// The minimum interval of a heartbeat.
const HEARTBEAT_MIN: Duration = Duration::from_millis(100);

/// The parts of the display.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProgressOptions {
    /// The status line, which needs no flag.
    pub(crate) status: bool,
    /// A bar with the fraction of jobs that is done.
    pub(crate) bar: bool,
    /// The local time of the estimated end.
    pub(crate) eta: bool,
    /// The jobs that have been running the longest.
    pub(crate) jobs: bool,
    /// The plain lines without a terminal, which need no flag that requests the display.
    pub(crate) heartbeat: Heartbeat,
}

/// After how much time without output there is a plain line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Heartbeat {
    /// There is none.
    #[default]
    Never,
    /// After the default time, if the environment says that a CI system runs this.
    IfCi,
    /// After this time.
    After(Duration),
}

impl Heartbeat {
    /// Resolves [`Self::IfCi`].
    pub(super) fn resolve(self, ci: Option<OsString>) -> Self {
        match self {
            Self::IfCi if ci.is_some_and(|ci| !ci.is_empty() && ci != "false") => Self::After(LINE_INTERVAL),
            Self::IfCi => Self::Never,
            other => other,
        }
    }

    pub(super) fn interval(self) -> Option<Duration> {
        match self {
            Self::After(interval) => Some(interval.max(HEARTBEAT_MIN)),
            Self::Never | Self::IfCi => None,
        }
    }
}

impl ProgressOptions {
    /// Returns `true` if a flag requests the display.
    pub(crate) fn is_requested(self) -> bool {
        self.bar || self.eta || self.jobs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heartbeat_has_a_minimum_interval() {
        let interval = |micros| Heartbeat::After(Duration::from_micros(micros)).interval();
        assert_eq!(interval(1), Some(HEARTBEAT_MIN));
        assert_eq!(interval(30_000_000), Some(Duration::from_secs(30)));
        assert_eq!(Heartbeat::Never.interval(), None);
    }
}
