//! The turn of one child to be read: see `read_turns.rs`.

use std::time::{Duration, Instant};

/// The bytes that a child may write within [`ALLOWANCE_INTERVAL`] without a turn. They are few,
/// because all children are slow on a busy machine.
const ALLOWANCE: u64 = 64 << 10;
const ALLOWANCE_INTERVAL: Duration = Duration::from_secs(1);

/// The state of a child that decides whether it may be read.
#[derive(Clone, Copy, Debug)]
pub(super) enum ReadTurn {
    /// It writes little. `left` bytes of its allowance are left, which began at `since`.
    Free { left: u64, since: Option<Instant> },
    /// It writes much. It waits for a turn, or will when it writes again.
    Due,
    /// Those of its streams that are `true` may be read once.
    Once([bool; 2]),
    /// It has a turn. `read` bytes were read since the last rotation; at the `quiet` rotations before
    /// that it had written nothing.
    Has { read: u64, quiet: u32 },
}

impl ReadTurn {
    pub(super) const NEW: Self = Self::Free { left: ALLOWANCE, since: None };
    pub(super) const GIVEN: Self = Self::Has { read: 0, quiet: 0 };

    /// Returns whether a stream may be read without another turn. Reading it uses up what it may be read
    /// once.
    pub(super) fn allows(&mut self, stream: usize) -> bool {
        match self {
            Self::Has { .. } => true,
            Self::Once(streams) => std::mem::take(&mut streams[stream]),
            Self::Free { left, since } => {
                let now = Instant::now();
                let elapsed = since.map_or(Duration::MAX, |since| now.saturating_duration_since(since));
                if elapsed >= ALLOWANCE_INTERVAL {
                    *left = ALLOWANCE;
                    *since = Some(now);
                }
                *left > 0
            }
            Self::Due => false,
        }
    }

    /// Returns whether the child has a turn and uses it.
    pub(super) fn is_active(self) -> bool {
        matches!(self, Self::Has { quiet: 0, .. })
    }
}
