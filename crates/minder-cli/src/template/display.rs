//! How a value is written in a message: as a shell would read it, control characters escaped.

use std::ffi::OsStr;
use std::fmt::Write;

/// How an apostrophe stands among single quotes: as GNU parallel writes it, whose output is compared with ours.
const APOSTROPHE: &str = r#"'"'"'"#;

/// Writes `value` as one word outside of quotes.
pub(super) fn bare(value: &OsStr) -> String {
    // Where it separates the parts of a path it is a character like any other.
    let separates = |byte| byte == b'\\' && std::path::is_separator('\\');
    word(value, |byte| b"_-./:@%+,=^".contains(&byte) || separates(byte) || !byte.is_ascii())
}

/// The same for a value in a shell line, with quotes around what GNU parallel puts them around.
pub(super) fn value(value: &OsStr) -> String {
    word(value, |byte| b"_-./+".contains(&byte))
}

fn word(value: &OsStr, plain: impl Fn(u8) -> bool) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || plain(*byte);
    match printable(value) {
        Some(text) if !text.is_empty() && text.as_bytes().iter().all(plain) => text.to_owned(),
        Some(text) if !text.contains('\'') => format!("'{text}'"),
        Some(text) => quoted(text),
        None => escaped(value),
    }
}

/// Writes `value` as it stands inside double quotes.
pub(super) fn in_double_quotes(value: &OsStr) -> String {
    let Some(text) = printable(value) else {
        return format!("\"{}\"", escaped(value));
    };
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '"' | '$' | '`' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Writes `value` as it stands inside single quotes.
pub(super) fn in_single_quotes(value: &OsStr) -> String {
    match printable(value) {
        Some(text) => text.replace('\'', APOSTROPHE),
        None => format!("'{}'", escaped(value)),
    }
}

/// Writes the template's own text; only what could disturb a terminal is escaped.
pub(super) fn text(bytes: &[u8], out: &mut String) {
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() { out.extend(c.escape_default()) } else { out.push(c) }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
}

/// A text with apostrophes as one word. Nothing stands in quotes at its ends.
fn quoted(text: &str) -> String {
    let whole = format!("'{}'", text.replace('\'', APOSTROPHE));
    let start = if text.starts_with('\'') { 2 } else { 0 };
    let end = whole.len() - if text.ends_with('\'') { 2 } else { 0 };
    whole[start..end].to_owned()
}

/// The value as it is, if a terminal is not disturbed by it. A tab is no danger.
fn printable(value: &OsStr) -> Option<&str> {
    value.to_str().filter(|text| !text.chars().any(|c| c.is_control() && c != '\t'))
}

/// `$'…'`, in which every byte can be written.
fn escaped(value: &OsStr) -> String {
    let mut out = String::from("$'");
    for chunk in value.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => out.push_str("\\n"),
                '\t' => out.push_str("\\t"),
                '\r' => out.push_str("\\r"),
                '\'' | '\\' => out.extend(['\\', c]),
                c if c.is_control() => {
                    // As octal: unlike `\x`, it ends after three digits in every shell.
                    for byte in c.encode_utf8(&mut [0; 4]).bytes() {
                        let _ = write!(out, "\\{byte:03o}");
                    }
                }
                c => out.push(c),
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\{byte:03o}");
        }
    }
    out.push('\'');
    out
}
