//! The kill of a process tree: which signal is sent when.

use std::time::{Duration, Instant};

use crate::child::Termination;
use crate::sys::process_tree::TreeSignal;

/// After this time **and** this many `SIGKILL`s, the set stops waiting for a tree that does not exit:
/// a process in an uninterruptible system call. The time alone proves nothing, because this process
/// or the machine may have been suspended.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const KILL_SIGNALS_MIN: u32 = 50;
/// How often the tree is checked.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The longest time between two searches of the whole process table. It begins with
/// [`CHECK_INTERVAL`] and doubles.
const SEARCH_INTERVAL_MAX: Duration = Duration::from_millis(320);
/// The longest pause after a signal: a century, which can be added to an `Instant`.
const PAUSE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// The state of a kill whose first signal was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct TerminationState {
    how: Termination,
    /// How many signals of `how` were sent.
    sent: usize,
    /// When the next signal is due.
    next_at: Instant,
    /// When the first `SIGKILL` was sent, and how many were.
    escalated: Option<(Instant, u32)>,
    /// When the whole process table may be searched again.
    search_at: Instant,
    search_interval: Duration,
}

impl TerminationState {
    /// Returns the state after the first signal, which the caller sends.
    pub(super) fn new(how: Termination, now: Instant) -> Self {
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
    pub(super) fn escalates_at(&self) -> Instant {
        let unsent = self.how.steps()[self.sent..].iter();
        unsent.fold(self.next_at, |at, step| add_pause(at, step.pause))
    }

    /// Returns when the tree is to be checked again.
    pub(super) fn check_at(&self, now: Instant) -> Instant {
        let check_at = now + CHECK_INTERVAL;
        if self.next_at > now { check_at.min(self.next_at) } else { check_at }
    }

    /// Returns whether the whole process table may be searched now. The caller searches it after `true`.
    pub(super) fn may_search(&mut self, now: Instant) -> bool {
        if now < self.search_at {
            return false;
        }
        self.search_interval = (self.search_interval * 2).min(SEARCH_INTERVAL_MAX);
        self.search_at = now + self.search_interval;
        true
    }

    /// Returns the signal that is due. After the last signal of `how` that is `SIGKILL`, every time.
    pub(super) fn next_signal(&mut self, now: Instant) -> Option<TreeSignal> {
        if now < self.next_at {
            return None;
        }
        let Some(step) = self.how.steps().get(self.sent) else {
            let (first, count) = self.escalated.unwrap_or((now, 0));
            self.escalated = Some((first, count.saturating_add(1)));
            return Some(TreeSignal::Kill);
        };
        self.sent += 1;
        self.next_at = add_pause(now, step.pause);
        Some(TreeSignal::Signal(step.signal))
    }

    /// Returns whether the set stops waiting for the tree.
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
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
        let how = Termination::signals(&[(2, ms(100)), (15, ms(50))]).expect("describe two signals");
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
