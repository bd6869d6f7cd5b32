//! The main thread while jobs run: it handles signals, offers snapshots, and waits for the worker
//! threads.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use minder::Signal;
use minder::guard::ProcessGuard;
use minder::poll::{Events, Interest, Poller, Token};

use crate::admission::AdmissionMonitor;
use crate::context::RunContext;
use crate::exit_status;
use crate::interrupt::{self, Answer};
use crate::notice::Notice;
use crate::observer::{RunningSnapshot, Snapshot};
use crate::outcome;
use crate::report::{RunEnd, RunReport, RunStats};

/// The interval at which the main thread checks for signals if the poller cannot wait for them, and
/// for jobs that have exited once the run was asked to end.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// The time for which a run that was asked to end waits for a reader that takes nothing, once no
/// process of a job is left. What it does not take is shown when the run is resumed; without a record
/// it is lost.
const READER_TIMEOUT: Duration = Duration::from_secs(7);
/// The time that the worker threads may take once no output waits for a reader any more, and the
/// time that the record of a run may take that does not wait for its worker threads.
const LAST_TIMEOUT: Duration = Duration::from_secs(1);
/// The time that the worker threads may take once all jobs should be dead: longer than a child set
/// waits for a child that cannot be killed.
const WORKER_EXIT_TIMEOUT: Duration = Duration::from_secs(7);
/// The age from which a job that has the terminal may handle Ctrl-C. With younger ones, a key would often
/// come when one has ended and the next has not begun.
const KEY_HANDLER_AGE: Duration = Duration::from_millis(100);
/// The longest time that a suspended run waits for its jobs to stop. A worker thread may be blocked
/// in a write, and the user's shell does not wait for that.
const SUSPEND_TIMEOUT: Duration = Duration::from_secs(1);

/// The state of the main loop.
///
/// The counters are atomics without a lock: a worker thread decrements `workers` as its last action
/// and then notifies the poller, so the main thread sees every change after it wakes. `draining` is
/// set before the last worker thread starts to write, and is only a hint for the deadline.
#[derive(Debug)]
pub(crate) struct MainLoop<'a> {
    poller: &'a Poller,
    /// The number of worker threads that have not ended.
    workers: AtomicUsize,
    /// The number of worker threads whose jobs have not all finished.
    busy_workers: AtomicUsize,
    /// Set when only waiting output is left to write. That may take as long as its reader takes something.
    draining: AtomicBool,
}

impl<'a> MainLoop<'a> {
    pub(crate) fn new(workers: usize, poller: &'a Poller) -> Self {
        Self {
            poller,
            workers: AtomicUsize::new(workers),
            busy_workers: AtomicUsize::new(workers),
            draining: AtomicBool::new(false),
        }
    }

