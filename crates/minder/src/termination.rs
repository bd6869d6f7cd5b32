//! Kills a child with everything that it started, by signals at planned times.

use std::fmt;
use std::time::{Duration, Instant};

use crate::sys::process_tree::{SIGNAL_MAX, TreeSignal};
use crate::sys::signal::Signal;
use crate::{Error, ErrorKind, Operation, Result};

/// After this time **and** this many `SIGKILL`s, a tree that does not exit is not waited for:
/// a process in an uninterruptible system call. The time alone proves nothing, because this process
/// or the machine may have been suspended.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_SIGNALS_MIN: u32 = 50;
/// The time after which `SIGKILL` is sent once more to a tree whose child has not exited. Each time
/// the tree is searched.
pub(crate) const KILL_REPEAT_AFTER: Duration = Duration::from_millis(100);
/// The interval at which the tree is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The longest time between two searches of the whole process table. It begins with
/// [`CHECK_INTERVAL`] and doubles.
const SEARCH_INTERVAL_MAX: Duration = Duration::from_millis(320);
/// The longest pause after a signal: a century, which can be added to an `Instant`.
const PAUSE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The way in which a child is killed with everything that it started.
///
/// The process tree of a child is its process group (on Windows its job object), and those of its
/// descendants outside the group that can be found. On Unix, a child with
/// [`Group::Inherit`](crate::Group::Inherit) shares the group of this process. The group is not
/// signalled then; the child and the descendants that can be found are. On Windows the group makes
/// no difference.
///
/// ```
/// use minder::{Signal, Termination};
/// use std::time::Duration;
///
/// // SIGINT; SIGTERM after a second; SIGKILL after another second.
/// let second = Duration::from_secs(1);
/// let how = Termination::signals(&[(Signal::INT, second), (Signal::TERM, second)])?;
/// # let _ = how;
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[must_use]
pub struct Termination {
    /// The first `len` are valid. The others are equal, so that `PartialEq` can be derived.
    steps: [Step; Termination::STEPS_MAX],
    len: usize,
}

/// A signal, and the pause after it. It is smaller than with a `Duration`: each child has the steps of its
/// deadline.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Step {
    signal: i32,
    pause_nanos: u64,
}

impl Step {
    /// Returns a step with a pause of at most [`PAUSE_MAX`].
    const fn new(signal: Signal, pause: Duration) -> Self {
        let nanos = pause.as_nanos();
        let pause_nanos = if nanos < PAUSE_MAX.as_nanos() { nanos } else { PAUSE_MAX.as_nanos() };
        Self { signal: signal.as_raw(), pause_nanos: pause_nanos as u64 }
    }

    fn pause(&self) -> Duration {
        Duration::from_nanos(self.pause_nanos)
    }
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Step").field("signal", &self.signal).field("pause", &self.pause()).finish()
    }
}

/// The value of an unused step.
const NONE: Step = Step { signal: 0, pause_nanos: 0 };

impl Termination {
    /// Kills at once: by `SIGSTOP` and then `SIGKILL`; on Windows by terminating the job object
    /// with exit code 1.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Termination};
    ///
    /// // The shell and what it started.
    /// let mut child = Command::new("sh").args(["-c", "sleep 60; true"]).spawn()?;
    /// let exit = child.kill_and_wait(Termination::IMMEDIATE)?;
    /// assert_eq!(exit.status.signal(), Some(9));
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub const IMMEDIATE: Self = Self { steps: [NONE; Self::STEPS_MAX], len: 0 };

    /// The most signals that [`signals`](Self::signals) accepts.
    ///
    /// ```
    /// use minder::{Signal, Termination};
    /// use std::time::Duration;
    ///
    /// let steps = vec![(Signal::TERM, Duration::from_secs(1)); Termination::STEPS_MAX + 1];
    /// assert!(Termination::signals(&steps).is_err() && Termination::signals(&steps[1..]).is_ok());
    /// ```
    pub const STEPS_MAX: usize = 8;

