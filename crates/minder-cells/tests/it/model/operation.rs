//! One operation, on the heap and on the graph.

use std::error::Error as _;
use std::fmt::Write as _;

use minder_cells::{Error, JsonError, Mutator, RegionPool, Result, Root, Value};

use super::graph::{Graph, Item, Object};
use crate::random::Random;

/// The most roots.
const ROOTS_MAX: usize = 24;

/// A value of the heap, and the same one of the graph.
type Held<'h> = (Value<'h>, Item);

/// The state that an operation may use.
pub(crate) struct Operation<'p, 'a, 'h> {
    pub(crate) cells: &'p mut Mutator<'a, 'h>,
    pub(crate) graph: &'p mut Graph,
    pub(crate) roots: &'p mut Vec<(Root, Item)>,
    pub(crate) pool: &'p RegionPool,
    pub(crate) random: &'p mut Random,
    /// The first roots, which are not replaced.
    pub(crate) kept: usize,
}

impl<'h> Operation<'_, '_, 'h> {
    /// Makes something, or changes something.
    pub(crate) fn change(&mut self) -> Result<()> {
        let (value, item) = if self.random.one_in(3) { self.pick() } else { self.make()? };
        match self.random.below(3) {
            0 => self.keep(value, item),
            _ => self.store(value, item),
        }
    }

    /// Makes a root of a value, a new one or an old one.
    fn keep(&mut self, value: Value<'h>, item: Item) -> Result<()> {
        if self.roots.len() < ROOTS_MAX.max(self.kept + 1) {
            let root = self.cells.root(value)?;
            self.roots.push((root, item));
        } else {
            let place = self.kept + self.random.below(self.roots.len() - self.kept);
            let (root, kept) = &mut self.roots[place];
            assert!(self.cells.set_root(*root, value));
            *kept = item;
        }
        Ok(())
    }

    /// Stores a value in another one.
    fn store(&mut self, value: Value<'h>, item: Item) -> Result<()> {
        let (target, target_item) = self.pick();
        let half = self.random.below(2);
        let Item::Object(id) = target_item else { return Ok(()) };
        match self.graph.object_mut(id) {
            Object::Pair(both) => {
                if half == 0 {
                    self.cells.set_first(target, value)?;
                } else {
                    self.cells.set_second(target, value)?;
                }
                both[half] = item;
            }
            Object::Vector(elements) => {
                let wrong = self.cells.set_element(target, elements.len(), value);
                assert!(matches!(wrong, Err(Error::Invalid { .. })));
                if !elements.is_empty() {
                    let index = self.random.below(elements.len());
                    self.cells.set_element(target, index, value)?;
                    elements[index] = item;
                }
            }
            _ => {
                assert!(matches!(self.cells.set_first(target, value), Err(Error::Invalid { .. })));
                assert!(matches!(self.cells.set_element(target, 0, value), Err(Error::Invalid { .. })));
            }
        }
        Ok(())
    }