    /// Runs a worker thread and notifies the main thread when it ends, even by a panic. The last
    /// worker thread also runs `write_rest`, so that the main thread keeps handling signals.
    pub(crate) fn run_worker<T>(&self, work: impl FnOnce() -> T, write_rest: impl FnOnce()) -> T {
        let _notifier = ExitNotifier(self);
        let done = work();
        if self.busy_workers.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.draining.store(true, Ordering::SeqCst);
            write_rest();
        }
        done
    }

    /// Expects one worker thread less: it could not be started.
    pub(crate) fn drop_worker(&self) {
        self.busy_workers.fetch_sub(1, Ordering::SeqCst);
        self.workers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Runs until all worker threads have ended. Returns the signal that ended the run, if one did.
    pub(crate) fn run(
        &self,
        guard: &mut ProcessGuard,
        context: &RunContext<'_>,
        started_at: Instant,
    ) -> Option<Signal> {
        guard.set_orphaned_flag(Arc::clone(context.status.shutdown_flag()));
        let is_registered = self.poller.add(&guard.signals(), Token(0), Interest::READABLE).is_ok();
        let mut events = Events::new();
        let mut shutdown = ShutdownState::default();
        while self.workers.load(Ordering::SeqCst) > 0 {
            let polls = !is_registered || shutdown.signal.is_some();
            let poll_interval = polls.then_some(POLL_INTERVAL);
            let next_snapshot = context.observer.next_snapshot(started_at.elapsed());
            let wait = [poll_interval, next_snapshot].into_iter().flatten().min();
            let next = wait.and_then(|wait| Instant::now().checked_add(wait));
            let deadline = [next, self.exit_deadline(context, &mut shutdown)].into_iter().flatten().min();
            if let Err(error) = self.poller.wait_deadline(&mut events, deadline) {
                context.fail(error.to_string());
                break;
            }
            let has_exited = context.status.take_terminal_job_exit();
            while let Some(signal) = guard.next_signal() {
                if signal != Signal::INT || !is_for_job(context, has_exited) {
                    if shutdown.signal.is_none() && is_for_coordinator(signal, guard, context, &mut shutdown)
                    {
                        continue;
                    }
                    handle_signal(signal, guard, context, &mut shutdown, started_at);
                }
            }
            if self.exit_deadline(context, &mut shutdown).is_some_and(|at| Instant::now() >= at) {
                stop_waiting(context, &mut shutdown, started_at);
            }
            let elapsed = started_at.elapsed();
            context.observer.snapshot(elapsed, &|names_max| snapshot(context, elapsed, names_max));
        }
        shutdown.signal.or(context.status.is_job_interrupted().then_some(Signal::INT))
    }

    /// Returns when the main thread stops waiting for the worker threads. After a single Ctrl-C it
    /// waits until all finished output is written, as long as the reader takes something.
    fn exit_deadline(&self, context: &RunContext<'_>, shutdown: &mut ShutdownState) -> Option<Instant> {
        let deadline = shutdown.deadline?;
        let has_abandoned = context.sequencer.stdio.is_abandoned();
        if shutdown.killed || has_abandoned || !self.waits_for_reader(context) {
            shutdown.drained_since = None;
            return Some(deadline);
        }
        let now = Instant::now();
        let written_at = now.checked_sub(context.sequencer.stdio.silence()).unwrap_or(now);
        Some(written_at.max(*shutdown.drained_since.get_or_insert(now)) + READER_TIMEOUT)
    }

    /// Returns `true` if only output is left to write. A job that has exited may not be read to its end
    /// before the reader takes something.
    fn waits_for_reader(&self, context: &RunContext<'_>) -> bool {
        self.draining.load(Ordering::SeqCst)
            || holds_output(context) && context.pool.counts().running <= context.status.unread() as u64
    }

    /// Waits until the readers have taken the last output and messages. A signal ends the process: all that
    /// is left to do is to exit. If a signal has ended the run, a reader that takes nothing ends it, too.
    pub(crate) fn wait_for_readers(
        &self,
        guard: &mut ProcessGuard,
        context: &RunContext<'_>,
        report: &RunReport,
    ) {
        let mut events = Events::new();
        let since = Instant::now();
        while context.sequencer.is_stalled() {
            let silence = context.sequencer.stdio.silence().min(since.elapsed());
            if matches!(report.end, RunEnd::Signal(_)) && silence >= READER_TIMEOUT {
                return;
            }
            let deadline = Instant::now() + POLL_INTERVAL;
            if self.poller.wait_deadline(&mut events, Some(deadline)).is_err() {
                return;
            }
            while let Some(signal) = guard.next_signal() {
                match signal {
                    Signal::TSTP => guard.suspend_self(),
                    Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                        let first = match report.end {
                            RunEnd::Signal(first) => first,
                            _ => signal,
                        };
                        exit_by(context, Some(first));
                    }
                    _ => (),
                }
            }
        }
    }
}

/// Decrements the number of worker threads when one ends.
struct ExitNotifier<'a>(&'a MainLoop<'a>);

impl Drop for ExitNotifier<'_> {
    fn drop(&mut self) {
        self.0.workers.fetch_sub(1, Ordering::SeqCst);
        // It fails only for an invalid descriptor.
        let _ = self.0.poller.notify();
    }
}

