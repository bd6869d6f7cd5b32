//! The state machine: which job may start now. Time comes in as data.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::random::Random;

/// From how many ended jobs on a share of them means something.
const PERCENT_MIN: u64 = 3;
/// The longest pause before another attempt: a year, far from where adding to the clock would fail.
const BACKOFF_MAX: Duration = Duration::from_secs(365 * 86_400);

/// What a schedule goes by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SchedulerConfig {
    /// How many jobs may run at once; at least one does. Default: 1.
    pub max_running: usize,
    /// Which of the jobs that could start does. Default: the first that was offered.
    pub order: QueueOrder,
    /// What happens to a job that failed. Default: nothing.
    pub retry: RetryPolicy,
    /// When to start no more jobs. Default: never.
    pub halt: Option<HaltPolicy>,
    /// How long the next start waits after a start. Default: not at all.
    pub delay: Duration,
    /// What the random numbers of [`RetryPolicy::jitter`] begin with: the same seed gives the same
    /// pauses. Default: 0.
    pub seed: u64,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        Self {
            max_running: 1,
            order: QueueOrder::Fifo,
            retry: RetryPolicy::default(),
            halt: None,
            delay: Duration::ZERO,
            seed: 0,
        }
    }
}

/// Which of the jobs that could start does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum QueueOrder {
    /// The first that was offered.
    #[default]
    Fifo,
    /// The one of the least cost: the best mean turnaround.
    ShortestFirst,
    /// The one of the greatest cost: the best elapsed time.
    LongestFirst,
}

/// Whether and when a job that failed starts again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct RetryPolicy {
    /// How often a job is started at most. Default: once.
    pub max_attempts: u32,
    /// How long to wait before the second attempt; the wait doubles with each further one. Default:
    /// not at all.
    pub backoff: Duration,
    /// The longest wait, before `jitter`. Default: one minute.
    pub max_backoff: Duration,
    /// From 0 to 1: each wait is multiplied by a random factor between 1 - `jitter` and 1 +
    /// `jitter`, so that jobs that failed together do not come again together. Default: 0.
    pub jitter: f64,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { max_attempts: 1, backoff: Duration::ZERO, max_backoff: Duration::from_secs(60), jitter: 0.0 }
    }
}

/// When to start no more jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HaltPolicy {
    /// What is counted.
    pub on: HaltTrigger,
    /// At which count.
    pub at: Threshold,
    /// Whether the jobs that run are to be ended too.
    pub now: bool,
}

/// The count at which a [`HaltPolicy`] comes. It never comes before something was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many.
    Count(u64),
    /// So many of a hundred jobs, where [`Scheduler::set_total`] has told how many there are. Else
    /// of those that have ended, once three have; [`HaltTrigger::Finished`] then never comes.
    Percent(u8),
}

/// Why and how the rules ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HaltReason {
    /// What was counted.
    pub on: HaltTrigger,
    /// Whether the jobs that ran were to be ended too.
    pub now: bool,
}

/// What a [`HaltPolicy`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltTrigger {
    /// Jobs that failed for good.
    Failed,
    /// Jobs that succeeded.
    Succeeded,
    /// Both.
    Finished,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobResult {
    /// The job is done.
    Success,
    /// It failed, and may be tried again.
    Failure,
    /// It failed, and trying again makes no sense.
    PermanentFailure,
    /// It was ended for the sake of others, and runs again later, as if it had not been started.
    Requeue,
}

/// One attempt at one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Attempt {
    /// The job's number, from 1, in the order in which jobs were offered.
    pub job: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The lowest number, from 1, that no other running job has.
    pub slot: u32,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum NextAction<J> {
    /// Start this job.
    Start(Attempt, J),
    /// As many run as may.
    Full,
    /// Jobs wait, and none may start before [`hold`](Scheduler::set_paused) is called again.
    Paused,
    /// Offer more jobs, or wait for one to end.
    Empty,
    /// Nothing before this time.
    Later(Instant),
    /// Nothing more will start. Jobs may still run.
    Finished,
}

/// How many jobs came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobCounts {
    /// Jobs that were offered.
    pub submitted: u64,
    /// Jobs that run.
    pub running: u64,
    /// Jobs that succeeded.
    pub succeeded: u64,
    /// Jobs that failed for good.
    pub failed: u64,
    /// Attempts after the first.
    pub retried: u64,
    /// Jobs that never ran, since one that they depend on failed.
    pub skipped: u64,
}

