//! The thread that looks, and the door that it opens and closes.

use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use crate::admission::AdmissionPolicy;
use crate::admission::Decision;
use crate::admission::JobPermit;
use crate::admission::Jobs;
use crate::admission::JobserverClient;
use crate::admission::PERIOD;
use crate::admission::Quota;

/// The crew, as far as gates are concerned. None of these may block.
pub(crate) trait JobControl: Send + Sync {
    /// How many jobs run, and how many of them are suspended; `wanted` is not looked at.
    fn jobs(&self) -> Jobs;
    /// Starts nothing while `held`; wakes the loops when it is not.
    fn set_paused(&self, held: bool);
    /// Kills the job that was started last, and puts it back to run again later.
    fn kill_youngest(&self);
    /// Suspends the job that was started last among those that are not suspended.
    fn suspend_youngest(&self);
    /// Lets the job that was started first among those that are suspended go on.
    fn resume_oldest(&self);
    /// Tells the person a line.
    fn warn(&self, line: &str);
}

/// Gates that are being watched, until this is dropped.
pub(crate) struct AdmissionMonitor {
    shared: Arc<AdmissionState>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl fmt::Debug for AdmissionMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Gates").field("door", &self.shared).finish_non_exhaustive()
    }
}

/// What stands between the loops and the thread.
#[derive(Debug)]
struct AdmissionState {
    state: Mutex<State>,
    changed: Condvar,
    asks_each_time: bool,
}

#[derive(Debug)]
struct State {
    /// How many may start; `None` while closed.
    quota: Option<Quota>,
    /// Whether a start was refused since the last look.
    wanted: bool,
    stopped: bool,
    why: Option<String>,
}

impl AdmissionMonitor {
    /// Begins to look. Nothing is admitted before the first look. `over` ends a question of
    /// `--limit` that is being asked: the same that [`Machine::new`](super::HostMetrics::new) was
    /// given.
    ///
    /// # Errors
    /// No thread can be started.
    pub(crate) fn start(
        policy: AdmissionPolicy,
        control: Arc<dyn JobControl>,
        stop: Arc<AtomicBool>,
    ) -> io::Result<Self> {
        let state = State { quota: None, wanted: false, stopped: false, why: None };
        let shared = AdmissionState {
            state: state.into(),
            changed: Condvar::new(),
            asks_each_time: policy.asks_each_time(),
        };
        let shared = Arc::new(shared);
        let watched = Arc::clone(&shared);
        let thread =
            thread::Builder::new().name("gates".into()).spawn(move || watched.watch(policy, &*control))?;
        Ok(Self { shared, stop, thread: Some(thread) })
    }

    /// Whether one more job may start now, when so many others run. Never blocks for long.
    pub(crate) fn admit(&self, running: usize) -> bool {
        self.shared.admit(running)
    }

    /// Why nothing starts, if nothing does.
    pub(crate) fn why(&self) -> Option<String> {
        self.shared.lock().why.clone()
    }
}

impl Drop for AdmissionMonitor {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.shared.lock().stopped = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there was told by the panic itself.
            let _ = thread.join();
        }
    }
}

impl AdmissionState {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, running: usize) -> bool {
        let mut state = self.lock();
        if let Some(quota) = &mut state.quota
            && running < quota.most
            && quota.starts > 0
        {
            // Without a bound there is nothing to count.
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
            /// Whatever ends the looking, even a panic, must not leave a run that starts nothing
            /// for ever.
            fn drop(&mut self) {
                self.1.lock().quota = Some(Quota::ALL);
                self.0.set_paused(false);
            }
        }
        let _open = ReopenOnDrop(control, self);
        loop {
            let wanted = std::mem::take(&mut self.lock().wanted);
            let decision = policy.evaluate(Instant::now(), Jobs { wanted, ..control.jobs() });
            policy.complaints().iter().for_each(|line| control.warn(line));
            let quota = if let Decision::Start(quota) = decision { Some(quota) } else { None };
            let mut state = self.lock();
            state.quota = quota;
            state.why = policy.why().map(str::to_owned);
            drop(state);
            control.set_paused(quota.is_none());
            match decision {
                Decision::Start(_) | Decision::Wait(_) => (),
                Decision::Kill => control.kill_youngest(),
                Decision::Suspend(count) => (0..count).for_each(|_| control.suspend_youngest()),
                Decision::Resume => control.resume_oldest(),
            }
            let until = if let Decision::Wait(until) = decision { until } else { Instant::now() + PERIOD };
            // A start that waited and was not even asked for waits for the other conditions.
            let sooner = self.asks_each_time && quota.is_some_and(|quota| quota.starts > 0 || !wanted);
            if !self.sleep(until, sooner) {
                return;
            }
        }
    }

    /// Sleeps until then, or, if that is allowed, until a start waits for an answer. Whether to
    /// look again.
    fn sleep(&self, until: Instant, sooner: bool) -> bool {
        let mut state = self.lock();
        loop {
            let remaining = until.saturating_duration_since(Instant::now());
            if state.stopped {
                return false;
            }
            if remaining.is_zero() || (sooner && state.wanted) {
                return true;
            }
            state = self.changed.wait_timeout(state, remaining).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// All that is asked before a start: the build's jobserver, then the gates.
#[derive(Debug, Default)]
pub(crate) struct AdmissionController {
    /// The tokens, where there is a jobserver.
    pub(crate) jobserver: Option<JobserverClient>,
    /// The gates, where something was asked for.
    pub(crate) monitor: Option<AdmissionMonitor>,
}

impl AdmissionController {
    /// Whether one more job may start now, when so many others run. Never blocks for long; after a
    /// `None` the loops are woken when it may be otherwise.
    pub(crate) fn admit(&self, running: usize) -> Option<JobPermit> {
        // A token can be given back, an answer of `--limit` cannot be asked for again without asking.
        let permit = match &self.jobserver {
            Some(tokens) => tokens.take()?,
            None => JobPermit::free(),
        };
        self.monitor.as_ref().is_none_or(|gates| gates.admit(running)).then_some(permit)
    }
}
