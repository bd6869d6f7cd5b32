//! Signals, the descriptor limit and the progress line of a measurement.

use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use minder::Signal;
use minder::guard::{GuardOptions, ProcessGuard};
use minder_os::terminal::{is_in_foreground, terminal_size};

use minder_ui::color::can_draw;
use minder_ui::exit;
use minder_ui::message;
use minder_ui::os_error_text;
use minder_ui::symbols::Symbols;
use minder_ui::write_stderr;

/// The interval at which signals are handled while another thread blocks.
const SIGNAL_INTERVAL: Duration = Duration::from_millis(50);
/// How long a cancelled operation may continue. It is then abandoned, with its results.
const CANCEL_GRACE: Duration = Duration::from_millis(500);

/// Handles the signals of the process while something is measured.
#[derive(Debug)]
pub(crate) struct Session {
    guard: ProcessGuard,
    /// The first signal that cancelled the measurement, and the number of such signals.
    cancelled_by: Option<Signal>,
    cancellations: usize,
    fd_limit: u64,
    /// Whether stderr is a terminal that can show the progress, and whether it does now.
    shows_progress: bool,
    is_progress_shown: bool,
    estimate: TimeEstimate,
    /// The index of the case that is measured now, and its start.
    current: Option<(usize, Instant)>,
}

impl Session {
    /// Installs the guard and raises the limit of descriptors. Call this before any thread starts.
    ///
    /// # Errors
    /// As [`ProcessGuard::install`].
    pub(crate) fn start() -> Result<Self> {
        // Guardians are not needed: only the mechanisms start children, and they end them.
        let guard = ProcessGuard::install(&GuardOptions::new().guardians(false))?;
        let (_, fd_limit) = guard.raise_fd_limit()?;
        Ok(Self {
            guard,
            cancelled_by: None,
            cancellations: 0,
            fd_limit,
            shows_progress: can_draw(),
            is_progress_shown: false,
            estimate: TimeEstimate::default(),
            current: None,
        })
    }

    /// Returns the number of descriptors that this process may have.
    pub(crate) fn fd_limit(&self) -> u64 {
        self.fd_limit
    }

    /// Handles pending signals, and returns whether one has cancelled the measurement.
    pub(crate) fn is_cancelled(&mut self) -> bool {
        while let Some(signal) = self.guard.next_signal() {
            match signal {
                Signal::INT | Signal::TERM | Signal::HUP | Signal::QUIT => {
                    self.cancelled_by.get_or_insert(signal);
                    self.cancellations += 1;
                }
                Signal::TSTP => {
                    self.clear_progress();
                    self.guard.suspend_self();
                }
                _ => {}
            }
        }
        self.cancelled_by.is_some()
    }

    /// Prints a message if a signal has cancelled the measurement.
    pub(crate) fn announce_end(&mut self, has_measured: bool) {
        match (self.is_cancelled(), has_measured) {
            (true, true) => message("interrupted; showing what was measured"),
            (true, false) => message("interrupted before the first measurement"),
            _ => (),
        }
    }

