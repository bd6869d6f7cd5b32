//! Making values from cells, in a heap and in a region alike.

use crate::error::{Error, Result};
use crate::space::{Cell, bytes, bytes_mut};
use crate::word::{Kind, NumberKind, Word, map_cells, string_cells, vector_cells};

/// A supply of cells: the heap, or a region.
pub(crate) trait Cells {
    /// Allocates cells with successive indices, with any contents. Returns the first index.
    fn allocate(&mut self, count: usize) -> Result<usize>;

    fn cells_mut(&mut self) -> &mut [Cell];

    /// Notes that a new value refers to this one.
    #[inline]
    fn refer(&mut self, word: Word) -> Result<()> {
        self.refer_all(&[word.0])
    }

    /// Notes that a new value refers to these words.
    fn refer_all(&mut self, words: &[u64]) -> Result<()>;
}

/// Returns the word of something in cells.
///
/// Indices fit, because no heap and no region is larger.
#[inline]
pub(crate) fn word_at(kind: Kind, index: usize) -> Result<Word> {
    let index = u32::try_from(index).map_err(|_| Error::Invalid { expected: "less than 2^32 cells" })?;
    Ok(Word::at(kind, index))
}

#[inline]
pub(crate) fn pair(cells: &mut impl Cells, first: Word, second: Word) -> Result<Word> {
    cells.refer(first)?;
    cells.refer(second)?;
    let index = cells.allocate(1)?;
    cells.cells_mut()[index] = [first.0, second.0];
    word_at(Kind::Pair, index)
}

#[inline]
pub(crate) fn signed(cells: &mut impl Cells, number: i64) -> Result<Word> {
    match Word::integer(number) {
        Some(word) => Ok(word),
        None => boxed(cells, number.cast_unsigned(), NumberKind::Signed),
    }
}

pub(crate) fn unsigned(cells: &mut impl Cells, number: u64) -> Result<Word> {
    match i64::try_from(number) {
        Ok(number) => signed(cells, number),
        Err(_) => boxed(cells, number, NumberKind::Unsigned),
    }
}

#[inline]
pub(crate) fn float(cells: &mut impl Cells, number: f64) -> Result<Word> {
    boxed(cells, number.to_bits(), NumberKind::Float)
}

fn boxed(cells: &mut impl Cells, bits: u64, kind: NumberKind) -> Result<Word> {
    let index = cells.allocate(1)?;
    cells.cells_mut()[index] = [bits, kind as u64];
    word_at(Kind::Number, index)
}

/// Returns the bytes of a string or a symbol.
#[inline]
pub(crate) fn text_at(cells: &[Cell], index: u32) -> &[u8] {
    let index = index as usize;
    let len = cells[index][0] as usize;
    &bytes(&cells[index..index + string_cells(len)])[8..8 + len]
}

/// Makes a string or a symbol.
#[inline]
pub(crate) fn text(cells: &mut impl Cells, kind: Kind, text: &str) -> Result<Word> {
    let count = string_cells(text.len());
    let index = cells.allocate(count)?;
    let run = &mut cells.cells_mut()[index..index + count];
    // The bytes after the text have a value that does not depend on earlier contents.
    run[count - 1] = [0, 0];
    run[0][0] = text.len() as u64;
    bytes_mut(run)[8..8 + text.len()].copy_from_slice(text.as_bytes());
    word_at(kind, index)
}

pub(crate) fn vector(cells: &mut impl Cells, elements: &[Word]) -> Result<Word> {
    let words: Vec<u64> = elements.iter().map(|word| word.0).collect();
    vector_of(cells, &words)
}

/// Makes a vector of words.
#[inline]
pub(crate) fn vector_of(cells: &mut impl Cells, words: &[u64]) -> Result<Word> {
    cells.refer_all(words)?;
    let count = vector_cells(words.len());
    let index = cells.allocate(count)?;
    let run = cells.cells_mut()[index..index + count].as_flattened_mut();
    run[0] = words.len() as u64;
    let (elements, rest) = run[1..].split_at_mut(words.len());
    elements.copy_from_slice(words);
    rest.fill(0);
    word_at(Kind::Vector, index)
}

/// Makes a map of keys and values, one after another.
pub(crate) fn map(cells: &mut impl Cells, words: &[Word]) -> Result<Word> {
    let entries: Vec<Cell> = words.as_chunks::<2>().0.iter().map(|entry| entry.map(|word| word.0)).collect();
    map_of(cells, &entries)
}

/// Makes a map of words: each entry is a cell.
#[inline]
pub(crate) fn map_of(cells: &mut impl Cells, entries: &[Cell]) -> Result<Word> {
    cells.refer_all(entries.as_flattened())?;
    let count = map_cells(entries.len());
    let index = cells.allocate(count)?;
    let run = &mut cells.cells_mut()[index..index + count];
    run[0] = [entries.len() as u64, 0];
    run[1..].copy_from_slice(entries);
    word_at(Kind::Map, index)
}
