//! Runs a case once, in its form.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use minder::jobs::Executor;
use minder::poll::{Events, Poller, Token};
use minder::{ChildId, ChildSet, ChildSetOptions, Command, ErrorKind, Event, SpawnOptions, Stdio};

use super::case::TurnaroundCase;
use super::computation::{Calibration, Work};
use super::form::Runner;
use super::measurement::TurnaroundMeasurement;
use crate::error::{Error, Result};
use crate::stopwatch::Stopwatch;

/// The longest wait for an event between two looks at the cancellation.
const CANCEL_INTERVAL: Duration = Duration::from_millis(100);

/// Runs cases of the test suite.
///
/// ```
/// use minder_bench::{Calibration, Form, Lengths, Order, Runner, TurnaroundBench, TurnaroundCase, Workload};
/// use std::sync::atomic::AtomicBool;
///
/// let child = minder::Command::new("a-program-that-calls-minder_bench::compute");
/// let bench = TurnaroundBench::new(Calibration::measure(), child);
/// let case = TurnaroundCase {
///     workload: Workload::Io,
///     form: Form { runner: Runner::Threads, degree: 4, order: Order::Longest },
///     lengths: Lengths::Equal,
///     bias_ms: 5,
///     count: 4,
/// };
/// let measurement = bench.measure(&case, &AtomicBool::new(false))?.expect("not cancelled");
/// assert!(measurement.elapsed.as_millis() >= 5 && measurement.turnaround >= 1.0);
/// # Ok::<(), minder_bench::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TurnaroundBench {
    calibration: Calibration,
    child: Command,
}

/// What the finishers of one run note, all on the caller's thread.
#[derive(Debug)]
struct Finishes {
    started: Instant,
    ends: Vec<Option<Instant>>,
    unresponsive: Duration,
}

impl Finishes {
    fn new(count: usize) -> Self {
        Self { started: Instant::now(), ends: vec![None; count], unresponsive: Duration::ZERO }
    }

    /// Notes that a computation is finished, and that the caller's thread was kept since `since`.
    fn finish(&mut self, index: usize, since: Instant) -> Instant {
        let now = Instant::now();
        self.ends[index] = Some(now);
        self.kept(since, now);
        now
    }

    fn kept(&mut self, since: Instant, until: Instant) {
        self.unresponsive = self.unresponsive.max(until.saturating_duration_since(since));
    }

    /// Returns the measurement; `None` if a computation is not finished: the run was cancelled.
    fn into_measurement(self, case: &TurnaroundCase, cpu: Duration) -> Option<TurnaroundMeasurement> {
        let ends: Vec<Instant> = self.ends.into_iter().collect::<Option<_>>()?;
        let since_start = |end: &Instant| end.saturating_duration_since(self.started);
        let relative = |(index, end)| since_start(end).as_secs_f64() / case.length(index).as_secs_f64();
        let turnarounds = ends.iter().enumerate().map(relative).collect();
        let elapsed = ends.iter().map(since_start).max().unwrap_or_default();
        Some(TurnaroundMeasurement::new(elapsed, turnarounds, self.unresponsive, cpu))
    }
}

impl TurnaroundBench {
    /// Makes a bench. Its children run `child`, with two more arguments: those of
    /// [`compute`](super::compute).
    #[must_use]
    pub fn new(calibration: Calibration, child: Command) -> Self {
        Self { calibration, child }
    }

    /// Runs a case once, with the calling thread as the caller's. Returns `None` if it was cancelled: a
    /// computation ends soon after.
    ///
    /// # Errors
    /// `Unsupported` for timers that are to compute; `Exhausted` if fewer threads than the degree can be
    /// started; those of starting children and of waiting.
    pub fn measure(
        &self,
        case: &TurnaroundCase,
        is_cancelled: &AtomicBool,
    ) -> Result<Option<TurnaroundMeasurement>> {
        let stopwatch = Stopwatch::start();
        let mut finishes = Finishes::new(case.count);
        let mut children_cpu = Duration::ZERO;
        match case.form.runner {
            Runner::Serial => self.serial(case, &mut finishes, is_cancelled),
            Runner::Threads => self.threads(case, &mut finishes, is_cancelled)?,
            Runner::Children => children_cpu = self.children(case, &mut finishes, is_cancelled)?,
            Runner::Timers => self.timers(case, &mut finishes, is_cancelled)?,
        }
        let cpu = stopwatch.elapsed().cpu + children_cpu;
        if is_cancelled.load(Ordering::Relaxed) {
            return Ok(None);
        }
        Ok(finishes.into_measurement(case, cpu))
    }

