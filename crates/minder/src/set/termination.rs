//! A tree that is being killed: which signal comes when.

use std::time::{Duration, Instant};

use crate::child::Termination;
use crate::sys::process_tree::TreeSignal;

/// How long, and through how many blows, a tree that was killed is looked for before it is given
/// up: a process in an uninterruptible call. The time alone may be one in which we stood still, or
/// the machine.
const PATIENCE: Duration = Duration::from_secs(5);
const KILL_SIGNALS_MIN: u32 = 50;
/// How often the tree is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// The longest pause between two searches of the whole process table. It begins with
/// [`CHECK_INTERVAL`] and doubles.
const SEARCH_MAX: Duration = Duration::from_millis(320);
/// The longest pause: a century, far from where adding to the clock would fail.
const PAUSE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// An order to kill that is being carried out. Its first blow was struck.
#[derive(Clone, Copy, Debug)]
pub(super) struct TerminationState {
    how: Termination,
    /// How many of its signals were sent.
    sent: usize,
    /// When the next blow is due.
    next_at: Instant,
    /// When it was insisted first, and how often since then.
    escalated: Option<(Instant, u32)>,
    /// When all processes may be looked at again, and how long the pause before that was.
    search_at: Instant,
    search_pause: Duration,
}

impl TerminationState {
    pub(super) fn new(how: Termination, now: Instant) -> Self {
        let mut killing = Self {
            how,
            sent: 0,
            next_at: now,
            escalated: None,
            search_at: now,
            search_pause: CHECK_INTERVAL / 2,
        };
        killing.due(now);
        killing
    }

    /// When it is to be insisted.
    pub(super) fn escalate_at(&self) -> Instant {
        let pauses = self.how.steps()[self.sent..].iter();
        pauses.fold(self.next_at, |at, step| later(at, step.pause))
    }

    /// When the tree is to be looked at again.
    pub(super) fn check_at(&self, now: Instant) -> Instant {
        let look_at = now + CHECK_INTERVAL;
        if self.next_at > now { look_at.min(self.next_at) } else { look_at }
    }

    /// Whether the whole process table may be searched now. A yes is taken for a search.
    pub(super) fn may_search(&mut self, now: Instant) -> bool {
        if now < self.search_at {
            return false;
        }
        self.search_pause = (self.search_pause * 2).min(SEARCH_MAX);
        self.search_at = now + self.search_pause;
        true
    }

    /// The blow that is due. After the last signal it is due again and again.
    pub(super) fn due(&mut self, now: Instant) -> Option<TreeSignal> {
        if now < self.next_at {
            return None;
        }
        let Some(step) = self.how.steps().get(self.sent) else {
            let (first, blows) = self.escalated.unwrap_or((now, 0));
            self.escalated = Some((first, blows.saturating_add(1)));
            return Some(TreeSignal::Kill);
        };
        self.sent += 1;
        self.next_at = later(now, step.pause);
        Some(TreeSignal::Signal(step.signal))
    }

    /// Whether those who are left will not go.
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
        self.escalated.is_some_and(|(first, blows)| blows >= KILL_SIGNALS_MIN && now > later(first, PATIENCE))
    }
}

fn later(at: Instant, pause: Duration) -> Instant {
    at.checked_add(pause.min(PAUSE_MAX)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_come_in_turn_and_the_end_comes_always() {
        let ms = Duration::from_millis;
        let how = Termination::signals(&[(2, ms(100)), (15, ms(50))]).expect("two signals");
        let start = Instant::now();
        let mut killing = TerminationState::new(how, start);
        assert_eq!((killing.escalate_at(), killing.due(start)), (start + ms(150), None));
        assert_eq!(killing.due(start + ms(99)), None);
        // A look that comes late moves what follows.
        assert_eq!(killing.due(start + ms(110)), Some(TreeSignal::Signal(15)));
        assert_eq!(killing.escalate_at(), start + ms(160));
        assert_eq!(killing.due(start + ms(159)), None);
        // However late the first one is struck.
        let late = start + ms(160) + 2 * PATIENCE;
        for _ in 0..KILL_SIGNALS_MIN {
            assert!(!killing.is_hopeless(late + 2 * PATIENCE));
            assert_eq!(killing.due(late), Some(TreeSignal::Kill));
        }
        assert!(!killing.is_hopeless(late + PATIENCE) && killing.is_hopeless(late + ms(1) + PATIENCE));
        let mut searches = 0;
        for look in 0..1000 {
            searches += u32::from(killing.may_search(start + CHECK_INTERVAL * look));
        }
        assert!((30..50).contains(&searches), "{searches} searches in ten seconds of grace");
        let now = TerminationState::new(Termination::IMMEDIATE, start);
        assert_eq!(now.escalate_at(), start);
        assert!(
            TerminationState::new(Termination::graceful(Duration::MAX), start).escalate_at()
                >= start + PAUSE_MAX
        );
    }
}
