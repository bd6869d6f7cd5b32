//! How many children that spill are read at a time: as few as bring as many bytes as all would.
//!
//! More of them at once bring more where each waits for something else than the processor, a
//! network for example. Where they compute, they only share the processors, and all of their output
//! waits in files at the same time. Nothing tells the two apart but a trial, so that is what this
//! does, again and again, and ever more rarely while nothing changes.

use std::time::Duration;

/// How long one width is measured.
const PHASE: Duration = Duration::from_millis(250);
/// Twice as many children have to bring this much more, in hundredths, or it stays at fewer: a busy
/// machine is unsteady.
const GAIN_PERCENT: u64 = 150;
/// How many phases lie between two trials at most.
const REST_MAX: u32 = 16;

/// What is measured at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// The width that was found to be good.
    None,
    /// Twice that.
    More,
    /// Half of that.
    Fewer,
}

/// A pure state machine: bytes and time go in, a width comes out.
#[derive(Debug)]
pub(super) struct Pace {
    /// The width is never less.
    floor: usize,
    width: usize,
    trial: Trial,
    /// Bytes and time of the phase so far.
    bytes: u64,
    time: Duration,
    /// Bytes a millisecond before the trial.
    before: u64,
    /// Phases until the next trial, and how many were waited for the last one.
    rest: u32,
    rested: u32,
    /// Whether the last trial that failed was one of more.
    failed_more: bool,
}

impl Pace {
    pub(super) fn new(floor: usize) -> Self {
        let floor = floor.max(1);
        Self {
            floor,
            width: floor,
            trial: Trial::None,
            bytes: 0,
            time: Duration::ZERO,
            before: 0,
            rest: 0,
            rested: 1,
            failed_more: false,
        }
    }

    /// How many children may be read at a time.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Bytes were read.
    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// So much time was spent reading and waiting for something to read, with `reading` children
    /// that may be read.
    pub(super) fn pass(&mut self, time: Duration, reading: usize) {
        self.time += time;
        if self.time < PHASE {
            return;
        }
        let flow = self.bytes / u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX).max(1);
        (self.bytes, self.time) = (0, Duration::ZERO);
        match self.trial {
            Trial::More if flow * 100 >= self.before * GAIN_PERCENT && reading > self.width / 2 => {
                self.rested = 1;
                self.try_more(flow);
            }
            Trial::More => {
                self.width = (self.width / 2).max(self.floor);
                self.fail(true);
            }
            Trial::Fewer if flow * GAIN_PERCENT >= self.before * 100 => self.try_fewer(flow),
            Trial::Fewer => {
                self.width *= 2;
                self.fail(false);
            }
            Trial::None if self.rest > 0 => self.rest -= 1,
            Trial::None if self.failed_more && self.width > self.floor => self.try_fewer(flow),
            Trial::None => self.try_more(flow),
        }
    }

    fn try_more(&mut self, flow: u64) {
        (self.trial, self.before) = (Trial::More, flow);
        self.width = self.width.saturating_mul(2);
    }

    fn try_fewer(&mut self, flow: u64) {
        (self.trial, self.before) = (Trial::Fewer, flow);
        if self.width / 2 < self.floor {
            self.fail(false);
        } else {
            self.width /= 2;
        }
    }

    fn fail(&mut self, more: bool) {
        self.trial = Trial::None;
        self.failed_more = more;
        self.rested = (self.rested * 2).min(REST_MAX);
        self.rest = self.rested;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lets phases pass in which `flow` says how many bytes a number of children brings.
    fn pass(pace: &mut Pace, phases: usize, flow: impl Fn(usize) -> u64) -> usize {
        for _ in 0..phases {
            pace.count(flow(pace.width()));
            pace.pass(PHASE, pace.width());
        }
        pace.width()
    }

    #[test]
    fn children_that_wait_for_something_else_are_read_together() {
        let mut pace = Pace::new(2);
        let network = |width: usize| 1_000_000 * width.min(64) as u64;
        assert!(pass(&mut pace, 8, network) >= 64);
    }

    #[test]
    fn children_that_share_the_processors_are_not() {
        let mut pace = Pace::new(2);
        let mut widths = Vec::new();
        for _ in 0..200 {
            widths.push(pass(&mut pace, 1, |_| 100_000_000));
        }
        assert!(widths.iter().all(|width| [2, 4].contains(width)), "{widths:?}");
        // A trial now and then.
        assert!(widths.iter().filter(|width| **width == 4).count() < 20, "{widths:?}");
    }

    #[test]
    fn what_was_good_once_is_not_for_ever() {
        let mut pace = Pace::new(1);
        assert!(pass(&mut pace, 6, |width| 1_000_000 * width.min(32) as u64) >= 32);
        let mut least = usize::MAX;
        for _ in 0..100 {
            least = least.min(pass(&mut pace, 1, |_| 32_000_000));
        }
        assert_eq!(least, 1);
    }

    #[test]
    fn it_does_not_grow_without_children() {
        let mut pace = Pace::new(1);
        for _ in 0..100 {
            pace.count(1_000_000 * pace.width() as u64);
            pace.pass(PHASE, 3);
        }
        assert!(pace.width() <= 8, "{}", pace.width());
    }
}
