//! Splits input into words, as xargs does: at blanks and newlines, with quotes and backslashes.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};

use crate::blocking_io;

/// The number of bytes read at once.
const READ_SIZE: usize = 64 << 10;

/// The separator of words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Separation {
    /// Spaces, tabs and newlines. Quotes and backslashes protect them.
    Blanks,
    /// Newlines. Blanks at the beginning of a line are not part of it; quotes and backslashes have the
    /// same meaning as for words.
    Lines,
    /// This byte. Every other byte belongs to a word, quotes and newlines too.
    Byte(u8),
}

/// A word of the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<'a> {
    /// The word, without its quotes. It may contain a NUL byte.
    pub bytes: &'a [u8],
    /// `true` if it is the last word of its line. A line that ends in a blank continues on the next
    /// one.
    pub ends_line: bool,
    /// `true` if the input ended before a separator.
    pub at_end: bool,
}

/// Why there is no next word.
#[derive(Debug)]
pub enum WordError {
    /// The input cannot be read.
    Read(io::Error),
    /// This quote was not closed in its line.
    Unclosed(u8),
    /// The word has more bytes than allowed.
    TooLong,
}

impl From<io::Error> for WordError {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

/// The position of the splitter: before a word or within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Before,
    Plain,
    Escaped,
    Quoted(u8),
}

/// Cuts a file into words. Memory is bounded: a word has at most `bytes_max` bytes.
#[derive(Debug)]
pub struct WordSplitter {
    input: BufReader<BlockingFile>,
    separation: Separation,
    bytes_max: usize,
    /// `true` if a carriage return before a newline is part of the newline.
    windows_text: bool,
    word: Vec<u8>,
    /// The number of newlines read.
    newlines: u64,
}

impl WordSplitter {
    /// Creates a splitter that reads `file` from its position on.
    pub fn new(file: File, separation: Separation, bytes_max: usize) -> Self {
        Self {
            input: BufReader::with_capacity(READ_SIZE, BlockingFile(file)),
            separation,
            bytes_max,
            windows_text: std::env::consts::FAMILY == "windows" && !matches!(separation, Separation::Byte(_)),
            word: Vec::new(),
            newlines: 0,
        }
    }

    /// Sets how many bytes the words that follow may have.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Returns the number of the line that is being read, from 1.
    pub fn line(&self) -> u64 {
        self.newlines + 1
    }

    /// Returns the next word, or `None` at the end of the input.
    ///
    /// # Errors
    /// The input cannot be read, a quote is not closed in its line, or the word is too long. The caller
    /// stops reading then.
    pub fn next_word(&mut self) -> Result<Option<Word<'_>>, WordError> {
        self.word.clear();
        let mut state = State::Before;
        let mut last = b'\n';
        loop {
            let buffer = self.input.fill_buf()?;
            if buffer.is_empty() {
                return match state {
                    State::Before => Ok(None),
                    State::Quoted(quote) => Err(WordError::Unclosed(quote)),
                    // As in xargs, `''` right before the end is not a word.
                    State::Plain if self.word.is_empty() => Ok(None),
                    State::Plain | State::Escaped => {
                        Ok(Some(Word { bytes: &self.word, ends_line: true, at_end: true }))
                    }
                };
            }
            let mut scan = Scan { word: &mut self.word, newlines: &mut self.newlines, state, last };
            let (used, end) = match self.separation {
                Separation::Byte(separator) => scan.until_byte(buffer, separator),
                Separation::Blanks | Separation::Lines => {
                    scan.until_blank(buffer, self.separation == Separation::Lines)?
                }
            };
            (state, last) = (scan.state, scan.last);
            self.input.consume(used);
            if self.word.len() > self.bytes_max {
                return Err(WordError::TooLong);
            }
            if let Some(ends_line) = end {
                if self.windows_text && ends_line && self.word.last() == Some(&b'\r') {
                    self.word.pop();
                }
                return Ok(Some(Word { bytes: &self.word, ends_line, at_end: false }));
            }
        }
    }
}

/// A word that is being read.
struct Scan<'a> {
    word: &'a mut Vec<u8>,
    newlines: &'a mut u64,
    state: State,
    /// The byte before the current one.
    last: u8,
}

