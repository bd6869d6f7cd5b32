//! The state machine: which job may start now. Time comes in as data.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet, VecDeque};
use std::time::{Duration, Instant};

use crate::random::Random;

/// From how many ended jobs on a share of them means something.
const PERCENT_MIN: u64 = 3;
/// The longest pause before another attempt: a year, far from where adding to the clock would fail.
const PAUSE_MAX: Duration = Duration::from_secs(365 * 86_400);

/// What a schedule goes by.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Rules {
    /// How many jobs may run at once; at least one does. Default: 1.
    pub degree: usize,
    /// Which of the jobs that could start does. Default: the first that was offered.
    pub order: Order,
    /// What happens to a job that failed. Default: nothing.
    pub retry: Retry,
    /// When to start no more jobs. Default: never.
    pub halt: Option<Halt>,
    /// How long the next start waits after a start. Default: not at all.
    pub delay: Duration,
    /// What the random numbers of [`Retry::jitter`] begin with: the same seed gives the same
    /// pauses. Default: 0.
    pub seed: u64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            degree: 1,
            order: Order::Given,
            retry: Retry::default(),
            halt: None,
            delay: Duration::ZERO,
            seed: 0,
        }
    }
}

/// Which of the jobs that could start does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Order {
    /// The first that was offered.
    #[default]
    Given,
    /// The one of the least cost: the best mean turnaround.
    Shortest,
    /// The one of the greatest cost: the best elapsed time.
    Longest,
}

/// Whether and when a job that failed starts again.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Retry {
    /// How often a job is started at most. Default: once.
    pub attempts_max: u32,
    /// How long to wait before the second attempt; the wait doubles with each further one. Default:
    /// not at all.
    pub pause: Duration,
    /// The longest wait, before `jitter`. Default: one minute.
    pub pause_max: Duration,
    /// From 0 to 1: each wait is multiplied by a random factor between 1 - `jitter` and 1 +
    /// `jitter`, so that jobs that failed together do not come again together. Default: 0.
    pub jitter: f64,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts_max: 1, pause: Duration::ZERO, pause_max: Duration::from_secs(60), jitter: 0.0 }
    }
}

/// When to start no more jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Halt {
    /// What is counted.
    pub on: HaltOn,
    /// At which count.
    pub at: Threshold,
    /// Whether the jobs that run are to be ended too.
    pub now: bool,
}

/// The count at which a [`Halt`] comes. It never comes before something was counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threshold {
    /// So many.
    Count(u64),
    /// So many of a hundred jobs, where [`Schedule::set_total`] has told how many there are. Else
    /// of those that have ended, once three have; [`HaltOn::Ended`] then never comes.
    Percent(u8),
}

/// Why and how the rules ended a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Halted {
    /// What was counted.
    pub on: HaltOn,
    /// Whether the jobs that ran were to be ended too.
    pub now: bool,
}

/// What a [`Halt`] counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HaltOn {
    /// Jobs that failed for good.
    Failed,
    /// Jobs that succeeded.
    Succeeded,
    /// Both.
    Ended,
}

/// How an attempt ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The job is done.
    Succeeded,
    /// It failed, and may be tried again.
    Failed,
    /// It failed, and trying again makes no sense.
    FailedForGood,
    /// It was ended for the sake of others, and runs again later, as if it had not been started.
    PutBack,
}

/// One attempt at one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Start {
    /// The job's number, from 1, in the order in which jobs were offered.
    pub job: u64,
    /// Which attempt this is, from 1.
    pub attempt: u32,
    /// The lowest number, from 1, that no other running job has.
    pub slot: u32,
}

/// What to do now.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<J> {
    /// Start this job.
    Start(Start, J),
    /// As many run as may.
    Full,
    /// Jobs wait, and none may start before [`hold`](Schedule::hold) is called again.
    Held,
    /// Offer more jobs, or wait for one to end.
    Empty,
    /// Nothing before this time.
    Later(Instant),
    /// Nothing more will start. Jobs may still run.
    Over,
}

/// How many jobs came to which end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Jobs that were offered.
    pub offered: u64,
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
/// use minder::exec::{Next, Rules, Schedule, Verdict};
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
pub struct Schedule<J> {
    rules: Rules,
    given: VecDeque<Pending<J>>,
    sorted: BinaryHeap<Ranked<J>>,
    again: BinaryHeap<Reverse<Again<J>>>,
    blocked: HashMap<u64, Blocked<J>>,
    /// The jobs that wait for a job, and the jobs that are not over: only with dependencies.
    waiters: HashMap<u64, Vec<u64>>,
    fates: HashMap<u64, bool>,
    slots: BinaryHeap<Reverse<u32>>,
    slots_made: u32,
    counts: Counts,
    closed: bool,
    halted: bool,
    halted_by: Option<Halted>,
    total: Option<u64>,
    held: bool,
    /// Before this time nothing starts.
    not_before: Option<Instant>,
    random: Random,
    /// Running jobs of which was said that they will be tried again if they fail.
    promised: HashSet<u64>,
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
struct Again<J>(Instant, Pending<J>);

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
ordered!(Again, |again| (again.0, again.1.number));

impl<J> Schedule<J> {
    /// Makes an empty schedule.
    pub fn new(rules: Rules) -> Self {
        let random = Random::new(rules.seed);
        Self {
            rules,
            given: VecDeque::new(),
            sorted: BinaryHeap::new(),
            again: BinaryHeap::new(),
            blocked: HashMap::new(),
            waiters: HashMap::new(),
            fates: HashMap::new(),
            slots: BinaryHeap::new(),
            slots_made: 0,
            counts: Counts::default(),
            closed: false,
            halted: false,
            halted_by: None,
            total: None,
            held: false,
            not_before: None,
            random,
            promised: HashSet::new(),
        }
    }

