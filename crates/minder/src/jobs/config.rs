//! The configuration of a scheduler: limits, order, retries, and the condition under which it
//! stops.

use std::time::Duration;

use crate::backoff::Backoff;

/// The configuration of a [`Scheduler`](super::Scheduler).
///
/// ```
/// use minder::jobs::{HaltPolicy, HaltTrigger, QueueOrder, RetryPolicy, Scheduler, SchedulerOptions};
/// use minder::jobs::Threshold;
/// use std::time::Duration;
///
/// let retry = RetryPolicy::new().max_attempts(3);
/// let config = SchedulerOptions::new()
///     .max_running(8)
///     .max_per_key(Some(2))
///     .order(QueueOrder::LongestFirst)
///     .delay(Duration::from_millis(10)) // between two starts
///     .start_interval(Duration::from_millis(100)) // ten new jobs a second
///     .halt(Some(HaltPolicy::new(HaltTrigger::Failed, Threshold::Count(3))))
///     .seed(1)
///     .retry(retry);
/// let scheduler: Scheduler<&str> = Scheduler::new(config);
/// # let _ = scheduler;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct SchedulerOptions {
    pub(crate) max_running: usize,
    pub(crate) order: QueueOrder,
    pub(crate) retry: RetryPolicy,
    pub(crate) halt: Option<HaltPolicy>,
    pub(crate) delay: Duration,
    pub(crate) start_interval: Duration,
    pub(crate) max_per_key: Option<u32>,
    pub(crate) seed: u64,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        Self {
            max_running: 1,
            order: QueueOrder::Fifo,
            retry: RetryPolicy::default(),
            halt: None,
            delay: Duration::ZERO,
            start_interval: Duration::ZERO,
            max_per_key: None,
            seed: 0,
        }
    }
}

impl SchedulerOptions {
    /// Returns the default configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets how many jobs may run at once; at least one does. Default: 1.
    pub fn max_running(mut self, count: usize) -> Self {
        self.max_running = count;
        self
    }

    /// Sets which of the waiting jobs starts next. Default: the one that was submitted first.
    pub fn order(mut self, order: QueueOrder) -> Self {
        self.order = order;
        self
    }

    /// Sets whether a failed job is retried. Default: never.
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.retry = policy;
        self
    }

    /// Sets when to stop starting jobs. Default: `None`, never.
    pub fn halt(mut self, policy: Option<HaltPolicy>) -> Self {
        self.halt = policy;
        self
    }

    /// Sets the time between the first starts of two jobs, at most a year: a rate. Later attempts at a job
    /// do not count, and wait for no turn. A start that is up to 10 ms late does not delay the next one.
    /// Default: zero.
    pub fn start_interval(mut self, interval: Duration) -> Self {
        self.start_interval = interval;
        self
    }

    /// Sets how many jobs with the same [key](super::Scheduler::submit_keyed) may run at once; at least one
    /// does. Default: `None`, any number.
    pub fn max_per_key(mut self, count: Option<u32>) -> Self {
        self.max_per_key = count;
        self
    }

    /// Sets the least time between two starts, at most a year. Default: zero.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Sets the seed of the random numbers for [`RetryPolicy::jitter`] and [`QueueOrder::Random`]: the
    /// same seed gives the same delays and the same order. Default: 0.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }
}

/// The rule by which one of the waiting jobs starts next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueOrder {
    /// The one that was submitted first.
    #[default]
    Fifo,
    /// The one with the least cost, which gives the best mean turnaround.
    ShortestFirst,
    /// The one with the greatest cost, which gives the best total time.
    LongestFirst,
    /// Any, by chance: the same [seed](SchedulerOptions::seed) gives the same order of the same jobs.
    Random,
}

/// The rule by which a failed job is retried.
///
/// ```
/// use minder::jobs::RetryPolicy;
/// use std::time::Duration;
///
/// // Five attempts, after 1 s, 2 s, 4 s and 5 s, each up to a tenth shorter or longer.
/// let retry = RetryPolicy::new()
///     .max_attempts(5)
///     .backoff(Duration::from_secs(1))
///     .max_backoff(Duration::from_secs(5))
///     .jitter(0.1);
/// # let _ = retry;
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct RetryPolicy {
    pub(crate) max_attempts: u32,
    pub(crate) backoff: Backoff,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        let backoff = Backoff { first: Duration::ZERO, max: Duration::from_secs(60), jitter: 0.0 };
        Self { max_attempts: 1, backoff }
    }
}

