//! Roots: values that a collection keeps, and their handles.

use crate::word::Word;

/// The name of a value that a [`Heap`](crate::Heap) keeps, until it is released. It is a number, and is
/// copied freely.
///
/// A root that was released is never taken for another one: its generation differs. A root of another heap
/// is not recognised as such.
///
/// ```
/// use minder_cells::{Heap, HeapConfig, Root};
///
/// let mut heap = Heap::new(HeapConfig::new())?;
/// let root: Root = heap.mutate(|cells| {
///     let text = cells.string("kept")?;
///     cells.root(text)
/// })?;
/// heap.collect()?;
/// assert_eq!(heap.get(root).and_then(|text| text.as_str()), Some("kept"));
/// assert!(heap.release(root));
/// assert!(heap.get(root).is_none() && !heap.release(root));
/// # Ok::<(), minder_cells::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Root {
    slot: u32,
    generation: u32,
}

/// All roots of a heap.
#[derive(Default)]
pub(crate) struct Roots {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

struct Slot {
    word: Option<Word>,
    generation: u32,
}

impl Roots {
    /// Adds a root. Returns `None` if there is no memory, or there are 2³² of them.
    pub(crate) fn insert(&mut self, word: Word) -> Option<Root> {
        if let Some(slot) = self.free.pop() {
            let entry = &mut self.slots[slot as usize];
            entry.word = Some(word);
            return Some(Root { slot, generation: entry.generation });
        }
        let slot = u32::try_from(self.slots.len()).ok()?;
        self.slots.try_reserve(1).ok()?;
        // Releasing must not need memory.
        self.free.try_reserve(self.slots.len() + 1).ok()?;
        self.slots.push(Slot { word: Some(word), generation: 0 });
        Some(Root { slot, generation: 0 })
    }

    pub(crate) fn get(&self, root: Root) -> Option<Word> {
        let slot = self.slots.get(root.slot as usize)?;
        if slot.generation == root.generation { slot.word } else { None }
    }

    pub(crate) fn replace(&mut self, root: Root, word: Word) -> bool {
        match self.slots.get_mut(root.slot as usize) {
            Some(slot) if slot.generation == root.generation && slot.word.is_some() => {
                slot.word = Some(word);
                true
            }
            _ => false,
        }
    }

    pub(crate) fn release(&mut self, root: Root) -> bool {
        match self.slots.get_mut(root.slot as usize) {
            Some(slot) if slot.generation == root.generation && slot.word.is_some() => {
                slot.word = None;
                // A slot whose generations are used up is not used again.
                if let Some(next) = slot.generation.checked_add(1) {
                    slot.generation = next;
                    self.free.push(root.slot);
                }
                true
            }
            _ => false,
        }
    }

    pub(crate) fn words(&self) -> impl Iterator<Item = Word> {
        self.slots.iter().filter_map(|slot| slot.word)
    }

    /// Returns the number of roots.
    pub(crate) fn len(&self) -> usize {
        self.words().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slot_whose_generations_are_used_up_is_not_used_again() {
        let mut roots = Roots::default();
        let first = roots.insert(Word::NIL).expect("memory for a root");
        roots.slots[0].generation = u32::MAX;
        let last = Root { slot: 0, generation: u32::MAX };
        assert!(!roots.release(first) && roots.get(last).is_some());
        assert!(roots.release(last) && !roots.release(last) && roots.get(last).is_none());
        assert!(!roots.replace(last, Word::NULL));
        let next = roots.insert(Word::TRUE).expect("memory for a root");
        assert_eq!((next.slot, roots.len()), (1, 1));
    }
}
