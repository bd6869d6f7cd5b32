//! Decides whether one more job may start, from measurements.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};

pub(crate) use crate::admission::metrics::Metrics;

use crate::admission::metrics::LimitDecision;
use crate::conditions::Conditions;
use crate::conditions::Limit;
use crate::text::{format_bytes, os_error_text};

/// The time between two evaluations.
pub(crate) const PERIOD: Duration = Duration::from_secs(1);
/// The time for which the load of other processes may keep all jobs from running, before one starts
/// anyway.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// Why no job starts if the command of `--limit` exited with 1 or 2.
const REFUSED: &str = "refused by the --limit command";
/// The least time between two metrics of counters that are compared.
const SPAN_MIN: Duration = Duration::from_millis(500);

/// The jobs, as far as the policy needs them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Jobs {
    /// The number of running jobs, including suspended ones.
    pub(crate) running: usize,
    /// The number of suspended jobs.
    pub(crate) suspended: usize,
    /// `true` if a start waits for admission.
    pub(crate) wanted: bool,
}

/// The result of an evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Jobs may start.
    Start(Quota),
    /// No job starts until then.
    Wait(Instant),
    /// No job starts, and the youngest job is killed and requeued.
    Kill,
    /// No job starts, and this many jobs are suspended, the youngest first.
    Suspend(usize),
    /// No job starts, and the oldest suspended job is resumed.
    Resume,
}

/// The limits on job starts until the next evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    /// The most jobs that run at once.
    pub(crate) most: usize,
    /// The most jobs that start.
    pub(crate) starts: usize,
}

impl Quota {
    pub(super) const ALL: Self = Self { most: usize::MAX, starts: usize::MAX };

    fn up_to(self, most: usize) -> Self {
        Self { most: self.most.min(most), ..self }
    }
}

/// Decides from measurements. It has no thread, no clock and no children.
#[derive(Debug)]
pub(crate) struct AdmissionPolicy {
    conditions: Conditions,
    metrics: Box<dyn Metrics>,
    swaps: RateSample<minder_os::host_stats::SwapCounters, bool>,
    disks: RateSample<HashMap<String, Duration>, f64>,
    /// Since when other processes of the machine keep all jobs from running.
    idle_since: Option<Instant>,
    why: Option<String>,
    /// `true` if the command of `--limit` has decided once.
    has_decided: bool,
    failure: Option<String>,
    /// The lines that were reported; each text is reported once.
    reported: Vec<String>,
    unreported: Vec<String>,
}

/// The counters of the last useful reading, and what they showed in comparison with the ones
/// before.
#[derive(Debug)]
struct RateSample<T, V> {
    from: Option<(Instant, T)>,
    result: Option<V>,
}

impl<T, V> Default for RateSample<T, V> {
    fn default() -> Self {
        Self { from: None, result: None }
    }
}

impl<T, V> RateSample<T, V> {
    /// Takes new counters, and compares them with the old ones if those are old enough.
    fn take(&mut self, now: Instant, counters: T, compare: impl FnOnce(&T, &T, Duration) -> V) {
        match &self.from {
            None => self.from = Some((now, counters)),
            Some((then, before)) if now.saturating_duration_since(*then) >= SPAN_MIN => {
                self.result = Some(compare(before, &counters, now.saturating_duration_since(*then)));
                self.from = Some((now, counters));
            }
            Some(_) => (),
        }
    }
}

/// The result of one condition.
enum Constraint {
    Open(Quota),
    /// No job starts, for this reason. With `is_unbounded`, it is waited for without a time limit.
    Closed {
        why: String,
        is_unbounded: bool,
    },
    Kill,
}