impl RetryPolicy {
    /// Returns the policy that retries no job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most attempts at one job, the first included. Default: 1.
    pub fn max_attempts(mut self, count: u32) -> Self {
        self.max_attempts = count;
        self
    }

    /// Sets the delay before the second attempt. It doubles with each further attempt. Default: zero.
    pub fn backoff(mut self, delay: Duration) -> Self {
        self.backoff.first = delay;
        self
    }

    /// Sets the longest delay, before [`jitter`](Self::jitter) is applied. Default: one minute.
    pub fn max_backoff(mut self, delay: Duration) -> Self {
        self.backoff.max = delay;
        self
    }

    /// Sets the jitter, from 0 to 1: each delay is multiplied by a random factor between 1 - `jitter`
    /// and 1 + `jitter`, so that jobs that failed together are not retried together. Default: 0.
    pub fn jitter(mut self, jitter: f64) -> Self {
        self.backoff.jitter = jitter;
        self
    }
}

/// The condition under which no more jobs are started.
///
/// ```
/// use minder::jobs::{HaltPolicy, HaltTrigger, SchedulerOptions, Threshold};
/// // At the third failure, and kill what runs.
/// let halt = HaltPolicy::new(HaltTrigger::Failed, Threshold::Count(3)).now(true);
/// assert_eq!(halt.threshold(), Threshold::Count(3));
/// let config = SchedulerOptions::new().halt(Some(halt));
/// # let _ = config;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct HaltPolicy {
    pub(super) on: HaltTrigger,
    pub(super) at: Threshold,
    pub(super) now: bool,
}

impl HaltPolicy {
    /// Returns the policy that starts no more jobs at this count of these jobs. Running jobs continue.
    pub fn new(on: HaltTrigger, at: Threshold) -> Self {
        Self { on, at, now: false }
    }

    /// Returns the count at which it takes effect.
    pub fn threshold(self) -> Threshold {
        self.at
    }

    /// Sets whether the running jobs are to be killed, too. Default: no.
    pub fn now(mut self, yes: bool) -> Self {
        self.now = yes;
        self
    }
}

/// The count at which a [`HaltPolicy`] takes effect. At least one job must have been counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Threshold {
    /// This number of jobs.
    Count(u64),
    /// This percentage of all jobs, if [`Scheduler::set_total`](super::Scheduler::set_total) was called.
    /// Otherwise of the finished jobs, once three have finished; [`HaltTrigger::Finished`] then never
    /// takes effect.
    Percent(u8),
}

/// The policy that stopped further starts.
///
/// ```
/// use minder::jobs::{HaltPolicy, HaltReason, HaltTrigger, JobResult, NextAction, Scheduler};
/// use minder::jobs::{SchedulerOptions, Threshold};
/// use std::time::Instant;
///
/// let halt = HaltPolicy::new(HaltTrigger::Failed, Threshold::Count(1));
/// let mut scheduler = Scheduler::new(SchedulerOptions::new().halt(Some(halt)));
/// scheduler.submit("job", 0);
/// let NextAction::Start(attempt, job) = scheduler.next(Instant::now()) else { panic!() };
/// scheduler.finish(attempt, job, JobResult::Failure, Instant::now());
/// let HaltReason { on, now, .. } = scheduler.halted_by().expect("the policy took effect");
/// assert!(on == HaltTrigger::Failed && !now && scheduler.is_halted());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HaltReason {
    /// The results that were counted.
    pub on: HaltTrigger,
    /// `true` if the running jobs were to be killed, too.
    pub now: bool,
}

/// The results that a [`HaltPolicy`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HaltTrigger {
    /// Jobs that failed and are not retried.
    Failed,
    /// Jobs that succeeded.
    Succeeded,
    /// Both.
    Finished,
}
