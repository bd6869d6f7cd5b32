//! Delays that double: before a job is retried, before a child is restarted.

use std::time::Duration;

use crate::random::Random;

/// The longest delay: a year, which can be added to an `Instant`.
pub(crate) const DELAY_MAX: Duration = Duration::from_secs(365 * 86_400);

/// The delays before repeated attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backoff {
    /// The delay before the first repetition. It doubles with each further one.
    pub(crate) first: Duration,
    /// The longest delay, before jitter.
    pub(crate) max: Duration,
    /// Each delay is multiplied by a random factor between 1 - `jitter` and 1 + `jitter`.
    pub(crate) jitter: f64,
}

impl Backoff {
    /// Returns the delay before this repetition, counted from 1.
    pub(crate) fn delay(&self, repetition: u32, random: &mut Random) -> Duration {
        let doubled = self.first.saturating_mul(1 << repetition.saturating_sub(1).min(30));
        let delay = doubled.min(self.max).min(DELAY_MAX);
        if self.jitter > 0.0 {
            delay.mul_f64(1.0 + self.jitter.min(1.0) * (2.0 * random.fraction() - 1.0))
        } else {
            delay
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delay_doubles_up_to_the_maximum() {
        let ms = Duration::from_millis;
        let backoff = Backoff { first: ms(100), max: ms(350), jitter: 0.0 };
        let mut random = Random::new(0);
        let delays: Vec<_> = (0..5).map(|repetition| backoff.delay(repetition, &mut random)).collect();
        assert_eq!(delays, [ms(100), ms(100), ms(200), ms(350), ms(350)]);
        let longest = Backoff { first: Duration::MAX, max: Duration::MAX, jitter: 1.0 };
        assert!(longest.delay(u32::MAX, &mut random) <= 2 * DELAY_MAX);
    }
}
