//! The running jobs and the wall times of finished ones: for progress displays, for time-outs that
//! depend on the median, and for requests to running jobs.
//!
//! `state` protects everything. `has_requests` repeats, without the lock, whether `requests` is not
//! empty, so that worker threads without requests do not lock. It is written only under the lock. A
//! worker thread that reads `false` too early is woken after the request was made, and reads it
//! again.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::jobs::Attempt;
use minder_os::sync::Mutex;

use crate::queue::Task;

/// The most wall times that are kept: those of the last jobs.
const TIMES_MAX: usize = 1000;
/// The least number of jobs that must have succeeded before there is a median.
const TIMES_MIN: usize = 3;

/// The table of running jobs. It costs nothing if nothing needs it.
#[derive(Debug, Default)]
pub(crate) struct JobTable {
    /// `true` if jobs are recorded.
    wanted: bool,
    state: Mutex<State>,
    /// `true` if `requests` is not empty. See the module.
    has_requests: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    running: BTreeMap<u64, JobEntry>,
    /// The wall times of the last jobs, as a ring buffer, and the index of the next one.
    durations: Vec<Duration>,
    next: usize,
    median: Option<Duration>,
    requests: Vec<(u64, JobRequest)>,
}

/// A running job.
#[derive(Clone, Debug)]
pub(crate) struct JobEntry {
    pub(crate) started_at: Instant,
    pub(crate) columns: Vec<OsString>,
    pub(crate) slot: u32,
    pub(crate) suspended: bool,
}

/// A request to a worker thread about one of its jobs.
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

    /// Adds a job that starts.
    pub(crate) fn insert(&self, task: &Task, attempt: Attempt) {
        if self.wanted {
            let entry = JobEntry {
                started_at: Instant::now(),
                columns: task.columns().to_vec(),
                slot: attempt.slot,
                suspended: false,
            };
            self.state.lock().running.insert(task.number, entry);
        }
    }

    /// Removes a finished job. `took` is its wall time, if it succeeded.
    pub(crate) fn remove(&self, job: u64, took: Option<Duration>) {
        if !self.wanted {
            return;
        }
        let mut state = self.state.lock();
        state.running.remove(&job);
        // A request is for this attempt only: a suspended next attempt would never be resumed.
        state.requests.retain(|(requested, _)| *requested != job);
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

    /// Returns the median wall time of the last jobs that succeeded, once there are enough.
    pub(crate) fn median(&self) -> Option<Duration> {
        let mut state = self.state.lock();
        if state.median.is_none() && state.durations.len() >= TIMES_MIN {
            let mut durations = state.durations.clone();
            let middle = durations.len() / 2;
            state.median = Some(*durations.select_nth_unstable(middle).1);
        }
        state.median
    }

    /// Returns the running jobs, oldest first, at most `most`.
    pub(crate) fn oldest(&self, most: usize) -> Vec<(u64, JobEntry)> {
        let state = self.state.lock();
        let mut found: Vec<(u64, &JobEntry)> =
            state.running.iter().map(|(job, entry)| (*job, entry)).collect();
        found.sort_by_key(|(_, entry)| entry.started_at);
        found.into_iter().take(most).map(|(job, entry)| (job, entry.clone())).collect()
    }

    /// Adds to the start times the time in which all jobs were suspended, since that does not make
    /// a job slow.
    pub(crate) fn add_suspended_time(&self, time: Duration) {
        for entry in self.state.lock().running.values_mut() {
            entry.started_at = entry.started_at.checked_add(time).unwrap_or(entry.started_at);
        }
    }

    /// Returns how many jobs run, and how many of these are suspended.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let state = self.state.lock();
        (state.running.len(), state.running.values().filter(|entry| entry.suspended).count())
    }

    /// Makes a request to the youngest job that is not suspended, or, to resume, to the oldest that
    /// is. Returns `false` if there is no such job.
    pub(crate) fn request(&self, request: JobRequest) -> bool {
        let mut state = self.state.lock();
        let suspended = request == JobRequest::Resume;
        let candidates = state.running.iter().filter(|(_, entry)| entry.suspended == suspended);
        let chosen = match request {
            JobRequest::Resume => candidates.min_by_key(|(_, entry)| entry.started_at),
            _ => candidates.max_by_key(|(_, entry)| entry.started_at),
        };
        let Some(job) = chosen.map(|(job, _)| *job) else { return false };
        if let Some(entry) = state.running.get_mut(&job) {
            entry.suspended = request == JobRequest::Suspend;
        }
        state.requests.push((job, request));
        self.has_requests.store(true, Ordering::SeqCst);
        true
    }

    /// Takes the requests for jobs for which `is_here` returns `true`.
    pub(crate) fn take_requests(&self, is_here: impl Fn(u64) -> bool) -> Vec<(u64, JobRequest)> {
        if !self.has_requests.load(Ordering::SeqCst) {
            return Vec::new();
        }
        let mut state = self.state.lock();
        // A job that is not in `running` has finished, and its request with it.
        let State { running, requests, .. } = &mut *state;
        let (requests_here, requests_elsewhere): (Vec<_>, Vec<_>) = requests
            .drain(..)
            .filter(|(job, _)| running.contains_key(job))
            .partition(|(job, _)| is_here(*job));
        *requests = requests_elsewhere;
        self.has_requests.store(!requests.is_empty(), Ordering::SeqCst);
        requests_here
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::JobArgs;

    fn table() -> JobTable {
        let table = JobTable::new(true);
        let config = minder::jobs::SchedulerOptions::new().max_running(3);
        let mut schedule = minder::jobs::Scheduler::new(config);
        for number in 1..=3 {
            schedule.submit(number, 0);
            let minder::jobs::NextAction::Start(attempt, number) = schedule.next(Instant::now()) else {
                panic!()
            };
            table.insert(&Task::new(number, JobArgs::Columns(Vec::new())), attempt);
        }
        table
    }

    #[test]
    fn requests_select_youngest_or_oldest_job() {
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
    fn request_applies_to_one_attempt() {
        let table = table();
        assert!(table.request(JobRequest::Suspend));
        table.remove(3, None);
        table.state.lock().running.insert(
            3,
            JobEntry { started_at: Instant::now(), columns: Vec::new(), slot: 3, suspended: false },
        );
        assert_eq!(table.take_requests(|_| true), []);
    }

    #[test]
    fn median_covers_last_jobs() {
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