fn snapshot(context: &RunContext<'_>, elapsed: Duration, names_max: usize) -> Snapshot {
    let oldest = context.job_table.oldest(names_max);
    let mut counts = context.pool.counts();
    counts.running += context.queue.on_agents();
    if let Some(waiting) = &context.queue.on_agents {
        counts.succeeded += waiting.succeeded.load(Ordering::Relaxed);
        counts.failed += waiting.failed.load(Ordering::Relaxed);
    }
    Snapshot {
        counts,
        total: context.queue.total(),
        input_ended: context.queue.has_ended(),
        elapsed,
        running: oldest
            .into_iter()
            .map(|(job, entry)| RunningSnapshot {
                job,
                name: context.job_name(job, &entry),
                age: entry.started_at.elapsed(),
            })
            .collect(),
        median: context.job_table.median(),
        expected: context.expected,
        silence: context.sequencer.stdio.silence(),
        paused: context.admission.monitor.as_ref().and_then(AdmissionMonitor::why),
    }
}

/// The progress of a run that ends early.
#[derive(Debug, Default)]
struct ShutdownState {
    /// The first signal that asked the run to end.
    signal: Option<Signal>,
    /// Since when only output is left to write.
    drained_since: Option<Instant>,
    /// `true` if the jobs are being killed.
    killed: bool,
    /// `true` if a signal was to detach from the agents of the run, which lack input.
    has_refused: bool,
    /// The time at which the main thread stops waiting for worker threads: one may be blocked in a
    /// write that its reader does not accept.
    deadline: Option<Instant>,
}

/// Returns `true` if a job that has the terminal got Ctrl-C, too. It may handle it. Otherwise it dies, which
/// ends the run, as in a shell. `has_exited`: such a job has exited since signals were last read.
fn is_for_job(context: &RunContext<'_>, has_exited: bool) -> bool {
    // A job that lasts a moment does not handle the key: it had ended before, or dies of it. In this order:
    // the exit is noted before the job stops to count.
    context.config.control.tty
        && context.status.terminal_job_age() >= KEY_HANDLER_AGE
        && (context.pool.counts().running > 0 || has_exited || context.status.has_terminal_job_exited())
}

/// Handles a signal that does not end the agents of the run. Returns `false` for every other signal.
fn is_for_coordinator(
    signal: Signal,
    guard: &mut ProcessGuard,
    context: &RunContext<'_>,
    shutdown: &mut ShutdownState,
) -> bool {
    match interrupt::answer(signal, guard, context, shutdown.has_refused) {
        Answer::Cancel => return false,
        Answer::GoOn => (),
        Answer::Refused => shutdown.has_refused = true,
        Answer::Detach => {
            context.status.detach();
            shutdown.signal = Some(signal);
            shutdown.deadline = Instant::now().checked_add(WORKER_EXIT_TIMEOUT);
            context.pool.cancel();
        }
    }
    true
}

/// The first signal asks the jobs to end, the second kills them. The third does not wait for jobs that
/// cannot be killed; if output waits for a reader, it gives that up, and a moment later the worker threads.
fn handle_signal(
    signal: Signal,
    guard: &ProcessGuard,
    context: &RunContext<'_>,
    shutdown: &mut ShutdownState,
    started_at: Instant,
) {
    match signal {
        Signal::INT | Signal::TERM | Signal::HUP if shutdown.signal.is_none() => {
            shutdown.signal = Some(signal);
            context.status.shutdown_flag().store(true, Ordering::SeqCst);
            let patience = context.config.grace.saturating_add(WORKER_EXIT_TIMEOUT);
            shutdown.deadline = Instant::now().checked_add(patience);
            let running = context.pool.counts().running + context.queue.on_agents();
            context.pool.cancel();
            let asked = minder::os::supports_graceful_termination();
            context.observer.notice(&Notice::Interrupted { signal, running, asked });
        }
        Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT if !shutdown.killed => {
            shutdown.signal.get_or_insert(signal);
            shutdown.killed = true;
            context.status.shutdown_flag().store(true, Ordering::SeqCst);
            shutdown.deadline = Some(Instant::now() + WORKER_EXIT_TIMEOUT);
            context.pool.kill();
        }
        Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
            stop_waiting(context, shutdown, started_at);
        }
        Signal::TSTP => suspend_run(guard, context),
        Signal::WINCH if context.config.pty => {
            context.status.resizes.fetch_add(1, Ordering::SeqCst);
            context.pool.wake();
        }
        _ => (),
    }
}

