//! The main thread's part: signals, the bar, and the end of the loops.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder::{Events, Interest, Poller, ProcessGuard, Signal, Token};

use super::gates::{AdmissionMonitor, JobserverClient};
use super::roster::JobEntry;
use super::shared::RunContext;
use crate::exit;
use crate::report::{Progress, ProgressSnapshot, SlowJobs, count, try_message};

/// How often signals are looked at where they cannot be waited for.
const TICK: Duration = Duration::from_millis(100);

/// How long the loops may take when all jobs should be dead: longer than a set waits for one that
/// cannot be killed.
const LATE: Duration = Duration::from_secs(7);

/// Where the main thread sits.
#[derive(Debug)]
pub(super) struct MainLoop {
    poller: Poller,
    /// Loops that still work.
    workers: AtomicUsize,
    /// Loops whose jobs are not over.
    busy_workers: AtomicUsize,
    /// Whether only what waits is left to show: that takes as long as whoever reads it takes.
    draining: AtomicBool,
}

impl MainLoop {
    pub(super) fn new(loops: usize) -> minder::Result<Self> {
        let (poller, count) = (Poller::new()?, || AtomicUsize::new(loops));
        Ok(Self { poller, workers: count(), busy_workers: count(), draining: AtomicBool::new(false) })
    }

    /// Runs a loop and tells the main thread of its end, be it by a panic. Whoever ends last does
    /// the rest: the main thread takes signals meanwhile.
    pub(super) fn run_worker<T>(&self, work: impl FnOnce() -> T, rest: impl FnOnce()) -> T {
        struct ExitNotifier<'a>(&'a MainLoop);
        impl Drop for ExitNotifier<'_> {
            fn drop(&mut self) {
                self.0.workers.fetch_sub(1, Ordering::SeqCst);
                // It fails only for a descriptor that is not ours.
                let _ = self.0.poller.notify();
            }
        }
        let _leave = ExitNotifier(self);
        let done = work();
        if self.busy_workers.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.draining.store(true, Ordering::SeqCst);
            rest();
        }
        done
    }

    /// Expects one loop less.
    pub(super) fn drop_worker(&self) {
        self.busy_workers.fetch_sub(1, Ordering::SeqCst);
        self.workers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Serves until all loops have ended. Returns the signal that ended the run, if one did.
    pub(super) fn run(
        &self,
        guard: &mut ProcessGuard,
        shared: &RunContext<'_>,
        progress: &Progress,
        begun: Instant,
    ) -> Option<Signal> {
        let mut watch = SlowJobMonitor::new(shared);
        guard.set_orphaned_flag(Arc::clone(shared.shutdown_flag()));
        let heard = self.poller.add(&guard.signals(), Token(0), Interest::READABLE).is_ok();
        let (mut events, mut wishes) = (Events::new(), ShutdownState::default());
        while self.workers.load(Ordering::SeqCst) > 0 {
            let tick = (!heard).then_some(TICK);
            let wait = [tick, progress.due(begun.elapsed())].into_iter().flatten().min();
            let next = wait.and_then(|wait| Instant::now().checked_add(wait));
            let deadline = [next, self.give_up_at(&wishes), watch.due()].into_iter().flatten().min();
            if let Err(error) = self.poller.wait(&mut events, deadline) {
                shared.fail(error.to_string());
                break;
            }
            while let Some(signal) = guard.next_signal() {
                handle_signal(signal, guard, shared, &mut wishes);
            }
            if self.give_up_at(&wishes).is_some_and(|at| Instant::now() >= at) {
                force_exit(shared, &wishes);
            }
            let elapsed = begun.elapsed();
            progress.draw(elapsed, || view(shared, elapsed));
            watch.check(shared);
        }
        wishes.first
    }

    /// When no longer to wait. Whoever wished once only is to see all that ended.
    fn give_up_at(&self, wishes: &ShutdownState) -> Option<Instant> {
        wishes.give_up_at.filter(|_| wishes.killed || !self.draining.load(Ordering::SeqCst))
    }
}

/// How many running jobs a picture names at most.
const NAMED_MAX: usize = 8;

/// What the run looks like.
fn view(shared: &RunContext<'_>, elapsed: Duration) -> ProgressSnapshot {
    let counts = shared.pool.counts();
    let named = |(job, entry): (u64, JobEntry)| (shared.job_name(job, &entry), entry.begun.elapsed());
    let jobs = if shared.config.progress.jobs { NAMED_MAX } else { 1 };
    ProgressSnapshot {
        counts,
        total: shared.queue.total(),
        input_over: shared.queue.has_ended(),
        elapsed,
        running: shared.job_table.oldest(jobs).into_iter().map(named).collect(),
        running_count: counts.running,
        median: shared.job_table.median(),
        held: shared.admission.monitor.as_ref().and_then(AdmissionMonitor::why),
        suspended: false,
    }
}

