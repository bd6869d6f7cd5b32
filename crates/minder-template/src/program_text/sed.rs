//! Reads scripts of sed as far as addresses, patterns and texts reach.

use super::alphabet::{Alphabet, VALUE};
use super::lexer::{regexp, text_until};

/// Returns what each value may be, or `None` if the script is not followed, or runs commands (`e`).
pub(super) fn alphabets(script: &[u8]) -> Option<Vec<Alphabet>> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(&byte) = script.get(at) {
        at += 1;
        match byte {
            VALUE => found.push(Alphabet::Digits),
            b' ' | b'\t' | b'\n' | b';' | b'{' | b'}' | b'0'..=b'9' | b'$' | b',' | b'~' | b'+' | b'!' => {}
            b'=' | b'd' | b'D' | b'g' | b'G' | b'h' | b'H' | b'l' | b'n' | b'N' | b'p' | b'P' | b'q'
            | b'Q' | b'x' | b'z' | b'F' => {}
            b'/' => at = address(script, at - 1, &mut found)?,
            b'\\' => at = address(script, at, &mut found)?,
            b's' => at = substitution(script, at, &mut found)?,
            b'y' => {
                let delimiter = delimiter(script, at)?;
                let middle = text_until(script, at + 1, delimiter, &mut found)?;
                at = text_until(script, middle, delimiter, &mut found)?;
            }
            // A text or the name of a file, up to the end of the line.
            b'a' | b'i' | b'c' | b'r' | b'R' | b'w' | b'W' => at = line(script, at, Some(&mut found))?,
            b'b' | b't' | b'T' | b':' | b'#' => at = line(script, at, None)?,
            _ => return None,
        }
    }
    Some(found)
}

/// Reads a regular expression as an address, whose delimiter is at `at`.
fn address(script: &[u8], at: usize, found: &mut Vec<Alphabet>) -> Option<usize> {
    let mut at = regexp(script, at, delimiter(script, at)?, true, Vec::new(), found)?;
    while matches!(script.get(at), Some(b'I' | b'M')) {
        at += 1;
    }
    Some(at)
}

/// Reads the rest of `s/…/…/`.
fn substitution(script: &[u8], at: usize, found: &mut Vec<Alphabet>) -> Option<usize> {
    let delimiter = delimiter(script, at)?;
    let middle = regexp(script, at, delimiter, true, Vec::new(), found)?;
    let mut at = text_until(script, middle, delimiter, found)?;
    loop {
        match script.get(at) {
            Some(b'g' | b'p' | b'i' | b'I' | b'm' | b'M' | b'0'..=b'9') => at += 1,
            Some(b'w') => return line(script, at + 1, Some(found)),
            Some(b' ' | b'\t' | b'\n' | b';' | b'}' | b'#') | None => return Some(at),
            // The flag `e` runs the result. A value here would be a flag.
            Some(_) => return None,
        }
    }
}

/// Returns the delimiter at `at`.
fn delimiter(script: &[u8], at: usize) -> Option<u8> {
    script.get(at).copied().filter(|byte| byte.is_ascii_punctuation() && *byte != b'\\')
}

/// Reads a text up to the end of the line. Values in it are accepted with `found`.
fn line(script: &[u8], from: usize, found: Option<&mut Vec<Alphabet>>) -> Option<usize> {
    let mut at = from;
    let mut values = 0;
    while let Some(&byte) = script.get(at) {
        match byte {
            b'\\' => at += 1,
            b'\n' => break,
            VALUE => values += 1,
            _ => {}
        }
        at += 1;
    }
    match found {
        Some(found) => {
            found.extend(std::iter::repeat_n(Alphabet::Text { excluded: Vec::new() }, values));
            Some(at)
        }
        None if values == 0 => Some(at),
        None => None,
    }
}
