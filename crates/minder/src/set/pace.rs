//! The number of spilling children that are read at a time: the least number that brings as many
//! bytes as more would.
//!
//! If children wait for something other than the processor, such as a network, reading more of them
//! brings more bytes. If they compute, they only share the processors, and the output of all of them
//! waits in files at the same time. Only a trial shows which is the case. `Pace` makes trials
//! repeatedly, and more and more rarely while nothing changes.

use std::time::Duration;

/// The time for which one width is measured.
const PHASE: Duration = Duration::from_millis(250);
/// The throughput that twice the width must reach, in per cent of the throughput before. Otherwise
/// the smaller width stays, because measurements on a busy machine vary.
const GAIN_PERCENT: u64 = 150;
/// The most phases between two trials.
const REST_MAX: u32 = 16;

/// The width that is measured now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trial {
    /// The width that the last trial settled on.
    None,
    /// Twice that width.
    More,
    /// Half of that width.
    Fewer,
}

/// A state machine without clock and children: bytes and time go in, a width comes out.
#[derive(Debug)]
pub(super) struct Pace {
    /// The smallest width.
    floor: usize,
    width: usize,
    trial: Trial,
    /// Bytes and time of the present phase.
    bytes: u64,
    time: Duration,
    /// The throughput before the trial, in bytes per millisecond.
    throughput_before: u64,
    /// Phases until the next trial.
    rest: u32,
    /// Phases between the last two trials.
    rest_length: u32,
    /// `true` if the last trial that failed was [`Trial::More`].
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
            throughput_before: 0,
            rest: 0,
            rest_length: 1,
            failed_more: false,
        }
    }

    /// Returns how many children may be read at a time.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Counts bytes that were read.
    pub(super) fn count(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    /// Counts time that was spent reading and waiting for output of `readers` children.
    pub(super) fn add_time(&mut self, time: Duration, readers: usize) {
        self.time += time;
        if self.time < PHASE {
            return;
        }
        let millis = u64::try_from(self.time.as_millis()).unwrap_or(u64::MAX).max(1);
        let throughput = self.bytes / millis;
        self.bytes = 0;
        self.time = Duration::ZERO;
        match self.trial {
            Trial::More
                if throughput * 100 >= self.throughput_before * GAIN_PERCENT && readers > self.width / 2 =>
            {
                self.rest_length = 1;
                self.try_more(throughput);
            }
            Trial::More => {
                self.width = (self.width / 2).max(self.floor);
                self.fail(true);
            }
            Trial::Fewer if throughput * GAIN_PERCENT >= self.throughput_before * 100 => {
                self.try_fewer(throughput);
            }
            Trial::Fewer => {
                self.width *= 2;
                self.fail(false);
            }
            Trial::None if self.rest > 0 => self.rest -= 1,
            Trial::None if self.failed_more && self.width > self.floor => self.try_fewer(throughput),
            Trial::None => self.try_more(throughput),
        }
    }

    fn try_more(&mut self, throughput: u64) {
        self.trial = Trial::More;
        self.throughput_before = throughput;
        self.width = self.width.saturating_mul(2);
    }

    fn try_fewer(&mut self, throughput: u64) {
        self.trial = Trial::Fewer;
        self.throughput_before = throughput;
        if self.width / 2 < self.floor {
            self.fail(false);
        } else {
            self.width /= 2;
        }
    }

    fn fail(&mut self, more: bool) {
        self.trial = Trial::None;
        self.failed_more = more;
        self.rest_length = (self.rest_length * 2).min(REST_MAX);
        self.rest = self.rest_length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs phases in which `bytes` returns how many bytes a number of children brings. Returns the
    /// width.
    fn run_phases(pace: &mut Pace, phases: usize, bytes: impl Fn(usize) -> u64) -> usize {
        for _ in 0..phases {
            pace.count(bytes(pace.width()));
            pace.add_time(PHASE, pace.width());
        }
        pace.width()
    }

    #[test]
    fn width_grows_while_more_children_bring_more_bytes() {
        let mut pace = Pace::new(2);
        let network = |width: usize| 1_000_000 * width.min(64) as u64;
        assert!(run_phases(&mut pace, 8, network) >= 64);
    }

    #[test]
    fn width_stays_small_when_children_share_the_processors() {
        let mut pace = Pace::new(2);
        let mut widths = Vec::new();
        for _ in 0..200 {
            widths.push(run_phases(&mut pace, 1, |_| 100_000_000));
        }
        assert!(widths.iter().all(|width| [2, 4].contains(width)), "{widths:?}");
        // Trials are rare.
        assert!(widths.iter().filter(|width| **width == 4).count() < 20, "{widths:?}");
    }

    #[test]
    fn width_shrinks_when_more_children_no_longer_bring_more() {
        let mut pace = Pace::new(1);
        assert!(run_phases(&mut pace, 6, |width| 1_000_000 * width.min(32) as u64) >= 32);
        let mut least = usize::MAX;
        for _ in 0..100 {
            least = least.min(run_phases(&mut pace, 1, |_| 32_000_000));
        }
        assert_eq!(least, 1);
    }

    #[test]
    fn width_does_not_grow_beyond_the_readers() {
        let mut pace = Pace::new(1);
        for _ in 0..100 {
            pace.count(1_000_000 * pace.width() as u64);
            pace.add_time(PHASE, 3);
        }
        assert!(pace.width() <= 8, "{}", pace.width());
    }
}
