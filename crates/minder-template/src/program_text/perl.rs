//! Reads programs of perl as far as strings, regular expressions and comments reach.

use std::ops::Range;

use super::alphabet::{Alphabet, VALUE};
use super::lexer::{Previous, is_word_byte, regexp, text_until};
use super::syntax::{exclude_formats, runs_text};
use crate::word_list::lists;

/// Parts of words that run text, load code, or find functions by their names.
const STEMS: &str =
    "system exec eval readpipe require fork syscall autoload __ core:: pack =cut (?{ (?? (?p{";
const WORDS: &str = "do use no open opendir glob dump qx q qw tie bless can isa goto sig inc lib format \
                     sort formline";

/// Texts that are not followed: other quotes, and calls of functions by their names.
const REFUSED: &[&str] =
    &["`", "&$", "&{", "&\"", "&'", "*{", "*\"", "*$", "->(", "->$", "->@", "->&", "->*", "->%", "\n=", "\\"];

/// The words before which `/` begins a regular expression.
const BEFORE_REGEXP: &str = "if unless and or not split grep map join print say return push unshift \
     while until x lt gt le ge eq ne \
     cmp when";

/// The delimiters of `s`, `m`, `y`, `tr` and `qr` that are followed.
const DELIMITERS: &[u8] = b"/|,:!~%^;@#";

/// Returns what each value may be, or `None` if the text is not followed.
pub(super) fn alphabets(text: &[u8]) -> Option<Vec<Alphabet>> {
    if runs_text(STEMS, WORDS, text) || text.starts_with(b"=") {
        return None;
    }
    let excluded = exclude_formats(text, vec![b'@']);
    let mut reader = Reader { text, at: 0, previous: Previous::Operator, excluded, found: Vec::new() };
    while reader.at < text.len() {
        reader.token()?;
    }
    Some(reader.found)
}

/// The state of reading a program.
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    previous: Previous,
    /// The bytes that a value may not contain where variables are expanded.
    excluded: Vec<u8>,
    found: Vec<Alphabet>,
}

impl Reader<'_> {
    /// Reads one token, or returns `None` if it is not followed.
    fn token(&mut self) -> Option<()> {
        let Reader { text, at, .. } = *self;
        let rest = &text[at..];
        if REFUSED.iter().any(|part| rest.starts_with(part.as_bytes())) {
            return None;
        }
        let next = rest.get(1).copied();
        let (length, previous) = match rest[0] {
            VALUE => {
                let joins = |byte: u8| is_word_byte(byte) || b".-".contains(&byte) || byte == VALUE;
                let sign = !at.checked_sub(1).is_some_and(|before| joins(text[before]));
                self.found.push(Alphabet::Number { sign });
                (1, Previous::Operand)
            }
            b'#' => (comment(rest)?, self.previous),
            quote @ (b'\'' | b'"') => {
                let end = quoted(text, at, quote == b'"', &self.excluded, &mut self.found)?;
                (end - at, Previous::Operand)
            }
            b'/' => self.slash()?,
            // A here-document, or the operator.
            b'<' if next == Some(b'<') && !matches!(rest.get(2), Some(b' ' | b'=')) => return None,
            // Files that a pattern names.
            b'<' if next == Some(VALUE) => return None,
            b'?' if self.previous == Previous::Operator => return None,
            b'-' if next == Some(b'>') => match rest.get(2) {
                Some(b'[' | b'{') => (2, Previous::Operator),
                _ => return None,
            },
            byte @ (b'$' | b'@' | b'%') => sigil(byte, next)?,
            b' ' | b'\t' | b'\n' => (1, self.previous),
            b']' => (1, Previous::Operand),
            b')' | b'}' => (1, Previous::Unclear),
            byte @ (b'+' | b'-') if next == Some(byte) => (2, Previous::Unclear),
            byte if is_word_byte(byte) => self.word()?,
            _ => (1, Previous::Operator),
        };
        self.at += length;
        self.previous = previous;
        Some(())
    }

    /// Reads a `/`. Returns the length and what the token is for the next `/`.
    fn slash(&mut self) -> Option<(usize, Previous)> {
        match self.previous {
            Previous::Operator => {
                let end = expanding_regexp(self.text, self.at, b'/', &self.excluded, &mut self.found)?;
                Some((end - self.at, Previous::Operand))
            }
            // `//` is an operator, too.
            Previous::Operand if self.text.get(self.at + 1) == Some(&b'/') => Some((2, Previous::Operator)),
            Previous::Operand => Some((1, Previous::Operator)),
            Previous::Unclear => None,
        }
    }

    /// Reads a name, a number, or an operator such as `s/…/…/`.
    fn word(&mut self) -> Option<(usize, Previous)> {
        let (before, rest) = self.text.split_at(self.at);
        let length = rest.iter().take_while(|byte| is_word_byte(**byte)).count();
        let word = &rest[..length];
        if rest.get(length) == Some(&b'\'') {
            // `main'name` is a name.
            return None;
        }
        let has_sigil = before.last().is_some_and(|byte| b"$@%".contains(byte));
        if has_sigil || word[0].is_ascii_digit() {
            return Some((length, Previous::Operand));
        }
        if lists("s m y tr qr qq", word) {
            // `-s` tests a file.
            if before.ends_with(b"-") {
                return None;
            }
            let end = operator(self.text, self.at + length, word, &self.excluded, &mut self.found)?;
            return Some((end - self.at, Previous::Operand));
        }
        let begins_regexp = lists(BEFORE_REGEXP, word);
        Some((length, if begins_regexp { Previous::Operator } else { Previous::Unclear }))
    }
}

