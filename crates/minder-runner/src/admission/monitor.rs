//! The admission monitor: a thread that evaluates the policy, and the state through which worker
//! threads ask it.
//!
//! # Locking
//!
//! `AdmissionState::state` protects the quota, the request flag and the reason. Both sides hold the
//! lock only for a few assignments: measurements, `--limit` commands and calls of [`JobControl`]
//! happen without it, so `admit` never waits for them. `changed` belongs to the lock. A worker
//! thread that is refused sets `wanted` under it before it notifies, and the monitor checks
//! `wanted` under it before it waits, so no request is lost.
//!
//! `stop` is read without the lock, in the middle of a `--limit` command. It is only ever set.
//! `stopped` repeats it under the lock, for the wait on `changed`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};

use crate::admission::AdmissionPolicy;
use crate::admission::Decision;
use crate::admission::JobPermit;
use crate::admission::Jobs;
use crate::admission::JobserverClient;
use crate::admission::PERIOD;
use crate::admission::Quota;

/// The job pool, as the monitor controls it. No method may block.
pub(crate) trait JobControl: Send + Sync {
    /// Returns how many jobs run, and how many of them are suspended; `wanted` is ignored.
    fn jobs(&self) -> Jobs;
    /// Keeps jobs from starting while `paused` is `true`. `false` also wakes the worker threads.
    fn set_paused(&self, paused: bool);
    /// Kills the job that was started last, to run again later.
    fn kill_youngest(&self);
    /// Suspends the job that was started last among those that are not suspended.
    fn suspend_youngest(&self);
    /// Resumes the job that was started first among those that are suspended.
    fn resume_oldest(&self);
    /// Reports a line to the user.
    fn warn(&self, line: &str);
}

/// The running monitor. Dropping it stops the thread.
pub(crate) struct AdmissionMonitor {
    shared: Arc<AdmissionState>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for AdmissionMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmissionMonitor").field("shared", &self.shared).finish_non_exhaustive()
    }
}

/// The age up to which the answer of a `--limit` command counts. Two worker threads may ask for the same
/// start; the second answer would otherwise wait for the next one.
const ANSWER_AGE_MAX: Duration = Duration::from_millis(250);

/// The state that the worker threads and the monitor thread share.
#[derive(Debug)]
struct AdmissionState {
    state: Mutex<State>,
    changed: Condvar,
    asks_each_time: bool,
}

#[derive(Debug)]
struct State {
    /// The number of jobs that may start; `None` while none may.
    quota: Option<Quota>,
    /// The time of the evaluation.
    decided_at: Instant,
    /// `true` if a start was refused since the last evaluation.
    wanted: bool,
    stopped: bool,
    why: Option<String>,
    /// Why no job can ever start.
    failure: Option<String>,
}

impl AdmissionMonitor {
    /// Starts the thread. No job is admitted before the first evaluation. `stop` ends a `--limit`
    /// command that is running: it is the flag that
    /// [`HostMetrics::new`](super::metrics::HostMetrics::new) was given.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub(crate) fn start(
        policy: AdmissionPolicy,
        control: Arc<dyn JobControl>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let decided_at = Instant::now();
        let state =
            State { quota: None, decided_at, wanted: false, stopped: false, why: None, failure: None };
        let shared = AdmissionState {
            state: Mutex::new(state),
            changed: Condvar::new(),
            asks_each_time: policy.asks_each_time(),
        };
        let shared = Arc::new(shared);
        let state = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("admission".into()).spawn(move || state.watch(policy, &*control))?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Returns `true` if one more job may start now, while `running` others run. Never blocks for
    /// long.
    pub(crate) fn admit(&self, running: usize) -> bool {
        self.shared.admit(running)
    }

    /// Returns why no job starts, if none does.
    pub(crate) fn why(&self) -> Option<String> {
        self.shared.state.lock().why.clone()
    }
}

impl Drop for AdmissionMonitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.shared.state.lock().stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic of the thread was reported by the panic hook.
            let _ = thread.join();
        }
    }
}