/// Looks for jobs that run far longer than others, where somebody may want to know.
struct SlowJobMonitor {
    slow: SlowJobs,
    at: Option<Instant>,
}

/// How often it looks.
const LOOK: Duration = Duration::from_secs(5);

impl SlowJobMonitor {
    fn new(shared: &RunContext<'_>) -> Self {
        let wanted = shared.job_table.is_wanted() && !shared.config.quiet;
        let told = std::io::stderr().is_terminal() || shared.config.progress.jobs;
        Self { slow: SlowJobs::default(), at: (wanted && told).then(|| Instant::now() + LOOK) }
    }

    fn due(&self) -> Option<Instant> {
        self.at
    }

    fn check(&mut self, shared: &RunContext<'_>) {
        let now = Instant::now();
        if self.at.is_none_or(|at| at > now) {
            return;
        }
        self.at = (!self.slow.is_over()).then(|| now + LOOK);
        let jobs = shared.job_table.oldest(NAMED_MAX);
        let ages = jobs.iter().map(|(job, entry)| (*job, entry.begun.elapsed()));
        let name = |job: u64| {
            let its = jobs.iter().find(|(number, _)| *number == job);
            its.map(|(job, entry)| shared.job_name(*job, entry)).unwrap_or_default()
        };
        for line in self.slow.check(ages, shared.job_table.median(), name) {
            shared.sequencer.stdio.suspend_progress(|| try_message(&line));
        }
    }
}

/// What was wished so far.
#[derive(Debug, Default)]
struct ShutdownState {
    first: Option<Signal>,
    killed: bool,
    /// When the loops are no longer waited for: one may hang in a write to somebody who does not
    /// read.
    give_up_at: Option<Instant>,
}

/// The first wish to end asks the jobs, the second kills them, the third no longer waits for those
/// that cannot be killed.
fn handle_signal(signal: Signal, guard: &ProcessGuard, shared: &RunContext<'_>, wishes: &mut ShutdownState) {
    match signal {
        Signal::Interrupt | Signal::Terminate | Signal::Hangup if wishes.first.is_none() => {
            wishes.first = Some(signal);
            shared.shutdown_flag().store(true, Ordering::SeqCst);
            wishes.give_up_at = Instant::now().checked_add(shared.config.grace.saturating_add(LATE));
            let running = shared.pool.counts().running;
            shared.pool.cancel();
            if !shared.config.quiet {
                let jobs = count(running, "running job");
                let line = match minder::os::supports_graceful_termination() {
                    true => format!("{}: asked {jobs} to end; once more kills", name(signal)),
                    false => format!("{}: ended {jobs}", name(signal)),
                };
                shared.sequencer.stdio.try_suspend_progress(|| try_message(&line));
            }
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit if !wishes.killed => {
            wishes.first.get_or_insert(signal);
            wishes.killed = true;
            shared.shutdown_flag().store(true, Ordering::SeqCst);
            wishes.give_up_at = Some(Instant::now() + LATE);
            shared.pool.kill();
        }
        Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit => force_exit(shared, wishes),
        Signal::Stop => suspend_run(guard, shared),
        _ => (),
    }
}

/// How long a stop waits for jobs to stand still: a shell is not kept waiting by a loop that hangs
/// in a write.
const STOPPING: Duration = Duration::from_secs(1);

/// Ctrl-Z: the jobs stand still, then we do, and when we are let go on so are they.
fn suspend_run(guard: &ProcessGuard, shared: &RunContext<'_>) {
    shared.pool.suspend();
    let since = Instant::now();
    shared.pool.wait_suspended(since + STOPPING);
    // A shell's prompt does not stand within the picture.
    shared.sequencer.stdio.try_suspend_progress(|| guard.suspend_self());
    shared.job_table.add_suspended_time(since.elapsed());
    shared.pool.resume();
}

/// Ends without order: the guardians sweep whatever is left, and name what they cannot end.
fn force_exit(shared: &RunContext<'_>, wishes: &ShutdownState) -> ! {
    // Nothing is dropped here, and the build wants its tokens back.
    shared.admission.jobserver.iter().for_each(JobserverClient::give_back);
    std::process::exit(i32::from(match wishes.first {
        Some(Signal::Terminate) => exit::TERMINATED,
        _ => exit::INTERRUPTED,
    }))
}

fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Interrupt => "interrupted",
        Signal::Hangup => "hung up",
        _ => "told to end",
    }
}
