//! A plain graph of values, which is what a heap has to contain.

use std::collections::HashMap;
use std::rc::Rc;

use minder_cells::{Data, View};

/// A value: flat ones are here, others in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    Nil,
    Null,
    Bool(bool),
    /// An integer of at most 61 bits.
    Int(i64),
    Object(usize),
}

/// An object that a heap has in cells.
#[derive(Clone, Debug)]
pub(crate) enum Object {
    Float(u64),
    Int(i64),
    UInt(u64),
    Text(Rc<str>),
    Symbol(Rc<str>),
    Pair([Item; 2]),
    Vector(Vec<Item>),
    Map(Vec<(Item, Item)>),
}

impl Object {
    /// Returns the number of cells, from the table in `word.rs`.
    fn cells(&self) -> usize {
        match self {
            Self::Float(_) | Self::Int(_) | Self::UInt(_) | Self::Pair(_) => 1,
            Self::Text(text) | Self::Symbol(text) => (8 + text.len()).div_ceil(16),
            Self::Vector(elements) => (8 + 8 * elements.len()).div_ceil(16),
            Self::Map(entries) => 1 + entries.len(),
        }
    }
}

/// The numbers of reachable cells, objects and symbols.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reachable {
    pub(crate) cells: usize,
    pub(crate) objects: usize,
    pub(crate) symbols: usize,
}

/// All objects that were made and not found unreachable yet.
#[derive(Default)]
pub(crate) struct Graph {
    objects: Vec<Option<Object>>,
    free: Vec<usize>,
    symbols: HashMap<Rc<str>, usize>,
}

impl Graph {
    pub(crate) fn add(&mut self, object: Object) -> Item {
        match self.free.pop() {
            Some(id) => {
                self.objects[id] = Some(object);
                Item::Object(id)
            }
            None => {
                self.objects.push(Some(object));
                Item::Object(self.objects.len() - 1)
            }
        }
    }

    pub(crate) fn symbol(&mut self, text: &str) -> Item {
        if let Some(id) = self.symbols.get(text) {
            return Item::Object(*id);
        }
        let text: Rc<str> = text.into();
        let item = self.add(Object::Symbol(text.clone()));
        if let Item::Object(id) = item {
            self.symbols.insert(text, id);
        }
        item
    }

    pub(crate) fn int(&mut self, number: i64) -> Item {
        if number << 3 >> 3 == number { Item::Int(number) } else { self.add(Object::Int(number)) }
    }

    pub(crate) fn object(&self, id: usize) -> &Object {
        self.objects[id].as_ref().expect("the object was not removed")
    }

    pub(crate) fn object_mut(&mut self, id: usize) -> &mut Object {
        self.objects[id].as_mut().expect("the object was not removed")
    }

    /// Removes what these roots do not reach. Returns what they reach.
    pub(crate) fn prune(&mut self, roots: impl Iterator<Item = Item>) -> Reachable {
        let mut is_reachable = vec![false; self.objects.len()];
        let mut reachable = Reachable::default();
        let mut rest: Vec<Item> = roots.collect();
        while let Some(item) = rest.pop() {
            let Item::Object(id) = item else { continue };
            if std::mem::replace(&mut is_reachable[id], true) {
                continue;
            }
            let object = self.object(id);
            reachable.objects += 1;
            reachable.cells += object.cells();
            match object {
                Object::Pair(both) => rest.extend(both),
                Object::Vector(elements) => rest.extend(elements),
                Object::Map(entries) => rest.extend(entries.iter().flat_map(|(key, value)| [*key, *value])),
                Object::Symbol(_) => reachable.symbols += 1,
                _ => (),
            }
        }
        for (id, object) in self.objects.iter_mut().enumerate() {
            if is_reachable[id] {
                continue;
            }
            if let Some(object) = object.take() {
                self.free.push(id);
                if let Object::Symbol(text) = object {
                    self.symbols.remove(&text);
                }
            }
        }
        reachable
    }

    /// Panics if a view shows another graph than an item.
    pub(crate) fn compare<'a>(&self, roots: impl Iterator<Item = (View<'a>, Item)>) {
        let mut is_seen = vec![false; self.objects.len()];
        let mut rest: Vec<(View<'a>, Item)> = roots.collect();
        while let Some((view, item)) = rest.pop() {
            let id = match (view.data(), item) {
                (Data::Nil, Item::Nil) | (Data::Null, Item::Null) => continue,
                (Data::Bool(one), Item::Bool(other)) if one == other => continue,
                (Data::Int(one), Item::Int(other)) if one == other => continue,
                (_, Item::Object(id)) => id,
                (_, item) => panic!("{view:?} in place of {item:?}"),
            };
            // The parts are compared once, so that a graph with many paths takes no longer than a tree.
            let is_new = !std::mem::replace(&mut is_seen[id], true);
            let object = self.object(id);
            match (view.data(), object) {
                (Data::Float(one), Object::Float(other)) if one.to_bits() == *other => (),
                (Data::Int(one), Object::Int(other)) if one == *other => (),
                (Data::UInt(one), Object::UInt(other)) if one == *other => (),
                (Data::Str(one), Object::Text(other)) | (Data::Symbol(one), Object::Symbol(other))
                    if one.len() == other.len() && (!is_new || *one == **other) => {}
                (Data::Pair(first, second), Object::Pair(items)) => {
                    if is_new {
                        rest.extend([(first, items[0]), (second, items[1])]);
                    }
                }
                (Data::Vector(views), Object::Vector(items)) if views.len() == items.len() => {
                    if is_new {
                        rest.extend(views.zip(items.iter().copied()));
                    }
                }
                (Data::Map(views), Object::Map(items)) if views.len() == items.len() => {
                    if is_new {
                        let parts = views.zip(items);
                        rest.extend(parts.flat_map(|(view, item)| [(view.0, item.0), (view.1, item.1)]));
                    }
                }
                _ => panic!("another value in place of {object:?}"),
            }
        }
    }
}