/// Decides which job starts when. `J` is whatever the driver needs to start one.
///
/// ```
/// use minder::jobs::{Next, Rules, Schedule, Verdict};
/// use std::time::Instant;
///
/// let mut schedule = Schedule::new(Rules::default());
/// let now = Instant::now();
/// schedule.offer("first", &[], 0);
/// schedule.offer("second", &[], 0);
/// let Next::Start(start, "first") = schedule.next(now) else { panic!() };
/// assert_eq!(schedule.next(now), Next::Full);
/// schedule.ended(start, "first", Verdict::Succeeded, now);
/// assert!(matches!(schedule.next(now), Next::Start(_, "second")));
/// ```
#[derive(Debug)]
pub struct Scheduler<J> {
    config: SchedulerConfig,
    fifo: VecDeque<Pending<J>>,
    by_cost: BinaryHeap<Ranked<J>>,
    retries: BinaryHeap<Reverse<DelayedRetry<J>>>,
    blocked: HashMap<u64, Blocked<J>>,
    /// The jobs that wait for a job, and the jobs that are not over: only with dependencies.
    waiters: HashMap<u64, Vec<u64>>,
    results: HashMap<u64, bool>,
    free_slots: BinaryHeap<Reverse<u32>>,
    slots_made: u32,
    counts: JobCounts,
    closed: bool,
    halted: bool,
    halted_by: Option<HaltReason>,
    total: Option<u64>,
    paused: bool,
    /// Before this time nothing starts.
    not_before: Option<Instant>,
    random: Random,
    /// Running jobs of which was said that they will be tried again if they fail.
    retry_promised: HashSet<u64>,
}

#[derive(Debug)]
struct Pending<J> {
    number: u64,
    attempt: u32,
    cost: u64,
    job: J,
}

#[derive(Debug)]
struct Blocked<J> {
    pending: Pending<J>,
    on: usize,
}

#[derive(Debug)]
struct Ranked<J>(u64, Pending<J>);

#[derive(Debug)]
struct DelayedRetry<J>(Instant, Pending<J>);

/// Ordered by a key alone; ties go to the earlier job.
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
ordered!(DelayedRetry, |again| (again.0, again.1.number));

impl<J> Scheduler<J> {
    /// Makes an empty schedule.
    pub fn new(config: SchedulerConfig) -> Self {
        let random = Random::new(config.seed);
        Self {
            config,
            fifo: VecDeque::new(),
            by_cost: BinaryHeap::new(),
            retries: BinaryHeap::new(),
            blocked: HashMap::new(),
            waiters: HashMap::new(),
            results: HashMap::new(),
            free_slots: BinaryHeap::new(),
            slots_made: 0,
            counts: JobCounts::default(),
            closed: false,
            halted: false,
            halted_by: None,
            total: None,
            paused: false,
            not_before: None,
            random,
            retry_promised: HashSet::new(),
        }
    }

    /// Adds a job that starts when the jobs `after` have succeeded, and returns its number. `cost`
    /// matters for orders by cost alone. A job that depends on one that failed is skipped.
    ///
    /// Ends of jobs are remembered once a dependency was named, and only for jobs that end later:
    /// name the jobs that others depend on with [`expect`](Self::track), or offer dependents
    /// before their dependencies end.
    pub fn submit(&mut self, job: J, after: &[u64], cost: u64) -> u64 {
        self.counts.submitted += 1;
        let number = self.counts.submitted;
        let pending = Pending { number, attempt: 1, cost, job };
        if after.iter().any(|one| self.results.get(one) == Some(&false)) {
            self.skip(number);
            return number;
        }
        let mut on = 0;
        for &one in after.iter().filter(|one| **one < number && self.results.get(one) != Some(&true)) {
            self.waiters.entry(one).or_default().push(number);
            on += 1;
        }
        if on == 0 {
            self.queue(pending);
        } else {
            self.blocked.insert(number, Blocked { pending, on });
        }
        number
    }

    /// Says that later jobs will depend on this one, so that its end is remembered.
    pub fn track(&mut self, number: u64) {
        self.waiters.entry(number).or_default();
    }

    /// Says that no more jobs will be offered.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Starts nothing more. What waits is forgotten.
    pub fn halt(&mut self) {
        self.halted = true;
        self.fifo.clear();
        self.by_cost.clear();
        self.retries.clear();
        self.blocked.clear();
    }

    /// Whether nothing more will start, by a call of [`halt`](Self::halt) or by the rules.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// By which rule nothing more will start, if it was a rule.
    pub fn halted_by(&self) -> Option<HaltReason> {
        self.halted_by
    }

