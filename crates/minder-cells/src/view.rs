//! Reading values: `View` and what it shows.

use std::fmt;
use std::iter::FusedIterator;

use crate::build::text_at;
use crate::space::{Cell, words};
use crate::word::{Kind, NumberKind, Word};

/// A value that is read, in a heap or a region. It is as large as three words, and is copied freely.
///
/// ```
/// use minder_cells::{Data, RegionPool};
///
/// let region = RegionPool::new().parse_json(br#"{"id": 7, "items": [1.5, "two", null]}"#)?;
/// let message = region.view();
/// assert_eq!(message.get("id").and_then(|id| id.as_i64()), Some(7));
/// let items = message.get("items").expect("the message has items");
/// let kinds: Vec<String> = items.elements().map(|item| match item.data() {
///     Data::Float(number) => format!("float {number}"),
///     Data::Str(text) => format!("string {text}"),
///     other => format!("{other:?}"),
/// }).collect();
/// assert_eq!(kinds, ["float 1.5", "string two", "Null"]);
/// assert_eq!(message.to_json(), r#"{"id":7,"items":[1.5,"two",null]}"#);
/// assert_eq!(message.to_lisp(), r#"((id . 7) (items . [1.5 "two" null]))"#);
/// # Ok::<(), minder_cells::JsonError>(())
/// ```
#[derive(Clone, Copy)]
pub struct View<'a> {
    cells: &'a [Cell],
    word: Word,
}

/// The value that a [`View`] shows.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Data<'a> {
    /// The empty list.
    Nil,
    /// `null` of JSON.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// An integer that is larger than every `i64`.
    UInt(u64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Str(&'a str),
    /// A name: a key of a map, or a symbol.
    Symbol(&'a str),
    /// Two values.
    Pair(View<'a>, View<'a>),
    /// Several values: an array of JSON.
    Vector(Elements<'a>),
    /// Keys and values: an object of JSON.
    Map(Entries<'a>),
}

impl<'a> View<'a> {
    pub(crate) fn new(cells: &'a [Cell], word: Word) -> Self {
        Self { cells, word }
    }

    pub(crate) fn word(self) -> Word {
        self.word
    }

    pub(crate) fn with(self, word: Word) -> Self {
        Self { word, ..self }
    }

    #[inline]
    fn cell(self) -> Cell {
        self.cells[self.word.index() as usize]
    }

    /// Returns the number of the value among those of its region or heap, for code in another language:
    /// see [`Region::view_of_bits`](crate::Region::view_of_bits).
    pub fn to_bits(self) -> u64 {
        self.word.0
    }

    /// Returns what the value is.
    pub fn data(self) -> Data<'a> {
        match self.word.kind() {
            Kind::Integer => Data::Int(self.word.as_integer()),
            Kind::Constant if self.word == Word::NULL => Data::Null,
            Kind::Constant if self.word == Word::TRUE => Data::Bool(true),
            Kind::Constant if self.word == Word::FALSE => Data::Bool(false),
            Kind::Constant => Data::Nil,
            Kind::Number => self.number(),
            Kind::Str => Data::Str(self.text()),
            Kind::Symbol => Data::Symbol(self.text()),
            Kind::Pair => {
                let [first, second] = self.cell().map(|word| self.with(Word(word)));
                Data::Pair(first, second)
            }
            Kind::Vector => Data::Vector(self.elements()),
            Kind::Map => Data::Map(self.entries()),
        }
    }

    fn number(self) -> Data<'a> {
        let [bits, kind] = self.cell();
        if kind == NumberKind::Float as u64 {
            Data::Float(f64::from_bits(bits))
        } else if kind == NumberKind::Signed as u64 {
            Data::Int(bits.cast_signed())
        } else {
            Data::UInt(bits)
        }
    }

    /// Returns the text of a string or a symbol.
    fn text(self) -> &'a str {
        // Every string was made from a `str`, so it is valid.
        std::str::from_utf8(text_at(self.cells, self.word.index())).unwrap_or_default()
    }

    /// Returns whether this is the empty list.
    pub fn is_nil(self) -> bool {
        self.word == Word::NIL
    }

    /// Returns an integer, if it fits.
    pub fn as_i64(self) -> Option<i64> {
        match self.data() {
            Data::Int(number) => Some(number),
            _ => None,
        }
    }

    /// Returns a number. An integer beyond 2⁵³ is rounded.
    pub fn as_f64(self) -> Option<f64> {
        match self.data() {
            Data::Int(number) => Some(number as f64),
            Data::UInt(number) => Some(number as f64),
            Data::Float(number) => Some(number),
            _ => None,
        }
    }

    /// Returns `true` or `false`.
    pub fn as_bool(self) -> Option<bool> {
        match self.data() {
            Data::Bool(is_true) => Some(is_true),
            _ => None,
        }
    }

    /// Returns the text of a string or a symbol.
    pub fn as_str(self) -> Option<&'a str> {
        match self.word.kind() {
            Kind::Str | Kind::Symbol => Some(self.text()),
            _ => None,
        }
    }

    /// Returns the value of a key in a map. The last one, if the key occurs several times.
    pub fn get(self, key: &str) -> Option<View<'a>> {
        self.entries().rev().find(|(name, _)| name.as_str() == Some(key)).map(|(_, value)| value)
    }

    /// Returns an element of a vector.
    pub fn index(self, index: usize) -> Option<View<'a>> {
        self.elements().nth(index)
    }

    /// Returns the elements of a vector; none of anything else.
    pub fn elements(self) -> Elements<'a> {
        let words = match self.word.kind() {
            Kind::Vector => {
                let at = 2 * self.word.index() as usize + 1;
                &words(self.cells)[at..at + self.cell()[0] as usize]
            }
            _ => &[],
        };
        Elements { view: self, words: words.iter() }
    }

    /// Returns the entries of a map, in the order of the message; none of anything else.
    pub fn entries(self) -> Entries<'a> {
        let cells = match self.word.kind() {
            Kind::Map => {
                let at = self.word.index() as usize + 1;
                &self.cells[at..at + self.cell()[0] as usize]
            }
            _ => &[],
        };
        Entries { view: self, cells: cells.iter() }
    }

    /// Returns the elements of a list: the first of a pair, the first of its second, and so on.
    ///
    /// A list that contains itself has no end.
    pub fn list(self) -> List<'a> {
        List { rest: self }
    }
}

