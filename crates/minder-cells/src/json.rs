//! JSON into cells (RFC 8259), without a value in between and without recursion.

use std::fmt;

use crate::build::{self, Cells};
use crate::error::{Error, Result};
use crate::heap::Heap;
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

/// The fault of a message.
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

/// The place where the values of a message are made: a region, or the heap.
pub(crate) trait Sink: Cells {
    fn intern(&mut self, text: &str) -> Result<Word>;

    /// Returns the symbol that usually follows the last one, and its number of bytes, if this text begins
    /// with it and a quote.
    fn predict(&mut self, text: &[u8]) -> Result<Option<(Word, usize)>>;
}

impl Sink for Memory {
    #[inline]
    fn intern(&mut self, text: &str) -> Result<Word> {
        Memory::intern(self, text)
    }

    #[inline]
    fn predict(&mut self, text: &[u8]) -> Result<Option<(Word, usize)>> {
        Ok(Memory::predict(self, text))
    }
}

impl Sink for Heap {
    #[inline]
    fn intern(&mut self, text: &str) -> Result<Word> {
        Heap::intern(self, text)
    }

    #[inline]
    fn predict(&mut self, text: &[u8]) -> Result<Option<(Word, usize)>> {
        Heap::predict(self, text)
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
        parse(message, self.heap()).map(|word| self.value(word))
    }
}

/// The part that is being read: the message, or an array or an object in it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Container {
    Message,
    Array,
    Object,
}

/// An array or an object that has begun, and how many words there were before its own.
#[derive(Clone, Copy)]
struct Open {
    kind: Container,
    from: usize,
}

impl Open {
    const MESSAGE: Self = Self { kind: Container::Message, from: 0 };
}

/// Reads a message. Positions are arguments and results, not a field, so that they stay in a register.
struct Parser<'a, S> {
    text: &'a str,
    sink: &'a mut S,
    /// The words of what is open.
    words: Vec<u64>,
    /// The open arrays and objects around the innermost one.
    outer: Vec<Open>,
    /// A string without its escapes.
    buffer: String,
}

fn parse(message: &[u8], sink: &mut impl Sink) -> std::result::Result<Word, JsonError> {
    let text = match std::str::from_utf8(message) {
        Ok(text) => text,
        // The message ends within a character. What is before it may have another error.
        Err(error) if error.error_len().is_none() => {
            let valid = error.valid_up_to();
            return match parse(&message[..valid], sink) {
                Err(error) if error.kind == JsonErrorKind::Incomplete => {
                    Err(JsonError::new(JsonErrorKind::Incomplete, message.len()))
                }
                Err(error) => Err(error),
                Ok(_) => Err(JsonError::new(JsonErrorKind::Text, valid)),
            };
        }
        Err(error) => return Err(JsonError::new(JsonErrorKind::Text, error.valid_up_to())),
    };
    let mut parser = Parser {
        text,
        sink,
        words: Vec::with_capacity(WORDS),
        outer: Vec::with_capacity(LEVELS),
        buffer: String::new(),
    };
    parser.run()
}

/// Makes room for one more at least.
#[cold]
fn reserve<T>(list: &mut Vec<T>, at: usize) -> Parsed<()> {
    list.try_reserve(1).map_err(|error| no_room(error.into(), at))
}

type Parsed<T> = std::result::Result<T, JsonError>;

