//! `minder xargs`: commands with as many arguments as fit, from words of the input, as xargs runs
//! them.
//!
//! This is not a run of the engine: jobs write to our standard output and standard error themselves,
//! in our process group, and there is no record. Only the guard is the same, so that no job outlives
//! a killed minder.

mod plan;
mod quote;
mod message;
mod command_line;
mod jobs;
mod session;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Result;
use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
use minder::poll::{Events, Interest, Poller, Token};
use minder::{Descriptors, Signal};

use self::session::Session;
pub(crate) use self::{
    message::print_line,
    plan::{FAILURE, Packing, XargsPlan},
};

/// The interval at which signals are looked for if the poller cannot wait for them.
const SIGNAL_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Runs the commands. Returns only if the run cannot begin; otherwise the guard ends the process.
///
/// One thread reads the input and runs the commands; this one handles signals, as a read may wait for
/// ever.
pub(crate) fn run(plan: XargsPlan) -> Result<ExitCode> {
    let descriptors = Descriptors::inherited();
    let (mut guard, poller) = match prepare() {
        Ok(prepared) => prepared,
        Err(error) => {
            print_line(error.to_string().as_bytes());
            return Ok(ExitCode::from(FAILURE));
        }
    };
    let is_registered = poller.add(&guard.signals(), Token(0), Interest::READABLE).is_ok();
    let (sender, receiver) = mpsc::channel();
    let jobs_max = AtomicUsize::new(plan.jobs_max);
    std::thread::scope(|scope| {
        let poller = &poller;
        let jobs_max = &jobs_max;
        scope.spawn(move || {
            let _notifier = Notifier(poller);
            // It fails only if the main thread is gone.
            let _ = sender.send(Session::run(plan, descriptors, jobs_max));
        });
        let mut events = Events::new();
        loop {
            let deadline = (!is_registered).then(|| Instant::now() + SIGNAL_POLL_INTERVAL);
            // An error would repeat for ever; the process ends as after a panic.
            let has_failed = poller.wait_deadline(&mut events, deadline).is_err();
            while let Some(signal) = guard.next_signal() {
                match signal {
                    Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                        guard.terminate(ExitMode::Signal(signal));
                    }
                    Signal::TSTP => guard.suspend_self(),
                    // As in xargs: one job more or less at once. They count when the next job starts.
                    Signal::USR1 => change(jobs_max, |jobs| jobs.saturating_add(1)),
                    Signal::USR2 => change(jobs_max, |jobs| (jobs - 1).max(1)),
                    _ => (),
                }
            }
            match receiver.try_recv() {
                Ok(status) => guard.exit(status),
                Err(TryRecvError::Empty) if !has_failed => (),
                Err(_) => guard.terminate(ExitMode::Status(FAILURE)),
            }
        }
    })
}

/// Makes what the main thread needs to handle signals.
fn prepare() -> minder::Result<(ProcessGuard, Poller)> {
    let guard = ProcessGuard::install(&GuardOptions::new())?;
    // Without it, fewer jobs run at once.
    let _ = guard.raise_fd_limit();
    let poller = Poller::new()?;
    guard.wait_ready()?;
    Ok((guard, poller))
}

/// Changes the number of jobs that run at once, which is never 0. No other memory depends on it.
fn change(jobs_max: &AtomicUsize, change: impl Fn(usize) -> usize) {
    jobs_max.store(change(jobs_max.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// Wakes the main thread when the other one ends, even by a panic.
struct Notifier<'a>(&'a Poller);

impl Drop for Notifier<'_> {
    fn drop(&mut self) {
        // It fails only for an invalid descriptor.
        let _ = self.0.notify();
    }
}
