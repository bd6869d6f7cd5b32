//! The scheduler: a state machine that decides which job may start now. The caller passes the time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::time::{Duration, Instant};

use super::config::{HaltReason, HaltTrigger, QueueOrder, SchedulerOptions, Threshold};
use super::dependencies::{Dependencies, DependencyError, Start};
use super::key_limits::{Admission, KeyLimits};
use crate::backoff::DELAY_MAX;
use crate::random::Random;

/// The least number of finished jobs of which a percentage is computed.
const PERCENT_MIN: u64 = 3;
/// The most by which a first start may be late and the next one still be on time, so that a wait that
/// ends late does not lower the rate.
const LATENESS_MAX: Duration = Duration::from_millis(10);

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobResult {
    /// The job succeeded.
    Success,
    /// It failed, and may be retried.
    Failure,
    /// It failed, and must not be retried.
    PermanentFailure,
    /// It was killed to make room for other jobs. It runs again later, and this attempt does not
    /// count.
    Requeue,
}

/// One attempt at one job.
///
/// ```
/// use minder::jobs::{Attempt, NextAction, Scheduler, SchedulerOptions};
///
/// let mut scheduler = Scheduler::new(SchedulerOptions::new());
/// scheduler.submit("job", 0);
/// let NextAction::Start(Attempt { job, attempt, slot, .. }, _) = scheduler.next(std::time::Instant::now())
/// else {
///     panic!("a job waits");
/// };
/// assert_eq!((job, attempt, slot), (1, 1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The job's number, from 1, in the order in which jobs were submitted.
    pub job: u64,
    /// The number of this attempt at the job, from 1.
    pub attempt: u32,
    /// The lowest number, from 1, that no other running job has.
    pub slot: u32,
}

/// The action that the caller takes next.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextAction<J> {
    /// Start this job.
    Start(Attempt, J),
    /// As many jobs run as may run at once, or too many wait for one of their
    /// [key](Scheduler::submit_keyed) to finish.
    Full,
    /// Jobs wait, and [`set_paused`](Scheduler::set_paused) forbids starts.
    Paused,
    /// No job waits: submit more, or wait for one to finish.
    Empty,
    /// Only failed jobs wait, for their next attempt, and the first of them until this time: submit more,
    /// wait for one to finish, or call [`next`](Scheduler::next) again then.
    EmptyUntil(Instant),
    /// No job starts before this time.
    Later(Instant),
    /// No more jobs will start. Some may still run.
    Finished,
}

/// The number of jobs in each state.
///
/// ```
/// use minder::jobs::{JobCounts, Scheduler, SchedulerOptions};
///
/// let mut scheduler = Scheduler::new(SchedulerOptions::new());
/// scheduler.submit("job", 0);
/// let JobCounts { submitted, succeeded, failed, .. } = scheduler.counts();
/// assert_eq!((submitted, succeeded + failed), (1, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobCounts {
    /// Jobs that were submitted.
    pub submitted: u64,
    /// Jobs that run.
    pub running: u64,
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed and are not retried.
    pub failed: u64,
    /// Attempts after the first.
    pub retried: u64,
    /// Jobs that never ran, because a job that they depend on failed.
    pub skipped: u64,
}