    /// Adds a job that starts when the jobs `after` have succeeded, and returns its number. `cost`
    /// matters for orders by cost alone. A job that depends on one that failed is skipped.
    ///
    /// Ends of jobs are remembered once a dependency was named, and only for jobs that end later:
    /// name the jobs that others depend on with [`expect`](Self::expect), or offer dependents
    /// before their dependencies end.
    pub fn offer(&mut self, job: J, after: &[u64], cost: u64) -> u64 {
        self.counts.offered += 1;
        let number = self.counts.offered;
        let pending = Pending { number, attempt: 1, cost, job };
        if after.iter().any(|one| self.fates.get(one) == Some(&false)) {
            self.skip(number);
            return number;
        }
        let mut on = 0;
        for &one in after.iter().filter(|one| **one < number && self.fates.get(one) != Some(&true)) {
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
    pub fn expect(&mut self, number: u64) {
        self.waiters.entry(number).or_default();
    }

    /// Says that no more jobs will be offered.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Starts nothing more. What waits is forgotten.
    pub fn halt(&mut self) {
        self.halted = true;
        self.given.clear();
        self.sorted.clear();
        self.again.clear();
        self.blocked.clear();
    }

    /// Whether nothing more will start, by a call of [`halt`](Self::halt) or by the rules.
    pub fn is_halted(&self) -> bool {
        self.halted
    }

    /// By which rule nothing more will start, if it was a rule.
    pub fn halted_by(&self) -> Option<Halted> {
        self.halted_by
    }

    /// Says how many jobs there are in all, once that is known; percentages count from it.
    pub fn set_total(&mut self, total: Option<u64>) {
        self.total = total;
    }

    /// Changes how many jobs may run at once; at least one does. Those that run go on.
    pub fn set_degree(&mut self, degree: usize) {
        self.rules.degree = degree;
    }

    /// Starts nothing while `held`. Those that run go on, and [`Next::Over`] is still told.
    pub fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// Whether a failure of this attempt, which runs, would be the job's last word.
    ///
    /// The answer holds. A job of which it was said that it will be tried again is not counted as
    /// failed when a halt comes in between: it is forgotten, like all that wait when a halt
    /// comes.
    pub fn is_last_attempt(&mut self, start: Start) -> bool {
        let is_last = self.halted || start.attempt >= self.rules.retry.attempts_max;
        let is_last = is_last && !self.promised.contains(&start.job);
        if !is_last {
            self.promised.insert(start.job);
        }
        is_last
    }

    /// The numbers so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Whether nothing runs and nothing will.
    pub fn is_over(&self) -> bool {
        self.counts.running == 0 && self.is_finished()
    }

    /// Whether nothing more will start. Jobs may still run.
    pub fn is_finished(&self) -> bool {
        self.halted || (self.closed && self.is_idle())
    }

    /// What to do now. A job that is handed out counts as running until [`ended`](Self::ended) or
    /// [`put_back`](Self::put_back).
    pub fn next(&mut self, now: Instant) -> Next<J> {
        if self.is_finished() {
            return Next::Over;
        }
        if self.counts.running >= self.rules.degree.max(1) as u64 {
            return Next::Full;
        }
        if self.held {
            // Without a job that waits it may turn out that none is left: one more is asked for.
            return if self.closed || self.has_waiting() { Next::Held } else { Next::Empty };
        }
        if let Some(at) = self.not_before.filter(|at| now < *at) {
            return if self.closed || self.has_waiting() { Next::Later(at) } else { Next::Empty };
        }
        let Some(pending) = self.take(now) else {
            return match self.again.peek() {
                // Jobs may still be offered, and one that is there goes before one that comes again.
                Some(Reverse(again)) if self.closed => Next::Later(again.0),
                _ => Next::Empty,
            };
        };
        let slot = self.slots.pop().map_or(self.slots_made + 1, |Reverse(slot)| slot);
        self.slots_made = self.slots_made.max(slot);
        if !self.rules.delay.is_zero() {
            self.not_before = now.checked_add(self.rules.delay);
        }
        self.counts.running += 1;
        self.counts.retried += u64::from(pending.attempt > 1);
        Next::Start(Start { job: pending.number, attempt: pending.attempt, slot }, pending.job)
    }

    /// When the next job comes again, if one does.
    pub fn next_retry(&self) -> Option<Instant> {
        self.again.peek().map(|Reverse(again)| again.0)
    }

    /// Takes back a job that could not be started now, though it may later. It is first in line
    /// again.
    pub fn put_back(&mut self, start: Start, job: J) {
        self.free(start);
        self.counts.retried -= u64::from(start.attempt > 1);
        // What has not started delays nothing; what delayed it is past.
        self.not_before = None;
        if !self.halted {
            self.given.push_front(Pending { number: start.job, attempt: start.attempt, cost: 0, job });
        }
    }

    /// Takes the end of an attempt. Says whether the jobs that run are to be ended too.
    pub fn ended(&mut self, start: Start, job: J, verdict: Verdict, now: Instant) -> bool {
        self.free(start);
        let promised = self.promised.remove(&start.job);
        if verdict == Verdict::PutBack {
            if !self.halted {
                self.counts.retried -= u64::from(start.attempt > 1);
                self.given.push_back(Pending { number: start.job, attempt: start.attempt, cost: 0, job });
            }
            return false;
        }
        let again = verdict == Verdict::Failed && start.attempt < self.rules.retry.attempts_max;
        if again && self.halted && promised {
            return false;
        }
        if again && !self.halted {
            let pending = Pending { number: start.job, attempt: start.attempt + 1, cost: 0, job };
            let at = now.checked_add(self.pause(start.attempt)).unwrap_or(now);
            self.again.push(Reverse(Again(at, pending)));
            return false;
        }
        let succeeded = verdict == Verdict::Succeeded;
        self.counts.succeeded += u64::from(succeeded);
        self.counts.failed += u64::from(!succeeded);
        self.settle(start.job, succeeded);
        self.check_halt()
    }

    fn free(&mut self, start: Start) {
        self.counts.running -= 1;
        self.slots.push(Reverse(start.slot));
    }

    fn pause(&mut self, attempt: u32) -> Duration {
        let Retry { pause, pause_max, jitter, .. } = self.rules.retry;
        let pause = pause.saturating_mul(1 << (attempt - 1).min(30)).min(pause_max).min(PAUSE_MAX);
        if jitter > 0.0 {
            pause.mul_f64(1.0 + jitter.min(1.0) * (2.0 * self.random.fraction() - 1.0))
        } else {
            pause
        }
    }

    fn check_halt(&mut self) -> bool {
        let Some(halt) = self.rules.halt.filter(|_| !self.halted) else { return false };
        let Counts { succeeded, failed, .. } = self.counts;
        let count = match halt.on {
            HaltOn::Failed => failed,
            HaltOn::Succeeded => succeeded,
            HaltOn::Ended => succeeded + failed,
        };
        let ended = succeeded + failed;
        let reached = match (halt.at, self.total) {
            (Threshold::Count(most), _) => count >= most,
            (Threshold::Percent(percent), Some(total)) => is_share(count, percent, total),
            (Threshold::Percent(percent), None) => {
                halt.on != HaltOn::Ended && ended >= PERCENT_MIN && is_share(count, percent, ended)
            }
        };
        if count == 0 || !reached {
            return false;
        }
        self.halt();
        self.halted_by = Some(Halted { on: halt.on, now: halt.now });
        halt.now
    }

    /// Whether a job could start if one may.
    fn has_waiting(&self) -> bool {
        !self.given.is_empty() || !self.sorted.is_empty()
    }

    /// Whether nothing waits to start.
    fn is_idle(&self) -> bool {
        !self.has_waiting() && self.again.is_empty() && (self.blocked.is_empty() || self.counts.running == 0)
    }

    fn queue(&mut self, pending: Pending<J>) {
        match self.rules.order {
            Order::Given => self.given.push_back(pending),
            Order::Shortest => self.sorted.push(Ranked(u64::MAX - pending.cost, pending)),
            Order::Longest => self.sorted.push(Ranked(pending.cost, pending)),
        }
    }

    fn take(&mut self, now: Instant) -> Option<Pending<J>> {
        if self.again.peek().is_some_and(|Reverse(again)| again.0 <= now) {
            return self.again.pop().map(|Reverse(again)| again.1);
        }
        self.given.pop_front().or_else(|| self.sorted.pop().map(|ranked| ranked.1))
    }

    /// Releases the jobs that wait for this job, or skips them and all that wait for those.
    ///
    /// A work list, not a recursion: the depth of a chain of jobs is the caller's choice.
    fn settle(&mut self, number: u64, succeeded: bool) {
        let mut settled = vec![(number, succeeded)];
        while let Some((number, succeeded)) = settled.pop() {
            let Some(waiters) = self.waiters.remove(&number) else { continue };
            self.fates.insert(number, succeeded);
            for waiter in waiters {
                if succeeded {
                    self.release(waiter);
                } else if self.blocked.remove(&waiter).is_some() {
                    self.count_skipped(waiter);
                    settled.push((waiter, false));
                }
            }
        }
    }

    /// Counts one dependency less for a job; the last one queues it.
    fn release(&mut self, waiter: u64) {
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
        self.settle(number, false);
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
