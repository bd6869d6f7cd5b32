//! The timers of a set, earliest first. A timer that was changed stays in the heap and is skipped
//! when it expires.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::event::ChildId;

/// The shortest interval of a repeated timer.
pub(super) const INTERVAL_MIN: Duration = Duration::from_millis(1);

/// Below this number of entries, stale ones are not removed.
const ENTRIES_MIN: usize = 1024;

/// The purpose of a timer of a child. A child has at most one valid timer of each kind: see [`Armed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    /// The outputs of a child that exited may have been silent for too long.
    Leak,
    /// The next step of a kill.
    Termination,
    /// The child's deadline.
    Deadline,
    /// The child is started again.
    Restart,
}

/// The times at which the timers of one child expire, by kind. An entry of the heap with another
/// time is stale.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Armed([Option<Instant>; 4]);

impl Armed {
    pub(super) fn has(&self, kind: TimerKind) -> bool {
        self.0[kind as usize].is_some()
    }

    /// Returns whether the entry of this kind that expired is valid, and disarms the timer.
    pub(super) fn take(&mut self, kind: TimerKind, now: Instant) -> bool {
        self.0[kind as usize].take_if(|at| *at <= now).is_some()
    }
}

/// The timers of all children, and the poll for stopped ones.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    stop_poll_interval: Option<Duration>,
    stop_poll_at: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    at: Instant,
    id: ChildId,
    kind: TimerKind,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.id).cmp(&(other.at, other.id))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Timers {
    pub(super) fn new(stop_poll_interval: Option<Duration>) -> Self {
        Self { heap: BinaryHeap::new(), stop_poll_interval, stop_poll_at: None }
    }

    /// Makes sure that a timer of this kind expires at `at` or earlier. A kill that is repeated, or a
    /// child that is suspended and resumed many times, still has one timer.
    pub(super) fn arm(&mut self, armed: &mut Armed, id: ChildId, kind: TimerKind, at: Instant) {
        let current = &mut armed.0[kind as usize];
        if current.is_none_or(|current| at < current) {
            *current = Some(at);
            self.heap.push(Reverse(Entry { at, id, kind }));
        }
    }

    /// Removes the stale entries when they may be most of the heap. A set that runs a million
    /// children with a time-out of an hour keeps the deadlines of the live ones only. `armed` returns
    /// the timers of a child.
    pub(super) fn prune<'a>(&mut self, live: usize, armed: impl Fn(ChildId) -> Option<&'a Armed>) {
        if self.heap.len() > ENTRIES_MIN + 4 * live {
            self.heap.retain(|Reverse(entry)| {
                armed(entry.id).is_some_and(|armed| armed.0[entry.kind as usize] == Some(entry.at))
            });
        }
    }

    /// Starts to poll for stopped children, if the configuration asks for it.
    pub(super) fn child_started(&mut self) {
        if let (Some(interval), None) = (self.stop_poll_interval, self.stop_poll_at) {
            self.stop_poll_at = Some(Instant::now() + interval);
        }
    }

    /// Returns whether stopped children are to be polled, and schedules the next poll if there are
    /// children.
    pub(super) fn take_stop_poll(&mut self, now: Instant, has_children: bool) -> bool {
        let is_due = self.stop_poll_at.is_some_and(|at| at <= now);
        if is_due {
            let interval = if has_children { self.stop_poll_interval } else { None };
            self.stop_poll_at = interval.map(|interval| now + interval);
        }
        is_due
    }

    /// Returns when the next timer expires.
    pub(super) fn next_at(&self) -> Option<Instant> {
        let first = self.heap.peek().map(|Reverse(entry)| entry.at);
        [first, self.stop_poll_at].into_iter().flatten().min()
    }

    /// Takes the first entry that expired.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(ChildId, TimerKind)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= now)?;
        self.heap.pop().map(|Reverse(entry)| (entry.id, entry.kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prune_keeps_only_the_entries_of_live_children() {
        let mut timers = Timers::new(None);
        let at = Instant::now() + Duration::from_secs(3600);
        let mut shared = Armed::default();
        timers.arm(&mut shared, ChildId::from_u64(0), TimerKind::Leak, at);
        for number in 0..100_000 {
            timers.arm(&mut Armed::default(), ChildId::from_u64(number), TimerKind::Leak, at);
            timers.prune(10, |id| (id.as_u64() + 10 > number).then_some(&shared));
            assert!(timers.heap.len() <= ENTRIES_MIN + 41);
        }
    }

    #[test]
    fn arm_keeps_one_valid_timer_of_each_kind() {
        let mut timers = Timers::new(None);
        let mut armed = Armed::default();
        let id = ChildId::from_u64(7);
        let now = Instant::now();
        let ms = Duration::from_millis;
        for _ in 0..1000 {
            timers.arm(&mut armed, id, TimerKind::Termination, now + ms(10));
            timers.arm(&mut armed, id, TimerKind::Leak, now + ms(10));
        }
        assert_eq!(timers.heap.len(), 2);
        // An earlier timer replaces the later one, whose entry is stale when it expires.
        timers.arm(&mut armed, id, TimerKind::Termination, now + ms(5));
        let mut expired = Vec::new();
        while let Some((_, kind)) = timers.pop(now + ms(20)) {
            if armed.take(kind, now + ms(20)) {
                expired.push(kind);
            }
        }
        expired.sort_by_key(|kind| *kind as usize);
        assert_eq!(expired, [TimerKind::Leak, TimerKind::Termination]);
    }
}