    /// Says how many jobs there are in all, once that is known; percentages count from it.
    pub fn set_total(&mut self, total: Option<u64>) {
        self.total = total;
    }

    /// Changes how many jobs may run at once; at least one does. Those that run go on.
    pub fn set_max_running(&mut self, degree: usize) {
        self.config.max_running = degree;
    }

    /// Starts nothing while `held`. Those that run go on, and [`NextAction::Finished`] is still
    /// told.
    pub fn set_paused(&mut self, held: bool) {
        self.paused = held;
    }

    /// Whether a failure of this attempt, which runs, would be the job's last word.
    ///
    /// The answer holds. A job of which it was said that it will be tried again is not counted as
    /// failed when a halt comes in between: it is forgotten, like all that wait when a halt
    /// comes.
    pub fn is_last_attempt(&mut self, start: Attempt) -> bool {
        let is_last = self.halted || start.attempt >= self.config.retry.max_attempts;
        let is_last = is_last && !self.retry_promised.contains(&start.job);
        if !is_last {
            self.retry_promised.insert(start.job);
        }
        is_last
    }

    /// The numbers so far.
    pub fn counts(&self) -> JobCounts {
        self.counts
    }

    /// Whether nothing runs and nothing will.
    pub fn is_exhausted(&self) -> bool {
        self.counts.running == 0 && self.is_finished()
    }

    /// Whether nothing more will start. Jobs may still run.
    pub fn is_finished(&self) -> bool {
        self.halted || (self.closed && self.is_idle())
    }

    /// What to do now. A job that is handed out counts as running until [`ended`](Self::finish) or
    /// [`put_back`](Self::requeue).
    pub fn next(&mut self, now: Instant) -> NextAction<J> {
        if self.is_finished() {
            return NextAction::Finished;
        }
        if self.counts.running >= self.config.max_running.max(1) as u64 {
            return NextAction::Full;
        }
        if self.paused {
            // Without a job that waits it may turn out that none is left: one more is asked for.
            return if self.closed || self.has_waiting() { NextAction::Paused } else { NextAction::Empty };
        }
        if let Some(at) = self.not_before.filter(|at| now < *at) {
            return if self.closed || self.has_waiting() { NextAction::Later(at) } else { NextAction::Empty };
        }
        let Some(pending) = self.pop_ready(now) else {
            return match self.retries.peek() {
                // Jobs may still be offered, and one that is there goes before one that comes again.
                Some(Reverse(again)) if self.closed => NextAction::Later(again.0),
                _ => NextAction::Empty,
            };
        };
        let slot = self.free_slots.pop().map_or(self.slots_made + 1, |Reverse(slot)| slot);
        self.slots_made = self.slots_made.max(slot);
        if !self.config.delay.is_zero() {
            self.not_before = now.checked_add(self.config.delay);
        }
        self.counts.running += 1;
        self.counts.retried += u64::from(pending.attempt > 1);
        NextAction::Start(Attempt { job: pending.number, attempt: pending.attempt, slot }, pending.job)
    }

    /// When the next job comes again, if one does.
    pub fn next_retry(&self) -> Option<Instant> {
        self.retries.peek().map(|Reverse(again)| again.0)
    }

    /// Takes back a job that could not be started now, though it may later. It is first in line
    /// again.
    pub fn requeue(&mut self, start: Attempt, job: J) {
        self.free_slot(start);
        self.counts.retried -= u64::from(start.attempt > 1);
        // What has not started delays nothing; what delayed it is past.
        self.not_before = None;
        if !self.halted {
            self.fifo.push_front(Pending { number: start.job, attempt: start.attempt, cost: 0, job });
        }
    }

    /// Takes the end of an attempt. Says whether the jobs that run are to be ended too.
    pub fn finish(&mut self, start: Attempt, job: J, verdict: JobResult, now: Instant) -> bool {
        self.free_slot(start);
        let promised = self.retry_promised.remove(&start.job);
        if verdict == JobResult::Requeue {
            if !self.halted {
                self.counts.retried -= u64::from(start.attempt > 1);
                self.fifo.push_back(Pending { number: start.job, attempt: start.attempt, cost: 0, job });
            }
            return false;
        }
        let again = verdict == JobResult::Failure && start.attempt < self.config.retry.max_attempts;
        if again && self.halted && promised {
            return false;
        }
        if again && !self.halted {
            let pending = Pending { number: start.job, attempt: start.attempt + 1, cost: 0, job };
            let at = now.checked_add(self.backoff(start.attempt)).unwrap_or(now);
            self.retries.push(Reverse(DelayedRetry(at, pending)));
            return false;
        }
        let succeeded = verdict == JobResult::Success;
        self.counts.succeeded += u64::from(succeeded);
        self.counts.failed += u64::from(!succeeded);
        self.record_result(start.job, succeeded);
        self.check_halt()
    }