/// The elements of a vector: see [`View::elements`].
#[derive(Clone)]
pub struct Elements<'a> {
    view: View<'a>,
    words: std::slice::Iter<'a, u64>,
}

/// The entries of a map: see [`View::entries`].
#[derive(Clone)]
pub struct Entries<'a> {
    view: View<'a>,
    cells: std::slice::Iter<'a, Cell>,
}

/// The elements of a list: see [`View::list`].
#[derive(Clone)]
pub struct List<'a> {
    rest: View<'a>,
}

impl<'a> Iterator for Elements<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        self.words.next().map(|word| self.view.with(Word(*word)))
    }

    fn nth(&mut self, index: usize) -> Option<View<'a>> {
        self.words.nth(index).map(|word| self.view.with(Word(*word)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.words.size_hint()
    }
}

impl DoubleEndedIterator for Elements<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.words.next_back().map(|word| self.view.with(Word(*word)))
    }
}

impl ExactSizeIterator for Elements<'_> {}
impl FusedIterator for Elements<'_> {}

impl<'a> Entries<'a> {
    fn entry(&self, [key, value]: Cell) -> (View<'a>, View<'a>) {
        (self.view.with(Word(key)), self.view.with(Word(value)))
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = (View<'a>, View<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        self.cells.next().map(|cell| self.entry(*cell))
    }

    fn nth(&mut self, index: usize) -> Option<Self::Item> {
        self.cells.nth(index).map(|cell| self.entry(*cell))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.cells.size_hint()
    }
}

impl DoubleEndedIterator for Entries<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.cells.next_back().map(|cell| self.entry(*cell))
    }
}

impl ExactSizeIterator for Entries<'_> {}
impl FusedIterator for Entries<'_> {}

impl<'a> Iterator for List<'a> {
    type Item = View<'a>;

    fn next(&mut self) -> Option<View<'a>> {
        match self.rest.data() {
            Data::Pair(first, rest) => {
                self.rest = rest;
                Some(first)
            }
            _ => None,
        }
    }
}

impl FusedIterator for List<'_> {}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} elements", self.len())
    }
}

impl fmt::Debug for Entries<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} entries", self.len())
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "list {:?}", self.rest)
    }
}
