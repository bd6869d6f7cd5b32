//! Formats commands for people: to read them, and to paste them into any POSIX shell.
//!
//! A line end is written in quotes as it is. Other control characters, and bytes that are not
//! UTF-8, are written as `"$(printf '\033')"`. dash does not have `$'…'`, and would end the quotes
//! elsewhere.

use std::ffi::OsStr;
use std::fmt::Write;

/// An apostrophe between single quotes, in the form that GNU parallel writes. Tests compare the
/// output of both.
const APOSTROPHE: &str = r#"'"'"'"#;

/// Words with a special meaning at the start of a command.
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

/// Formats `value` as one argument for a POSIX shell.
pub(crate) fn bare(value: &OsStr) -> String {
    // A backslash needs no quotes where it separates the components of a path.
    let is_separator = |byte| byte == '\\' && std::path::is_separator('\\');
    let first = value.as_encoded_bytes().first();
    let is_inner_equals = |c: char| c == '=' && first != Some(&b'=');
    word(value, |c| {
        "_-./:@%+,^".contains(c)
            || is_inner_equals(c)
            || is_separator(c)
            || (!c.is_ascii() && c.is_alphanumeric())
    })
}

/// Formats `value` as one argument for a POSIX shell, on one line and without control characters. A
/// value with such characters is written as `"$(printf 'a\nb')"`.
pub fn one_line(value: &OsStr) -> String {
    let is_special = |c: char| c.is_control() || is_unprintable(c);
    if value.to_str().is_some_and(|text| !text.contains(is_special)) {
        return bare(value);
    }
    let bytes = value.as_encoded_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'\n').map_or(0, |last| last + 1);
    let mut out = String::from("\"");
    if end > 0 {
        let _ = write!(out, "$(printf '{}')", printf_format(&bytes[..end]));
    }
    if end < bytes.len() {
        // `$(…)` drops final newlines, so a variable is set to a newline and a point. The part that
        // sets it is empty: the pattern matches all digits of `$?`.
        out += r#"${?##[0-9"${minder_nl:=$(printf '\n.')}"]*}"#;
        out += &"${minder_nl%.}".repeat(bytes.len() - end);
    }
    out + "\""
}

/// Formats the first argument of a command, so that the shell reads it neither as an assignment,
/// nor as a reserved word, nor as a job (`%1`).
pub(crate) fn command(value: &OsStr) -> String {
    let bytes = value.as_encoded_bytes();
    if bytes.contains(&b'=') || bytes.starts_with(b"%") || is_reserved(value) {
        return quoted(value);
    }
    bare(value)
}

/// Formats a value in a shell line, with quotes wherever GNU parallel writes them. `joined`: the
/// text next to it could give it another meaning.
pub(crate) fn value(value: &OsStr, joined: bool) -> String {
    if joined {
        // Inside of braces, bash finds braces and commas even in quotes. Inside of brackets, ksh93
        // finds `!`.
        return quoted_except(value, |c| is_unprintable(c) || "{},!^".contains(c));
    }
    if is_reserved(value) && value != "-" {
        return quoted(value);
    }
    word(value, |c| "_-./+".contains(c))
}

fn is_reserved(value: &OsStr) -> bool {
    RESERVED.iter().any(|reserved| value == *reserved)
}

/// Formats `value` with quotes if it contains a character that is neither alphanumeric nor `plain`.
fn word(value: &OsStr, plain: impl Fn(char) -> bool) -> String {
    match value.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || plain(c)) => {
            text.to_owned()
        }
        _ => quoted(value),
    }
}

/// Formats `value` in quotes.
fn quoted(value: &OsStr) -> String {
    quoted_except(value, is_unprintable)
}

/// Formats `value` in quotes. Characters that are `special` are written as octal numbers.
fn quoted_except(value: &OsStr, special: impl Fn(char) -> bool + Copy) -> String {
    let mut out = String::new();
    visit_bytes(value.as_encoded_bytes(), special, &mut |segment| match segment {
        Segment::Text(text) => out += &single_quoted(text),
        Segment::Octal(octal) => {
            let _ = write!(out, "\"$(printf '{octal}')\"");
        }
    });
    if out.is_empty() { "''".to_owned() } else { out }
}

/// Formats `value` for a position inside double quotes.
pub(crate) fn in_double_quotes(value: &OsStr) -> String {
    let mut out = String::new();
    visit_segments(value, &mut |segment| match segment {
        Segment::Text(text) => {
            for c in text.chars() {
                if matches!(c, '"' | '$' | '`' | '\\') {
                    out.push('\\');
                }
                out.push(c);
            }
        }
        Segment::Octal(octal) => {
            let _ = write!(out, "$(printf '{octal}')");
        }
    });
    out
}