    /// Returns a value at the end of a random path from a root.
    fn pick(&mut self) -> Held<'h> {
        if self.roots.is_empty() {
            return (self.cells.nil(), Item::Nil);
        }
        let (root, mut item) = self.roots[self.random.below(self.roots.len())];
        let mut value = self.cells.get(root).expect("the root was not released");
        while let Item::Object(id) = item {
            if self.random.one_in(6) {
                break;
            }
            match self.graph.object(id) {
                Object::Pair(both) => {
                    let (first, second) = self.cells.pair(value).expect("it is a pair");
                    let half = self.random.below(2);
                    value = [first, second][half];
                    item = both[half];
                }
                Object::Vector(elements) if !elements.is_empty() => {
                    let index = self.random.below(elements.len());
                    value = self.cells.element(value, index).expect("the vector has the element");
                    item = elements[index];
                }
                _ => break,
            }
        }
        (value, item)
    }

    fn make(&mut self) -> Result<Held<'h>> {
        match self.random.below(12) {
            0..=2 => {
                let (first, first_item) = self.pick();
                let (second, second_item) = self.pick();
                let pair = self.cells.cons(first, second)?;
                Ok((pair, self.graph.add(Object::Pair([first_item, second_item]))))
            }
            3 => {
                let parts = self.parts();
                let values: Vec<Value<'h>> = parts.iter().map(|(value, _)| *value).collect();
                let vector = self.cells.vector(&values)?;
                let items = parts.into_iter().map(|(_, item)| item).collect();
                Ok((vector, self.graph.add(Object::Vector(items))))
            }
            4 => {
                let parts = self.parts();
                let entries = parts.chunks_exact(2);
                let values: Vec<_> = entries.clone().map(|entry| (entry[0].0, entry[1].0)).collect();
                let map = self.cells.map(&values)?;
                let items = entries.map(|entry| (entry[0].1, entry[1].1)).collect();
                Ok((map, self.graph.add(Object::Map(items))))
            }
            5 => {
                let text = self.text();
                Ok((self.cells.string(&text)?, self.graph.add(Object::Text(text.into()))))
            }
            6 => {
                let text = self.name();
                Ok((self.cells.symbol(&text)?, self.graph.symbol(&text)))
            }
            7..=8 => self.number(),
            9..=10 => self.message(),
            _ => {
                let is_true = self.random.one_in(2);
                let null = (self.cells.null(), Item::Null);
                let flat = [null, (self.cells.bool(is_true), Item::Bool(is_true))];
                Ok(flat[self.random.below(2)])
            }
        }
    }

    /// Returns some values. Once in a while they need more than a block.
    fn parts(&mut self) -> Vec<Held<'h>> {
        let count = match self.random.below(200) {
            0 if !cfg!(miri) => 9_000,
            1..5 => self.random.below(600),
            _ => self.random.below(9),
        };
        (0..count).map(|_| self.pick()).collect()
    }

    fn number(&mut self) -> Result<Held<'h>> {
        let bits = self.random.next() >> self.random.below(64);
        Ok(match self.random.below(3) {
            0 => (self.cells.float(f64::from_bits(bits))?, self.graph.add(Object::Float(bits))),
            1 => (self.cells.int(bits.cast_signed())?, self.graph.int(bits.cast_signed())),
            _ => {
                let item = match i64::try_from(bits) {
                    Ok(number) => self.graph.int(number),
                    Err(_) => self.graph.add(Object::UInt(bits)),
                };
                (self.cells.uint(bits)?, item)
            }
        })
    }

    /// Returns a text of any size: some need more than a block of 64 KiB.
    fn text(&mut self) -> String {
        let bytes = match self.random.below(if cfg!(miri) { 5_000 } else { 500 }) {
            0 => (1 << 20) + self.random.below(1 << 16),
            1..4 => (1 << 16) - 16 + self.random.below(32),
            4..30 => self.random.below(6_000),
            _ => self.random.below(50),
        };
        let parts = ["a", "\u{e9}", "\u{20ac}", "\u{1f600}", "\"\\\n", "0123456789abcdef"];
        let part = parts[self.random.below(parts.len())];
        let mut text = part.repeat(bytes / part.len());
        let _ = write!(text, "{}", self.random.next() % 1000);
        text
    }

    fn name(&mut self) -> String {
        let number = self.random.below(80);
        if self.random.one_in(20) {
            self.text()
        } else {
            format!("{number}{}", &"name of a key"[..number / 8])
        }
    }

    /// Parses JSON, into the heap or into a region that is copied.
    fn message(&mut self) -> Result<Held<'h>> {
        let mut text = String::new();
        let depth = self.random.below(5);
        let item = self.json(depth, &mut text);
        if self.random.one_in(2) {
            let value = self.cells.parse_json(text.as_bytes()).map_err(|error| of_memory(&error))?;
            return Ok((value, item));
        }
        let region = self.pool.parse_json(text.as_bytes()).expect("it is JSON");
        Ok((self.cells.copy(region.view())?, item))
    }

    /// Writes JSON, and returns what it has to become.
    fn json(&mut self, depth: usize, out: &mut String) -> Item {
        let count = self.random.below(6);
        match self.random.below(if depth == 0 { 5 } else { 12 }) {
            0 => {
                out.push_str("null");
                Item::Null
            }
            1 => {
                out.push_str("true");
                Item::Bool(true)
            }
            2 => {
                let number = (self.random.next() >> self.random.below(64)).cast_signed();
                let _ = write!(out, "{number}");
                self.graph.int(number)
            }
            3 => {
                let number = f64::from_bits(self.random.next());
                let number = if number.is_finite() { number } else { 0.5 };
                let _ = write!(out, "{number:?}");
                self.graph.add(Object::Float(number.to_bits()))
            }
            4 => {
                let text = self.text();
                out.push_str(&serde_json::to_string(&text).expect("a text is JSON"));
                self.graph.add(Object::Text(text.into()))
            }
            5..=7 => {
                out.push('[');
                let mut items = Vec::new();
                for place in 0..count {
                    out.push_str(if place > 0 { " , " } else { "" });
                    items.push(self.json(depth - 1, out));
                }
                out.push(']');
                self.graph.add(Object::Vector(items))
            }
            _ => {
                out.push('{');
                let mut items = Vec::new();
                for place in 0..count {
                    out.push_str(if place > 0 { "," } else { "" });
                    let name = self.name();
                    out.push_str(&serde_json::to_string(&name).expect("a text is JSON"));
                    out.push(':');
                    let key = self.graph.symbol(&name);
                    items.push((key, self.json(depth - 1, out)));
                }
                out.push('}');
                self.graph.add(Object::Map(items))
            }
        }
    }
}

/// Returns why there was no room for a message, which is JSON.
fn of_memory(error: &JsonError) -> Error {
    match error.source().and_then(|source| source.downcast_ref::<Error>()) {
        Some(Error::HeapFull { limit_bytes }) => Error::HeapFull { limit_bytes: *limit_bytes },
        _ => panic!("{error}"),
    }
}
