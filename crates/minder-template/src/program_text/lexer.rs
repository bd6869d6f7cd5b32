//! Reads program texts of languages like awk and Python as far as strings, regular expressions and
//! comments reach.

use super::alphabet::{Alphabet, VALUE};
use super::syntax::{Syntax, exclude_formats};
use crate::word_list::lists;

/// The meaning of a `/` after the previous token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Previous {
    /// An operator: a regular expression begins.
    Operator,
    /// An operand: it divides.
    Operand,
    Unclear,
}

/// Returns what each value may be, or `None` if the text is not followed.
pub(super) fn alphabets(syntax: &Syntax, text: &[u8]) -> Option<Vec<Alphabet>> {
    if syntax.runs_text(text) {
        return None;
    }
    let mut found = Vec::new();
    let mut previous = Previous::Operator;
    let mut at = 0;
    while at < text.len() {
        let (length, after) = token(syntax, text, at, previous, &mut found)?;
        at += length;
        previous = after;
    }
    Some(found)
}

/// Reads the token at `at`. Returns its length and what it says about a `/` after it, or `None` if it is
/// not followed.
fn token(
    syntax: &Syntax,
    text: &[u8],
    at: usize,
    previous: Previous,
    found: &mut Vec<Alphabet>,
) -> Option<(usize, Previous)> {
    let rest = &text[at..];
    let byte = rest[0];
    let next = rest.get(1).copied();
    let is_awk = syntax.reserved.is_some();
    if syntax.has_comments && byte == b'#' {
        let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        // A comment may say how the rest of the text is encoded.
        return (!rest[..end].contains(&VALUE)).then_some((end, previous));
    }
    if syntax.quotes.contains(&byte) {
        let excluded = excluded_in_string(syntax, text, at)?;
        return Some((string(syntax, text, at, &excluded, found)? - at, Previous::Operand));
    }
    if syntax.refused.iter().any(|part| rest.starts_with(part.as_bytes())) {
        return None;
    }
    Some(match byte {
        VALUE => {
            found.push(bare(syntax, text, at));
            (1, Previous::Operand)
        }
        // A single `|` starts a command.
        b'|' if is_awk && next != Some(b'|') => return None,
        b'|' if is_awk => (2, Previous::Operator),
        b'/' if syntax.has_regexps => match previous {
            Previous::Operator => {
                let excluded = exclude_formats(text, syntax.expanded.to_vec());
                (regexp(text, at, b'/', is_awk, excluded, found)? - at, Previous::Operand)
            }
            Previous::Operand => (1, Previous::Operator),
            Previous::Unclear => return None,
        },
        b' ' | b'\t' => (1, previous),
        // In JavaScript an expression may continue in the next line.
        b'\n' if syntax.has_members => (1, Previous::Unclear),
        b']' => (1, Previous::Operand),
        b')' => (1, Previous::Unclear),
        // In awk an action ends there, and a pattern may follow.
        b'}' => (1, if is_awk { Previous::Operator } else { Previous::Unclear }),
        _ if is_word_byte(byte) => {
            let has_sigil = at > 0 && b"$@".contains(&text[at - 1]);
            let length = rest.iter().take_while(|byte| is_word_byte(**byte)).count();
            (length, after_word(syntax, &rest[..length], has_sigil))
        }
        // `x++ / 2` divides.
        b'+' | b'-' if next == Some(byte) => (2, Previous::Unclear),
        _ => (1, Previous::Operator),
    })
}

fn after_word(syntax: &Syntax, word: &[u8], sigil: bool) -> Previous {
    if sigil || word[0].is_ascii_digit() {
        Previous::Operand
    } else if lists(syntax.before_regexp, word) {
        Previous::Operator
    } else if syntax.ambiguous == "*" || lists(syntax.ambiguous, word) {
        Previous::Unclear
    } else {
        Previous::Operand
    }
}