    /// Returns the computations in the order of starting.
    fn items(&self, case: &TurnaroundCase) -> Vec<(usize, Work)> {
        let order = case.start_order().into_iter();
        order.map(|index| (index, case.work(index, &self.calibration))).collect()
    }

    fn serial(&self, case: &TurnaroundCase, finishes: &mut Finishes, is_cancelled: &AtomicBool) {
        let mut since = finishes.started;
        let processor = |(_, work): &mut (usize, Work)| work.run(is_cancelled);
        let summary = Executor::serial().run(self.items(case), processor, |(index, _), _| {
            since = finishes.finish(index, since);
            go_on(is_cancelled)
        });
        summary.resume_first_panic();
    }

    fn threads(
        &self,
        case: &TurnaroundCase,
        finishes: &mut Finishes,
        is_cancelled: &AtomicBool,
    ) -> Result<()> {
        let processor = |(_, work): &mut (usize, Work)| {
            work.run(is_cancelled);
            Instant::now()
        };
        let degree = case.form.degree;
        let summary = Executor::new(degree).run(self.items(case), processor, |(index, _), ended| {
            if let Ok(ended) = ended {
                finishes.finish(index, ended);
            }
            go_on(is_cancelled)
        });
        summary.resume_first_panic();
        if summary.lacks_threads {
            let threads = degree.min(case.count);
            let text = format!("cannot start {threads} threads: the system allows {} now", summary.threads);
            return Err(Error::with_text(ErrorKind::Exhausted, text));
        }
        Ok(())
    }

    /// Returns the CPU time of the children.
    fn children(
        &self,
        case: &TurnaroundCase,
        finishes: &mut Finishes,
        is_cancelled: &AtomicBool,
    ) -> Result<Duration> {
        let mut set = ChildSet::new(ChildSetOptions::new())?;
        let mut waiting = self.items(case).into_iter();
        let mut running: HashMap<ChildId, usize> = HashMap::new();
        let mut cpu = Duration::ZERO;
        let mut since = finishes.started;
        while !is_cancelled.load(Ordering::Relaxed) {
            while running.len() < case.form.degree.max(1)
                && let Some((index, work)) = waiting.next()
            {
                running.insert(set.spawn(&self.command(work), SpawnOptions::new())?, index);
            }
            if running.is_empty() {
                break;
            }
            let now = Instant::now();
            finishes.kept(since, now);
            let event = set.next_event_deadline(Some(now + CANCEL_INTERVAL))?.into_event();
            since = Instant::now();
            let Some(Event::Done { child, outcome, .. }) = event else { continue };
            if !outcome.exit.status.success() {
                let reason = format!("a child ended with {}", outcome.exit.status);
                let program = Some(self.child.get_program());
                return Err(Error::new(ErrorKind::InvalidInput, "compute by", program, &reason));
            }
            cpu += outcome.exit.usage.map_or(Duration::ZERO, |usage| usage.user + usage.system);
            if let Some(index) = running.remove(&child) {
                finishes.finish(index, since);
            }
        }
        Ok(cpu)
    }

    fn command(&self, work: Work) -> Command {
        let mut command = self.child.clone();
        command.args(work.args()).stdin(Stdio::null()).die_with_parent(true);
        command
    }

    fn timers(
        &self,
        case: &TurnaroundCase,
        finishes: &mut Finishes,
        is_cancelled: &AtomicBool,
    ) -> Result<()> {
        let poller = Poller::new()?;
        for (index, work) in self.items(case) {
            let Work::Wait(time) = work else {
                let reason = "a timer does not compute";
                return Err(Error::new(ErrorKind::Unsupported, "run the computation", None, reason));
            };
            poller.add_timer(Token(index as u64), finishes.started + time, Duration::ZERO)?;
        }
        let mut events = Events::with_capacity(case.count);
        let mut left = case.count;
        while left > 0 && !is_cancelled.load(Ordering::Relaxed) {
            poller.wait(&mut events, Some(CANCEL_INTERVAL))?;
            for event in events.iter().filter(|event| event.expired) {
                let index = event.token.0 as usize;
                finishes.finish(index, finishes.started + case.length(index));
                left -= 1;
            }
        }
        Ok(())
    }
}

fn go_on(is_cancelled: &AtomicBool) -> ControlFlow<()> {
    if is_cancelled.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
