//! What stands beside a measurement: the signals, the limit of descriptors, and the line that says
//! how far it is.

use std::io::{IsTerminal, Write, stderr};
use std::process::ExitCode;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use minder::{GuardOptions, ProcessGuard, Signal};
use minder_os::terminal::terminal_size;

use crate::exit;
use crate::ui::table::shorten;

/// How often signals are looked for while somebody else is waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Holds the signals of the process while something is measured.
#[derive(Debug)]
pub(crate) struct BenchSession {
    guard: ProcessGuard,
    /// What ended the measuring before its time, and how often somebody asked for an end.
    ended: Option<Signal>,
    asked: usize,
    descriptors: u64,
    /// Whether somebody watches.
    watched: bool,
    pace: TimeEstimate,
    now: Option<(usize, Instant)>,
}

impl BenchSession {
    /// Takes the signals and as many descriptors as there may be. First thing, before any thread.
    ///
    /// # Errors
    /// Those of [`ProcessGuard::install`].
    pub(crate) fn enter() -> Result<Self> {
        // Nothing is left behind that guardians would have to kill, but by mechanisms that are measured:
        // they end it.
        let guard = ProcessGuard::install(&GuardOptions::new().guardians(false))?;
        let (_, descriptors) = guard.raise_fd_limit()?;
        let (watched, pace) = (stderr().is_terminal(), TimeEstimate::default());
        Ok(Self { guard, ended: None, asked: 0, descriptors, watched, pace, now: None })
    }

    /// How many descriptors this process may have.
    pub(crate) fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Whether somebody asked for an end. A measurement that takes long looks here now and then.
    pub(crate) fn is_over(&mut self) -> bool {
        while let Some(signal) = self.guard.next_signal() {
            match signal {
                Signal::Interrupt | Signal::Terminate | Signal::Hangup | Signal::Quit => {
                    self.ended.get_or_insert(signal);
                    self.asked += 1;
                }
                Signal::Stop => self.guard.suspend_self(),
                _ => {}
            }
        }
        self.ended.is_some()
    }

    /// Does what may wait for somebody else, as the opening of a pipe waits for its reader, in a
    /// thread of its own. `None` when somebody asks for an end, or once more for it, before it
    /// is done; the thread then ends with the process.
    pub(in crate::verbs::bench) fn patiently<T: Send + 'static>(
        &mut self,
        act: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let ((sender, receiver), asked) = (channel(), self.asked);
        let thread = thread::spawn(move || sender.send(act()));
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(done) => {
                    // What is measured next is to be alone.
                    let _ = thread.join();
                    return Some(done);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.is_over();
                    if self.asked > asked {
                        return None;
                    }
                }
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// The exit status, but for errors.
    pub(super) fn status(&self) -> ExitCode {
        match self.ended {
            None => ExitCode::SUCCESS,
            Some(Signal::Terminate) => ExitCode::from(exit::TERMINATED),
            Some(_) => ExitCode::from(exit::INTERRUPTED),
        }
    }

    /// Says how much there is to do.
    pub(super) fn expect(&mut self, points: usize, rounds: u32) {
        self.pace = TimeEstimate { took: vec![None; points], rounds };
    }

    /// Tells whoever watches what is measured now.
    pub(super) fn announce(&mut self, place: usize, round: u32, what: &str) {
        let now = Instant::now();
        if let Some((place, begun)) = self.now.replace((place, now)) {
            self.pace.took[place] = Some(now - begun);
        }
        if !self.watched {
            return;
        }
        let left = match self.pace.left(place, round) {
            Some(left) => format!(", about {} s left", left.as_secs() + 1),
            None => String::new(),
        };
        let line = format!("{what}, round {round} of {}{left}", self.pace.rounds);
        let width = terminal_size().map_or(80, |size| usize::from(size.columns));
        let _ = stderr().write_all(format!("\r{}\x1b[K", shorten(&line, width.saturating_sub(1))).as_bytes());
    }

    /// Takes the line away.
    pub(super) fn clear(&mut self) {
        if self.watched {
            let _ = stderr().write_all(b"\r\x1b[K");
        }
    }
}

/// How long each point took when it was measured last.
#[derive(Debug, Default)]
struct TimeEstimate {
    took: Vec<Option<Duration>>,
    rounds: u32,
}

impl TimeEstimate {
    /// What is left from this point on; `None` at the beginning. Points that were not measured yet
    /// take as long as the others did on the whole.
    fn left(&self, place: usize, round: u32) -> Option<Duration> {
        let known = self.took.iter().flatten();
        let (sum, count) = known.fold((Duration::ZERO, 0), |(sum, count), took| (sum + *took, count + 1));
        let mean = sum.checked_div(count)?;
        let of = |took: &[Option<Duration>]| took.iter().map(|took| took.unwrap_or(mean)).sum::<Duration>();
        Some(of(self.took.get(place..)?) + of(&self.took) * self.rounds.saturating_sub(round))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_estimated_by_what_was() {
        let second = Duration::from_secs(1);
        let mut pace = TimeEstimate { took: vec![None; 4], rounds: 2 };
        assert_eq!(pace.left(0, 1), None);
        pace.took[0] = Some(second);
        assert_eq!(pace.left(1, 1), Some(7 * second));
        pace.took = vec![Some(second), Some(second), Some(second), Some(5 * second)];
        assert_eq!(pace.left(0, 2), Some(8 * second));
        assert_eq!(pace.left(3, 2), Some(5 * second));
    }
}
