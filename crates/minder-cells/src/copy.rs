//! Copying a value into a heap, from a region or another heap.

use std::collections::HashMap;

use crate::build;
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::mutator::{Mutator, Value};
use crate::view::{Data, View};
use crate::word::{Kind, Word};

/// A task that is left to do. The words of finished parts are on a second stack.
enum Task<'a> {
    Copy(View<'a>),
    /// Make something of the last words: as many as it has parts.
    Pair,
    Vector(usize),
    Map(usize),
    /// Remember the last word as the copy of this one.
    Remember(Word),
}

impl<'h> Mutator<'_, 'h> {
    /// Copies a value, with all that it refers to, from a region or another heap. Values that are referred
    /// to several times are copied once if they are pairs, vectors or maps. Nesting of any depth needs no
    /// stack of the thread.
    ///
    /// ```
    /// use minder_cells::{Heap, HeapConfig, RegionPool};
    ///
    /// let message = RegionPool::new().parse_json(b"[1, [2, 3]]")?;
    /// let mut heap = Heap::new(HeapConfig::new())?;
    /// let text = heap.mutate(|cells| cells.copy(message.view()).map(|copy| cells.view(copy).to_json()))?;
    /// assert_eq!(text, "[1,[2,3]]");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `HeapFull`, `Memory`. `Invalid`: the value contains itself, which only one of a heap can. What was
    /// copied so far is garbage.
    pub fn copy(&mut self, from: View<'_>) -> Result<Value<'h>> {
        let mut tasks = vec![Task::Copy(from)];
        let mut words: Vec<Word> = Vec::new();
        // Without a copy as long as the parts of a value are copied.
        let mut copies: HashMap<u64, Option<Word>> = HashMap::new();
        while let Some(task) = tasks.pop() {
            let word = match task {
                Task::Copy(view) => match copy_flat(self.heap(), view)? {
                    Some(word) => word,
                    None => match copies.get(&view.word().0) {
                        Some(Some(word)) => *word,
                        Some(None) => {
                            return Err(Error::Invalid { expected: "a value that does not contain itself" });
                        }
                        None => {
                            copies.insert(view.word().0, None);
                            tasks.push(Task::Remember(view.word()));
                            push_parts(view, &mut tasks);
                            continue;
                        }
                    },
                },
                Task::Remember(original) => {
                    copies.insert(original.0, words.last().copied());
                    continue;
                }
                Task::Pair => {
                    let second = words.pop().unwrap_or(Word::NIL);
                    let first = words.pop().unwrap_or(Word::NIL);
                    build::pair(&mut self.heap().store(), first, second)?
                }
                Task::Vector(count) => {
                    let parts = words.split_off(words.len() - count);
                    build::vector(&mut self.heap().store(), &parts)?
                }
                Task::Map(count) => {
                    let parts = words.split_off(words.len() - 2 * count);
                    build::map(&mut self.heap().store(), &parts)?
                }
            };
            words.push(word);
        }
        Ok(self.value(words.pop().unwrap_or(Word::NIL)))
    }
}

/// Copies a value without parts; `None` for others.
fn copy_flat(heap: &mut Heap, view: View<'_>) -> Result<Option<Word>> {
    let store = &mut heap.store();
    let word = match view.data() {
        Data::Float(number) => build::float(store, number)?,
        Data::Int(number) => build::signed(store, number)?,
        Data::UInt(number) => build::unsigned(store, number)?,
        Data::Str(text) => build::text(store, Kind::Str, text)?,
        Data::Symbol(text) => heap.intern(text)?,
        Data::Pair(..) | Data::Vector(_) | Data::Map(_) => return Ok(None),
        Data::Nil | Data::Null | Data::Bool(_) => view.word(),
    };
    Ok(Some(word))
}

/// Pushes the task for a value with parts, and those of its parts above it.
fn push_parts<'a>(view: View<'a>, tasks: &mut Vec<Task<'a>>) {
    match view.data() {
        Data::Pair(first, second) => {
            tasks.push(Task::Pair);
            tasks.extend([Task::Copy(second), Task::Copy(first)]);
        }
        Data::Vector(elements) => {
            tasks.push(Task::Vector(elements.len()));
            tasks.extend(elements.rev().map(Task::Copy));
        }
        Data::Map(entries) => {
            tasks.push(Task::Map(entries.len()));
            tasks.extend(entries.rev().flat_map(|(key, value)| [Task::Copy(value), Task::Copy(key)]));
        }
        _ => (),
    }
}