impl<S: Sink> Parser<'_, S> {
    fn run(&mut self) -> Parsed<Word> {
        let mut open = Open::MESSAGE;
        let mut at = 0;
        'value: loop {
            at = self.skip_blanks(at);
            if open.kind == Container::Object {
                at = self.key(at)?;
                at = self.skip_blanks(at);
            }
            let mut word;
            (word, at) = match self.byte(at) {
                b'"' => self.string(at + 1)?,
                b'-' | b'0'..=b'9' => self.number(at)?,
                b'{' => {
                    at = self.skip_blanks(at + 1);
                    if self.byte(at) == b'}' {
                        self.close(Container::Object, self.words.len(), at + 1)?
                    } else {
                        self.push_outer(open, at)?;
                        open = self.begin(Container::Object);
                        continue 'value;
                    }
                }
                b'[' => {
                    at = self.skip_blanks(at + 1);
                    if self.byte(at) == b']' {
                        self.close(Container::Array, self.words.len(), at + 1)?
                    } else {
                        self.push_outer(open, at)?;
                        open = self.begin(Container::Array);
                        continue 'value;
                    }
                }
                b't' => self.constant("true", Word::TRUE, at)?,
                b'f' => self.constant("false", Word::FALSE, at)?,
                b'n' => self.constant("null", Word::NULL, at)?,
                _ => return Err(self.unexpected(at)),
            };
            // What follows a value: more of the same, or the ends of what it is in.
            loop {
                at = self.skip_blanks(at);
                match (self.byte(at), open.kind) {
                    (b',', Container::Object | Container::Array) => {
                        self.push_word(word, at)?;
                        at += 1;
                        continue 'value;
                    }
                    (b'}', Container::Object) | (b']', Container::Array) => {
                        self.push_word(word, at)?;
                        (word, at) = self.close(open.kind, open.from, at + 1)?;
                        open = self.outer.pop().unwrap_or(Open::MESSAGE);
                    }
                    (_, Container::Message) if at == self.text.len() => return Ok(word),
                    (_, Container::Message) => return Err(JsonError::new(JsonErrorKind::Trailing, at)),
                    _ => return Err(self.unexpected(at)),
                }
            }
        }
    }

    #[inline]
    fn push_word(&mut self, word: Word, at: usize) -> Parsed<()> {
        if self.words.len() == self.words.capacity() {
            reserve(&mut self.words, at)?;
        }
        self.words.push(word.0);
        Ok(())
    }

    #[inline]
    fn push_outer(&mut self, open: Open, at: usize) -> Parsed<()> {
        if self.outer.len() == self.outer.capacity() {
            reserve(&mut self.outer, at)?;
        }
        self.outer.push(open);
        Ok(())
    }

    /// Returns a byte of the message. After its end there are zeros, which JSON has nowhere.
    #[inline]
    fn byte(&self, at: usize) -> u8 {
        self.text.as_bytes().get(at).copied().unwrap_or(0)
    }

    /// Returns the position of the next byte that is not a blank.
    #[inline]
    fn skip_blanks(&self, mut at: usize) -> usize {
        while matches!(self.byte(at), b' ' | b'\n' | b'\r' | b'\t') {
            at += 1;
        }
        at
    }

    /// Returns the error of a byte that cannot be here, or of a message that ends here.
    #[cold]
    fn unexpected(&self, at: usize) -> JsonError {
        self.wrong(JsonErrorKind::Syntax, at)
    }

    /// Returns an error of this kind, unless the message ends here.
    #[cold]
    fn wrong(&self, kind: JsonErrorKind, at: usize) -> JsonError {
        JsonError::new(if at < self.text.len() { kind } else { JsonErrorKind::Incomplete }, at)
    }

    /// Begins an array or an object that is not empty.
    #[inline]
    fn begin(&mut self, kind: Container) -> Open {
        Open { kind, from: self.words.len() }
    }

    /// Ends an array or an object, whose words are the last ones.
    #[inline]
    fn close(&mut self, kind: Container, from: usize, at: usize) -> Parsed<(Word, usize)> {
        let words = &self.words[from..];
        let word = match kind {
            Container::Object => build::map_of(self.sink, words.as_chunks::<2>().0),
            Container::Array | Container::Message => build::vector_of(self.sink, words),
        };
        self.words.truncate(from);
        made(word, at)
    }

    fn constant(&self, name: &str, word: Word, at: usize) -> Parsed<(Word, usize)> {
        let rest = &self.text.as_bytes()[at..];
        if rest.starts_with(name.as_bytes()) {
            return Ok((word, at + name.len()));
        }
        let same = rest.iter().zip(name.as_bytes()).take_while(|(one, other)| one == other).count();
        Err(self.unexpected(at + same))
    }

    /// Reads a key, which begins here, and the colon after it. Returns the position after the colon.
    #[inline]
    fn key(&mut self, at: usize) -> Parsed<usize> {
        if self.byte(at) != b'"' {
            return Err(self.unexpected(at));
        }
        let start = at + 1;
        let (word, at) = match self.sink.predict(&self.text.as_bytes()[start..]) {
            Ok(Some((word, len))) => (word, start + len + 1),
            Ok(None) => self.new_key(start)?,
            Err(error) => return Err(no_room(error, start)),
        };
        self.push_word(word, at)?;
        let at = self.skip_blanks(at);
        if self.byte(at) == b':' { Ok(at + 1) } else { Err(self.unexpected(at)) }
    }

    /// Reads the text of a key which is not the one that was expected.
    fn new_key(&mut self, start: usize) -> Parsed<(Word, usize)> {
        let end = plain_end(self.text.as_bytes(), start);
        if self.byte(end) == b'"' {
            return made(self.sink.intern(&self.text[start..end]), end + 1);
        }
        let at = self.escaped(start, end)?;
        made(self.sink.intern(&self.buffer), at)
    }

    /// Reads a string, whose text begins here.
    #[inline]
    fn string(&mut self, start: usize) -> Parsed<(Word, usize)> {
        let end = plain_end(self.text.as_bytes(), start);
        if self.byte(end) == b'"' {
            return made(build::text(self.sink, Kind::Str, &self.text[start..end]), end + 1);
        }
        let at = self.escaped(start, end)?;
        made(build::text(self.sink, Kind::Str, &self.buffer), at)
    }

    /// Reads a text that is plain up to `end` into the buffer. Returns the position after its quote.
    fn escaped(&mut self, start: usize, end: usize) -> Parsed<usize> {
        self.buffer.clear();
        let mut from = start;
        let mut at = end;
        loop {
            self.buffer.push_str(&self.text[from..at]);
            match self.byte(at) {
                b'"' => return Ok(at + 1),
                b'\\' => {
                    let c;
                    (c, from) = self.escape(at)?;
                    self.buffer.push(c);
                }
                _ => return Err(self.unexpected(at)),
            }
            at = plain_end(self.text.as_bytes(), from);
        }
    }

    /// Reads an escape, which begins here.
    fn escape(&self, at: usize) -> Parsed<(char, usize)> {
        let c = match self.byte(at + 1) {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => return self.unicode_escape(at),
            _ => return Err(self.unexpected(at + 1)),
        };
        Ok((c, at + 2))
    }

    fn unicode_escape(&self, start: usize) -> Parsed<(char, usize)> {
        let (first, mut at) = self.hex_digits(start + 2)?;
        let mut code = first;
        let rest = &self.text.as_bytes()[at..];
        if (0xd800..=0xdbff).contains(&first) && rest.len() < 2 && b"\\u".starts_with(rest) {
            return Err(self.unexpected(self.text.len()));
        }
        if (0xd800..=0xdbff).contains(&first) && rest.starts_with(b"\\u") {
            let second;
            (second, at) = self.hex_digits(at + 2)?;
            if !(0xdc00..=0xdfff).contains(&second) {
                return Err(JsonError::new(JsonErrorKind::Text, start));
            }
            code = 0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00));
        }
        // Half of a surrogate pair is not a character.
        let c = char::from_u32(code).ok_or_else(|| JsonError::new(JsonErrorKind::Text, start))?;
        Ok((c, at))
    }

    /// Reads the four digits of `\u`.
    fn hex_digits(&self, at: usize) -> Parsed<(u32, usize)> {
        let mut code = 0;
        for at in at..at + 4 {
            let digit = char::from(self.byte(at)).to_digit(16);
            code = code * 16 + digit.ok_or_else(|| self.unexpected(at))?;
        }
        Ok((code, at + 4))
    }

    /// Reads a number, which begins here.
    #[inline]
    fn number(&mut self, start: usize) -> Parsed<(Word, usize)> {
        let is_negative = self.byte(start) == b'-';
        let from = start + usize::from(is_negative);
        let (number, end) = self.digits(from, 0);
        let count = end - from;
        if count == 0 {
            return Err(self.wrong(JsonErrorKind::Number, end));
        }
        if count > 1 && self.byte(from) == b'0' {
            return Err(JsonError::new(JsonErrorKind::Number, from + 1));
        }
        if matches!(self.byte(end), b'.' | b'e' | b'E') {
            return self.fraction(start, number, end);
        }
        let word = match is_negative {
            // This many digits fit into 64 bits.
            _ if count > DIGITS_MAX => return self.large_integer(start, end),
            false => build::unsigned(self.sink, number),
            true if number == 0 => build::float(self.sink, -0.0),
            true if number <= i64::MIN.unsigned_abs() => {
                build::signed(self.sink, number.wrapping_neg().cast_signed())
            }
            true => return self.float(start, end),
        };
        made(word, end)
    }

    /// Reads digits, and appends them to a number. It is right if it has at most [`DIGITS_MAX`] of them.
    #[inline]
    fn digits(&self, mut at: usize, mut number: u64) -> (u64, usize) {
        loop {
            let digit = self.byte(at).wrapping_sub(b'0');
            if digit >= 10 {
                return (number, at);
            }
            number = number.wrapping_mul(10).wrapping_add(digit.into());
            at += 1;
        }
    }

    /// Makes an integer of many digits.
    #[cold]
    fn large_integer(&mut self, start: usize, end: usize) -> Parsed<(Word, usize)> {
        match self.text[start..end].parse::<u64>() {
            Ok(number) => made(build::unsigned(self.sink, number), end),
            Err(_) => self.float(start, end),
        }
    }

    /// Reads what follows the integer part, whose digits are `number`.
    fn fraction(&mut self, start: usize, number: u64, mut at: usize) -> Parsed<(Word, usize)> {
        let mut number = number;
        let mut places = 0;
        if self.byte(at) == b'.' {
            let from = at + 1;
            (number, at) = self.digits(from, number);
            places = at - from;
            if places == 0 {
                return Err(self.wrong(JsonErrorKind::Number, at));
            }
        }
        if matches!(self.byte(at), b'e' | b'E') {
            let from = at + 1 + usize::from(matches!(self.byte(at + 1), b'+' | b'-'));
            (_, at) = self.digits(from, 0);
            if at == from {
                return Err(self.wrong(JsonErrorKind::Number, at));
            }
            return self.float(start, at);
        }
        // Both numbers are exact, so that the division rounds once: the result is the nearest float. The sign
        // and the point count as digits here.
        match POWERS_OF_TEN.get(places) {
            Some(power) if number <= EXACT_MAX && at - start <= DIGITS_MAX => {
                let quotient = number as f64 / power;
                let is_negative = self.byte(start) == b'-';
                made(build::float(self.sink, if is_negative { -quotient } else { quotient }), at)
            }
            _ => self.float(start, at),
        }
    }

    /// Makes a float of a number.
    fn float(&mut self, start: usize, end: usize) -> Parsed<(Word, usize)> {
        match self.text[start..end].parse::<f64>() {
            Ok(number) if number.is_finite() => made(build::float(self.sink, number), end),
            _ => Err(JsonError::new(JsonErrorKind::Number, start)),
        }
    }
}