    /// Runs an operation that may block for long on another thread, and handles signals meanwhile.
    /// Returns `None` if another signal asks to end before the operation is done; its thread then
    /// exits with the process.
    ///
    /// # Errors
    /// If no thread can be started.
    pub(crate) fn run_interruptibly<T: Send + 'static>(
        &mut self,
        operation: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>> {
        let (sender, receiver) = channel();
        let before = self.cancellations;
        let thread = thread::Builder::new().spawn(move || sender.send(operation()));
        let thread = thread.map_err(|error| no_thread(&error))?;
        loop {
            match receiver.recv_timeout(SIGNAL_INTERVAL) {
                Ok(done) => {
                    // Nothing else runs during the next measurement.
                    let _ = thread.join();
                    return Ok(Some(done));
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.is_cancelled();
                    if self.cancellations > before {
                        return Ok(None);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
            }
        }
    }

    /// Runs an operation on another thread, and handles signals meanwhile. Sets `is_cancelled` when one
    /// asks to end; the operation returns soon after.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Panics
    /// If the operation panics.
    pub(crate) fn run_cancellably<T: Send>(
        &mut self,
        is_cancelled: &AtomicBool,
        operation: impl FnOnce() -> T + Send,
    ) -> Result<T> {
        thread::scope(|scope| {
            let (sender, receiver) = channel::<()>();
            let work = move || {
                let _ends_the_wait = sender;
                operation()
            };
            let thread = thread::Builder::new().spawn_scoped(scope, work);
            let thread = thread.map_err(|error| no_thread(&error))?;
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(SIGNAL_INTERVAL) {
                if self.is_cancelled() {
                    is_cancelled.store(true, Ordering::Relaxed);
                }
            }
            Ok(thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    /// Runs an operation on another thread, and handles signals meanwhile. Sets `is_cancelled` when one
    /// asks to end. Returns `None` if the operation does not return soon after, as in a long sleep; its
    /// thread then exits with the process.
    ///
    /// # Errors
    /// If no thread can be started.
    ///
    /// # Panics
    /// If the operation panics.
    pub(crate) fn run_abandonably<T: Send + 'static>(
        &mut self,
        is_cancelled: &Arc<AtomicBool>,
        operation: impl FnOnce() -> T + Send + 'static,
    ) -> Result<Option<T>> {
        let (sender, receiver) = channel();
        let thread = thread::Builder::new().spawn(move || sender.send(operation()));
        let thread = thread.map_err(|error| no_thread(&error))?;
        let mut end = None;
        loop {
            match receiver.recv_timeout(SIGNAL_INTERVAL) {
                Ok(done) => {
                    // Nothing else runs during the next measurement.
                    let _ = thread.join();
                    return Ok(Some(done));
                }
                Err(RecvTimeoutError::Timeout) if self.is_cancelled() => {
                    is_cancelled.store(true, Ordering::Relaxed);
                    let now = Instant::now();
                    if now >= *end.get_or_insert(now + CANCEL_GRACE) {
                        return Ok(None);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => match thread.join() {
                    Ok(_) => return Ok(None),
                    Err(panic) => std::panic::resume_unwind(panic),
                },
            }
        }
    }

    /// Returns the exit status of a measurement without errors.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self.cancelled_by {
            None => ExitCode::SUCCESS,
            Some(Signal::TERM) => ExitCode::from(exit::TERMINATED),
            Some(_) => ExitCode::from(exit::INTERRUPTED),
        }
    }

    /// Sets the number of cases and rounds, for the estimate of the remaining time.
    pub(crate) fn set_work(&mut self, cases: usize, rounds: u32) {
        self.estimate = TimeEstimate { durations: vec![None; cases], rounds };
    }

    /// Shows which case is measured now, if stderr is a terminal.
    pub(crate) fn show_progress(&mut self, index: usize, round: u32, what: &str) {
        let now = Instant::now();
        if let Some((previous, started)) = self.current.replace((index, now)) {
            self.estimate.durations[previous] = Some(now - started);
        }
        let left = match self.estimate.left(index, round) {
            Some(left) => format!(", about {} s left", left.as_secs() + 1),
            None => String::new(),
        };
        self.show_line(&format!("{what}, round {round} of {}{left}", self.estimate.rounds));
    }

    /// Replaces the progress line, if stderr is a terminal and does not belong to another program.
    pub(crate) fn show_line(&mut self, line: &str) {
        if !self.shows_progress || !is_in_foreground() {
            return;
        }
        self.is_progress_shown = true;
        let width = terminal_size().map_or(80, |size| usize::from(size.columns));
        let symbols = Symbols::of_locale();
        let line = symbols.shorten(&symbols.convert(line), width.saturating_sub(1));
        let line = format!("\r{line}\x1b[K");
        write_stderr(line.as_bytes());
    }

    /// Removes the progress line.
    pub(crate) fn clear_progress(&mut self) {
        if std::mem::take(&mut self.is_progress_shown) {
            write_stderr(b"\r\x1b[K");
        }
    }
}

/// Describes why no thread could be started.
fn no_thread(error: &io::Error) -> anyhow::Error {
    anyhow!("cannot start a thread: {} (`minder doctor` shows the limits)", os_error_text(error))
}

/// Estimates the remaining time by the last duration of each case.
#[derive(Debug, Default)]
struct TimeEstimate {
    durations: Vec<Option<Duration>>,
    rounds: u32,
}

impl TimeEstimate {
    /// Returns the time that is left from this case on; `None` before the first case is done. Cases
    /// that were not measured yet count with the mean of the others.
    fn left(&self, index: usize, round: u32) -> Option<Duration> {
        let known: Vec<Duration> = self.durations.iter().copied().flatten().collect();
        let mean = known.iter().sum::<Duration>().checked_div(u32::try_from(known.len()).ok()?)?;
        let total = |durations: &[Option<Duration>]| {
            durations.iter().map(|duration| duration.unwrap_or(mean)).sum::<Duration>()
        };
        let this_round = total(self.durations.get(index..)?);
        Some(this_round + total(&self.durations) * self.rounds.saturating_sub(round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remaining_time_is_estimated_by_last_durations() {
        let second = Duration::from_secs(1);
        let mut estimate = TimeEstimate { durations: vec![None; 4], rounds: 2 };
        assert_eq!(estimate.left(0, 1), None);
        estimate.durations[0] = Some(second);
        assert_eq!(estimate.left(1, 1), Some(7 * second));
        estimate.durations = vec![Some(second), Some(second), Some(second), Some(5 * second)];
        assert_eq!(estimate.left(0, 2), Some(8 * second));
        assert_eq!(estimate.left(3, 2), Some(5 * second));
    }
}
