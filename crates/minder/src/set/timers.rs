//! The deadlines of a set, earliest first. One that no longer holds is found out when it is due.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::event::Token;

/// From how many deadlines on it is worth looking whose they are.
const DEADLINES_MIN: usize = 1024;

/// How much later than it is due a young child may be looked at, so that many share one look.
const FRESH_TOLERANCE: Duration = Duration::from_millis(1);

/// What is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// An output may have been silent for too long.
    Leak,
    /// A tree that is being killed is to be looked at.
    Killing,
    /// The child's time may be over.
    Deadline,
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
    due: Due,
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

    pub(super) fn push(&mut self, at: Instant, token: Token, due: Due) {
        self.heap.push(Reverse(Entry { at, token, due }));
    }

    /// Forgets the deadlines of children that are gone, once there may be more of them than of others: a set that runs
    /// a million children with a time-out of an hour keeps the deadlines of those that live.
    pub(super) fn prune(&mut self, live: usize, is_live: impl Fn(Token) -> bool) {
        if self.heap.len() > DEADLINES_MIN + 4 * live {
            self.heap.retain(|Reverse(entry)| is_live(entry.token));
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
    pub(super) fn look_at_fresh(&mut self, now: Instant) -> bool {
        self.fresh_at.take_if(|at| *at <= now).is_some()
    }

    /// Makes sure that turns are looked at then.
    pub(super) fn turns_at(&mut self, due: Instant) {
        self.turns_at = Some(due);
    }

    /// Whether turns are to be looked at now.
    pub(super) fn look_at_turns(&mut self, now: Instant) -> bool {
        self.turns_at.take_if(|at| *at <= now).is_some()
    }

    /// Whether stopped children are to be looked for now. `live` says whether there is anybody to look at later.
    pub(super) fn look_for_stops(&mut self, now: Instant, live: bool) -> bool {
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
    pub(super) fn pop(&mut self, now: Instant) -> Option<(Token, Due)> {
        self.heap.peek().filter(|Reverse(entry)| entry.at <= now)?;
        self.heap.pop().map(|Reverse(entry)| (entry.token, entry.due))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadlines_of_the_gone_are_forgotten() {
        let mut timers = Timers::new(None);
        let at = Instant::now() + Duration::from_secs(3600);
        for number in 0..100_000 {
            timers.push(at, Token(number), Due::Leak);
            timers.prune(10, |token| token.0 + 10 > number);
            assert!(timers.heap.len() <= DEADLINES_MIN + 41);
        }
    }
}
