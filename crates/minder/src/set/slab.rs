//! Children in a table, by ids with generations: the id of a child that is done never names
//! another child, of this table or another.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::event::{ChildId, Stream};

/// The endpoint of a child that a key of the reactor names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    Process,
    Stdin,
    Stdout,
    Stderr,
}

impl Endpoint {
    /// Returns the key under which this endpoint of a child is registered with the reactor.
    pub(super) fn key(self, id: ChildId) -> u64 {
        id.as_u64() | (self as u64) << ENDPOINT_SHIFT
    }

    /// Returns the child and the endpoint of a key.
    pub(super) fn of_key(key: u64) -> (ChildId, Self) {
        let endpoint = ENDPOINTS[(key >> ENDPOINT_SHIFT & 3) as usize];
        (ChildId::from_u64(key >> 32 << 32 | key & INDEX_MASK), endpoint)
    }
}

impl From<Stream> for Endpoint {
    fn from(stream: Stream) -> Self {
        match stream {
            Stream::Stdout => Self::Stdout,
            Stream::Stderr => Self::Stderr,
        }
    }
}

const ENDPOINTS: [Endpoint; 4] = [Endpoint::Process, Endpoint::Stdin, Endpoint::Stdout, Endpoint::Stderr];
const ENDPOINT_SHIFT: u32 = 30;
const INDEX_MASK: u64 = (1 << ENDPOINT_SHIFT) - 1;
/// Without the highest bit, so that no id is one of those that a backend reserves.
const GENERATION_MASK: u32 = 0x7fff_ffff;
/// The generation of the next value, of any table: no two tables give out the same id.
static NEXT_GENERATION: AtomicU32 = AtomicU32::new(1);

/// A table of values. An id is a generation above an index. The reactor's keys have the endpoint
/// between them.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<u32>,
}

/// A place in the table, with the generation of its last value.
#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slot<T> {
    fn has_generation_of(&self, id: ChildId) -> bool {
        u64::from(self.generation) == id.as_u64() >> 32
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn insert(&mut self, value: T) -> ChildId {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.generation = NEXT_GENERATION.fetch_add(1, Ordering::Relaxed) & GENERATION_MASK;
        slot.value = Some(value);
        ChildId::from_u64(u64::from(slot.generation) << 32 | u64::from(index))
    }

    pub(super) fn get(&self, id: ChildId) -> Option<&T> {
        let slot = self.slots.get(id.index())?;
        if slot.has_generation_of(id) { slot.value.as_ref() } else { None }
    }

    pub(super) fn get_mut(&mut self, id: ChildId) -> Option<&mut T> {
        let slot = self.slots.get_mut(id.index())?;
        if slot.has_generation_of(id) { slot.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, id: ChildId) -> Option<T> {
        self.get(id)?;
        self.free.push(id.index() as u32);
        self.slots[id.index()].value.take()
    }

    /// Returns the ids of all values.
    pub(super) fn ids(&self) -> Vec<ChildId> {
        let id = |(index, slot): (usize, &Slot<T>)| {
            slot.value.as_ref().map(|_| ChildId::from_u64(u64::from(slot.generation) << 32 | index as u64))
        };
        self.slots.iter().enumerate().filter_map(id).collect()
    }

    /// Returns all values.
    pub(super) fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| slot.value.as_mut())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_returns_nothing_for_the_id_of_a_removed_value() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        let key = Endpoint::Stderr.key(first);
        assert_eq!(Endpoint::of_key(key), (first, Endpoint::Stderr));
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert!(slab.get(first).is_none() && slab.remove(first).is_none());
        assert_eq!((slab.len(), slab.ids()), (1, vec![second]));
    }
}
