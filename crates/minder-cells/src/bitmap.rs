//! Bits outside of the cells: one for each, in words of 64.

use std::ops::Range;

/// One bit for each cell, from index 0 on.
#[derive(Default)]
pub(crate) struct Bitmap {
    words: Vec<u64>,
}

impl Bitmap {
    /// Makes room for this many bits; new ones are 0.
    ///
    /// # Errors
    /// The system has no memory.
    pub(crate) fn grow(&mut self, bits: usize) -> Result<(), std::collections::TryReserveError> {
        let words = bits.div_ceil(64);
        if let Some(more) = words.checked_sub(self.words.len()) {
            self.words.try_reserve(more)?;
            self.words.resize(words, 0);
        }
        Ok(())
    }

    #[inline]
    pub(crate) fn get(&self, index: usize) -> bool {
        self.words[index / 64] >> (index % 64) & 1 != 0
    }

    /// Sets a bit. Returns whether it was 0.
    #[inline]
    pub(crate) fn insert(&mut self, index: usize) -> bool {
        let word = &mut self.words[index / 64];
        let bit = 1 << (index % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }

    /// Sets the 64 bits from this index on, a multiple of 64. Returns those that were 0.
    #[inline]
    pub(crate) fn fill_word(&mut self, index: usize) -> u64 {
        !std::mem::replace(&mut self.words[index / 64], u64::MAX)
    }

    /// Returns the 64 bits from this index on, a multiple of 64.
    #[inline]
    pub(crate) fn word(&self, index: usize) -> u64 {
        self.words[index / 64]
    }

    /// Replaces the 64 bits from this index on, a multiple of 64.
    #[inline]
    pub(crate) fn set_word(&mut self, index: usize, bits: u64) {
        self.words[index / 64] = bits;
    }

    /// Sets some of the 64 bits from this index on, a multiple of 64.
    pub(crate) fn insert_word(&mut self, index: usize, bits: u64) {
        self.words[index / 64] |= bits;
    }

    /// Sets the bits of a range.
    pub(crate) fn insert_range(&mut self, range: Range<usize>) {
        if range.is_empty() {
            return;
        }
        let last = (range.end - 1) / 64;
        let first = range.start / 64;
        let head = u64::MAX << (range.start % 64);
        let tail = u64::MAX >> (63 - (range.end - 1) % 64);
        if first == last {
            self.words[first] |= head & tail;
            return;
        }
        self.words[first] |= head;
        self.words[first + 1..last].fill(u64::MAX);
        self.words[last] |= tail;
    }

    /// Clears the bits of a range, which begins and ends at a multiple of 64.
    pub(crate) fn clear(&mut self, range: Range<usize>) {
        self.words[range.start / 64..range.end / 64].fill(0);
    }

    /// Returns the first run of zeros in a range, which ends at a multiple of 64.
    #[inline]
    pub(crate) fn next_zeros(&self, range: Range<usize>) -> Option<Range<usize>> {
        let end = range.end / 64;
        let mut at = range.start / 64;
        // Ones below the start of the range are not zeros of it.
        let mut zeros = !self.words.get(at)? & (u64::MAX << (range.start % 64));
        if range.start >= range.end {
            return None;
        }
        while zeros == 0 {
            at += 1;
            if at >= end {
                return None;
            }
            zeros = !self.words[at];
        }
        let start = at * 64 + zeros.trailing_zeros() as usize;
        let mut ones = self.words[at] & (u64::MAX << (start % 64));
        while ones == 0 {
            at += 1;
            if at >= end {
                return Some(start..range.end);
            }
            ones = self.words[at];
        }
        Some(start..at * 64 + ones.trailing_zeros() as usize)
    }

    /// Returns the words of a range of bits, which begins and ends at a multiple of 64.
    #[inline]
    pub(crate) fn words(&self, range: Range<usize>) -> &[u64] {
        &self.words[range.start / 64..range.end / 64]
    }

    /// Tells the processor that a bit will be read soon.
    #[inline]
    pub(crate) fn prefetch(&self, index: usize) {
        crate::space::prefetch(&self.words, index / 64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_zeros_are_found() {
        let mut bitmap = Bitmap::default();
        bitmap.grow(256).expect("memory for 256 bits");
        assert_eq!(bitmap.next_zeros(0..256), Some(0..256));
        bitmap.insert_range(0..3);
        bitmap.insert_range(60..130);
        assert_eq!(bitmap.next_zeros(0..256), Some(3..60));
        assert_eq!(bitmap.next_zeros(10..256), Some(10..60));
        assert_eq!(bitmap.next_zeros(60..256), Some(130..256));
        assert_eq!(bitmap.next_zeros(60..128), None);
        assert_eq!(bitmap.next_zeros(256..256), None);
        bitmap.insert_range(130..256);
        assert_eq!(bitmap.next_zeros(130..256), None);
        bitmap.clear(64..128);
        assert_eq!(bitmap.next_zeros(60..256), Some(64..128));
    }

    #[test]
    fn ranges_agree_with_single_bits() {
        for range in [0..1, 0..64, 5..5, 63..65, 1..200, 64..128, 100..101] {
            let mut bitmap = Bitmap::default();
            bitmap.grow(256).expect("memory for 256 bits");
            bitmap.insert_range(range.clone());
            let set: Vec<usize> = (0..256).filter(|bit| bitmap.get(*bit)).collect();
            assert_eq!(set, range.clone().collect::<Vec<_>>(), "{range:?}");
            assert!(bitmap.insert(255) && !bitmap.insert(255));
        }
    }
}