/// Ctrl-Z: suspends the jobs, then this process. When it is resumed, it resumes the jobs.
fn suspend_run(guard: &ProcessGuard, context: &RunContext<'_>) {
    context.pool.suspend();
    let since = Instant::now();
    context.pool.wait_suspended(since + SUSPEND_TIMEOUT);
    // The shell's prompt must not appear within the progress display.
    context.observer.try_suspend_display(&mut || guard.suspend_self());
    context.job_table.add_suspended_time(since.elapsed());
    context.pool.resume();
}

/// Returns `true` if a reader holds up output: it takes nothing of what waits, or of what the kernel
/// forwards.
fn holds_output(context: &RunContext<'_>) -> bool {
    context.sequencer.is_stalled()
        || context.status.has_forwarded() && !context.sequencer.stdio.takes_output()
}

/// Ends the run without what its readers do not take, so that the worker threads can record what is
/// finished. If none of them waits for a reader, or has not ended a moment later, ends the process.
fn stop_waiting(context: &RunContext<'_>, shutdown: &mut ShutdownState, started_at: Instant) {
    let stdio = &context.sequencer.stdio;
    if stdio.is_abandoned() || !holds_output(context) {
        force_exit(context, shutdown, started_at);
    }
    if !context.recorder.is_kept() {
        context.observer.notice(&Notice::OutputLost);
    }
    stdio.abandon();
    context.pool.wake();
    let last = Instant::now() + LAST_TIMEOUT;
    // A job that has exited may have left processes that were asked to end. They keep their time.
    shutdown.deadline = shutdown.deadline.filter(|at| !shutdown.killed && *at > last).or(Some(last));
}

/// Ends the process, and waits for no worker thread. The guardians kill what is left, and name what they
/// cannot kill.
fn force_exit(context: &RunContext<'_>, shutdown: &ShutdownState, started_at: Instant) -> ! {
    thread::scope(|scope| {
        let (done, is_done) = mpsc::channel();
        let record = move || {
            // Agents are not descendants that guardians kill.
            if let (Some(coordinator), false) = (context.coordinator, context.status.is_detached()) {
                coordinator.kill();
            }
            record_end(context, shutdown.signal, started_at);
            let _ = done.send(());
        };
        // A worker thread that hangs may have locked what this one needs.
        if thread::Builder::new().spawn_scoped(scope, record).is_ok() {
            let _ = is_done.recv_timeout(LAST_TIMEOUT);
        }
        exit_by(context, shutdown.signal)
    })
}

/// Records and reports the end of a run whose worker threads have not ended. What they have counted is
/// missing.
fn record_end(context: &RunContext<'_>, signal: Option<Signal>, started_at: Instant) {
    // The jobs that have no event are cut off.
    let [failed, _] = context.status.recorded();
    let cancelled = context.pool.counts().failed.saturating_sub(failed);
    let stats = RunStats { cancelled, ..RunStats::default() };
    let report = outcome::report(context, stats, signal, Vec::new(), started_at.elapsed());
    // The process ends, and a message could not be more than that.
    if !context.status.is_detached() {
        let _ = context.recorder.append_end(outcome::attempt_finished(context, &report, None));
    }
    context.observer.finished(&report);
}

fn exit_by(context: &RunContext<'_>, signal: Option<Signal>) -> ! {
    // Nothing is dropped here, and the surrounding make needs its tokens back.
    if let Some(jobserver) = &context.admission.jobserver {
        jobserver.release_tokens();
    }
    std::process::exit(i32::from(match signal {
        _ if context.status.is_detached() => exit_status::SUCCESS,
        Some(Signal::TERM) => exit_status::TERMINATED,
        _ => exit_status::INTERRUPTED,
    }))
}
