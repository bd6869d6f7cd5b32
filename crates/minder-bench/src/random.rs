//! Pseudo-random numbers that are the same in every run.

/// The generator SplitMix64 (Steele, Lea, Flood 2014). Every seed is a good one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Draws a number below `bound`, which is at least 1.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // Scales the upper half: a multiplication costs less than a remainder.
        (((bits >> 32) * bound as u64) >> 32) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_draws_every_number_below_bound_about_equally_often() {
        for bound in [1, 2, 64, 1000] {
            let mut random = Random::new(0);
            let mut draws = vec![0; bound];
            for _ in 0..bound * 100 {
                draws[random.below(bound)] += 1;
            }
            assert!(draws.iter().all(|draws| (40..200).contains(draws)), "{bound}: {draws:?}");
        }
    }
}
