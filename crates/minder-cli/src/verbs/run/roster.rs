//! Who runs, since when, and how long those that ended took: for whoever looks on, and for limits
//! that depend on others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use minder::exec::Start;

use super::input::Task;

/// Of how many jobs the times are remembered, the last ones.
const TIMES_MAX: usize = 1000;
/// How many must have ended before their median says something.
const TIMES_MIN: usize = 3;

/// See the module. It costs nothing where nobody wants it.
#[derive(Debug, Default)]
pub(super) struct Roster {
    /// Whether jobs are entered.
    wanted: bool,
    state: Mutex<State>,
    /// Whether there are orders.
    ordered: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<u64, Entry>,
    /// What the last jobs took, and the place of the next.
    times: Vec<Duration>,
    next: usize,
    median: Option<Duration>,
    orders: Vec<(u64, Order)>,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) begun: Instant,
    pub(super) columns: Vec<OsString>,
    pub(super) slot: u32,
    pub(super) suspended: bool,
}

/// What a loop is to do to one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Kill it; it runs again later.
    PutBack,
    Suspend,
    Resume,
}

impl Roster {
    pub(super) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// Whether it is known who runs.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted
    }

    /// A job starts.
    pub(super) fn enter(&self, task: &Task, start: Start) {
        if self.wanted {
            let entry = Entry {
                begun: Instant::now(),
                columns: task.columns().to_vec(),
                slot: start.slot,
                suspended: false,
            };
            self.lock().running.insert(task.number, entry);
        }
    }

    /// A job is over. `took`: how long it did, if it succeeded.
    pub(super) fn leave(&self, job: u64, took: Option<Duration>) {
        if !self.wanted {
            return;
        }
        let mut state = self.lock();
        state.running.remove(&job);
        // Its next attempt is not meant: nobody would let it go on again.
        state.orders.retain(|(its, _)| *its != job);
        if let Some(took) = took {
            match state.times.len() {
                TIMES_MAX => {
                    let next = state.next;
                    state.times[next] = took;
                }
                _ => state.times.push(took),
            }
            state.next = (state.next + 1) % TIMES_MAX;
            state.median = None;
        }
    }

    /// The median of what the last jobs took, once enough of them ended.
    pub(super) fn median(&self) -> Option<Duration> {
        let mut state = self.lock();
        if state.median.is_none() && state.times.len() >= TIMES_MIN {
            let mut times = state.times.clone();
            let middle = times.len() / 2;
            state.median = Some(*times.select_nth_unstable(middle).1);
        }
        state.median
    }

    /// The jobs that run, the oldest first, at most so many.
    pub(super) fn oldest(&self, most: usize) -> Vec<(u64, Entry)> {
        let state = self.lock();
        let mut found: Vec<(u64, &Entry)> = state.running.iter().map(|(job, entry)| (*job, entry)).collect();
        found.sort_by_key(|(_, entry)| entry.begun);
        found.into_iter().take(most).map(|(job, entry)| (job, entry.clone())).collect()
    }

    /// All jobs stood still for this long: that does not make them slow.
    pub(super) fn stood_still(&self, time: Duration) {
        for entry in self.lock().running.values_mut() {
            entry.begun = entry.begun.checked_add(time).unwrap_or(entry.begun);
        }
    }

    /// How many run, and how many of these are suspended.
    pub(super) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running.len(), state.running.values().filter(|entry| entry.suspended).count())
    }

    /// Orders something for the youngest job that is not suspended, or for the oldest that is. Says
    /// whether there is one.
    pub(super) fn order(&self, order: Order) -> bool {
        let mut state = self.lock();
        let suspended = order == Order::Resume;
        let its = state.running.iter().filter(|(_, entry)| entry.suspended == suspended);
        let chosen = match order {
            Order::Resume => its.min_by_key(|(_, entry)| entry.begun),
            _ => its.max_by_key(|(_, entry)| entry.begun),
        };
        let Some(job) = chosen.map(|(job, _)| *job) else { return false };
        if let Some(entry) = state.running.get_mut(&job) {
            entry.suspended = order == Order::Suspend;
        }
        state.orders.push((job, order));
        self.ordered.store(true, Ordering::SeqCst);
        true
    }

    /// Takes the orders for the jobs of which `is_here` says that they are the caller's.
    pub(super) fn take(&self, is_here: impl Fn(u64) -> bool) -> Vec<(u64, Order)> {
        if !self.ordered.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut state = self.lock();
        // What is not here and runs nowhere is over.
        let State { running, orders, .. } = &mut *state;
        let (here, there): (Vec<_>, Vec<_>) =
            orders.drain(..).filter(|(job, _)| running.contains_key(job)).partition(|(job, _)| is_here(*job));
        *orders = there;
        self.ordered.store(!orders.is_empty(), Ordering::SeqCst);
        here
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Arguments;

    fn roster() -> Roster {
        let roster = Roster::new(true);
        let mut schedule = minder::exec::Schedule::new({
            let mut rules = minder::exec::Rules::default();
            rules.degree = 3;
            rules
        });
        for number in 1..=3 {
            schedule.offer(number, &[], 0);
            let minder::exec::Next::Start(start, number) = schedule.next(Instant::now()) else { panic!() };
            roster.enter(&Task::new(number, Arguments::Columns(Vec::new())), start);
        }
        roster
    }

    #[test]
    fn orders_go_to_the_youngest_and_to_the_oldest() {
        let roster = roster();
        assert!(roster.order(Order::Suspend) && roster.order(Order::Suspend));
        assert_eq!(roster.counts(), (3, 2));
        assert_eq!(roster.take(|job| job == 3), [(3, Order::Suspend)]);
        assert!(roster.order(Order::Resume));
        assert_eq!(roster.take(|_| true), [(2, Order::Suspend), (2, Order::Resume)]);
        roster.leave(2, None);
        assert!(roster.order(Order::PutBack));
        assert_eq!(roster.take(|_| true), [(1, Order::PutBack)]);
        assert_eq!(roster.take(|_| true), []);
    }

    #[test]
    fn an_order_is_for_one_attempt() {
        let roster = roster();
        assert!(roster.order(Order::Suspend));
        roster.leave(3, None);
        roster
            .lock()
            .running
            .insert(3, Entry { begun: Instant::now(), columns: Vec::new(), slot: 3, suspended: false });
        assert_eq!(roster.take(|_| true), []);
    }

    #[test]
    fn the_median_is_of_the_last_jobs() {
        let roster = roster();
        for seconds in 1..=2 {
            roster.leave(seconds, Some(Duration::from_secs(seconds)));
        }
        assert_eq!(roster.median(), None);
        for _ in 0..TIMES_MAX {
            roster.leave(3, Some(Duration::from_secs(7)));
        }
        assert_eq!(roster.median(), Some(Duration::from_secs(7)));
        assert_eq!(roster.oldest(8).len(), 0);
    }
}
