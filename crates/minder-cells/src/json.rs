//! JSON into cells (RFC 8259), without a value in between and without recursion.

use std::fmt;

use crate::build::{self, Cells};
use crate::error::{Error, Result};
use crate::mutator::{Mutator, Value};
use crate::region::{Memory, Region, RegionPool};
use crate::word::{Kind, Word};

/// Why a message is not JSON, and where.
///
/// ```
/// use minder_cells::{JsonErrorKind, RegionPool};
///
/// let error = RegionPool::new().parse_json(b"[1, 2").unwrap_err();
/// assert_eq!((error.kind(), error.offset()), (JsonErrorKind::Incomplete, 5));
/// assert_eq!(error.to_string(), "invalid JSON at byte 5: the message ends too early");
/// ```
#[derive(Debug)]
pub struct JsonError {
    kind: JsonErrorKind,
    offset: usize,
    memory: Option<Error>,
}

/// What is wrong with a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JsonErrorKind {
    /// The message ends within a value, or there is none.
    Incomplete,
    /// A byte that cannot be there.
    Syntax,
    /// Something follows the value.
    Trailing,
    /// A text that is not UTF-8, or half of a surrogate pair.
    Text,
    /// A number that JSON does not have.
    Number,
    /// There is no room for the value: see [`std::error::Error::source`].
    Memory,
}

impl JsonError {
    fn new(kind: JsonErrorKind, offset: usize) -> Self {
        Self { kind, offset, memory: None }
    }

    /// Returns what is wrong.
    pub fn kind(&self) -> JsonErrorKind {
        self.kind
    }

    /// Returns the offset of the byte at which the error was found. The first byte has offset 0.
    pub fn offset(&self) -> usize {
        self.offset
    }
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            JsonErrorKind::Incomplete => "the message ends too early",
            JsonErrorKind::Syntax => "an unexpected character",
            JsonErrorKind::Trailing => "something follows the value",
            JsonErrorKind::Text => "the text is not valid Unicode",
            JsonErrorKind::Number => "an invalid number",
            JsonErrorKind::Memory => {
                return write!(f, "failed to parse JSON at byte {}: no room", self.offset);
            }
        };
        write!(f, "invalid JSON at byte {}: {what}", self.offset)
    }
}

impl std::error::Error for JsonError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.memory.as_ref().map(|error| error as _)
    }
}

/// Where the values of a message go.
trait Sink: Cells {
    fn intern(&mut self, text: &str) -> Result<Word>;
}

impl Sink for Memory {
    #[inline]
    fn intern(&mut self, text: &str) -> Result<Word> {
        Memory::intern(self, text)
    }
}

impl RegionPool {
    /// Parses a message into a region. Arrays become vectors, and objects maps; keys are symbols, each of
    /// which the region has once. An integer that does not fit into 64 bits becomes a float.
    ///
    /// The message may be nested to any depth: its parser and all users of values have a stack in memory.
    ///
    /// # Errors
    /// It is not JSON, or there is no memory.
    pub fn parse_json(&self, message: &[u8]) -> std::result::Result<Region, JsonError> {
        let mut memory = self.take();
        match parse(message, &mut memory) {
            Ok(word) => Ok(self.region(memory, word)),
            Err(error) => {
                self.keep(memory);
                Err(error)
            }
        }
    }
}

impl<'h> Mutator<'_, 'h> {
    /// Parses a message into the heap, as [`RegionPool::parse_json`] does into a region.
    ///
    /// ```
    /// use minder_cells::{Heap, HeapConfig};
    ///
    /// let mut heap = Heap::new(HeapConfig::new())?;
    /// let root = heap.mutate(|cells| {
    ///     let value = cells.parse_json(br#"{"a": [true, -1.5e3]}"#)?;
    ///     Ok::<_, Box<dyn std::error::Error>>(cells.root(value)?)
    /// })?;
    /// assert_eq!(heap.get(root).expect("it is a root").to_json(), r#"{"a":[true,-1500.0]}"#);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// It is not JSON, or the heap is full.
    pub fn parse_json(&mut self, message: &[u8]) -> std::result::Result<Value<'h>, JsonError> {
        parse(message, &mut HeapSink(self)).map(|word| self.value(word))
    }
}

