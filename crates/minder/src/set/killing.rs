//! A tree that is being killed: which signal comes when.

use std::time::{Duration, Instant};

use crate::child::Kill;
use crate::sys::tree::Blow;

/// How long a tree that was killed is looked for before it is given up: a process in an uninterruptible call.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often the tree is looked at.
const LOOK: Duration = Duration::from_millis(10);
/// The longest pause: a century, far from where adding to the clock would fail.
const PAUSE_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// An order to kill that is being carried out. Its first blow was struck.
#[derive(Clone, Copy, Debug)]
pub(super) struct Killing {
    how: Kill,
    /// How many of its signals were sent.
    sent: usize,
    /// When the next blow is due.
    next_at: Instant,
}

impl Killing {
    pub(super) fn new(how: Kill, now: Instant) -> Self {
        let mut killing = Self { how, sent: 0, next_at: now };
        killing.due(now);
        killing
    }

    /// When it is to be insisted.
    pub(super) fn insist_at(&self) -> Instant {
        let pauses = self.how.steps()[self.sent..].iter();
        pauses.fold(self.next_at, |at, step| later(at, step.pause))
    }

    /// When the tree is to be looked at again.
    pub(super) fn look_at(&self, now: Instant) -> Instant {
        let look_at = now + LOOK;
        if self.next_at > now { look_at.min(self.next_at) } else { look_at }
    }

    /// The blow that is due. After the last signal it is due again and again.
    pub(super) fn due(&mut self, now: Instant) -> Option<Blow> {
        if now < self.next_at {
            return None;
        }
        let Some(step) = self.how.steps().get(self.sent) else { return Some(Blow::Insist) };
        self.sent += 1;
        self.next_at = later(now, step.pause);
        Some(Blow::Signal(step.signal))
    }

    /// Whether those who are left will not go.
    pub(super) fn is_hopeless(&self, now: Instant) -> bool {
        self.sent == self.how.steps().len() && now > later(self.next_at, PATIENCE)
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
        let how = Kill::sequence(&[(2, ms(100)), (15, ms(50))]).expect("two signals");
        let start = Instant::now();
        let mut killing = Killing::new(how, start);
        assert_eq!((killing.insist_at(), killing.due(start)), (start + ms(150), None));
        assert_eq!(killing.due(start + ms(99)), None);
        // A look that comes late moves what follows.
        assert_eq!(killing.due(start + ms(110)), Some(Blow::Signal(15)));
        assert_eq!(killing.insist_at(), start + ms(160));
        assert_eq!(killing.due(start + ms(159)), None);
        for _ in 0..3 {
            assert_eq!(killing.due(start + ms(160)), Some(Blow::Insist));
        }
        assert!(!killing.is_hopeless(start + ms(170)) && killing.is_hopeless(start + ms(170) + PATIENCE));
        let now = Killing::new(Kill::NOW, start);
        assert_eq!(now.insist_at(), start);
        assert!(Killing::new(Kill::after(Duration::MAX), start).insist_at() >= start + PAUSE_MAX);
    }
}