    /// Asks with `SIGTERM`, and kills after `grace`. The processes are stopped until each has the signal, so
    /// that none that is started meanwhile is missed.
    ///
    /// A [`ChildSet`](crate::ChildSet) kills by itself, even if the child has exited and other
    /// processes of its group have not. A lone
    /// [`Child`](crate::Child) is only asked, by [`Child::kill`](crate::Child::kill).
    ///
    /// - Windows: there is no signal to ask with; the child is killed at once.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Termination};
    /// use std::time::Duration;
    ///
    /// let mut child = Command::new("sleep").arg("60").spawn()?;
    /// let exit = child.kill_and_wait(Termination::graceful(Duration::from_secs(5)))?;
    /// assert_eq!(exit.status.signal(), Some(15), "SIGTERM was enough");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub const fn graceful(grace: Duration) -> Self {
        let mut how = Self::IMMEDIATE;
        how.steps[0] = Step::new(Signal::TERM, grace);
        how.len = 1;
        how
    }

    /// Kills at once without a grace period, else as [`graceful`](Self::graceful).
    pub(crate) const fn after_grace(grace: Duration) -> Self {
        if grace.is_zero() { Self::IMMEDIATE } else { Self::graceful(grace) }
    }

    /// Sends these signals, with a pause after each for the tree to exit, and then kills as
    /// [`IMMEDIATE`](Self::IMMEDIATE) does. Without signals it is `IMMEDIATE`.
    ///
    /// `SIGCONT` follows each signal that does not stop processes, so that stopped processes handle
    /// it. A pause may last some milliseconds longer, but is never shorter.
    /// [`Child::kill`](crate::Child::kill) sends the first signal only.
    ///
    /// - Windows: the child is killed at once.
    ///
    /// # Errors
    /// - `InvalidInput`: there are more than [`STEPS_MAX`](Self::STEPS_MAX) signals, or a number is
    ///   not a signal of this operating system.
    pub fn signals(signals: &[(Signal, Duration)]) -> Result<Self> {
        let invalid = |reason| {
            let error = Error::of_kind(ErrorKind::InvalidInput, "make a sequence of signals", reason);
            Err(error.during(Operation::Kill))
        };
        if signals.len() > Self::STEPS_MAX {
            return invalid("it has more than 8 signals");
        }
        if signals.iter().any(|(signal, _)| !(1..=SIGNAL_MAX).contains(&signal.as_raw())) {
            return invalid("one of the numbers is not a signal of this operating system");
        }
        let mut termination = Self::IMMEDIATE;
        for (step, &(signal, pause)) in termination.steps.iter_mut().zip(signals) {
            *step = Step::new(signal, pause);
        }
        termination.len = signals.len();
        Ok(termination)
    }

    /// Returns the signals before the kill.
    fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    /// Returns the sum of the pauses.
    pub(crate) fn total_pause(&self) -> Duration {
        self.steps().iter().fold(Duration::ZERO, |sum, step| sum.saturating_add(step.pause()))
    }

    /// Returns what is sent first.
    pub(crate) fn first(&self) -> TreeSignal {
        self.steps().first().map_or(TreeSignal::Kill, |step| TreeSignal::Signal(step.signal))
    }
}

impl fmt::Debug for Termination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Termination").field("steps", &self.steps()).finish()
    }
}

/// The state of a kill whose first signal was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TerminationState {
    how: Termination,
    /// The number of signals of `how` that were sent.
    sent: usize,
    /// The time at which the next signal is due.
    next_at: Instant,
    /// The time of the first `SIGKILL`, and the number of those that were sent.
    escalated: Option<(Instant, u32)>,
    /// The time at which the whole process table may be searched again.
    search_at: Instant,
    search_interval: Duration,
}

impl TerminationState {
    /// Returns the state after the first signal, which the caller sends.
    pub(crate) fn new(how: Termination, now: Instant) -> Self {
        let mut state = Self {
            how,
            sent: 0,
            next_at: now,
            escalated: None,
            search_at: now,
            search_interval: CHECK_INTERVAL / 2,
        };
        state.next_signal(now);
        state
    }

