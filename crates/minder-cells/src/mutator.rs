//! `Mutator`: makes, reads and changes values of a heap.

use std::fmt;
use std::marker::PhantomData;

use crate::build::{self, Cells};
use crate::error::{Error, Result};
use crate::heap::Heap;
use crate::roots::Root;
use crate::view::View;
use crate::word::{Kind, Word};

/// A type that is different for each lifetime.
type Brand<'h> = PhantomData<fn(&'h ()) -> &'h ()>;

/// A value in a call of [`Heap::mutate`]. It is one word, and is copied freely.
///
/// ```
/// use minder_cells::{Heap, HeapConfig, Value};
///
/// let mut heap = Heap::new(HeapConfig::new())?;
/// heap.mutate(|cells| {
///     let one: Value<'_> = cells.int(1)?;
///     let pair = cells.cons(one, one)?;
///     assert_eq!(cells.view(pair).to_lisp(), "(1 . 1)");
///     Ok::<(), minder_cells::Error>(())
/// })?;
/// # Ok::<(), minder_cells::Error>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Value<'h> {
    word: Word,
    brand: Brand<'h>,
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.word)
    }
}

/// Makes, reads and changes values of a [`Heap`]: see [`Heap::mutate`].
///
/// ```
/// use minder_cells::{Heap, HeapConfig};
///
/// let mut heap = Heap::new(HeapConfig::new())?;
/// let root = heap.mutate(|cells| {
///     let [name, text] = [cells.symbol("name")?, cells.string("Ada")?];
///     let person = cells.map(&[(name, text)])?;
///     let list = cells.vector(&[person, cells.null(), cells.bool(true)])?;
///     cells.root(list)
/// })?;
/// assert_eq!(heap.get(root).expect("it is a root").to_json(), r#"[{"name":"Ada"},null,true]"#);
/// # Ok::<(), minder_cells::Error>(())
/// ```
#[derive(Debug)]
pub struct Mutator<'a, 'h> {
    heap: &'a mut Heap,
    brand: Brand<'h>,
}

impl Heap {
    /// Makes, reads and changes values. The values do not leave the call, except by a [`Root`].
    ///
    /// The lifetime `'h` is that of this call alone. It stands for this heap: a value of another heap, or of
    /// another call, has another type.
    ///
    /// ```compile_fail
    /// # use minder_cells::{Heap, HeapConfig};
    /// let mut heap = Heap::new(HeapConfig::new()).unwrap();
    /// let value = heap.mutate(|cells| cells.nil()); // it would outlive the call
    /// ```
    pub fn mutate<R>(&mut self, change: impl for<'h> FnOnce(&mut Mutator<'_, 'h>) -> R) -> R {
        change(&mut Mutator { heap: self, brand: PhantomData })
    }
}

