//! Children by small numbers that are used again, with generations so that an old token names
//! nobody.

use crate::event::Token;

/// Which endpoint of a child a port's token names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Process,
    Stdin,
    Stdout,
    Stderr,
}

const KINDS: [Kind; 4] = [Kind::Process, Kind::Stdin, Kind::Stdout, Kind::Stderr];
const KIND_SHIFT: u32 = 30;
const INDEX_MASK: u64 = (1 << KIND_SHIFT) - 1;
/// Below the highest bit, so that no token reaches those that a backend keeps for itself.
const GENERATION_MASK: u32 = 0x7fff_ffff;

/// A token is a generation above an index; a port's token has the kind of endpoint between them.
#[derive(Debug)]
pub(super) struct Slab<T> {
    slots: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
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

    pub(super) fn insert(&mut self, value: T) -> Token {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push((0, None));
            (self.slots.len() - 1) as u32
        });
        let slot = &mut self.slots[index as usize];
        slot.0 = (slot.0 + 1) & GENERATION_MASK;
        slot.1 = Some(value);
        Token(u64::from(slot.0) << 32 | u64::from(index))
    }

    pub(super) fn get(&self, token: Token) -> Option<&T> {
        let (generation, value) = self.slots.get(token.index())?;
        value.as_ref().filter(|_| u64::from(*generation) == token.0 >> 32)
    }

    pub(super) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let (generation, value) = self.slots.get_mut(token.index())?;
        value.as_mut().filter(|_| u64::from(*generation) == token.0 >> 32)
    }

    pub(super) fn remove(&mut self, token: Token) -> Option<T> {
        self.get(token)?;
        self.free.push(token.index() as u32);
        self.slots[token.index()].1.take()
    }

    pub(super) fn tokens(&self) -> Vec<Token> {
        let live = |(index, (generation, value)): (usize, &(u32, Option<T>))| {
            value.as_ref().map(|_| Token(u64::from(*generation) << 32 | index as u64))
        };
        self.slots.iter().enumerate().filter_map(live).collect()
    }

    pub(super) fn port_token(&self, token: Token, kind: Kind) -> u64 {
        token.0 | (kind as u64) << KIND_SHIFT
    }

    /// The child and endpoint that a port's token names, if the child is still there.
    pub(super) fn find(&self, port_token: u64) -> Option<(Token, Kind)> {
        let kind = KINDS[(port_token >> KIND_SHIFT & 3) as usize];
        let token = Token(port_token >> 32 << 32 | port_token & INDEX_MASK);
        self.get(token).map(|_| (token, kind))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_token_names_nobody() {
        let mut slab = Slab::default();
        let first = slab.insert('a');
        let port_token = slab.port_token(first, Kind::Stderr);
        assert_eq!(slab.find(port_token), Some((first, Kind::Stderr)));
        assert_eq!(slab.remove(first), Some('a'));
        let second = slab.insert('b');
        assert_eq!(first.index(), second.index());
        assert!(slab.get(first).is_none() && slab.remove(first).is_none());
        assert_eq!(slab.find(port_token), None);
        assert_eq!((slab.len(), slab.tokens()), (1, vec![second]));
    }
}