/// Returns the bytes that a value in the string at `at` may not contain, or `None` if a value there could
/// be the name of a function.
fn excluded_in_string(syntax: &Syntax, text: &[u8], at: usize) -> Option<Vec<u8>> {
    let before = text[..at].iter().rev().find(|byte| !byte.is_ascii_whitespace());
    let is_member = before == Some(&b'[') && syntax.has_members;
    let length = text[..at].iter().rev().take_while(|byte| is_word_byte(**byte)).count();
    let prefix = text[at - length..at].to_ascii_lowercase();
    // `f"{…}"` contains code.
    let expands = prefix.iter().any(|byte| b"ft".contains(byte)) && prefix.len() <= 2;
    if is_member || expands || prefix.contains(&VALUE) {
        return None;
    }
    Some(exclude_formats(text, syntax.expanded.to_vec()))
}

/// Reads the string at `at`. Returns the index after it.
fn string(
    syntax: &Syntax,
    text: &[u8],
    at: usize,
    excluded: &[u8],
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let quote = text[at];
    let triple = [quote; 3];
    let is_triple = syntax.has_triple_quotes && text[at..].starts_with(&triple);
    let end: &[u8] = if is_triple { &triple } else { &triple[..1] };
    let mut inner = at + end.len();
    let from = inner;
    let before = found.len();
    loop {
        let rest = &text[inner..];
        match rest.first()? {
            _ if rest.starts_with(end) => break,
            b'\\' => inner += 1,
            b'\n' if !is_triple => return None,
            &VALUE => found.push(Alphabet::Text { excluded: excluded.to_vec() }),
            _ => {}
        }
        inner += 1;
    }
    // A command may be read from it: `open("|…")`.
    if found.len() > before && text[from..inner].contains(&b'|') {
        return None;
    }
    Some(inner + end.len())
}

/// Reads the regular expression at `at`, which ends at an unquoted `delimiter`. Returns the index after
/// it.
pub(super) fn regexp(
    text: &[u8],
    at: usize,
    delimiter: u8,
    has_posix_classes: bool,
    mut excluded: Vec<u8>,
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    excluded.push(delimiter);
    let mut inner = at + 1;
    let mut in_class = false;
    loop {
        let rest = &text[inner..];
        match *rest.first()? {
            b'\\' => inner += 1,
            b'\n' => return None,
            // Programs differ in whether it ends there.
            byte if byte == delimiter && in_class => return None,
            byte if byte == delimiter => return Some(inner + 1),
            VALUE => {
                let mut excluded = excluded.clone();
                if in_class {
                    excluded.extend_from_slice(b".:=-");
                }
                found.push(Alphabet::Text { excluded });
            }
            b'[' if in_class => {
                // `[:alpha:]`
                let length = rest.windows(2).position(|pair| pair == b":]").unwrap_or(0);
                let is_name = length > 2
                    && rest.starts_with(b"[:")
                    && rest[2..length].iter().all(u8::is_ascii_lowercase);
                if !has_posix_classes || !is_name {
                    return None;
                }
                inner += length + 1;
            }
            b'[' => {
                in_class = true;
                let first = if rest.get(1) == Some(&b'^') { 2 } else { 1 };
                // Programs differ in what `[]` means.
                if rest.get(first) == Some(&b']') {
                    return None;
                }
            }
            b']' => in_class = false,
            _ => {}
        }
        inner += 1;
    }
}

/// Reads text up to an unquoted `delimiter`. Returns the index after it.
pub(super) fn text_until(
    text: &[u8],
    from: usize,
    delimiter: u8,
    found: &mut Vec<Alphabet>,
) -> Option<usize> {
    let mut at = from;
    loop {
        match *text.get(at)? {
            b'\\' => at += 1,
            VALUE => found.push(Alphabet::Text { excluded: vec![delimiter] }),
            byte if byte == delimiter => return Some(at + 1),
            _ => {}
        }
        at += 1;
    }
}

/// Returns what a value outside of strings may be.
fn bare(syntax: &Syntax, text: &[u8], at: usize) -> Alphabet {
    let before = at.checked_sub(1).map(|at| text[at]);
    let joins =
        |byte: Option<u8>| byte.is_some_and(|byte| is_word_byte(byte) || byte == VALUE || byte == b'.');
    let next = text[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
    let is_whole = !joins(before) && !joins(text.get(at + 1).copied()) && next != Some(&b'(');
    let sign = is_whole && before != Some(b'-');
    match syntax.reserved {
        Some(reserved) if is_whole => Alphabet::Name { reserved, dots: false, sign },
        _ => Alphabet::Number { sign },
    }
}

pub(super) fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