impl AdmissionPolicy {
    /// Creates a policy and reads everything once that it will need.
    ///
    /// # Errors
    /// The operating system does not provide a measurement, or the machine has less memory than is
    /// required.
    pub(crate) fn new(conditions: Conditions, metrics: Box<dyn Metrics>) -> Result<Self> {
        let mut policy = Self {
            conditions,
            metrics,
            swaps: RateSample::default(),
            disks: RateSample::default(),
            idle_since: None,
            why: None,
            has_decided: false,
            failure: None,
            reported: Vec::new(),
            unreported: Vec::new(),
        };
        policy.check()?;
        Ok(policy)
    }

    fn check(&mut self) -> Result<()> {
        let Conditions { load, memfree, memsuspend, noswap, limit } = self.conditions.clone();
        let limit_memory = if let Some(Limit::Memory(size)) = limit { Some(size) } else { None };
        let sizes = [("--memfree", memfree), ("--memsuspend", memsuspend), ("--limit mem", limit_memory)];
        for (flag, size) in sizes {
            let Some(size) = size else { continue };
            let total = first_reading(flag, self.metrics.memory())?.total;
            if size > total {
                let size = format_bytes(size);
                let total = format_bytes(total);
                bail!("{flag}: {size} is more than the {total} that this machine or its control group has");
            }
        }
        if memsuspend.is_some() && !self.metrics.suspends() {
            bail!("`--memsuspend` is not supported on this system");
        }
        if load.is_some() {
            first_reading("--load", self.metrics.load())?;
        }
        if let Some(Limit::Load(_)) = limit {
            first_reading("--limit load", self.metrics.load())?;
        }
        if noswap {
            first_reading("--noswap", self.metrics.swaps())?;
        }
        if let Some(Limit::Io(_)) = limit {
            first_reading("--limit io", self.metrics.disks())?;
        }
        Ok(())
    }

    /// Returns `true` if each start is decided separately: then the policy is evaluated as soon as
    /// a start waits.
    pub(crate) fn asks_each_time(&self) -> bool {
        matches!(self.conditions.limit, Some(Limit::Command(_)))
    }

    /// Returns why no job starts, if none does: `load 9 of 8`.
    pub(crate) fn why(&self) -> Option<&str> {
        self.why.as_deref()
    }

    /// Takes the reason why no job can ever start.
    pub(crate) fn take_failure(&mut self) -> Option<String> {
        self.failure.take()
    }

    /// Takes the lines to report since the last call. Each text is reported once.
    pub(crate) fn take_messages(&mut self) -> Vec<String> {
        std::mem::take(&mut self.unreported)
    }

    /// Measures and decides.
    pub(crate) fn evaluate(&mut self, now: Instant, jobs: Jobs) -> Decision {
        self.why = None;
        if let Some(decision) = self.check_suspension(now, jobs) {
            return decision;
        }
        let mut quota = Quota::ALL;
        let mut closed = None;
        let mut is_unbounded_wait = false;
        for constraint in self.conditions_except_command(now, jobs) {
            match constraint {
                Constraint::Open(narrower) => quota = quota.up_to(narrower.most),
                Constraint::Kill => return self.kill("too little memory is free"),
                Constraint::Closed { why, is_unbounded } => {
                    is_unbounded_wait |= is_unbounded;
                    closed.get_or_insert(why);
                }
            }
        }
        if let Some(why) = closed {
            if jobs.running > 0 || is_unbounded_wait {
                self.idle_since = None;
                return self.wait(now, why);
            }
            if now.saturating_duration_since(*self.idle_since.get_or_insert(now)) < PATIENCE {
                return self.wait(now, why);
            }
            quota = Quota { most: 1, starts: 1 };
        }
        match self.command(quota, jobs) {
            Constraint::Kill if jobs.running > 0 => self.kill(REFUSED),
            Constraint::Kill => self.wait(now, REFUSED.to_owned()),
            Constraint::Closed { why, .. } => self.wait(now, why),
            Constraint::Open(quota) => {
                if quota.starts > 0 {
                    self.idle_since = None;
                }
                Decision::Start(quota)
            }
        }
    }

