//! The readiness that a poller reports, and the token that names a source.

use std::ops::{BitOr, BitOrAssign};

/// Names a source or a timer of a [`Poller`](crate::poll::Poller). The caller chooses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token(pub u64);

/// The readiness of a source that is reported, and the number of times that it is.
///
/// It is level-triggered unless requested otherwise: a source that stays ready is reported again by
/// every wait.
///
/// ```
/// use minder::poll::Interest;
/// let once = Interest::READABLE.oneshot();
/// assert!(once.is_readable() && once.is_oneshot() && !once.is_writable());
/// let both = Interest::READABLE | Interest::WRITABLE;
/// assert!(both.is_readable() && both.is_writable());
/// // In constants, and edge-triggered:
/// const EACH_CHANGE: Interest = Interest::READABLE.union(Interest::WRITABLE).edge();
/// assert!(EACH_CHANGE.is_edge() && !once.is_edge());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[must_use]
pub struct Interest(u8);

impl Interest {
    /// A read does not block: there are bytes, the end of the file, or an error.
    pub const READABLE: Self = Self(1);
    /// A write does not block: there is room, or an error.
    pub const WRITABLE: Self = Self(2);

    const ONESHOT: u8 = 4;
    const EDGE: u8 = 8;

    /// Returns this interest, reported once. The source stays registered, and is not reported again
    /// until [`Poller::modify`](crate::poll::Poller::modify).
    pub const fn oneshot(self) -> Self {
        Self(self.0 & !Self::EDGE | Self::ONESHOT)
    }

    /// Returns this interest, edge-triggered: the source is reported when it becomes ready, and not
    /// again while it stays ready. It may be reported more often, when more bytes arrive. The
    /// caller must read or write until that would block.
    ///
    /// - The backends `epoll`, `io_uring` (from Linux 5.13) and `kqueue` support it.
    /// - It is `Unsupported` with the backend `poll`, with `io_uring` on older kernels, and on
    ///   Windows except for processes.
    pub const fn edge(self) -> Self {
        Self(self.0 & !Self::ONESHOT | Self::EDGE)
    }

    /// Returns the directions of both. `|` does the same; this works in constants. If one of them is
    /// one-shot or edge-triggered, so is the union; one-shot wins.
    pub const fn union(self, other: Self) -> Self {
        let bits = self.0 | other.0;
        Self(if bits & Self::ONESHOT != 0 { bits & !Self::EDGE } else { bits })
    }

    /// Returns whether it includes reading.
    pub const fn is_readable(self) -> bool {
        self.0 & 1 != 0
    }

    /// Returns whether it includes writing.
    pub const fn is_writable(self) -> bool {
        self.0 & 2 != 0
    }

    /// Returns whether it is reported once only.
    pub const fn is_oneshot(self) -> bool {
        self.0 & Self::ONESHOT != 0
    }

    /// Returns whether it is edge-triggered.
    pub const fn is_edge(self) -> bool {
        self.0 & Self::EDGE != 0
    }
}

impl BitOr for Interest {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl BitOrAssign for Interest {
    fn bitor_assign(&mut self, other: Self) {
        *self = self.union(other);
    }
}