impl AdmissionState {
    fn admit(&self, running: usize) -> bool {
        let mut state = self.state.lock();
        let is_old = self.asks_each_time && state.decided_at.elapsed() > ANSWER_AGE_MAX;
        if let Some(quota) = &mut state.quota
            && !is_old
            && running < quota.most
            && quota.starts > 0
        {
            // An unlimited quota is not counted down.
            quota.starts -= usize::from(quota.starts < usize::MAX);
            return true;
        }
        if !std::mem::replace(&mut state.wanted, true) {
            self.changed.notify_all();
        }
        false
    }

    fn watch(&self, mut policy: AdmissionPolicy, control: &dyn JobControl) {
        struct ReopenOnDrop<'a>(&'a dyn JobControl, &'a AdmissionState);
        impl Drop for ReopenOnDrop<'_> {
            /// However the thread ends, even by a panic, the run must be able to start jobs.
            fn drop(&mut self) {
                self.1.state.lock().quota = Some(Quota::ALL);
                self.0.set_paused(false);
            }
        }
        let _reopen = ReopenOnDrop(control, self);
        loop {
            let wanted = std::mem::take(&mut self.state.lock().wanted);
            let decision = policy.evaluate(Instant::now(), Jobs { wanted, ..control.jobs() });
            policy.take_messages().iter().for_each(|line| control.warn(line));
            let quota = if let Decision::Start(quota) = decision { Some(quota) } else { None };
            let mut state = self.state.lock();
            state.quota = quota;
            state.decided_at = Instant::now();
            state.why = policy.why().map(str::to_owned);
            state.failure = policy.take_failure().or(state.failure.take());
            let has_failed = state.failure.is_some();
            drop(state);
            // A worker thread that is woken takes the failure.
            control.set_paused(quota.is_none() && !has_failed);
            match decision {
                Decision::Start(_) | Decision::Wait(_) => (),
                Decision::Kill => control.kill_youngest(),
                Decision::Suspend(count) => (0..count).for_each(|_| control.suspend_youngest()),
                Decision::Resume => control.resume_oldest(),
            }
            let until = if let Decision::Wait(until) = decision { until } else { Instant::now() + PERIOD };
            // If the last request was not answered by the command, it waits for the other
            // conditions, and so for the next period.
            let sooner = self.asks_each_time && quota.is_some_and(|quota| quota.starts > 0 || !wanted);
            if !self.sleep(until, sooner) {
                return;
            }
        }
    }

    /// Sleeps until then, or, with `sooner`, until a start is requested. Returns `false` if the
    /// monitor was stopped.
    fn sleep(&self, until: Instant, sooner: bool) -> bool {
        let mut state = self.state.lock();
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            if state.stopped {
                return false;
            }
            if remaining.is_zero() || (sooner && state.wanted) {
                return true;
            }
            state = self.changed.wait_timeout(state, remaining);
        }
    }
}

/// Everything that is checked before a start: the jobserver, then the conditions.
#[derive(Debug, Default)]
pub(crate) struct AdmissionController {
    /// The client of the jobserver, if there is one.
    pub(crate) jobserver: Option<JobserverClient>,
    /// The monitor, if there are conditions.
    pub(crate) monitor: Option<AdmissionMonitor>,
}

impl AdmissionController {
    /// Returns the permission for one more job, while `running` others run. Never blocks for long.
    /// After `None`, the worker threads are woken when that may have changed.
    pub(crate) fn admit(&self, running: usize) -> Option<JobPermit> {
        // A token can be released again, but a decision of `--limit` is valid for one start. So the
        // token comes first.
        let permit = match &self.jobserver {
            Some(client) => client.take()?,
            None => JobPermit::free(),
        };
        self.monitor.as_ref().is_none_or(|monitor| monitor.admit(running)).then_some(permit)
    }

    /// Takes the reason why no job can ever start, if there is one.
    pub(crate) fn take_failure(&self) -> Option<String> {
        self.monitor.as_ref()?.shared.state.lock().failure.take()
    }
}
