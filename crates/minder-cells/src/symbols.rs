//! Names that exist once: a table of their texts.

use std::hash::{BuildHasher, RandomState};

use crate::build::text_at;
use crate::error::Result;
use crate::space::{Cell, words};
use crate::word::{Kind, Word};

/// The texts of the symbols in some cells: a hash table with open addressing, which has indices only.
///
/// The hash is seeded, because keys come from outside.
pub(crate) struct Symbols {
    slots: Vec<Slot>,
    /// Slots of earlier rounds are empty.
    round: u32,
    used: usize,
    /// The slot of the symbol that was asked for last.
    last: usize,
    /// Random numbers, the second one odd.
    seeds: [u64; 2],
}

/// A place for one symbol.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// The index of a symbol.
    index: u32,
    /// The round in which it was put here.
    round: u32,
    /// The slot of the symbol that was asked for after this one the last time. Objects in an array have the
    /// same keys in the same order, so it is usually the next one again.
    follower: u32,
    /// `true` if the text is the same in JSON, between quotes.
    is_plain: bool,
}

impl Slot {
    fn new(index: u32, round: u32, text: &[u8]) -> Self {
        let is_plain = !text.iter().any(|byte| matches!(byte, 0..0x20 | b'"' | b'\\'));
        Self { index, round, follower: 0, is_plain }
    }
}

impl Default for Symbols {
    fn default() -> Self {
        Self { slots: Vec::new(), round: 1, used: 0, last: 0, seeds: [random(), random() | 1] }
    }
}

const SLOTS_MIN: usize = 64;

/// Returns a random number: the standard library seeds its hashes with some.
fn random() -> u64 {
    RandomState::new().hash_one(0)
}

impl Symbols {
    /// Returns the symbol that was asked for after the last one the last time, and its number of bytes, if
    /// this JSON begins with it and a quote.
    #[inline]
    pub(crate) fn predict(&mut self, json: &[u8], cells: &[Cell]) -> Option<(Word, usize)> {
        let follower = self.follower()?;
        let slot = self.slots[follower];
        if slot.round != self.round || !slot.is_plain {
            return None;
        }
        let len = cells[slot.index as usize][0] as usize;
        let (text, rest) = json.split_at_checked(len)?;
        if rest.first() != Some(&b'"') || !has_text(cells, slot.index, text) {
            return None;
        }
        self.last = follower;
        Some((Word::at(Kind::Symbol, slot.index), len))
    }

    /// Returns the slot of the symbol that came after the last one the last time.
    #[inline]
    fn follower(&self) -> Option<usize> {
        let slot = self.slots.get(self.last)?;
        Some(slot.follower as usize)
    }

    /// Returns the symbol of this text. `make` makes one that is new.
    #[inline]
    pub(crate) fn intern<C>(
        &mut self,
        text: &str,
        store: &mut C,
        cells: impl Fn(&C) -> &[Cell],
        make: impl FnOnce(&mut C) -> Result<Word>,
    ) -> Result<Word> {
        if let Some(follower) = self.follower() {
            let slot = self.slots[follower];
            if slot.round == self.round && has_text(cells(store), slot.index, text.as_bytes()) {
                self.last = follower;
                return Ok(Word::at(Kind::Symbol, slot.index));
            }
        }
        self.find_or_make(text, store, cells, make)
    }

    fn find_or_make<C>(
        &mut self,
        text: &str,
        store: &mut C,
        cells: impl Fn(&C) -> &[Cell],
        make: impl FnOnce(&mut C) -> Result<Word>,
    ) -> Result<Word> {
        if 2 * (self.used + 1) > self.slots.len() {
            self.grow(cells(store))?;
        }
        let mask = self.slots.len() - 1;
        let mut at = self.hash(text.as_bytes()) & mask;
        while self.slots[at].round == self.round {
            if has_text(cells(store), self.slots[at].index, text.as_bytes()) {
                self.follow(at);
                return Ok(Word::at(Kind::Symbol, self.slots[at].index));
            }
            at = (at + 1) & mask;
        }
        let word = make(store)?;
        self.slots[at] = Slot::new(word.index(), self.round, text.as_bytes());
        self.used += 1;
        self.follow(at);
        Ok(word)
    }

    /// Notes which symbol was asked for.
    fn follow(&mut self, at: usize) {
        // A table has at most 2^32 slots: symbols have indices of 32 bits.
        self.slots[self.last].follower = at as u32;
        self.last = at;
    }