impl Scan<'_> {
    /// Takes bytes up to a separator. Returns how many were used, and whether the word ended: with
    /// `Some(true)` it is the last one of its line.
    fn until_byte(&mut self, buffer: &[u8], separator: u8) -> (usize, Option<bool>) {
        self.state = State::Plain;
        let end = memchr::memchr(separator, buffer);
        self.word.extend_from_slice(&buffer[..end.unwrap_or(buffer.len())]);
        match end {
            Some(end) => (end + 1, Some(true)),
            None => (buffer.len(), None),
        }
    }

    /// Does the same by the rules of words. With `whole_line`, blanks belong to the word.
    fn until_blank(&mut self, buffer: &[u8], whole_line: bool) -> Result<(usize, Option<bool>), WordError> {
        let mut at = 0;
        while let Some(&byte) = buffer.get(at) {
            if let (State::Quoted(quote), b'\n') = (self.state, byte) {
                return Err(WordError::Unclosed(quote));
            }
            let last = std::mem::replace(&mut self.last, byte);
            *self.newlines += u64::from(byte == b'\n');
            at += 1;
            match (self.state, byte) {
                // As isspace(3) in the C locale; within a word only blanks and newlines separate.
                (State::Before, b' ' | b'\t'..=b'\r') => (),
                (State::Escaped, _) => {
                    self.word.push(byte);
                    self.state = State::Plain;
                }
                (State::Quoted(quote), _) if byte == quote => self.state = State::Plain,
                (State::Quoted(_), _) => self.word.push(byte),
                (_, b'\n') => return Ok((at, Some(whole_line || !is_blank(last)))),
                (_, b' ' | b'\t') if !whole_line => return Ok((at, Some(false))),
                (_, b'\'' | b'"') => self.state = State::Quoted(byte),
                (_, b'\\') => self.state = State::Escaped,
                _ => {
                    let rest = &buffer[at - 1..];
                    let plain = rest.iter().position(|byte| is_special(*byte)).unwrap_or(rest.len()).max(1);
                    self.word.extend_from_slice(&rest[..plain]);
                    at += plain - 1;
                    self.last = rest[plain - 1];
                    self.state = State::Plain;
                }
            }
        }
        Ok((at, None))
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_special(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\'' | b'"' | b'\\')
}

/// A file whose reads wait, even if another process has made it non-blocking.
#[derive(Debug)]
struct BlockingFile(File);

impl Read for BlockingFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        blocking_io::read(&mut self.0, buffer)
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Seek, Write};

    use super::*;

    /// Returns the words, with `/` after the last one of a line, and the error after them.
    fn split(text: &[u8], separation: Separation) -> String {
        let mut file = tempfile::tempfile().expect("create temp file");
        file.write_all(text).expect("write temp file");
        file.rewind().expect("rewind temp file");
        let mut splitter = WordSplitter::new(file, separation, 20);
        let mut out = Vec::new();
        loop {
            out.push(match splitter.next_word() {
                Ok(Some(word)) => {
                    let end = if word.ends_line { "/" } else { "" };
                    format!("<{}>{end}", String::from_utf8_lossy(word.bytes))
                }
                Ok(None) => return out.join(" "),
                Err(error) => {
                    out.push(match error {
                        WordError::Unclosed(quote) => format!("unclosed {}", char::from(quote)),
                        WordError::TooLong => "too long".to_owned(),
                        WordError::Read(error) => error.to_string(),
                    });
                    return out.join(" ");
                }
            });
        }
    }

    #[test]
    fn blanks_separate_words_and_quotes_protect_them() {
        for (text, words) in [
            ("", ""),
            (" \n\t\n", ""),
            ("a  b\tc\n\nd", "<a> <b> <c>/ <d>/"),
            ("a b \nc\n", "<a> <b> <c>/"),
            ("'a  b' \"c'd\" e\\ f\\\\\n", "<a  b> <c'd> <e f\\>/"),
            ("a\"b c\"d '' \"\"\n", "<ab cd> <> <>/"),
            ("a\\\nb\n", "<a\nb>/"),
            ("a\\ \nb\n", "<a > <b>/"),
            ("x\u{b}y\u{c}z\rw\n", "<x\u{b}y\u{c}z\rw>/"),
            ("\r\n", ""),
            ("a\r\n\r\nb \u{b}\u{c}\rc\n", "<a\r>/ <b> <c>/"),
            ("a 'b\nc'\n", "<a> unclosed '"),
            ("a \"b", "<a> unclosed \""),
            ("a\\", "<a>/"),
            ("a ''", "<a>"),
            ("12345678901234567890 123456789012345678901", "<12345678901234567890> too long"),
        ] {
            assert_eq!(split(text.as_bytes(), Separation::Blanks), words, "{text:?}");
        }
    }

    #[test]
    fn lines_keep_their_blanks_except_at_the_beginning() {
        let lines = |text: &str| split(text.as_bytes(), Separation::Lines);
        assert_eq!(lines("  a  b \n\n \tc\n"), "<a  b >/ <c>/");
        assert_eq!(lines(" \"a  b\" x\\\\\nd"), "<a  b x\\>/ <d>/");
    }

    #[test]
    fn a_byte_separates_words_without_quotes() {
        assert_eq!(split(b"a b\0\0'c\n\0", Separation::Byte(0)), "<a b>/ <>/ <'c\n>/");
        assert_eq!(split(b"a,b", Separation::Byte(b',')), "<a>/ <b>/");
        assert_eq!(split(b"", Separation::Byte(b',')), "");
    }
}