/// Returns the length of a comment, or `None` if a value is in it.
fn comment(rest: &[u8]) -> Option<usize> {
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    (!rest[..end].contains(&VALUE)).then_some(end)
}

/// Reads a sigil. `$/` and `$'` are variables.
fn sigil(byte: u8, next: Option<u8>) -> Option<(usize, Previous)> {
    match next {
        Some(next) if is_word_byte(next) || b" \t{".contains(&next) => Some((1, Previous::Operator)),
        None => Some((1, Previous::Operator)),
        Some(next) if byte == b'$' && next != VALUE => Some((2, Previous::Operand)),
        Some(_) => None,
    }
}

/// Reads the rest of `s/…/…/` and similar operators.
fn operator(
    text: &[u8],
    at: usize,
    word: &[u8],
    excluded: &[u8],
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let delimiter = text.get(at).copied().filter(|byte| DELIMITERS.contains(byte))?;
    let mut end = match word {
        b"s" | b"m" | b"qr" => expanding_regexp(text, at, delimiter, excluded, found)?,
        b"qq" => expanding_text(text, at + 1, delimiter, excluded, found)?,
        _ => text_until(text, at + 1, delimiter, found)?,
    };
    let before = found.len();
    match word {
        b"s" => end = expanding_text(text, end, delimiter, excluded, found)?,
        b"y" | b"tr" => end = text_until(text, end, delimiter, found)?,
        _ => {}
    }
    let flags = text[end..].iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
    let evaluations = text[end..end + flags].iter().filter(|flag| **flag == b'e').count();
    // With `e` the replacement is code, and with `ee` its result is code, too.
    if word == b"s" && (evaluations > 1 || evaluations == 1 && found.len() > before) {
        return None;
    }
    if text.get(end + flags) == Some(&VALUE) {
        return None;
    }
    Some(end + flags)
}

/// Reads a regular expression, in which variables are expanded.
fn expanding_regexp(
    text: &[u8],
    at: usize,
    delimiter: u8,
    excluded: &[u8],
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let before = found.len();
    let end = regexp(text, at, delimiter, true, excluded.to_vec(), found)?;
    restrict(&text[at..end], before, found);
    Some(end)
}

/// Reads the string at `at`.
fn quoted(
    text: &[u8],
    at: usize,
    expands: bool,
    excluded: &[u8],
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let before = found.len();
    let end = if expands {
        expanding_text(text, at + 1, text[at], excluded, found)?
    } else {
        text_until(text, at + 1, text[at], found)?
    };
    // Files may be opened by such a text: `|command`.
    (found.len() == before || !text[at..end].contains(&b'|')).then_some(end)
}

/// Reads text in which variables are expanded, up to an unquoted `delimiter`. Returns the index after it.
fn expanding_text(
    text: &[u8],
    from: usize,
    delimiter: u8,
    excluded: &[u8],
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let before = found.len();
    let end = text_until(text, from, delimiter, found)?;
    for alphabet in &mut found[before..] {
        *alphabet = Alphabet::Text { excluded: [excluded, &[delimiter]].concat() };
    }
    restrict(&text[from..end], before, found);
    Some(end)
}

/// Accepts only digits as the values since `before` that stand in a subscript, which is code, or in the
/// name of a variable. Only digits are accepted, too, if that is not clear.
fn restrict(text: &[u8], before: usize, found: &mut [Alphabet]) {
    let code = code_ranges(text);
    let values = text.iter().enumerate().filter(|(_, byte)| **byte == VALUE);
    for ((at, _), alphabet) in values.zip(&mut found[before..]) {
        if code.as_ref().is_none_or(|ranges| ranges.iter().any(|range| range.contains(&at))) {
            *alphabet = Alphabet::Digits;
        }
    }
}

/// Returns where an expanded text contains variables, with the byte after each and with its subscripts;
/// `None` if a subscript is not plain.
fn code_ranges(text: &[u8]) -> Option<Vec<Range<usize>>> {
    let mut ranges = Vec::new();
    for start in (0..text.len()).filter(|at| b"$@".contains(&text[*at])) {
        let is_name = |byte: &u8| is_word_byte(*byte) || *byte == b':';
        let mut at = start + 1 + text[start + 1..].iter().take_while(|byte| is_name(byte)).count();
        if matches!(text.get(at), Some(b'{' | b'$')) && at == start + 1 {
            return None;
        }
        while at > start + 1 {
            let rest = &text[at..];
            let arrow = if rest.starts_with(b"->") { 2 } else { 0 };
            let close = match rest.get(arrow) {
                Some(b'[') => b']',
                Some(b'{') => b'}',
                _ => break,
            };
            let inner = &rest[arrow + 1..];
            let end = inner.iter().position(|byte| *byte == close)?;
            if inner[..end].iter().any(|byte| b"[{('\"\\".contains(byte)) {
                return None;
            }
            at += arrow + 1 + end + 1;
        }
        ranges.push(start..at + 1);
    }
    Some(ranges)
}