    fn wait(&mut self, now: Instant, why: String) -> Decision {
        self.why = Some(why);
        Decision::Wait(now + PERIOD)
    }

    fn kill(&mut self, why: &str) -> Decision {
        self.why = Some(why.to_owned());
        Decision::Kill
    }

    /// Evaluates `--memsuspend` for running jobs. At least one job always runs. While a job is
    /// suspended, none starts.
    fn check_suspension(&mut self, now: Instant, jobs: Jobs) -> Option<Decision> {
        let size = self.conditions.memsuspend?;
        let free = self.free_memory("--memsuspend")?;
        let active = jobs.running.saturating_sub(jobs.suspended);
        if jobs.suspended > 0 && (active == 0 || free >= size.saturating_mul(2)) {
            self.why = Some("resuming suspended jobs".to_owned());
            return Some(Decision::Resume);
        }
        if free >= size.saturating_mul(2) || active == 0 {
            return None;
        }
        let why = format!("{} of memory free", format_bytes(free));
        if active == 1 {
            return Some(self.wait(now, why));
        }
        self.why = Some(why);
        Some(Decision::Suspend(if free < size { active - 1 } else { 1 }))
    }

    /// Evaluates `--memsuspend` for starts. One job may always run, others only if none would be
    /// suspended.
    fn limit_to_one(&mut self, size: u64) -> Option<Constraint> {
        let short = self.free_memory("--memsuspend")? < size.saturating_mul(2);
        short.then_some(Constraint::Open(Quota::ALL.up_to(1)))
    }

    /// Evaluates all conditions except a `--limit` command, which is only run when they allow a
    /// start.
    fn conditions_except_command(&mut self, now: Instant, jobs: Jobs) -> Vec<Constraint> {
        let Conditions { load, memfree, memsuspend, noswap, limit } = self.conditions.clone();
        let mut constraints = Vec::new();
        if let Some(size) = memfree {
            constraints.extend(self.memory("--memfree", size, jobs));
        }
        if let Some(size) = memsuspend {
            constraints.extend(self.limit_to_one(size));
        }
        if let Some(most) = load {
            constraints.extend(self.load("--load", most, jobs));
        }
        if noswap {
            constraints.extend(self.swapping(now));
        }
        match limit {
            Some(Limit::Memory(size)) => constraints.extend(self.memory("--limit mem", size, jobs)),
            Some(Limit::Load(most)) => constraints.extend(self.load("--limit load", most, jobs)),
            Some(Limit::Io(most)) => constraints.extend(self.disks(now, most, jobs)),
            Some(Limit::Command(_)) | None => (),
        }
        constraints
    }

    /// Evaluates a condition on free memory. Each job may take as much memory as must be free, so
    /// the free memory limits how many start.
    fn memory(&mut self, flag: &str, size: u64, jobs: Jobs) -> Option<Constraint> {
        let free = self.free_memory(flag)?;
        if free < size / 2 && jobs.running > 1 {
            return Some(Constraint::Kill);
        }
        if free < size {
            let why = format!("{} of memory free", format_bytes(free));
            return Some(Constraint::Closed { why, is_unbounded: true });
        }
        let more = usize::try_from(free / size.max(1)).unwrap_or(usize::MAX);
        Some(Constraint::Open(Quota::ALL.up_to(jobs.running.saturating_add(more))))
    }

    /// Evaluates a condition on the load. A job that has just started does not show in the load
    /// yet, so the distance from the limit bounds how many start.
    fn load(&mut self, flag: &str, most: f64, jobs: Jobs) -> Option<Constraint> {
        let load = self.metrics.load();
        let load = self.read(flag, load)?;
        if load >= most {
            return Some(Constraint::Closed {
                why: format!("load {load:.0} of {}", format_number(most)),
                is_unbounded: false,
            });
        }
        // Casting a float saturates at the bounds of the integer.
        let more = ((most - load).ceil() as usize).max(1);
        Some(Constraint::Open(Quota::ALL.up_to(jobs.running.saturating_add(more))))
    }

