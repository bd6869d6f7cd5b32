//! Values as text: JSON and Lisp. Nesting of any depth needs no stack of the thread.

use std::fmt::{self, Write};

use crate::view::{Data, Elements, Entries, View};

impl View<'_> {
    /// Returns the value as JSON. A symbol is a string, a list an array, and any other pair an array of two.
    /// A number that JSON does not have is `null`.
    ///
    /// A value that contains itself, which only one of a heap can, has no end: memory runs out.
    pub fn to_json(self) -> String {
        let mut text = String::new();
        json(self, &mut text);
        text
    }

    /// Returns the value as Lisp, as Emacs writes it.
    ///
    /// A value that contains itself has no end: memory runs out.
    pub fn to_lisp(self) -> String {
        let mut text = String::new();
        lisp(self, &mut text);
        text
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_lisp())
    }
}

/// A part that is still to be written.
enum Rest<'a> {
    Value(View<'a>),
    /// Elements that follow others, or the first ones.
    Elements(Elements<'a>, Place),
    Entries(Entries<'a>, Place),
    /// The rest of a list, after its first element.
    List(View<'a>),
    Text(&'static str),
}

/// The place of an element: the first one has no separator before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    First,
    Later,
}

/// Appends a value as JSON.
fn json(view: View<'_>, out: &mut String) {
    let mut stack = vec![Rest::Value(view)];
    while let Some(rest) = stack.pop() {
        match rest {
            Rest::Text(text) => out.push_str(text),
            Rest::Value(view) => json_value(view, out, &mut stack),
            Rest::Elements(mut elements, place) => match elements.next() {
                Some(element) => {
                    if place == Place::Later {
                        out.push(',');
                    }
                    stack.push(Rest::Elements(elements, Place::Later));
                    stack.push(Rest::Value(element));
                }
                None => out.push(']'),
            },
            Rest::Entries(mut entries, place) => match entries.next() {
                Some((key, value)) => {
                    if place == Place::Later {
                        out.push(',');
                    }
                    json_key(key, out);
                    out.push(':');
                    stack.push(Rest::Entries(entries, Place::Later));
                    stack.push(Rest::Value(value));
                }
                None => out.push('}'),
            },
            Rest::List(rest) => match rest.data() {
                Data::Pair(first, rest) => {
                    out.push(',');
                    stack.push(Rest::List(rest));
                    stack.push(Rest::Value(first));
                }
                Data::Nil => out.push(']'),
                _ => {
                    out.push(',');
                    stack.push(Rest::Text("]"));
                    stack.push(Rest::Value(rest));
                }
            },
        }
    }
}

fn json_value<'a>(view: View<'a>, out: &mut String, stack: &mut Vec<Rest<'a>>) {
    match view.data() {
        Data::Nil => out.push_str("[]"),
        Data::Null => out.push_str("null"),
        Data::Bool(is_true) => out.push_str(if is_true { "true" } else { "false" }),
        Data::Int(number) => write_to(out, format_args!("{number}")),
        Data::UInt(number) => write_to(out, format_args!("{number}")),
        // `Debug` writes the shortest text that is read as the same number, with a fraction or an exponent.
        Data::Float(number) if number.is_finite() => write_to(out, format_args!("{number:?}")),
        Data::Float(_) => out.push_str("null"),
        Data::Str(text) | Data::Symbol(text) => json_string(text, out),
        Data::Vector(elements) => {
            out.push('[');
            stack.push(Rest::Elements(elements, Place::First));
        }
        Data::Map(entries) => {
            out.push('{');
            stack.push(Rest::Entries(entries, Place::First));
        }
        Data::Pair(first, rest) => {
            out.push('[');
            stack.push(Rest::List(rest));
            stack.push(Rest::Value(first));
        }
    }
}

/// Appends a key. One that is not a text becomes one.
fn json_key(key: View<'_>, out: &mut String) {
    match key.as_str() {
        Some(text) => json_string(text, out),
        None => json_string(&key.to_lisp(), out),
    }
}

fn json_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c < ' ' || c == '"' || c == '\\') {
        out.push_str(&rest[..at]);
        let escaped = rest.as_bytes()[at];
        match escaped {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            other => write_to(out, format_args!("\\u{other:04x}")),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
}

/// Appends a value as Lisp.
fn lisp(view: View<'_>, out: &mut String) {
    let mut stack = vec![Rest::Value(view)];
    while let Some(rest) = stack.pop() {
        match rest {
            Rest::Text(text) => out.push_str(text),
            Rest::Value(view) => lisp_value(view, out, &mut stack),
            Rest::Elements(mut elements, place) => match elements.next() {
                Some(element) => {
                    if place == Place::Later {
                        out.push(' ');
                    }
                    stack.push(Rest::Elements(elements, Place::Later));
                    stack.push(Rest::Value(element));
                }
                None => out.push(']'),
            },
            Rest::Entries(mut entries, place) => match entries.next() {
                Some((key, value)) => {
                    out.push_str(if place == Place::First { "(" } else { " (" });
                    stack.push(Rest::Entries(entries, Place::Later));
                    stack.push(Rest::Text(")"));
                    stack.push(Rest::Value(value));
                    stack.push(Rest::Text(" . "));
                    stack.push(Rest::Value(key));
                }
                None => out.push(')'),
            },
            Rest::List(rest) => match rest.data() {
                Data::Pair(first, rest) => {
                    out.push(' ');
                    stack.push(Rest::List(rest));
                    stack.push(Rest::Value(first));
                }
                Data::Nil => out.push(')'),
                _ => {
                    out.push_str(" . ");
                    stack.push(Rest::Text(")"));
                    stack.push(Rest::Value(rest));
                }
            },
        }
    }
}

fn lisp_value<'a>(view: View<'a>, out: &mut String, stack: &mut Vec<Rest<'a>>) {
    match view.data() {
        Data::Nil => out.push_str("nil"),
        Data::Null => out.push_str("null"),
        Data::Bool(is_true) => out.push_str(if is_true { "t" } else { "false" }),
        Data::Int(number) => write_to(out, format_args!("{number}")),
        Data::UInt(number) => write_to(out, format_args!("{number}")),
        Data::Float(number) if number.is_nan() => out.push_str("0.0e+NaN"),
        Data::Float(number) if number.is_infinite() => {
            out.push_str(if number > 0.0 { "1.0e+INF" } else { "-1.0e+INF" });
        }
        Data::Float(number) => write_to(out, format_args!("{number:?}")),
        Data::Str(text) => {
            out.push('"');
            for c in text.chars() {
                if matches!(c, '"' | '\\') {
                    out.push('\\');
                }
                out.push(c);
            }
            out.push('"');
        }
        Data::Symbol(text) => lisp_symbol(text, out),
        Data::Vector(elements) => {
            out.push('[');
            stack.push(Rest::Elements(elements, Place::First));
        }
        Data::Map(entries) if entries.len() == 0 => out.push_str("nil"),
        Data::Map(entries) => {
            out.push('(');
            stack.push(Rest::Entries(entries, Place::First));
        }
        Data::Pair(first, rest) => {
            out.push('(');
            stack.push(Rest::List(rest));
            stack.push(Rest::Value(first));
        }
    }
}

/// Appends a symbol, with a backslash before what would end it or make it something else.
fn lisp_symbol(text: &str, out: &mut String) {
    if text.is_empty() {
        out.push_str("##");
        return;
    }
    let is_number = is_number(text);
    for (at, c) in text.char_indices() {
        // A no-break space ends a symbol, as a space does. `?` begins a character, also after a point.
        let is_special = c <= ' ' || "\"'();[]#`,\\?\u{a0}".contains(c) || (at == 0 && is_number);
        if is_special || (text == "." && at == 0) {
            out.push('\\');
        }
        out.push(c);
    }
}

/// Returns whether Lisp reads this text as a number: `1`, `-.5`, `1e5`, `1.0e+INF`, but not `inf` and `nan`.
fn is_number(text: &str) -> bool {
    let digits = text.strip_suffix("e+INF").or_else(|| text.strip_suffix("e+NaN")).unwrap_or(text);
    digits.ends_with(|c: char| c.is_ascii_digit() || c == '.') && digits.parse::<f64>().is_ok()
}

fn write_to(out: &mut String, arguments: std::fmt::Arguments<'_>) {
    // A write to a string cannot fail.
    let _ = out.write_fmt(arguments);
}