    /// Hashes a text by multiplication, eight bytes at a time.
    #[inline]
    fn hash(&self, text: &[u8]) -> usize {
        let fold = |one: u64, other: u64| {
            let product = u128::from(one) * u128::from(other);
            product as u64 ^ (product >> 64) as u64
        };
        let [seed, factor] = self.seeds;
        let (words, tail) = text.as_chunks::<8>();
        let hash = words
            .iter()
            .fold(seed ^ text.len() as u64, |hash, word| fold(hash ^ u64::from_le_bytes(*word), factor));
        fold(hash ^ padded(tail), factor) as usize
    }

    fn grow(&mut self, cells: &[Cell]) -> Result<()> {
        let count = (2 * self.slots.len()).max(SLOTS_MIN);
        let mut slots = Vec::new();
        slots.try_reserve_exact(count)?;
        slots.resize(count, Slot::default());
        let old = std::mem::replace(&mut self.slots, slots);
        let round = self.round;
        self.insert_all(old.into_iter().filter(|slot| slot.round == round).map(|slot| slot.index), cells);
        Ok(())
    }

    /// Puts symbols into the slots, which are empty.
    fn insert_all(&mut self, all: impl Iterator<Item = u32>, cells: &[Cell]) {
        let mask = self.slots.len() - 1;
        self.used = 0;
        self.last = 0;
        for index in all {
            let text = text_at(cells, index);
            let mut at = self.hash(text) & mask;
            while self.slots[at].round == self.round {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot::new(index, self.round, text);
            self.used += 1;
        }
    }

    /// Removes all symbols, in constant time.
    pub(crate) fn clear(&mut self) {
        self.used = 0;
        self.last = 0;
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.slots.fill(Slot::default());
            self.round = 1;
        }
    }

    /// Removes the symbols that are not kept.
    pub(crate) fn retain(&mut self, cells: &[Cell], is_kept: impl Fn(u32) -> bool) {
        if self.used == 0 {
            return;
        }
        let round = self.round;
        let old = self.slots.iter().filter(|slot| slot.round == round).map(|slot| slot.index);
        let kept: Vec<u32> = old.filter(|index| is_kept(*index)).collect();
        if kept.len() < self.used {
            self.shrink(kept.len());
            self.clear();
            self.insert_all(kept.into_iter(), cells);
        }
    }

    /// Makes the table smaller if it has far more slots than this many symbols need, and empties it then.
    fn shrink(&mut self, symbols: usize) {
        let count = (4 * symbols).next_power_of_two().max(SLOTS_MIN);
        let mut slots = Vec::new();
        if 4 * count <= self.slots.len() && slots.try_reserve_exact(count).is_ok() {
            slots.resize(count, Slot::default());
            self.slots = slots;
        }
    }

    /// Returns the number of symbols.
    pub(crate) fn len(&self) -> usize {
        self.used
    }

    /// Returns the number of bytes of the table.
    pub(crate) fn table_bytes(&self) -> usize {
        self.slots.capacity() * size_of::<Slot>()
    }
}

/// Returns whether the symbol at this index has this text. Its bytes are followed by zeros, so that words can
/// be compared.
#[inline]
fn has_text(cells: &[Cell], index: u32, text: &[u8]) -> bool {
    let words = &words(cells)[2 * index as usize..];
    let (chunks, tail) = text.as_chunks::<8>();
    if words[0] != text.len() as u64 {
        return false;
    }
    let same = chunks.iter().zip(&words[1..]).all(|(chunk, word)| u64::from_ne_bytes(*chunk) == *word);
    same && (tail.is_empty() || u64::from_le(words[chunks.len() + 1]) == padded(tail))
}

/// Returns at most 7 bytes as a number, the first one lowest.
#[inline]
fn padded(tail: &[u8]) -> u64 {
    let len = tail.len();
    let byte = |at: usize| u64::from(tail[at]) << (8 * at);
    match (tail.first_chunk::<4>(), tail.last_chunk::<4>()) {
        // The bytes in both are the same in both.
        (Some(first), Some(last)) => {
            u64::from(u32::from_le_bytes(*first)) | u64::from(u32::from_le_bytes(*last)) << (8 * (len - 4))
        }
        _ if len == 0 => 0,
        _ => byte(0) | byte(len / 2) | byte(len - 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_padded_with_zeros() {
        for len in 0..8 {
            let tail: Vec<u8> = (1..=len).collect();
            let mut bytes = [0; 8];
            bytes[..tail.len()].copy_from_slice(&tail);
            assert_eq!(padded(&tail), u64::from_le_bytes(bytes), "{tail:?}");
        }
    }
}