    fn free_slot(&mut self, start: Attempt) {
        self.counts.running -= 1;
        self.free_slots.push(Reverse(start.slot));
    }

    fn backoff(&mut self, attempt: u32) -> Duration {
        let RetryPolicy { backoff: pause, max_backoff: pause_max, jitter, .. } = self.config.retry;
        let pause = pause.saturating_mul(1 << (attempt - 1).min(30)).min(pause_max).min(BACKOFF_MAX);
        if jitter > 0.0 {
            pause.mul_f64(1.0 + jitter.min(1.0) * (2.0 * self.random.fraction() - 1.0))
        } else {
            pause
        }
    }

    fn check_halt(&mut self) -> bool {
        let Some(halt) = self.config.halt.filter(|_| !self.halted) else { return false };
        let JobCounts { succeeded, failed, .. } = self.counts;
        let count = match halt.on {
            HaltTrigger::Failed => failed,
            HaltTrigger::Succeeded => succeeded,
            HaltTrigger::Finished => succeeded + failed,
        };
        let ended = succeeded + failed;
        let reached = match (halt.at, self.total) {
            (Threshold::Count(most), _) => count >= most,
            (Threshold::Percent(percent), Some(total)) => is_share(count, percent, total),
            (Threshold::Percent(percent), None) => {
                halt.on != HaltTrigger::Finished && ended >= PERCENT_MIN && is_share(count, percent, ended)
            }
        };
        if count == 0 || !reached {
            return false;
        }
        self.halt();
        self.halted_by = Some(HaltReason { on: halt.on, now: halt.now });
        halt.now
    }

    /// Whether a job could start if one may.
    fn has_waiting(&self) -> bool {
        !self.fifo.is_empty() || !self.by_cost.is_empty()
    }

    /// Whether nothing waits to start.
    fn is_idle(&self) -> bool {
        !self.has_waiting()
            && self.retries.is_empty()
            && (self.blocked.is_empty() || self.counts.running == 0)
    }

    fn queue(&mut self, pending: Pending<J>) {
        match self.config.order {
            QueueOrder::Fifo => self.fifo.push_back(pending),
            QueueOrder::ShortestFirst => self.by_cost.push(Ranked(u64::MAX - pending.cost, pending)),
            QueueOrder::LongestFirst => self.by_cost.push(Ranked(pending.cost, pending)),
        }
    }

    fn pop_ready(&mut self, now: Instant) -> Option<Pending<J>> {
        if self.retries.peek().is_some_and(|Reverse(again)| again.0 <= now) {
            return self.retries.pop().map(|Reverse(again)| again.1);
        }
        self.fifo.pop_front().or_else(|| self.by_cost.pop().map(|ranked| ranked.1))
    }

    /// Releases the jobs that wait for this job, or skips them and all that wait for those.
    ///
    /// A work list, not a recursion: the depth of a chain of jobs is the caller's choice.
    fn record_result(&mut self, number: u64, succeeded: bool) {
        let mut settled = vec![(number, succeeded)];
        while let Some((number, succeeded)) = settled.pop() {
            let Some(waiters) = self.waiters.remove(&number) else { continue };
            self.results.insert(number, succeeded);
            for waiter in waiters {
                if succeeded {
                    self.unblock(waiter);
                } else if self.blocked.remove(&waiter).is_some() {
                    self.count_skipped(waiter);
                    settled.push((waiter, false));
                }
            }
        }
    }

    /// Counts one dependency less for a job; the last one queues it.
    fn unblock(&mut self, waiter: u64) {
        let Some(blocked) = self.blocked.get_mut(&waiter) else { return };
        blocked.on -= 1;
        if blocked.on == 0
            && let Some(blocked) = self.blocked.remove(&waiter)
        {
            self.queue(blocked.pending);
        }
    }

    fn skip(&mut self, number: u64) {
        self.count_skipped(number);
        self.record_result(number, false);
    }

    /// Counts a skipped job, and makes its end one that is remembered.
    fn count_skipped(&mut self, number: u64) {
        self.counts.skipped += 1;
        self.waiters.entry(number).or_default();
    }
}

/// Whether `count` is at least so many per cent of `all`.
fn is_share(count: u64, percent: u8, all: u64) -> bool {
    u128::from(count) * 100 >= u128::from(percent) * u128::from(all)
}

#[cfg(test)]
mod tests;
