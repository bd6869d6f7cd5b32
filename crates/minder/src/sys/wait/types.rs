//! The reports of waits, and the tokens that callers cannot use.

/// The token of reports about a wake-up.
pub(crate) const WAKE_TOKEN: u64 = u64::MAX;
/// The token of reports that the bound of a wait has changed.
pub(crate) const RECHECK_TOKEN: u64 = u64::MAX - 1;
/// The largest token that a caller may use.
pub(crate) const TOKEN_MAX: u64 = u64::MAX - 16;

/// The report of a wait for one token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) token: u64,
    pub(crate) readable: bool,
    pub(crate) writable: bool,
    /// The other side is gone, or the source is in error.
    pub(crate) closed: bool,
    /// The deadline of a timer has passed.
    pub(crate) expired: bool,
}

impl Ready {
    pub(crate) const fn none(token: u64) -> Self {
        Self { token, readable: false, writable: false, closed: false, expired: false }
    }
}

/// A report to an endpoint, which knows its meaning: readiness on Unix, a completed packet on
/// Windows.
pub(crate) type Report = Ready;