    /// Returns when `SIGKILL` is due.
    pub(crate) fn escalates_at(&self) -> Instant {
        let unsent = self.how.steps()[self.sent..].iter();
        unsent.fold(self.next_at, |at, step| add_pause(at, step.pause()))
    }

    /// Returns when the tree is to be checked again.
    pub(crate) fn check_at(&self, now: Instant) -> Instant {
        let check_at = now + CHECK_INTERVAL;
        if self.next_at > now { check_at.min(self.next_at) } else { check_at }
    }

    /// Returns whether the whole process table may be searched now. The caller searches it after `true`.
    pub(crate) fn may_search(&mut self, now: Instant) -> bool {
        if now < self.search_at {
            return false;
        }
        self.search_interval = (self.search_interval * 2).min(SEARCH_INTERVAL_MAX);
        self.search_at = now + self.search_interval;
        true
    }

    /// Returns the signal that is due. After the last signal of `how` that is `SIGKILL`, every time.
    pub(crate) fn next_signal(&mut self, now: Instant) -> Option<TreeSignal> {
        if now < self.next_at {
            return None;
        }
        let Some(step) = self.how.steps().get(self.sent) else {
            let (first, count) = self.escalated.unwrap_or((now, 0));
            self.escalated = Some((first, count.saturating_add(1)));
            return Some(TreeSignal::Kill);
        };
        self.sent += 1;
        self.next_at = add_pause(now, step.pause());
        Some(TreeSignal::Signal(step.signal))
    }

    /// Returns when `SIGKILL` was sent first, if another one is due.
    pub(crate) fn repeats_kill(&self, now: Instant) -> Option<Instant> {
        let (first, _) = self.escalated?;
        (now >= self.next_at).then_some(first)
    }

    /// Returns whether it is useless to wait for the tree any longer.
    pub(crate) fn is_hopeless(&self, now: Instant) -> bool {
        self.escalated
            .is_some_and(|(first, count)| count >= KILL_SIGNALS_MIN && now > add_pause(first, KILL_TIMEOUT))
    }
}

fn add_pause(at: Instant, pause: Duration) -> Instant {
    at.checked_add(pause.min(PAUSE_MAX)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_sent_in_order_and_end_with_sigkill() {
        let ms = Duration::from_millis;
        let how = Termination::signals(&[(Signal::INT, ms(100)), (Signal::TERM, ms(50))])
            .expect("describe two signals");
        let start = Instant::now();
        let mut state = TerminationState::new(how, start);
        assert_eq!((state.escalates_at(), state.next_signal(start)), (start + ms(150), None));
        assert_eq!(state.next_signal(start + ms(99)), None);
        // A late check delays the signals after it.
        assert_eq!(state.next_signal(start + ms(110)), Some(TreeSignal::Signal(15)));
        assert_eq!(state.escalates_at(), start + ms(160));
        assert_eq!(state.next_signal(start + ms(159)), None);
        // Time alone does not make the kill hopeless.
        let late = start + ms(160) + 2 * KILL_TIMEOUT;
        for _ in 0..KILL_SIGNALS_MIN {
            assert!(!state.is_hopeless(late + 2 * KILL_TIMEOUT));
            assert_eq!(state.next_signal(late), Some(TreeSignal::Kill));
        }
        assert!(!state.is_hopeless(late + KILL_TIMEOUT) && state.is_hopeless(late + ms(1) + KILL_TIMEOUT));
    }

    #[test]
    fn searches_become_rare_during_a_long_grace_period() {
        let start = Instant::now();
        let mut state = TerminationState::new(Termination::graceful(Duration::from_secs(60)), start);
        let searches = (0..1000).filter(|check| state.may_search(start + CHECK_INTERVAL * *check)).count();
        assert!((30..50).contains(&searches), "{searches} searches in ten seconds of grace");
    }

    #[test]
    fn escalation_time_is_bounded() {
        let start = Instant::now();
        assert_eq!(TerminationState::new(Termination::IMMEDIATE, start).escalates_at(), start);
        let endless = TerminationState::new(Termination::graceful(Duration::MAX), start);
        assert!(endless.escalates_at() >= start + PAUSE_MAX);
    }
}
