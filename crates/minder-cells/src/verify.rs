//! A simple collection, which a collection is compared with.

use std::collections::HashSet;

use crate::blocks::Blocks;
use crate::space::words;
use crate::word::{Kind, Word, cells_of};

/// Finds every cell that the roots reach, and compares that with the marks.
///
/// # Panics
/// A cell that is reachable has no mark. A cell that has a mark but is not reachable is allowed: it was made
/// during the collection, or became unreachable meanwhile.
pub(crate) fn check(blocks: &Blocks, roots: impl Iterator<Item = Word>) {
    let cells = blocks.cells();
    let mut seen = HashSet::new();
    let mut rest: Vec<Word> = roots.filter(|word| word.is_in_cells()).collect();
    while let Some(word) = rest.pop() {
        if !seen.insert(word.index()) {
            continue;
        }
        let index = word.index() as usize;
        let kind = word.kind();
        let [first, second] = cells[index];
        let count = cells_of(kind, first);
        for cell in index..index + count {
            assert!(
                blocks.is_marked(cell),
                "cell {cell} of a {kind:?} at {index} is reachable, but not marked"
            );
        }
        let inner: &[u64] = match kind {
            Kind::Pair => &[first, second],
            Kind::Vector => &words(cells)[2 * index + 1..2 * index + 1 + first as usize],
            Kind::Map => &words(cells)[2 * index + 2..2 * (index + count)],
            _ => &[],
        };
        rest.extend(inner.iter().map(|word| Word(*word)).filter(|word| word.is_in_cells()));
    }
}