    fn swapping(&mut self, now: Instant) -> Option<Constraint> {
        let swaps = self.metrics.swaps();
        let swaps = self.read("--noswap", swaps)?;
        self.swaps.take(now, swaps, |before, after, _| {
            after.pages_in > before.pages_in && after.pages_out > before.pages_out
        });
        let why = match self.swaps.result {
            Some(false) => return None,
            Some(true) => "the machine swaps",
            None => "measuring swapping",
        };
        Some(Constraint::Closed { why: why.to_owned(), is_unbounded: false })
    }

    fn disks(&mut self, now: Instant, most: f64, jobs: Jobs) -> Option<Constraint> {
        let disks = self.metrics.disks();
        let disks = self.read("--limit io", disks)?;
        self.disks.take(now, disks, |before, after, span| {
            let busy =
                after.iter().map(|(name, time)| time.saturating_sub(*before.get(name).unwrap_or(time)));
            (busy.max().unwrap_or_default().as_secs_f64() / span.as_secs_f64() * 100.0).min(100.0)
        });
        let why = match self.disks.result {
            Some(busy) if busy < most => {
                return Some(Constraint::Open(Quota::ALL.up_to(jobs.running.saturating_add(1))));
            }
            Some(busy) => format!("a disk is busy for {busy:.0} % of the time"),
            None => "measuring the disks".to_owned(),
        };
        Some(Constraint::Closed { why, is_unbounded: false })
    }

    /// Runs the `--limit` command, but only when a start waits: it decides about that start alone.
    fn command(&mut self, quota: Quota, jobs: Jobs) -> Constraint {
        let Some(Limit::Command(command)) = &self.conditions.limit else { return Constraint::Open(quota) };
        if !jobs.wanted || jobs.running >= quota.most {
            return Constraint::Open(Quota { starts: 0, ..quota });
        }
        let (answer, message) = self.metrics.ask(command);
        let has_decided = std::mem::replace(&mut self.has_decided, true);
        match message {
            // It was never there: waiting for it would have no end.
            Some(line) if answer == LimitDecision::Missing && !has_decided => self.failure = Some(line),
            Some(line) => self.report(line),
            None => (),
        }
        match answer {
            LimitDecision::Start => Constraint::Open(Quota { starts: 1, ..quota }),
            LimitDecision::Wait | LimitDecision::Missing => {
                Constraint::Closed { why: REFUSED.to_owned(), is_unbounded: true }
            }
            LimitDecision::Kill => Constraint::Kill,
        }
    }

    fn free_memory(&mut self, flag: &str) -> Option<u64> {
        let memory = self.metrics.memory();
        self.read(flag, memory).map(|memory| memory.available)
    }

    /// Returns a measurement. One that fails during the run is reported once, and its condition no
    /// longer delays jobs.
    fn read<T>(&mut self, flag: &str, reading: io::Result<T>) -> Option<T> {
        match reading {
            Ok(reading) => Some(reading),
            Err(error) => {
                let reason = os_error_text(&error);
                self.report(format!("cannot check {flag}, which is ignored: {reason}"));
                None
            }
        }
    }

    fn report(&mut self, line: String) {
        if !self.reported.contains(&line) {
            self.reported.push(line.clone());
            self.unreported.push(line);
        }
    }
}

/// Returns a first measurement.
///
/// # Errors
/// The operating system does not support it, or it failed.
fn first_reading<T>(flag: &str, reading: io::Result<T>) -> Result<T> {
    match reading {
        Ok(reading) => Ok(reading),
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            bail!("`{flag}` is not supported on this system")
        }
        Err(error) => bail!("cannot check `{flag}`: {}", os_error_text(&error)),
    }
}

/// Formats a number, without decimals if it is whole.
fn format_number(number: f64) -> String {
    if number.fract() == 0.0 { format!("{number:.0}") } else { format!("{number:.2}") }
}
