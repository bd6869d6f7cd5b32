//! Random choices that a seed repeats (splitmix64).

/// A source of random numbers.
pub(crate) struct Random(u64);

impl Random {
    /// Returns the source of this seed.
    pub(crate) fn of(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the source of `MINDER_SEED`, or of this seed without it, and its seed.
    pub(crate) fn asked(seed: u64) -> (Self, u64) {
        let seed = variable("MINDER_SEED").unwrap_or(seed);
        (Self::of(seed), seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below this one.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    /// Returns `true` once in this number of calls.
    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Returns the number in a variable of the environment.
pub(crate) fn variable(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}