/// Formats `value` for a position inside single quotes.
pub(crate) fn in_single_quotes(value: &OsStr) -> String {
    let mut out = String::new();
    visit_segments(value, &mut |segment| match segment {
        Segment::Text(text) => out += &text.replace('\'', APOSTROPHE),
        Segment::Octal(octal) => {
            let _ = write!(out, "'\"$(printf '{octal}')\"'");
        }
    });
    out
}

/// Formats a whole line for a POSIX shell. A line that cannot be printed and pasted unchanged
/// becomes an argument of `eval`.
pub fn line(bytes: Vec<u8>) -> String {
    match String::from_utf8(bytes) {
        Ok(text) if !text.chars().any(is_unprintable) => text,
        Ok(text) => evaluated(text.as_bytes()),
        Err(error) => evaluated(error.as_bytes()),
    }
}

/// Formats a line as an argument of `eval`.
fn evaluated(bytes: &[u8]) -> String {
    format!("eval \"$(printf '{}')\"", printf_format(bytes))
}

/// Formats `bytes` as the format of `printf`, for a position inside `"$(printf '…')"`.
fn printf_format(bytes: &[u8]) -> String {
    let mut out = String::new();
    visit_bytes(bytes, is_unprintable, &mut |segment| match segment {
        Segment::Text(text) => {
            for c in text.chars() {
                match c {
                    '\'' => out += "\\047",
                    '\\' => out += "\\\\",
                    '%' => out += "%%",
                    // Old shells find these inside of `$(…)` in double quotes.
                    '"' => out += "\\042",
                    '`' => out += "\\140",
                    // An interactive bash replaces it by a line of its history.
                    '!' => out += "\\041",
                    // It would begin an option.
                    '-' if out.is_empty() => out += "\\055",
                    '\n' => out += "\\n",
                    '\t' => out += "\\t",
                    c => out.push(c),
                }
            }
        }
        Segment::Octal(octal) => out += octal,
    });
    out
}

/// Appends a text to a message on one line, without characters that a terminal would interpret.
pub(crate) fn text(bytes: &[u8], out: &mut String) {
    out.push_str(&minder_os::escape(bytes));
}

/// Formats a text in single quotes. Empty quotes next to an apostrophe at an end are left out.
fn single_quoted(text: &str) -> String {
    let whole = format!("'{}'", text.replace('\'', APOSTROPHE));
    let start = if text.starts_with('\'') { 2 } else { 0 };
    let end = whole.len() - if text.ends_with('\'') { 2 } else { 0 };
    whole[start..end].to_owned()
}

/// A segment of a value.
enum Segment<'a> {
    /// Text that can be in quotes unchanged.
    Text(&'a str),
    /// Other bytes, as an argument of `printf`.
    Octal(&'a str),
}

/// Returns whether a character could disturb a terminal or deceive a reader: a control character, a
/// line end other than `\n`, or an invisible one.
fn is_unprintable(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || minder_os::is_invisible(c)
}

/// Visits the segments of a value.
fn visit_segments(value: &OsStr, visit: &mut dyn FnMut(Segment<'_>)) {
    visit_bytes(value.as_encoded_bytes(), is_unprintable, visit);
}

/// Visits the segments of `bytes`, where characters that are `special` are not text.
fn visit_bytes(bytes: &[u8], special: impl Fn(char) -> bool + Copy, visit: &mut dyn FnMut(Segment<'_>)) {
    let mut octal = String::new();
    for chunk in bytes.utf8_chunks() {
        let mut rest = chunk.valid();
        while !rest.is_empty() {
            let plain = rest.find(special).unwrap_or(rest.len());
            let (text, other) = rest.split_at(plain);
            if !text.is_empty() {
                flush(&mut octal, visit);
                visit(Segment::Text(text));
            }
            let length = other.find(|c| !special(c)).unwrap_or(other.len());
            for byte in &other.as_bytes()[..length] {
                push_octal(*byte, &mut octal);
            }
            rest = &other[length..];
        }
        for byte in chunk.invalid() {
            push_octal(*byte, &mut octal);
        }
    }
    flush(&mut octal, visit);
}

fn push_octal(byte: u8, octal: &mut String) {
    let _ = write!(octal, "\\{byte:03o}");
}

fn flush(octal: &mut String, visit: &mut dyn FnMut(Segment<'_>)) {
    if !octal.is_empty() {
        visit(Segment::Octal(octal));
        octal.clear();
    }
}