struct HeapSink<'m, 'a, 'h>(&'m mut Mutator<'a, 'h>);

impl Cells for HeapSink<'_, '_, '_> {
    #[inline]
    fn allocate(&mut self, count: usize) -> Result<usize> {
        self.0.store().allocate(count)
    }

    #[inline]
    fn cells_mut(&mut self) -> &mut [crate::space::Cell] {
        self.0.cells_mut()
    }

    #[inline]
    fn refer(&mut self, word: Word) -> Result<()> {
        self.0.store().refer(word)
    }
}

impl Sink for HeapSink<'_, '_, '_> {
    #[inline]
    fn intern(&mut self, text: &str) -> Result<Word> {
        self.0.intern(text)
    }
}

/// An array or an object that has begun, and how many words there were before its own.
#[derive(Clone, Copy)]
enum Open {
    Array(usize),
    Object(usize),
}

/// What comes next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Value,
    /// A value, or the end of the array.
    FirstElement,
    /// A key, or the end of the object.
    FirstKey,
    Key,
    /// A comma, or the end of what is open.
    AfterValue,
}

struct Parser<'a, S> {
    text: &'a str,
    at: usize,
    sink: &'a mut S,
    /// The words of what is open.
    words: Vec<Word>,
    open: Vec<Open>,
    /// A string without its escapes.
    buffer: String,
}

fn parse(message: &[u8], sink: &mut impl Sink) -> std::result::Result<Word, JsonError> {
    let text = std::str::from_utf8(message)
        .map_err(|error| JsonError::new(JsonErrorKind::Text, error.valid_up_to()))?;
    let mut parser = Parser { text, at: 0, sink, words: Vec::new(), open: Vec::new(), buffer: String::new() };
    parser.run()
}

type Parsed<T> = std::result::Result<T, JsonError>;

