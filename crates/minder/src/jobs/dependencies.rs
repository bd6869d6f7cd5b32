//! The jobs that wait for others, and the states of those that others may wait for.

use std::collections::HashMap;
use std::fmt;

/// A dependency that a job cannot have.
///
/// ```
/// use minder::jobs::{DependencyError, Scheduler, SchedulerOptions};
///
/// let mut scheduler = Scheduler::new(SchedulerOptions::new());
/// let compile = scheduler.submit("compile", 0);
/// let error: DependencyError = scheduler.submit_after("link", &[compile, 7], 0).unwrap_err();
/// assert_eq!(error.to_string(), "cannot run job 2 after job 7: job 7 is not submitted yet");
/// assert_eq!(error.dependency(), 7);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DependencyError {
    job: u64,
    dependency: u64,
}

impl DependencyError {
    /// Returns the number that was named.
    pub fn dependency(&self) -> u64 {
        self.dependency
    }
}

impl fmt::Display for DependencyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { job, dependency } = self;
        write!(f, "cannot run job {job} after job {dependency}: ")?;
        match *dependency {
            0 => f.write_str("the first job has the number 1"),
            _ if dependency == job => f.write_str("they are the same"),
            _ if dependency > job => write!(f, "job {dependency} is not submitted yet"),
            _ => write!(
                f,
                "job {dependency} finished when no results were kept (call `keep_results` before it finishes)"
            ),
        }
    }
}

impl std::error::Error for DependencyError {}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum JobState {
    /// It finished before the results were kept.
    Forgotten,
    Unfinished,
    Succeeded,
    /// It failed, or was skipped.
    Failed,
}

/// The condition under which a new job starts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Start {
    Now,
    /// The job starts when this many jobs have succeeded.
    After(usize),
    /// Never: a job that it depends on has failed.
    Never,
}

/// The jobs that wait for others. `P` is a waiting job.
#[derive(Debug)]
pub(super) struct Dependencies<P> {
    /// The state of each job, by its number. `None` before the first dependency: then it costs nothing.
    states: Option<Vec<JobState>>,
    blocked: HashMap<u64, Blocked<P>>,
    /// For each unfinished job that others depend on: the numbers of those others.
    waiters: HashMap<u64, Vec<u64>>,
}

#[derive(Debug)]
struct Blocked<P> {
    pending: P,
    /// The number of dependencies that have not succeeded yet.
    missing: usize,
}

impl<P> Dependencies<P> {
    pub(super) fn new() -> Self {
        Self { states: None, blocked: HashMap::new(), waiters: HashMap::new() }
    }

    /// Returns whether results are kept.
    pub(super) fn are_used(&self) -> bool {
        self.states.is_some()
    }

    /// Keeps the results from now on. Of the jobs so far, these are unfinished.
    pub(super) fn begin(&mut self, submitted: u64, unfinished: impl Iterator<Item = u64>) {
        let mut states = vec![JobState::Forgotten; submitted as usize];
        for number in unfinished {
            states[number as usize - 1] = JobState::Unfinished;
        }
        self.states = Some(states);
    }

    /// Notes that the next job was submitted, if results are kept.
    pub(super) fn note_submitted(&mut self) {
        if let Some(states) = &mut self.states {
            states.push(JobState::Unfinished);
        }
    }

    /// Returns when the job with the next number can start, which depends on the jobs `after`.
    pub(super) fn check(&self, after: &[u64]) -> Result<Start, DependencyError> {
        let states = self.states.as_deref().unwrap_or_default();
        let job = states.len() as u64 + 1;
        let mut missing = 0;
        let mut has_failed = false;
        for &dependency in after {
            let index = (dependency as usize).wrapping_sub(1);
            match states.get(index) {
                None | Some(JobState::Forgotten) => return Err(DependencyError { job, dependency }),
                Some(JobState::Unfinished) => missing += 1,
                Some(JobState::Succeeded) => (),
                Some(JobState::Failed) => has_failed = true,
            }
        }
        Ok(match missing {
            _ if has_failed => Start::Never,
            0 => Start::Now,
            _ => Start::After(missing),
        })
    }

    /// Adds a job that waits for `missing` of the jobs `after`, which are unfinished.
    pub(super) fn block(&mut self, number: u64, pending: P, after: &[u64], missing: usize) {
        let states = self.states.as_deref().unwrap_or_default();
        for &dependency in after {
            if states[dependency as usize - 1] == JobState::Unfinished {
                self.waiters.entry(dependency).or_default().push(number);
            }
        }
        self.blocked.insert(number, Blocked { pending, missing });
    }

    /// Records a result, if it is the first of its job. Returns the jobs that may start now, and how many
    /// never will.
    ///
    /// This is a loop with a work list, because a recursion could overflow the stack: the caller
    /// chooses the length of a chain of jobs.
    pub(super) fn record(&mut self, number: u64, succeeded: bool) -> (Vec<P>, u64) {
        let mut ready = Vec::new();
        let mut skipped = 0;
        let Some(states) = &mut self.states else { return (ready, skipped) };
        let mut finished = vec![number];
        while let Some(number) = finished.pop() {
            let state = &mut states[number as usize - 1];
            if *state != JobState::Unfinished {
                continue;
            }
            *state = if succeeded { JobState::Succeeded } else { JobState::Failed };
            for waiter in self.waiters.remove(&number).unwrap_or_default() {
                if !succeeded {
                    if self.blocked.remove(&waiter).is_some() {
                        skipped += 1;
                        finished.push(waiter);
                    }
                } else if let Some(blocked) = self.blocked.get_mut(&waiter) {
                    blocked.missing -= 1;
                    if blocked.missing == 0 {
                        ready.extend(self.blocked.remove(&waiter).map(|blocked| blocked.pending));
                    }
                }
            }
        }
        (ready, skipped)
    }

    /// Returns whether a job waits for others.
    pub(super) fn has_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    /// Drops the jobs that wait.
    pub(super) fn clear(&mut self) {
        self.blocked.clear();
        self.waiters.clear();
    }
}
