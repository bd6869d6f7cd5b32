//! Reads SQL as far as strings reach.

use super::alphabet::{Alphabet, VALUE};
use super::lexer::is_word_byte;
use super::syntax::runs_text;

/// Parts of words that load code, run programs, or run text.
const STEMS: &str = "load program extension language function execute system source pager edit soname plugin \
                     shell prepare trigger dblink";

/// Returns what each value may be, or `None` if the text is not followed.
pub(super) fn alphabets(text: &[u8]) -> Option<Vec<Alphabet>> {
    // Comments, other quotes, and commands of the client: `\!`, `.shell`.
    let is_refused = |pair: &[u8]| matches!(pair, b"--" | b"/*");
    if text.iter().any(|byte| b"\\#$[`".contains(byte))
        || text.windows(2).any(is_refused)
        || text.split(|byte| b"\n;".contains(byte)).any(|line| line.trim_ascii_start().starts_with(b"."))
        || runs_text(STEMS, "do call", text)
    {
        return None;
    }
    let mut found = Vec::new();
    let mut quote = None;
    let mut is_start = true;
    for (at, &byte) in text.iter().enumerate() {
        match (byte, quote) {
            (VALUE, Some(_)) => found.push(Alphabet::Text { excluded: Vec::new() }),
            // At the start it may be a command of the client.
            (VALUE, None) if is_start => return None,
            (VALUE, None) => found.push(bare(text, at)),
            (byte, Some(open)) if byte == open => quote = None,
            (b'\'' | b'"', None) => quote = Some(byte),
            _ => {}
        }
        is_start = quote.is_none() && (is_start && byte.is_ascii_whitespace() || b";\n".contains(&byte));
    }
    quote.is_none().then_some(found)
}

fn bare(text: &[u8], at: usize) -> Alphabet {
    let joins = |byte: Option<&u8>| byte.is_some_and(|byte| is_word_byte(*byte) || *byte == VALUE);
    let before = at.checked_sub(1).and_then(|at| text.get(at));
    let next = text[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace());
    if joins(before) || joins(text.get(at + 1)) || next == Some(&b'(') {
        return Alphabet::Digits;
    }
    Alphabet::Name { reserved: "", dots: true, sign: before != Some(&b'-') }
}
