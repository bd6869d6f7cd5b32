//! A word: one value, or the place of one in the heap.
//!
//! The three lowest bits are the tag. Integers of 61 bits are in the word itself; so are nil, null, true and
//! false. Every other value is in cells, and the word has the index of the first one.
//!
//! | tag | value | cells |
//! | --- | --- | --- |
//! | integer | the other 61 bits | none |
//! | pair | two words | one |
//! | string, symbol | the number of bytes, then the bytes | as many as they need |
//! | vector | the number of elements, then that many words | as many as they need |
//! | map | the number of entries, a word without use; then a cell for each: key, value | one more |
//! | number | the bits, then what they mean: [`NumberKind`] | one |

/// The kind of a word. The discriminant is the tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Integer = 0,
    Pair = 1,
    Str = 2,
    Symbol = 3,
    Vector = 4,
    Map = 5,
    Number = 6,
    Constant = 7,
}

/// The type of a number whose bits are in a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NumberKind {
    Float = 0,
    Signed = 1,
    Unsigned = 2,
}

const TAG_BITS: u32 = 3;
const TAG_MASK: u64 = (1 << TAG_BITS) - 1;
/// The integers that fit into a word.
const INTEGER_MAX: i64 = i64::MAX >> TAG_BITS;
const INTEGER_MIN: i64 = i64::MIN >> TAG_BITS;

/// One value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) u64);

impl Word {
    pub(crate) const NIL: Self = Self::constant(0);
    pub(crate) const NULL: Self = Self::constant(1);
    pub(crate) const FALSE: Self = Self::constant(2);
    pub(crate) const TRUE: Self = Self::constant(3);

    const fn constant(number: u64) -> Self {
        Self(number << TAG_BITS | Kind::Constant as u64)
    }

    /// Returns the word of an integer, if it fits.
    #[inline]
    pub(crate) const fn integer(number: i64) -> Option<Self> {
        if number >= INTEGER_MIN && number <= INTEGER_MAX {
            Some(Self((number << TAG_BITS).cast_unsigned()))
        } else {
            None
        }
    }

    /// Returns the word of what is at this index.
    #[inline]
    pub(crate) const fn at(kind: Kind, index: u32) -> Self {
        Self((index as u64) << TAG_BITS | kind as u64)
    }

    #[inline]
    pub(crate) const fn kind(self) -> Kind {
        match self.0 & TAG_MASK {
            0 => Kind::Integer,
            1 => Kind::Pair,
            2 => Kind::Str,
            3 => Kind::Symbol,
            4 => Kind::Vector,
            5 => Kind::Map,
            6 => Kind::Number,
            _ => Kind::Constant,
        }
    }

    /// Returns whether the value is in cells.
    #[inline]
    pub(crate) const fn is_in_cells(self) -> bool {
        // The tags 0 and 7 are not, so the next tag is 1 or 0.
        ((self.0 + 1) & TAG_MASK) > 1
    }

    /// Returns the index of the first cell.
    #[inline]
    pub(crate) const fn index(self) -> u32 {
        (self.0 >> TAG_BITS) as u32
    }

    /// Returns what is above the tag: the index, of a word that was made here.
    #[inline]
    pub(crate) const fn place(self) -> u64 {
        self.0 >> TAG_BITS
    }

    /// Returns the word of the same kind whose index is greater by `by`.
    #[inline]
    pub(crate) const fn step(self, by: i64) -> Self {
        Self(self.0.wrapping_add_signed(by << TAG_BITS))
    }

    /// Returns whether this is a pair at most `near` cells before or after `pair`, which is one.
    #[inline]
    pub(crate) const fn is_pair_near(self, pair: Self, near: u32) -> bool {
        // Two words of the same kind differ by their indices alone.
        let difference = self.0.wrapping_sub(pair.0);
        let most = (near as u64) << TAG_BITS;
        difference & TAG_MASK == 0 && difference.wrapping_add(most) <= 2 * most
    }

    /// Returns the integer in the word.
    #[inline]
    pub(crate) const fn as_integer(self) -> i64 {
        self.0.cast_signed() >> TAG_BITS
    }
}

/// Returns the number of cells of what has this kind and this first word.
#[inline]
pub(crate) const fn cells_of(kind: Kind, first: u64) -> usize {
    let count = first as usize;
    match kind {
        Kind::Str | Kind::Symbol => string_cells(count),
        Kind::Vector => vector_cells(count),
        Kind::Map => map_cells(count),
        Kind::Pair | Kind::Number => 1,
        Kind::Integer | Kind::Constant => 0,
    }
}

/// Returns the number of cells of a string with this many bytes.
#[inline]
pub(crate) const fn string_cells(bytes: usize) -> usize {
    (bytes.saturating_add(8)).div_ceil(16)
}

/// Returns the number of cells of a vector with this many elements.
#[inline]
pub(crate) const fn vector_cells(elements: usize) -> usize {
    elements.saturating_add(1).div_ceil(2)
}

/// Returns the number of cells of a map with this many entries.
#[inline]
pub(crate) const fn map_cells(entries: usize) -> usize {
    entries.saturating_add(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_and_indices_survive() {
        for number in [0, 1, -1, INTEGER_MAX, INTEGER_MIN] {
            let word = Word::integer(number).expect("it fits");
            assert_eq!((word.kind(), word.as_integer()), (Kind::Integer, number));
            assert!(!word.is_in_cells());
        }
        assert_eq!([INTEGER_MAX + 1, INTEGER_MIN - 1].map(Word::integer), [None; 2]);
        for kind in [Kind::Pair, Kind::Str, Kind::Symbol, Kind::Vector, Kind::Map, Kind::Number] {
            let word = Word::at(kind, u32::MAX);
            assert_eq!((word.kind(), word.index(), word.is_in_cells()), (kind, u32::MAX, true));
        }
        for word in [Word::NIL, Word::NULL, Word::FALSE, Word::TRUE] {
            assert_eq!((word.kind(), word.is_in_cells()), (Kind::Constant, false));
        }
    }

    #[test]
    fn pairs_are_near_in_both_directions() {
        let pair = Word::at(Kind::Pair, 1000);
        let near: Vec<u32> =
            (0..2000).filter(|index| Word::at(Kind::Pair, *index).is_pair_near(pair, 64)).collect();
        assert_eq!(near, (936..=1064).collect::<Vec<_>>());
        for kind in [Kind::Integer, Kind::Str, Kind::Vector, Kind::Map, Kind::Number, Kind::Constant] {
            assert!((990..1010).all(|index| !Word::at(kind, index).is_pair_near(pair, 64)), "{kind:?}");
        }
        assert!(!Word::at(Kind::Pair, u32::MAX).is_pair_near(Word::at(Kind::Pair, 0), 64));
    }

    #[test]
    fn cells_have_room_for_contents() {
        assert_eq!([0, 8, 9, 24, 25].map(string_cells), [1, 1, 2, 2, 3]);
        assert_eq!([0, 1, 2, 3, 4].map(vector_cells), [1, 1, 2, 2, 3]);
        assert_eq!([0, 1, 9].map(map_cells), [1, 2, 10]);
    }
}