/// Decides which job starts when. `J` is what the caller needs to start a job.
///
/// ```
/// use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
/// use std::time::{Duration, Instant};
///
/// let mut scheduler = Scheduler::new(SchedulerOptions::default());
/// let now = Instant::now();
/// scheduler.submit("first", 0);
/// scheduler.submit("second", 0);
/// let NextAction::Start(attempt, "first") = scheduler.next(now) else { panic!() };
/// assert_eq!(scheduler.next(now), NextAction::Full);
/// scheduler.finish(attempt, "first", JobResult::Success, now);
/// assert!(matches!(scheduler.next(now), NextAction::Start(_, "second")));
/// assert_eq!((scheduler.counts().succeeded, scheduler.counts().running), (1, 1));
/// ```
#[derive(Debug)]
pub struct Scheduler<J> {
    config: SchedulerOptions,
    /// Waiting jobs in the order in which they were submitted, behind those that were put back.
    fifo: VecDeque<Pending<J>>,
    /// Waiting jobs by cost, for the orders by cost.
    by_cost: BinaryHeap<Ranked<J>>,
    /// Failed jobs that wait for their next attempt.
    retries: BinaryHeap<Reverse<DelayedRetry<J>>>,
    dependencies: Dependencies<Pending<J>>,
    /// The jobs that wait for others of their key. Boxed, because few runs have such a limit.
    keys: Option<Box<KeyLimits<Pending<J>>>>,
    /// The running attempt of each slot.
    slots: Vec<Option<Running>>,
    free_slots: BinaryHeap<Reverse<u32>>,
    counts: JobCounts,
    /// `true` if no more jobs will be submitted.
    closed: bool,
    halted: bool,
    halted_by: Option<HaltReason>,
    total: Option<u64>,
    paused: bool,
    /// Before this time no job starts.
    not_before: Option<Instant>,
    /// Before this time no job starts for the first time.
    first_start_at: Option<Instant>,
    random: Random,
}

#[derive(Debug)]
struct Pending<J> {
    number: u64,
    attempt: u32,
    cost: u64,
    key: Option<u64>,
    job: J,
}

/// A running attempt.
#[derive(Clone, Copy, Debug)]
struct Running {
    job: u64,
    cost: u64,
    key: Option<u64>,
    attempt: u32,
    /// `true` if `is_last_attempt` said that the job will be retried if it fails.
    retry_promised: bool,
}

impl Running {
    fn is(&self, attempt: Attempt) -> bool {
        (self.job, self.attempt) == (attempt.job, attempt.attempt)
    }
}

#[derive(Debug)]
struct Ranked<J>(u64, Pending<J>);

#[derive(Debug)]
struct DelayedRetry<J>(Instant, Pending<J>);

/// Implements `Ord` by a key. Ties go to the job with the lower number.
macro_rules! ordered {
    ($name:ident, $key:expr) => {
        impl<J> PartialEq for $name<J> {
            fn eq(&self, other: &Self) -> bool {
                self.cmp(other).is_eq()
            }
        }
        impl<J> Eq for $name<J> {}
        impl<J> PartialOrd for $name<J> {
            fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }
        impl<J> Ord for $name<J> {
            fn cmp(&self, other: &Self) -> std::cmp::Ordering {
                let key: fn(&Self) -> _ = $key;
                key(self).cmp(&key(other))
            }
        }
    };
}
ordered!(Ranked, |ranked| (ranked.0, Reverse(ranked.1.number)));
ordered!(DelayedRetry, |retry| (retry.0, retry.1.number));

impl<J> Scheduler<J> {
    /// Creates an empty scheduler.
    pub fn new(config: SchedulerOptions) -> Self {
        let random = Random::new(config.seed);
        let keys = config.max_per_key.map(|max| Box::new(KeyLimits::new(max)));
        Self {
            config,
            fifo: VecDeque::new(),
            by_cost: BinaryHeap::new(),
            retries: BinaryHeap::new(),
            dependencies: Dependencies::new(),
            keys,
            slots: Vec::new(),
            free_slots: BinaryHeap::new(),
            counts: JobCounts::default(),
            closed: false,
            halted: false,
            halted_by: None,
            total: None,
            paused: false,
            not_before: None,
            first_start_at: None,
            random,
        }
    }

    /// Adds a job, and returns its number. `cost` matters for the orders by cost alone.
    pub fn submit(&mut self, job: J, cost: u64) -> u64 {
        let pending = self.number(job, cost, None);
        let number = pending.number;
        self.queue(pending);
        number
    }