impl<S: Sink> Parser<'_, S> {
    fn run(&mut self) -> Parsed<Word> {
        let mut next = Next::Value;
        loop {
            let byte = self.skip_blanks();
            next = match next {
                Next::AfterValue => match (self.open.last().copied(), byte) {
                    (None, None) => {
                        return self.words.pop().ok_or_else(|| self.error(JsonErrorKind::Incomplete));
                    }
                    (None, Some(_)) => return Err(self.error(JsonErrorKind::Trailing)),
                    (Some(Open::Array(_)), Some(b',')) => self.step(Next::Value),
                    (Some(Open::Object(_)), Some(b',')) => self.step(Next::Key),
                    (Some(Open::Array(_)), Some(b']')) | (Some(Open::Object(_)), Some(b'}')) => {
                        self.close()?
                    }
                    _ => return Err(self.unexpected(byte)),
                },
                Next::FirstElement if byte == Some(b']') => self.close()?,
                Next::FirstKey if byte == Some(b'}') => self.close()?,
                Next::FirstKey | Next::Key => self.key(byte)?,
                Next::Value | Next::FirstElement => self.value(byte)?,
            };
        }
    }

    fn error(&self, kind: JsonErrorKind) -> JsonError {
        JsonError::new(kind, self.at)
    }

    fn unexpected(&self, byte: Option<u8>) -> JsonError {
        self.error(if byte.is_none() { JsonErrorKind::Incomplete } else { JsonErrorKind::Syntax })
    }

    fn no_room(&self, error: Error) -> JsonError {
        JsonError { kind: JsonErrorKind::Memory, offset: self.at, memory: Some(error) }
    }

    #[inline]
    fn step(&mut self, next: Next) -> Next {
        self.at += 1;
        next
    }

    /// Returns the next byte that is not a blank.
    #[inline]
    fn skip_blanks(&mut self) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            match bytes.get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    #[inline]
    fn push(&mut self, word: Result<Word>) -> Parsed<Next> {
        match word {
            Ok(word) => {
                self.words.push(word);
                Ok(Next::AfterValue)
            }
            Err(error) => Err(self.no_room(error)),
        }
    }

    #[inline]
    fn value(&mut self, byte: Option<u8>) -> Parsed<Next> {
        match byte {
            Some(b'"') => {
                let word = self.string(|sink, text| build::text(sink, Kind::Str, text))?;
                self.push(word)
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'{') => {
                self.open.push(Open::Object(self.words.len()));
                Ok(self.step(Next::FirstKey))
            }
            Some(b'[') => {
                self.open.push(Open::Array(self.words.len()));
                Ok(self.step(Next::FirstElement))
            }
            Some(b't') => self.constant("true", Word::TRUE),
            Some(b'f') => self.constant("false", Word::FALSE),
            Some(b'n') => self.constant("null", Word::NULL),
            other => Err(self.unexpected(other)),
        }
    }

    fn constant(&mut self, name: &str, word: Word) -> Parsed<Next> {
        let rest = &self.text.as_bytes()[self.at..];
        if rest.starts_with(name.as_bytes()) {
            self.at += name.len();
            return self.push(Ok(word));
        }
        let same = rest.iter().zip(name.as_bytes()).take_while(|(one, other)| one == other).count();
        self.at += same;
        Err(self.unexpected(rest.get(same).copied()))
    }

    #[inline]
    fn key(&mut self, byte: Option<u8>) -> Parsed<Next> {
        if byte != Some(b'"') {
            return Err(self.unexpected(byte));
        }
        let key = self.string(S::intern)?;
        self.push(key)?;
        match self.skip_blanks() {
            Some(b':') => Ok(self.step(Next::Value)),
            other => Err(self.unexpected(other)),
        }
    }

    /// Ends what was opened last.
    #[inline]
    fn close(&mut self) -> Parsed<Next> {
        self.at += 1;
        let (from, word) = match self.open.pop() {
            Some(Open::Array(from)) => (from, build::vector(self.sink, &self.words[from..])),
            Some(Open::Object(from)) => (from, build::map(self.sink, &self.words[from..])),
            None => return Err(self.error(JsonErrorKind::Syntax)),
        };
        self.words.truncate(from);
        self.push(word)
    }

    /// Reads a string, which begins here, and makes a word of it.
    #[inline]
    fn string(&mut self, make: impl FnOnce(&mut S, &str) -> Result<Word>) -> Parsed<Result<Word>> {
        let start = self.at + 1;
        self.at = plain_end(self.text.as_bytes(), start);
        if self.text.as_bytes().get(self.at) == Some(&b'"') {
            let text = &self.text[start..self.at];
            self.at += 1;
            return Ok(make(self.sink, text));
        }
        self.escaped(start)?;
        Ok(make(self.sink, &self.buffer))
    }

    /// Reads the rest of a string with escapes into the buffer.
    fn escaped(&mut self, start: usize) -> Parsed<()> {
        self.buffer.clear();
        let mut from = start;
        loop {
            self.buffer.push_str(&self.text[from..self.at]);
            match self.text.as_bytes().get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => {
                    let c = self.escape()?;
                    self.buffer.push(c);
                }
                other => return Err(self.unexpected(other.copied())),
            }
            from = self.at;
            self.at = plain_end(self.text.as_bytes(), from);
        }
    }

    /// Reads an escape, which begins here.
    fn escape(&mut self) -> Parsed<char> {
        let byte = self.text.as_bytes().get(self.at + 1).copied();
        let c = match byte {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode_escape(),
            other => {
                self.at += 1;
                return Err(self.unexpected(other));
            }
        };
        self.at += 2;
        Ok(c)
    }

    fn unicode_escape(&mut self) -> Parsed<char> {
        let start = self.at;
        let first = self.hex_digits()?;
        let code = match first {
            0xd800..=0xdbff if self.text.as_bytes()[self.at..].starts_with(b"\\u") => {
                let second = self.hex_digits()?;
                if !(0xdc00..=0xdfff).contains(&second) {
                    return Err(JsonError::new(JsonErrorKind::Text, start));
                }
                0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00))
            }
            first => first,
        };
        // Half of a surrogate pair is not a character.
        char::from_u32(code).ok_or_else(|| JsonError::new(JsonErrorKind::Text, start))
    }

    /// Reads `\u` and four digits.
    fn hex_digits(&mut self) -> Parsed<u32> {
        self.at += 2;
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.text.as_bytes().get(self.at).copied();
            let digit = byte.and_then(|byte| char::from(byte).to_digit(16));
            code = code * 16 + digit.ok_or_else(|| self.unexpected(byte))?;
            self.at += 1;
        }
        Ok(code)
    }

    #[inline]
    fn number(&mut self) -> Parsed<Next> {
        let bytes = self.text.as_bytes();
        let start = self.at;
        let is_negative = bytes[self.at] == b'-';
        self.at += usize::from(is_negative);
        let digits_from = self.at;
        let mut number: u64 = 0;
        let mut is_exact = true;
        while let Some(digit) =
            bytes.get(self.at).map(|byte| byte.wrapping_sub(b'0')).filter(|digit| *digit < 10)
        {
            let next = number.checked_mul(10).and_then(|tens| tens.checked_add(digit.into()));
            is_exact &= next.is_some();
            number = next.unwrap_or(0);
            self.at += 1;
        }
        let digits = self.at - digits_from;
        if digits == 0 || (digits > 1 && bytes[digits_from] == b'0') {
            self.at = if digits == 0 { self.at } else { digits_from + 1 };
            let kind = if self.at == bytes.len() { JsonErrorKind::Incomplete } else { JsonErrorKind::Number };
            return Err(self.error(kind));
        }
        if matches!(bytes.get(self.at), Some(b'.' | b'e' | b'E')) {
            return self.fraction(start);
        }
        let word = match (is_exact, is_negative) {
            (true, false) => build::unsigned(self.sink, number),
            (true, true) if number == 0 => build::float(self.sink, -0.0),
            (true, true) if number <= i64::MIN.unsigned_abs() => {
                build::signed(self.sink, number.wrapping_neg().cast_signed())
            }
            _ => return self.float(start),
        };
        self.push(word)
    }

    /// Reads what follows the integer part.
    fn fraction(&mut self, start: usize) -> Parsed<Next> {
        if self.text.as_bytes()[self.at] == b'.' {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.text.as_bytes().get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.as_bytes().get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        self.float(start)
    }

    fn digits(&mut self) -> Parsed<()> {
        let from = self.at;
        while self.text.as_bytes().get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
        if self.at > from {
            return Ok(());
        }
        let kind = if self.at == self.text.len() { JsonErrorKind::Incomplete } else { JsonErrorKind::Number };
        Err(self.error(kind))
    }

    /// Makes a float of the number that began at `start`.
    fn float(&mut self, start: usize) -> Parsed<Next> {
        match self.text[start..self.at].parse::<f64>() {
            Ok(number) if number.is_finite() => {
                let word = build::float(self.sink, number);
                self.push(word)
            }
            _ => Err(JsonError::new(JsonErrorKind::Number, start)),
        }
    }
}

/// Returns the index of the first byte from here on that is a quote, a backslash or a control character; or
/// the end.
#[inline]
fn plain_end(bytes: &[u8], from: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // The lowest byte that gets its high bit is one that is zero; those above it may be wrong.
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGH;
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let word = u64::from_le_bytes(*chunk);
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let found =
            control | zeros(word ^ (ONES * u64::from(b'"'))) | zeros(word ^ (ONES * u64::from(b'\\')));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')).unwrap_or(rest.len())
}