/// Returns a value that was made of the text before `at`.
#[inline]
fn made(word: Result<Word>, at: usize) -> Parsed<(Word, usize)> {
    match word {
        Ok(word) => Ok((word, at)),
        Err(error) => Err(no_room(error, at)),
    }
}

#[cold]
fn no_room(error: Error, offset: usize) -> JsonError {
    JsonError { kind: JsonErrorKind::Memory, offset, memory: Some(error) }
}

/// The words and the levels that most messages have room in.
const WORDS: usize = 64;
const LEVELS: usize = 8;
/// The most digits with which every number fits into 64 bits.
const DIGITS_MAX: usize = 19;
/// All integers up to this one are floats.
const EXACT_MAX: u64 = 1 << f64::MANTISSA_DIGITS;
/// The powers of ten that are floats.
const POWERS_OF_TEN: [f64; 23] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
    1e19, 1e20, 1e21, 1e22,
];

/// Returns the index of the first byte from here on that is a quote, a backslash or a control character; or
/// the end.
#[inline]
fn plain_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while let Some(chunk) = bytes.get(at..).and_then(|rest| rest.first_chunk::<8>()) {
        let found = special(u64::from_le_bytes(*chunk));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')).unwrap_or(rest.len())
}

/// Returns the high bit of the lowest byte that is a quote, a backslash or a control character, perhaps with
/// bits above it; 0 if there is none.
#[inline]
fn special(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    // A byte gets its high bit if it is less than what is subtracted. The borrow reaches higher bytes only.
    let control = word.wrapping_sub(ONES * 0x20);
    let quote = (word ^ (ONES * u64::from(b'"'))).wrapping_sub(ONES);
    let backslash = (word ^ (ONES * u64::from(b'\\'))).wrapping_sub(ONES);
    (control | quote | backslash) & !word & (ONES << 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json_of(message: &str) -> String {
        RegionPool::new().parse_json(message.as_bytes()).expect("it is JSON").view().to_json()
    }

    #[test]
    fn a_key_is_predicted_by_its_text_and_not_by_its_bytes() {
        // The symbol `k\n` of the first object has the bytes of the escape in the second one.
        let message = r#"[{"a":1,"k\\n":2},{"a":1,"k\n":3},{"a":1,"k\\n":4}]"#;
        assert_eq!(json_of(message), message);
        let message = r#"[{"a":1,"k\"":2},{"a":1,"k":3},{"a":1,"ke":4},{"a":1,"":5}]"#;
        assert_eq!(json_of(message), message);
        let error = RegionPool::new().parse_json(br#"[{"a":1,"k\"":2},{"a":1,"k"":3}]"#).unwrap_err();
        assert_eq!((error.kind(), error.offset()), (JsonErrorKind::Syntax, 27));
    }

    #[test]
    fn a_fraction_is_the_nearest_float() {
        for text in [
            "0.1",
            "-0.0",
            "0.00000000000000001",
            "9007199254740992.5",
            "9007199254740993.0",
            "900719925474099.3",
            "123456789012345678.9",
            "1.7976931348623157",
            "0.30000000000000004",
            "0.1000000000000000055511151231257827",
        ] {
            let region = RegionPool::new().parse_json(text.as_bytes()).expect("it is JSON");
            let number = region.view().as_f64().expect("it is a number");
            assert_eq!(Ok(number.to_bits()), text.parse().map(f64::to_bits), "{text}");
        }
    }

    #[test]
    fn special_bytes_are_found_at_every_place() {
        for special in [b'"', b'\\', 0, 0x1f] {
            for at in 0..20 {
                let mut bytes = "ä~\u{7f} !#[]é!#[]~ü~ä!".as_bytes()[..20].to_vec();
                bytes[at] = special;
                assert_eq!(plain_end(&bytes, 0), at, "{special}");
                assert_eq!(plain_end(&bytes, at + 1), 20, "{special}");
            }
        }
    }
}