    /// Adds a job that has a key, and returns its number. Of the jobs with the same key, at most
    /// [`SchedulerOptions::max_per_key`] run at once. The others do not hold up jobs with other keys; when
    /// one of their key finishes, the first of them is the next to start.
    ///
    /// At most 10,000 jobs wait for others of their key. While that many do, [`next`](Self::next) returns
    /// [`NextAction::Full`].
    ///
    /// ```
    /// use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
    /// use std::time::Instant;
    ///
    /// let options = SchedulerOptions::new().max_running(8).max_per_key(Some(1));
    /// let mut scheduler = Scheduler::new(options);
    /// for (job, host) in [("a1", 1), ("a2", 1), ("b1", 2)] {
    ///     scheduler.submit_keyed(job, host, 0);
    /// }
    /// let now = Instant::now();
    /// let NextAction::Start(first, "a1") = scheduler.next(now) else { panic!() };
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "b1")), "it has another key");
    /// assert_eq!(scheduler.next(now), NextAction::Empty);
    /// scheduler.finish(first, "a1", JobResult::Success, now);
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "a2")));
    /// ```
    pub fn submit_keyed(&mut self, job: J, key: u64, cost: u64) -> u64 {
        let pending = self.number(job, cost, Some(key));
        let number = pending.number;
        self.queue(pending);
        number
    }

    /// Adds a job that starts when the jobs `after` have succeeded, and returns its number. If one of them
    /// has failed or fails, the job is skipped: it never runs.
    ///
    /// # Errors
    /// One of `after` is not the number of a job that was submitted before, or has finished when no results
    /// were kept: see [`keep_results`](Self::keep_results). The job was not added, and has no number.
    ///
    /// ```
    /// use minder::jobs::{NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new().max_running(2));
    /// let compile = scheduler.submit("compile", 0);
    /// scheduler.submit_after("link", &[compile], 0)?;
    /// let now = Instant::now();
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "compile")));
    /// assert_eq!(scheduler.next(now), NextAction::Empty, "the other job waits for it");
    /// # Ok::<(), minder::jobs::DependencyError>(())
    /// ```
    pub fn submit_after(&mut self, job: J, after: &[u64], cost: u64) -> Result<u64, DependencyError> {
        self.keep_results();
        let start = self.dependencies.check(after)?;
        let pending = self.number(job, cost, None);
        let number = pending.number;
        match start {
            Start::Now => self.queue(pending),
            Start::After(missing) => self.dependencies.block(number, pending, after, missing),
            Start::Never => {
                self.counts.skipped += 1;
                self.dependencies.record(number, false);
            }
        }
        Ok(number)
    }

    /// Keeps the results of all jobs from now on, one byte for each, so that later jobs can depend on those
    /// that have finished. The first call of [`submit_after`](Self::submit_after) does the same. The results
    /// of jobs that have finished before are not known.
    ///
    /// ```
    /// use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new());
    /// scheduler.keep_results();
    /// let now = Instant::now();
    /// let library = scheduler.submit("library", 0);
    /// let NextAction::Start(attempt, job) = scheduler.next(now) else { panic!() };
    /// scheduler.finish(attempt, job, JobResult::Success, now);
    /// // Its result is still known.
    /// scheduler.submit_after("program", &[library], 0)?;
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "program")));
    /// # Ok::<(), minder::jobs::DependencyError>(())
    /// ```
    pub fn keep_results(&mut self) {
        if self.dependencies.are_used() {
            return;
        }
        let fifo = self.fifo.iter().map(|pending| pending.number);
        let by_cost = self.by_cost.iter().map(|ranked| ranked.1.number);
        let retries = self.retries.iter().map(|Reverse(retry)| retry.1.number);
        let running = self.slots.iter().flatten().map(|running| running.job);
        let keyed = self.keys.iter().flat_map(|keys| keys.waiting()).map(|pending| pending.number);
        let unfinished = fifo.chain(by_cost).chain(retries).chain(running).chain(keyed);
        self.dependencies.begin(self.counts.submitted, unfinished);
    }

    fn number(&mut self, job: J, cost: u64, key: Option<u64>) -> Pending<J> {
        self.counts.submitted += 1;
        self.dependencies.note_submitted();
        Pending { number: self.counts.submitted, attempt: 1, cost, key, job }
    }

    /// Notes that no more jobs will be submitted.
    ///
    /// ```
    /// use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new());
    /// let now = Instant::now();
    /// scheduler.submit("only", 0);
    /// scheduler.close();
    /// let NextAction::Start(attempt, job) = scheduler.next(now) else { panic!() };
    /// assert!(scheduler.is_finished() && !scheduler.is_exhausted(), "it runs");
    /// scheduler.finish(attempt, job, JobResult::Success, now);
    /// assert!(scheduler.is_exhausted());
    /// assert_eq!(scheduler.next(now), NextAction::Finished);
    /// ```
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Starts no more jobs, and drops those that wait.
    ///
    /// ```
    /// use minder::jobs::{NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new());
    /// scheduler.submit("job", 0);
    /// scheduler.halt();
    /// assert!(scheduler.is_halted() && scheduler.halted_by().is_none(), "no policy has done it");
    /// assert_eq!(scheduler.next(Instant::now()), NextAction::Finished);
    /// ```
    pub fn halt(&mut self) {
        self.halted = true;
        self.fifo.clear();
        self.by_cost.clear();
        self.retries.clear();
        self.dependencies.clear();
        if let Some(keys) = &mut self.keys {
            keys.clear();
        }
    }

    /// Returns whether no more jobs will start, after a call of [`halt`](Self::halt) or by the policy.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// Returns the policy that stopped further starts, if one did.
    pub fn halted_by(&self) -> Option<HaltReason> {
        self.halted_by
    }

    /// Sets how many jobs there are in total, once that is known. Percentages refer to it.
    ///
    /// ```
    /// use minder::jobs::{HaltPolicy, HaltTrigger, Scheduler, SchedulerOptions, Threshold};
    ///
    /// // When a tenth of all jobs have failed.
    /// let halt = HaltPolicy::new(HaltTrigger::Failed, Threshold::Percent(10));
    /// let mut scheduler: Scheduler<&str> = Scheduler::new(SchedulerOptions::new().halt(Some(halt)));
    /// scheduler.set_total(Some(50));
    /// assert!(!scheduler.is_halted());
    /// ```
    pub fn set_total(&mut self, total: Option<u64>) {
        self.total = total;
    }

    /// Changes how many jobs may run at once, at least one. Running jobs continue.
    ///
    /// ```
    /// use minder::jobs::{NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new());
    /// let now = Instant::now();
    /// for job in ["a", "b", "c"] {
    ///     scheduler.submit(job, 0);
    /// }
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "a")));
    /// assert_eq!(scheduler.next(now), NextAction::Full);
    /// scheduler.set_max_running(2);
    /// assert!(matches!(scheduler.next(now), NextAction::Start(_, "b")));
    /// scheduler.set_max_running(3);
    /// scheduler.set_paused(true);
    /// assert_eq!(scheduler.next(now), NextAction::Paused);
    /// ```
    pub fn set_max_running(&mut self, max_running: usize) {
        self.config.max_running = max_running;
    }

    /// Starts no jobs while `paused`. Running jobs continue, and [`NextAction::Finished`] is still
    /// returned.
    pub fn set_paused(&mut self, paused: bool) {
        self.paused = paused;
    }

    /// Returns whether a failure of this attempt, which runs, would be final for its job.
    ///
    /// The answer stays valid. A job of which this returned `false` does not count as failed if the
    /// scheduler is halted in between. It is dropped, as waiting jobs are.
    ///
    /// ```
    /// use minder::jobs::{JobResult, NextAction, RetryPolicy, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let retry = RetryPolicy::new().max_attempts(2).backoff(Duration::from_secs(1));
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new().retry(retry));
    /// let now = Instant::now();
    /// scheduler.submit("job", 0);
    /// let NextAction::Start(first, job) = scheduler.next(now) else { panic!() };
    /// assert!(!scheduler.is_last_attempt(first));
    /// scheduler.finish(first, job, JobResult::Failure, now);
    ///
    /// let due = scheduler.next_retry().expect("a retry waits");
    /// let NextAction::Start(second, _) = scheduler.next(due) else { panic!() };
    /// assert!(second.attempt == 2 && scheduler.is_last_attempt(second));
    /// ```
    pub fn is_last_attempt(&mut self, attempt: Attempt) -> bool {
        let is_last = self.halted || attempt.attempt >= self.config.retry.max_attempts;
        let slot = self.slots.get_mut(attempt.slot as usize - 1).and_then(Option::as_mut);
        let Some(running) = slot.filter(|running| running.is(attempt)) else { return is_last };
        running.retry_promised |= !is_last;
        !running.retry_promised
    }

    /// Returns the present counts.
    pub fn counts(&self) -> JobCounts {
        self.counts
    }

    /// Returns whether no job runs and none will.
    pub fn is_exhausted(&self) -> bool {
        self.counts.running == 0 && self.is_finished()
    }

    /// Returns whether no more jobs will start. Some may still run.
    pub fn is_finished(&self) -> bool {
        self.halted || (self.closed && self.is_idle())
    }

    /// Returns what to do now. A job that is returned counts as running until
    /// [`finish`](Self::finish) or [`requeue`](Self::requeue).
    pub fn next(&mut self, now: Instant) -> NextAction<J> {
        if self.is_finished() {
            return NextAction::Finished;
        }
        if self.counts.running >= self.config.max_running.max(1) as u64 {
            return NextAction::Full;
        }
        if self.paused {
            let may_start = self.has_waiting() || self.next_retry().is_some_and(|at| at <= now);
            // If no job waits, there may be none left. Asking for one more shows that.
            return if self.closed || may_start { NextAction::Paused } else { self.empty(now) };
        }
        if let Some(at) = self.not_before.filter(|at| now < *at) {
            return if self.closed || self.has_waiting() { NextAction::Later(at) } else { self.empty(at) };
        }
        let Some(Pending { number, attempt, cost, key, job }) = self.pop_ready(now) else {
            return self.nothing_ready(now);
        };
        NextAction::Start(self.start(number, attempt, cost, key, now), job)
    }

    /// Returns what to do while no job is ready to start.
    fn nothing_ready(&self, now: Instant) -> NextAction<J> {
        if self.keys.as_ref().is_some_and(|keys| keys.is_full()) {
            return NextAction::Full;
        }
        let first_start = if self.has_waiting() { self.first_start_at } else { None };
        match [first_start, self.next_retry()].into_iter().flatten().min() {
            Some(at) if self.closed || first_start.is_some() => NextAction::Later(at),
            _ => self.empty(now),
        }
    }

    /// Returns what to do while no job waits except for its next attempt, which starts at `earliest` or
    /// later.
    fn empty(&self, earliest: Instant) -> NextAction<J> {
        self.next_retry().map_or(NextAction::Empty, |at| NextAction::EmptyUntil(at.max(earliest)))
    }

    /// Submits a job of no cost and starts it, right after [`next`](Self::next) returned
    /// [`NextAction::Empty`]. The scheduler has no delay and is not paused.
    pub(super) fn submit_and_start(&mut self, now: Instant) -> Attempt {
        self.counts.submitted += 1;
        self.start(self.counts.submitted, 1, 0, None, now)
    }

    fn start(&mut self, job: u64, attempt: u32, cost: u64, key: Option<u64>, now: Instant) -> Attempt {
        let running = Some(Running { job, cost, key, attempt, retry_promised: false });
        let slot = if let Some(Reverse(slot)) = self.free_slots.pop() {
            self.slots[slot as usize - 1] = running;
            slot
        } else {
            self.slots.push(running);
            self.slots.len() as u32
        };
        if !self.config.delay.is_zero() {
            self.not_before = now.checked_add(self.config.delay.min(DELAY_MAX));
        }
        if attempt == 1 && !self.config.start_interval.is_zero() {
            let due = self.first_start_at.unwrap_or(now).max(now.checked_sub(LATENESS_MAX).unwrap_or(now));
            self.first_start_at = due.checked_add(self.config.start_interval.min(DELAY_MAX));
        }
        self.counts.running += 1;
        self.counts.retried += u64::from(attempt > 1);
        Attempt { job, attempt, slot }
    }

    /// Returns when the next retry is due, if there is one.
    pub fn next_retry(&self) -> Option<Instant> {
        self.retries.peek().map(|Reverse(retry)| retry.0)
    }

    /// Puts a job back that could not be started now. It is the first in the queue again.
    ///
    /// # Panics
    /// As [`finish`](Self::finish).
    ///
    /// ```
    /// use minder::jobs::{NextAction, Scheduler, SchedulerOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut scheduler = Scheduler::new(SchedulerOptions::new());
    /// scheduler.submit("a", 0);
    /// scheduler.submit("b", 0);
    /// let NextAction::Start(attempt, job) = scheduler.next(Instant::now()) else { panic!() };
    /// scheduler.requeue(attempt, job); // no process is free at present
    /// assert!(matches!(scheduler.next(Instant::now()), NextAction::Start(_, "a")));
    /// ```
    pub fn requeue(&mut self, attempt: Attempt, job: J) {
        let Running { cost, key, .. } = self.free_slot(attempt);
        self.counts.retried -= u64::from(attempt.attempt > 1);
        // A start that did not happen causes no delay. The delay before it has passed.
        self.not_before = None;
        if attempt.attempt == 1 {
            self.first_start_at =
                self.first_start_at.and_then(|at| at.checked_sub(self.config.start_interval));
        }
        if let (Some(keys), Some(key)) = (&mut self.keys, key) {
            keys.take_back(key);
        }
        if !self.halted {
            self.fifo.push_front(Pending { number: attempt.job, attempt: attempt.attempt, cost, key, job });
        }
    }

    /// Records the result of an attempt. Returns whether the caller has to kill the running jobs.
    ///
    /// # Panics
    /// If the attempt does not run: its result was recorded before, or it was put back, or another
    /// scheduler started it.
    #[track_caller]
    pub fn finish(&mut self, attempt: Attempt, job: J, result: JobResult, now: Instant) -> bool {
        let Some(succeeded) = self.end_attempt(attempt, job, result, now) else { return false };
        if self.dependencies.are_used() {
            self.record_result(attempt.job, succeeded);
        }
        self.check_halt()
    }

    /// Records a success as [`finish`](Self::finish) does, except that the jobs that depend on it start
    /// after [`release`](Self::release).
    pub(super) fn finish_held(&mut self, attempt: Attempt, job: J, now: Instant) {
        self.end_attempt(attempt, job, JobResult::Success, now);
        self.check_halt();
    }

    /// Lets the jobs start that depend on this job, if its success was recorded by
    /// [`finish_held`](Self::finish_held).
    pub(super) fn release(&mut self, number: u64) {
        self.record_result(number, true);
    }

    /// Ends an attempt. Returns whether its job succeeded, or `None` if the job runs again or is dropped.
    #[track_caller]
    fn end_attempt(&mut self, attempt: Attempt, job: J, result: JobResult, now: Instant) -> Option<bool> {
        let Running { cost, key, retry_promised, .. } = self.free_slot(attempt);
        if let (Some(keys), Some(key)) = (&mut self.keys, key)
            && let Some(next) = keys.end(key)
        {
            self.fifo.push_front(next);
        }
        if result == JobResult::Requeue {
            if !self.halted {
                self.counts.retried -= u64::from(attempt.attempt > 1);
                self.queue_last(Pending { number: attempt.job, attempt: attempt.attempt, cost, key, job });
            }
            return None;
        }
        let may_retry = result == JobResult::Failure && attempt.attempt < self.config.retry.max_attempts;
        if may_retry && self.halted && retry_promised {
            return None;
        }
        if may_retry && !self.halted {
            let pending = Pending { number: attempt.job, attempt: attempt.attempt + 1, cost, key, job };
            let delay = self.config.retry.backoff.delay(attempt.attempt, &mut self.random);
            let at = now.checked_add(delay).unwrap_or(now);
            self.retries.push(Reverse(DelayedRetry(at, pending)));
            return None;
        }
        let succeeded = result == JobResult::Success;
        if succeeded {
            self.counts.succeeded += 1;
        } else {
            self.counts.failed += 1;
        }
        Some(succeeded)
    }

    /// Frees the slot of a running attempt.
    #[track_caller]
    fn free_slot(&mut self, attempt: Attempt) -> Running {
        let slot = self.slots.get_mut(attempt.slot as usize - 1);
        let Some(running) = slot.and_then(|slot| slot.take_if(|running| running.is(attempt))) else {
            let Attempt { job, attempt, .. } = attempt;
            panic!("attempt {attempt} of job {job} does not run: its result was recorded, or it was put back")
        };
        self.counts.running -= 1;
        self.free_slots.push(Reverse(attempt.slot));
        running
    }

    /// Halts if the policy asks for it now. Returns whether the caller has to kill the running jobs.
    fn check_halt(&mut self) -> bool {
        if self.halted {
            return false;
        }
        let Some(halt) = self.config.halt else { return false };
        let JobCounts { succeeded, failed, .. } = self.counts;
        let finished = succeeded + failed;
        let count = match halt.on {
            HaltTrigger::Failed => failed,
            HaltTrigger::Succeeded => succeeded,
            HaltTrigger::Finished => finished,
        };
        let reached = match (halt.at, self.total) {
            (Threshold::Count(threshold), _) => count >= threshold,
            (Threshold::Percent(percent), Some(total)) => is_share(count, percent, total),
            (Threshold::Percent(percent), None) => {
                halt.on != HaltTrigger::Finished
                    && finished >= PERCENT_MIN
                    && is_share(count, percent, finished)
            }
        };
        if count == 0 || !reached {
            return false;
        }
        self.halt();
        self.halted_by = Some(HaltReason { on: halt.on, now: halt.now });
        halt.now
    }

    /// Returns whether a job waits that could start at once.
    pub(super) fn has_waiting(&self) -> bool {
        !self.fifo.is_empty() || !self.by_cost.is_empty()
    }

    /// Returns whether no job waits, for its turn, for a retry or for a job that runs.
    fn is_idle(&self) -> bool {
        // A job that waits for others depends on one that waits or runs, or that was not released.
        let waits_for_key = self.keys.as_ref().is_some_and(|keys| keys.has_waiting());
        !self.has_waiting() && self.retries.is_empty() && !self.dependencies.has_blocked() && !waits_for_key
    }

    fn queue(&mut self, pending: Pending<J>) {
        match self.config.order {
            QueueOrder::Fifo => self.fifo.push_back(pending),
            QueueOrder::ShortestFirst => self.by_cost.push(Ranked(u64::MAX - pending.cost, pending)),
            QueueOrder::LongestFirst => self.by_cost.push(Ranked(pending.cost, pending)),
            QueueOrder::Random => self.by_cost.push(Ranked(self.random.draw(), pending)),
        }
    }

    /// Queues a job behind those that wait now.
    fn queue_last(&mut self, pending: Pending<J>) {
        match self.config.order {
            QueueOrder::Fifo => self.fifo.push_back(pending),
            _ => self.by_cost.push(Ranked(0, pending)),
        }
    }

    /// Takes the next job that may start now. Those whose key has no room are kept until it has.
    fn pop_ready(&mut self, now: Instant) -> Option<Pending<J>> {
        loop {
            let pending = self.pop_due(now)?;
            let (Some(keys), Some(key)) = (&mut self.keys, pending.key) else { return Some(pending) };
            match keys.admit(key, pending) {
                Admission::Start(pending) => return Some(pending),
                Admission::Kept => (),
                Admission::Full(pending) => {
                    self.fifo.push_front(pending);
                    return None;
                }
            }
        }
    }

    /// Takes the next job whose time has come.
    fn pop_due(&mut self, now: Instant) -> Option<Pending<J>> {
        if self.retries.peek().is_some_and(|Reverse(retry)| retry.0 <= now) {
            return self.retries.pop().map(|Reverse(retry)| retry.1);
        }
        if self.first_start_at.is_some_and(|at| now < at) {
            // One that was put back may be a later attempt.
            let is_later_attempt = self.fifo.front().is_some_and(|pending| pending.attempt > 1);
            return if is_later_attempt { self.fifo.pop_front() } else { None };
        }
        self.fifo.pop_front().or_else(|| self.by_cost.pop().map(|ranked| ranked.1))
    }

    /// Releases the jobs that wait for this job, or skips them and the jobs that wait for those.
    fn record_result(&mut self, number: u64, succeeded: bool) {
        let (ready, skipped) = self.dependencies.record(number, succeeded);
        for pending in ready {
            self.queue(pending);
        }
        self.counts.skipped += skipped;
    }
}

/// Returns whether `count` is at least this percentage of `all`.
fn is_share(count: u64, percent: u8, all: u64) -> bool {
    u128::from(count) * 100 >= u128::from(percent) * u128::from(all)
}

#[cfg(test)]
mod tests;
