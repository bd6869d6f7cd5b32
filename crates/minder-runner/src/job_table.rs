//! Who runs, since when, and how long those that ended took: for whoever looks on, and for limits
//! that depend on others.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use minder::jobs::Attempt;

use crate::queue::Task;

/// Of how many jobs the times are remembered, the last ones.
const TIMES_MAX: usize = 1000;
/// How many must have ended before their median says something.
const TIMES_MIN: usize = 3;

/// See the module. It costs nothing where nobody wants it.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    /// Whether jobs are entered.
    wanted: bool,
    state: Mutex<State>,
    /// Whether there are orders.
    has_requests: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<u64, JobEntry>,
    /// What the last jobs took, and the place of the next.
    durations: Vec<Duration>,
    next: usize,
    median: Option<Duration>,
    requests: Vec<(u64, JobRequest)>,
}

/// A job that runs.
#[derive(Clone, Debug)]
pub(crate) struct JobEntry {
    pub(crate) started_at: Instant,
    pub(crate) columns: Vec<OsString>,
    pub(crate) slot: u32,
    pub(crate) suspended: bool,
}

/// What a loop is to do to one of its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JobRequest {
    /// Kill it; it runs again later.
    Requeue,
    Suspend,
    Resume,
}

impl JobTable {
    pub(crate) fn new(wanted: bool) -> Self {
        Self { wanted, ..Self::default() }
    }

    /// A job starts.
    pub(crate) fn insert(&self, task: &Task, start: Attempt) {
        if self.wanted {
            let entry = JobEntry {
                started_at: Instant::now(),
                columns: task.columns().to_vec(),
                slot: start.slot,
                suspended: false,
            };
            self.lock().running.insert(task.number, entry);
        }
    }

    /// A job is over. `took`: how long it did, if it succeeded.
    pub(crate) fn remove(&self, job: u64, took: Option<Duration>) {
        if !self.wanted {
            return;
        }
        let mut state = self.lock();
        state.running.remove(&job);
        // Its next attempt is not meant: nobody would let it go on again.
        state.requests.retain(|(its, _)| *its != job);
        if let Some(took) = took {
            match state.durations.len() {
                TIMES_MAX => {
                    let next = state.next;
                    state.durations[next] = took;
                }
                _ => state.durations.push(took),
            }
            state.next = (state.next + 1) % TIMES_MAX;
            state.median = None;
        }
    }

    /// The median of what the last jobs took, once enough of them ended.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut state = self.lock();
        if state.median.is_none() && state.durations.len() >= TIMES_MIN {
            let mut durations = state.durations.clone();
            let middle = durations.len() / 2;
            state.median = Some(*durations.select_nth_unstable(middle).1);
        }
        state.median
    }

    /// The jobs that run, the oldest first, at most so many.
    pub(crate) fn oldest(&self, most: usize) -> Vec<(u64, JobEntry)> {
        let state = self.lock();
        let mut found: Vec<(u64, &JobEntry)> =
            state.running.iter().map(|(job, entry)| (*job, entry)).collect();
        found.sort_by_key(|(_, entry)| entry.started_at);
        found.into_iter().take(most).map(|(job, entry)| (job, entry.clone())).collect()
    }

    /// All jobs stood still for this long: that does not make them slow.
    pub(crate) fn add_suspended_time(&self, time: Duration) {
        for entry in self.lock().running.values_mut() {
            entry.started_at = entry.started_at.checked_add(time).unwrap_or(entry.started_at);
        }
    }

    /// How many run, and how many of these are suspended.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.running.len(), state.running.values().filter(|entry| entry.suspended).count())
    }

    /// Orders something for the youngest job that is not suspended, or for the oldest that is. Says
    /// whether there is one.
    pub(crate) fn request(&self, order: JobRequest) -> bool {
        let mut state = self.lock();
        let suspended = order == JobRequest::Resume;
        let its = state.running.iter().filter(|(_, entry)| entry.suspended == suspended);
        let chosen = match order {
            JobRequest::Resume => its.min_by_key(|(_, entry)| entry.started_at),
            _ => its.max_by_key(|(_, entry)| entry.started_at),
        };
        let Some(job) = chosen.map(|(job, _)| *job) else { return false };
        if let Some(entry) = state.running.get_mut(&job) {
            entry.suspended = order == JobRequest::Suspend;
        }
        state.requests.push((job, order));
        self.has_requests.store(true, Ordering::SeqCst);
        true
    }

    /// Takes the orders for the jobs of which `is_here` says that they are the caller's.
    pub(crate) fn take_requests(&self, is_here: impl Fn(u64) -> bool) -> Vec<(u64, JobRequest)> {
        if !self.has_requests.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut state = self.lock();
        // What is not here and runs nowhere is over.
        let State { running, requests: orders, .. } = &mut *state;
        let (here, there): (Vec<_>, Vec<_>) =
            orders.drain(..).filter(|(job, _)| running.contains_key(job)).partition(|(job, _)| is_here(*job));
        *orders = there;
        self.has_requests.store(!orders.is_empty(), Ordering::SeqCst);
        here
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::JobArgs;

    fn table() -> JobTable {
        let table = JobTable::new(true);
        let mut schedule = minder::jobs::Scheduler::new({
            let mut rules = minder::jobs::SchedulerConfig::default();
            rules.max_running = 3;
            rules
        });
        for number in 1..=3 {
            schedule.submit(number, &[], 0);
            let minder::jobs::NextAction::Start(start, number) = schedule.next(Instant::now()) else {
                panic!()
            };
            table.insert(&Task::new(number, JobArgs::Columns(Vec::new())), start);
        }
        table
    }

    #[test]
    fn orders_go_to_the_youngest_and_to_the_oldest() {
        let table = table();
        assert!(table.request(JobRequest::Suspend) && table.request(JobRequest::Suspend));
        assert_eq!(table.counts(), (3, 2));
        assert_eq!(table.take_requests(|job| job == 3), [(3, JobRequest::Suspend)]);
        assert!(table.request(JobRequest::Resume));
        assert_eq!(table.take_requests(|_| true), [(2, JobRequest::Suspend), (2, JobRequest::Resume)]);
        table.remove(2, None);
        assert!(table.request(JobRequest::Requeue));
        assert_eq!(table.take_requests(|_| true), [(1, JobRequest::Requeue)]);
        assert_eq!(table.take_requests(|_| true), []);
    }

    #[test]
    fn an_order_is_for_one_attempt() {
        let table = table();
        assert!(table.request(JobRequest::Suspend));
        table.remove(3, None);
        table.lock().running.insert(
            3,
            JobEntry { started_at: Instant::now(), columns: Vec::new(), slot: 3, suspended: false },
        );
        assert_eq!(table.take_requests(|_| true), []);
    }

    #[test]
    fn the_median_is_of_the_last_jobs() {
        let table = table();
        for seconds in 1..=2 {
            table.remove(seconds, Some(Duration::from_secs(seconds)));
        }
        assert_eq!(table.median(), None);
        for _ in 0..TIMES_MAX {
            table.remove(3, Some(Duration::from_secs(7)));
        }
        assert_eq!(table.median(), Some(Duration::from_secs(7)));
        assert_eq!(table.oldest(8).len(), 0);
    }
}
