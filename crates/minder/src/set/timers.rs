//! The deadlines of a set, earliest first. One that no longer holds is found out when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::event::Token;

/// From how many entries on it is worth looking which of them still hold.
const ENTRIES_MIN: usize = 1024;

/// How much later than it is due a young child may be looked at, so that many share one look.
const FRESH_TOLERANCE: Duration = Duration::from_millis(1);

/// What is due. Each child has at most one timer of each kind that holds: see [`Armed`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerKind {
    /// An output may have been silent for too long.
    Leak,
    /// A tree that is being killed is to be looked at.
    Killing,
    /// The child's time may be over.
    Deadline,
}

/// When the timers of one child are due, by kind. An entry of the heap with another time is stale.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Armed([Option<Instant>; 3]);

impl Armed {
    /// Whether the timer of this kind, which came, is one that holds. It holds no more from here
    /// on.
    pub(super) fn take(&mut self, due: TimerKind, now: Instant) -> bool {
        self.0[due as usize].take_if(|at| *at <= now).is_some()
    }
}

#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<Entry>>,
    stops_every: Option<Duration>,
    stops_at: Option<Instant>,
    fresh_at: Option<Instant>,
    turns_at: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
struct Entry {
    at: Instant,
    token: Token,
    due: TimerKind,
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.token).cmp(&(other.at, other.token))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Timers {
    pub(super) fn new(stops_every: Option<Duration>) -> Self {
        Self { heap: BinaryHeap::new(), stops_every, stops_at: None, fresh_at: None, turns_at: None }
    }

    /// Makes sure that a timer of this kind comes no later than `at`. A kill that is repeated, or a
    /// child that is suspended and resumed many times, has one timer all the same.
    pub(super) fn arm(&mut self, armed: &mut Armed, token: Token, due: TimerKind, at: Instant) {
        let first = &mut armed.0[due as usize];
        if first.is_none_or(|first| at < first) {
            *first = Some(at);
            self.heap.push(Reverse(Entry { at, token, due }));
        }
    }

    /// Forgets the entries that hold no more, once there may be more of them than of others: a set
    /// that runs a million children with a time-out of an hour keeps the deadlines of those
    /// that live. `armed` knows the timers of a child.
    pub(super) fn prune<'a>(&mut self, live: usize, armed: impl Fn(Token) -> Option<&'a Armed>) {
        if self.heap.len() > ENTRIES_MIN + 4 * live {
            self.heap.retain(|Reverse(entry)| {
                armed(entry.token).is_some_and(|armed| armed.0[entry.due as usize] == Some(entry.at))
            });
        }
    }

    /// Starts the look for stopped children, if it is wanted and does not run yet.
    pub(super) fn child_started(&mut self) {
        if let (Some(every), None) = (self.stops_every, self.stops_at) {
            self.stops_at = Some(Instant::now() + every);
        }
    }

    /// Makes sure that young children are looked at by then.
    pub(super) fn fresh_at(&mut self, due: Instant) {
        // Not to the microsecond: the timer is not set anew for every child.
        if self.fresh_at.is_none_or(|at| due + FRESH_TOLERANCE < at) {
            self.fresh_at = Some(due);
        }
    }

    /// Whether young children are to be looked at now.
    pub(super) fn schedule_deferred_reads(&mut self, now: Instant) -> bool {
        self.fresh_at.take_if(|at| *at <= now).is_some()
    }

    /// Makes sure that turns are looked at then.
    pub(super) fn turns_at(&mut self, due: Instant) {
        self.turns_at = Some(due);
    }

    /// Whether turns are to be looked at now.
    pub(super) fn schedule_read_turns(&mut self, now: Instant) -> bool {
        self.turns_at.take_if(|at| *at <= now).is_some()
    }

    /// Whether stopped children are to be looked for now. `live` says whether there is anybody to
    /// look at later.
    pub(super) fn schedule_stop_poll(&mut self, now: Instant, live: bool) -> bool {
        let due = self.stops_at.is_some_and(|at| at <= now);
        if due {
            self.stops_at = self.stops_every.filter(|_| live).map(|every| now + every);
        }
        due
    }

    pub(super) fn next_at(&self) -> Option<Instant> {
        let first = self.heap.peek().map(|Reverse(entry)| entry.at);
        [first, self.stops_at, self.fresh_at, self.turns_at].into_iter().flatten().min()
    }

    /// Takes the first entry that is due.
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Token, TimerKind)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= now)?;
        self.heap.pop().map(|Reverse(entry)| (entry.token, entry.due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timers_of_the_gone_are_forgotten() {
        let mut timers = Timers::new(None);
        let at = Instant::now() + Duration::from_secs(3600);
        let mut of_all = Armed::default();
        timers.arm(&mut of_all, Token(0), TimerKind::Leak, at);
        for number in 0..100_000 {
            timers.arm(&mut Armed::default(), Token(number), TimerKind::Leak, at);
            timers.prune(10, |token| (token.0 + 10 > number).then_some(&of_all));
            assert!(timers.heap.len() <= ENTRIES_MIN + 41);
        }
    }

    #[test]
    fn a_child_has_one_timer_of_each_kind() {
        let (mut timers, mut armed) = (Timers::new(None), Armed::default());
        let (token, now) = (Token(7), Instant::now());
        let ms = Duration::from_millis;
        for _ in 0..1000 {
            timers.arm(&mut armed, token, TimerKind::Killing, now + ms(10));
            timers.arm(&mut armed, token, TimerKind::Leak, now + ms(10));
        }
        assert_eq!(timers.heap.len(), 2);
        // An earlier one counts in its place, and the later one is stale when it comes.
        timers.arm(&mut armed, token, TimerKind::Killing, now + ms(5));
        let mut came = Vec::new();
        while let Some((_, due)) = timers.pop(now + ms(20)) {
            if armed.take(due, now + ms(20)) {
                came.push(due);
            }
        }
        came.sort_by_key(|due| *due as usize);
        assert_eq!(came, [TimerKind::Leak, TimerKind::Killing]);
    }
}