impl<'h> Mutator<'_, 'h> {
    #[inline]
    pub(crate) fn value(&self, word: Word) -> Value<'h> {
        Value { word, brand: self.brand }
    }

    #[inline]
    pub(crate) fn heap(&mut self) -> &mut Heap {
        self.heap
    }

    /// Returns the empty list.
    #[inline]
    pub fn nil(&self) -> Value<'h> {
        self.value(Word::NIL)
    }

    /// Returns `null` of JSON.
    pub fn null(&self) -> Value<'h> {
        self.value(Word::NULL)
    }

    /// Returns `true` or `false`.
    pub fn bool(&self, is_true: bool) -> Value<'h> {
        self.value(if is_true { Word::TRUE } else { Word::FALSE })
    }

    /// Makes an integer. It needs no cell if it fits into 61 bits.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    #[inline]
    pub fn int(&mut self, number: i64) -> Result<Value<'h>> {
        build::signed(&mut self.heap.store(), number).map(|word| self.value(word))
    }

    /// Makes an integer that may be larger than an `i64`.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn uint(&mut self, number: u64) -> Result<Value<'h>> {
        build::unsigned(&mut self.heap.store(), number).map(|word| self.value(word))
    }

    /// Makes a number with a fraction, in a cell.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn float(&mut self, number: f64) -> Result<Value<'h>> {
        build::float(&mut self.heap.store(), number).map(|word| self.value(word))
    }

    /// Makes a string: 8 bytes and the text, in as many cells as that needs.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn string(&mut self, text: &str) -> Result<Value<'h>> {
        build::text(&mut self.heap.store(), Kind::Str, text).map(|word| self.value(word))
    }

    /// Returns the symbol of this text, which the heap has once. A collection frees it if nothing refers to
    /// it.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn symbol(&mut self, text: &str) -> Result<Value<'h>> {
        self.heap.intern(text).map(|word| self.value(word))
    }

    /// Makes a pair, in a cell.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    #[inline]
    pub fn cons(&mut self, first: Value<'h>, second: Value<'h>) -> Result<Value<'h>> {
        build::pair(&mut self.heap.store(), first.word, second.word).map(|word| self.value(word))
    }

    /// Makes a vector: 8 bytes for each element and 8 more.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn vector(&mut self, elements: &[Value<'h>]) -> Result<Value<'h>> {
        let words: Vec<Word> = elements.iter().map(|value| value.word).collect();
        build::vector(&mut self.heap.store(), &words).map(|word| self.value(word))
    }

    /// Makes a map: a cell for each entry and one more. Keys may occur several times; the last one counts.
    ///
    /// # Errors
    /// `HeapFull`, `Memory`.
    pub fn map(&mut self, entries: &[(Value<'h>, Value<'h>)]) -> Result<Value<'h>> {
        let words: Vec<Word> = entries.iter().flat_map(|(key, value)| [key.word, value.word]).collect();
        build::map(&mut self.heap.store(), &words).map(|word| self.value(word))
    }

    /// Returns a value for reading.
    #[inline]
    pub fn view(&self, value: Value<'h>) -> View<'_> {
        View::new(self.heap.cells(), value.word)
    }

    /// Returns both values of a pair.
    ///
    /// # Errors
    /// `Invalid`: it is not a pair.
    #[inline]
    pub fn pair(&self, pair: Value<'h>) -> Result<(Value<'h>, Value<'h>)> {
        let index = expect(pair, Kind::Pair, "a pair")?;
        let [first, second] = self.heap.cells()[index];
        Ok((self.value(Word(first)), self.value(Word(second))))
    }

    /// Replaces the first value of a pair.
    ///
    /// # Errors
    /// `Invalid`: it is not a pair. `Memory`: only during a collection.
    #[inline]
    pub fn set_first(&mut self, pair: Value<'h>, first: Value<'h>) -> Result<()> {
        self.store_word(expect(pair, Kind::Pair, "a pair")?, 0, first)
    }

    /// Replaces the second value of a pair.
    ///
    /// # Errors
    /// As [`set_first`](Self::set_first).
    #[inline]
    pub fn set_second(&mut self, pair: Value<'h>, second: Value<'h>) -> Result<()> {
        self.store_word(expect(pair, Kind::Pair, "a pair")?, 1, second)
    }

    /// Returns an element of a vector.
    ///
    /// # Errors
    /// `Invalid`: it is not a vector, or it has no such element.
    pub fn element(&self, vector: Value<'h>, index: usize) -> Result<Value<'h>> {
        let at = self.element_at(vector, index)?;
        Ok(self.value(Word(self.heap.cells()[at / 2][at % 2])))
    }

    /// Replaces an element of a vector.
    ///
    /// # Errors
    /// `Invalid`: it is not a vector, or it has no such element. `Memory`: only during a collection.
    pub fn set_element(&mut self, vector: Value<'h>, index: usize, element: Value<'h>) -> Result<()> {
        let at = self.element_at(vector, index)?;
        self.store_word(at / 2, at % 2, element)
    }

    /// Makes a root of a value, so that collections keep it.
    ///
    /// # Errors
    /// `Memory`: there is none for another root.
    pub fn root(&mut self, value: Value<'h>) -> Result<Root> {
        self.heap.store().refer(value.word)?;
        let root = self.heap.roots().insert(value.word);
        root.ok_or_else(|| Error::Memory(std::io::ErrorKind::OutOfMemory.into()))
    }

    /// Returns the value of a root; `None` if it was released.
    #[inline]
    pub fn get(&self, root: Root) -> Option<Value<'h>> {
        self.heap.root_word(root).map(|word| self.value(word))
    }

    /// Gives a root another value. Returns `false` if it was released.
    pub fn set_root(&mut self, root: Root, value: Value<'h>) -> bool {
        // Without memory for that, the last step of a collection finds the value.
        let _ = self.heap.store().refer(value.word);
        self.heap.roots().replace(root, value.word)
    }

    fn element_at(&self, vector: Value<'h>, index: usize) -> Result<usize> {
        let at = expect(vector, Kind::Vector, "a vector")?;
        let [count, _] = self.heap.cells()[at];
        if index as u64 >= count {
            return Err(Error::Invalid { expected: "an index below the number of elements" });
        }
        Ok(2 * at + 1 + index)
    }

    #[inline]
    fn store_word(&mut self, cell: usize, half: usize, value: Value<'h>) -> Result<()> {
        let mut store = self.heap.store();
        store.refer(value.word)?;
        store.cells_mut()[cell][half] = value.word.0;
        Ok(())
    }
}

#[inline]
fn expect(value: Value<'_>, kind: Kind, expected: &'static str) -> Result<usize> {
    if value.word.kind() == kind { Ok(value.word.index() as usize) } else { Err(Error::Invalid { expected }) }
}
