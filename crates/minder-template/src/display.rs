//! How a command is written to be read and to be pasted: every POSIX shell reads it alike.
//!
//! A line end stands in quotes as it is. Other control characters, and bytes that are no text, are
//! written by `"$(printf '\033')"`: dash has no `$'…'`, and would find the end of the quotes
//! elsewhere.

use std::ffi::OsStr;
use std::fmt::Write;

/// How an apostrophe stands among single quotes: as GNU parallel writes it, whose output is
/// compared with ours.
const APOSTROPHE: &str = r#"'"'"'"#;

/// Words that shells read as their own where a command begins.
const RESERVED: &[&str] = &[
    "-",
    "!",
    "[[",
    "]]",
    "case",
    "coproc",
    "do",
    "done",
    "elif",
    "else",
    "end",
    "esac",
    "fi",
    "for",
    "foreach",
    "function",
    "if",
    "in",
    "namespace",
    "nocorrect",
    "noglob",
    "repeat",
    "select",
    "then",
    "time",
    "until",
    "while",
];

/// Writes `value` as one word outside of quotes.
pub(crate) fn bare(value: &OsStr) -> String {
    // Where it separates the parts of a path it is a character like any other.
    let separates = |byte| byte == '\\' && std::path::is_separator('\\');
    let first = value.as_encoded_bytes().first();
    let open = |c: char| c == '=' && first != Some(&b'=');
    word(value, |c| {
        "_-./:@%+,^".contains(c) || open(c) || separates(c) || (!c.is_ascii() && c.is_alphanumeric())
    })
}

/// The same for the first word of a command: no assignment, no reserved word, no job.
pub(crate) fn command(value: &OsStr) -> String {
    let bytes = value.as_encoded_bytes();
    match bytes.contains(&b'=') || bytes.starts_with(b"%") || is_reserved(value) {
        true => quoted(value),
        false => bare(value),
    }
}

/// The same for a value in a shell line, with quotes around what GNU parallel puts them around.
/// `joined`: it stands beside text with which it could be read as something else.
pub(crate) fn value(value: &OsStr, joined: bool) -> String {
    match joined || (is_reserved(value) && value != "-") {
        // bash looks for braces and commas in quotes, too, where braces are around them; ksh93 for `!` in
        // brackets.
        true if joined => quoted_but(value, |c| is_odd(c) || "{},!^".contains(c)),
        true => quoted(value),
        false => word(value, |c| "_-./+".contains(c)),
    }
}

fn is_reserved(value: &OsStr) -> bool {
    RESERVED.iter().any(|reserved| value == *reserved)
}

fn word(value: &OsStr, plain: impl Fn(char) -> bool) -> String {
    match value.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || plain(c)) => {
            text.to_owned()
        }
        _ => quoted(value),
    }
}

/// Writes `value` in quotes, as one word.
fn quoted(value: &OsStr) -> String {
    quoted_but(value, is_odd)
}

/// The same; what is `odd` does not stand in quotes as it is.
fn quoted_but(value: &OsStr, odd: impl Fn(char) -> bool + Copy) -> String {
    let mut out = String::new();
    pieces_of(value.as_encoded_bytes(), odd, &mut |piece| match piece {
        DefinitionPart::Text(text) => out += &single(text),
        DefinitionPart::Octal(octal) => {
            let _ = write!(out, "\"$(printf '{octal}')\"");
        }
    });
    if out.is_empty() { "''".to_owned() } else { out }
}

/// Writes `value` as it stands inside double quotes.
pub(crate) fn in_double_quotes(value: &OsStr) -> String {
    let mut out = String::new();
    pieces(value, &mut |piece| match piece {
        DefinitionPart::Text(text) => {
            for c in text.chars() {
                if matches!(c, '"' | '$' | '`' | '\\') {
                    out.push('\\');
                }
                out.push(c);
            }
        }
        DefinitionPart::Octal(octal) => {
            let _ = write!(out, "$(printf '{octal}')");
        }
    });
    out
}

/// Writes `value` as it stands inside single quotes.
pub(crate) fn in_single_quotes(value: &OsStr) -> String {
    let mut out = String::new();
    pieces(value, &mut |piece| match piece {
        DefinitionPart::Text(text) => out += &text.replace('\'', APOSTROPHE),
        DefinitionPart::Octal(octal) => {
            let _ = write!(out, "'\"$(printf '{octal}')\"'");
        }
    });
    out
}

/// Makes a whole line of the bytes that were written: as they are, if that can be shown and pasted,
/// else as text for `eval`.
pub(crate) fn line(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_odd) => text,
        Ok(text) => evaluated(text.as_bytes()),
        Err(error) => evaluated(error.as_bytes()),
    }
}

fn evaluated(bytes: &[u8]) -> String {
    let mut out = String::from("eval \"$(printf '");
    pieces_of(bytes, is_odd, &mut |piece| match piece {
        DefinitionPart::Text(text) => {
            for c in text.chars() {
                match c {
                    '\'' => out += "\\047",
                    '\\' => out += "\\\\",
                    '%' => out += "%%",
                    // In double quotes around `$(…)` old shells look for these.
                    '"' => out += "\\042",
                    '`' => out += "\\140",
                    '\n' => out += "\\n",
                    c => out.push(c),
                }
            }
        }
        DefinitionPart::Octal(octal) => out += octal,
    });
    out + "')\""
}

/// Writes a text for a message, on one line; what could disturb a terminal is escaped.
pub(crate) fn text(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// A text in single quotes. Nothing stands in quotes at its ends where it has apostrophes there.
fn single(text: &str) -> String {
    let whole = format!("'{}'", text.replace('\'', APOSTROPHE));
    let start = if text.starts_with('\'') { 2 } else { 0 };
    let end = whole.len() - if text.ends_with('\'') { 2 } else { 0 };
    whole[start..end].to_owned()
}

/// A part of a value.
enum DefinitionPart<'a> {
    /// What can stand in quotes as it is.
    Text(&'a str),
    /// What cannot, as `printf` writes it.
    Octal(&'a str),
}

/// Says whether a character disturbs a terminal or deceives a reader: a control character, or one
/// that turns the writing round.
fn is_odd(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn pieces(value: &OsStr, visit: &mut dyn FnMut(DefinitionPart<'_>)) {
    pieces_of(value.as_encoded_bytes(), is_odd, visit);
}

fn pieces_of(bytes: &[u8], is_odd: impl Fn(char) -> bool + Copy, visit: &mut dyn FnMut(DefinitionPart<'_>)) {
    let mut octal = String::new();
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while !rest.is_empty() {
            let plain = rest.find(is_odd).unwrap_or(rest.len());
            let (text, odd) = rest.split_at(plain);
            if !text.is_empty() {
                flush(&mut octal, visit);
                visit(DefinitionPart::Text(text));
            }
            let length = odd.find(|c| !is_odd(c)).unwrap_or(odd.len());
            odd.as_bytes()[..length].iter().for_each(|byte| push_octal(*byte, &mut octal));
            rest = &odd[length..];
        }
        chunk.invalid().iter().for_each(|byte| push_octal(*byte, &mut octal));
    }
    flush(&mut octal, visit);
}

fn push_octal(byte: u8, octal: &mut String) {
    let _ = write!(octal, "\\{byte:03o}");
}

fn flush(octal: &mut String, visit: &mut dyn FnMut(DefinitionPart<'_>)) {
    if !octal.is_empty() {
        visit(DefinitionPart::Octal(octal));
        octal.clear();
    }
}
