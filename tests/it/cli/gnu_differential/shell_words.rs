//! The words of a case's line, in a small part of the shell's manner.

/// Splits a line: `'…'` is literal, `"…"` knows `\"` and `\\`, `$'…'` knows `\n`, `\t`, `\\`, `\'`;
/// a backslash outside of quotes takes the next character as it is. Nothing is expanded.
pub(super) fn split(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = None::<String>;
    let mut rest = line.chars();
    while let Some(char) = rest.next() {
        let quote = match char {
            '\'' => Some((rest.as_str(), Quote::Plain)),
            '"' => Some((rest.as_str(), Quote::Double)),
            '$' if rest.as_str().starts_with('\'') => Some((&rest.as_str()[1..], Quote::Escapes)),
            _ => None,
        };
        if let Some((inside, quote)) = quote {
            let (text, length) = quoted(inside, quote);
            word.get_or_insert_default().push_str(&text);
            rest = inside[length..].chars();
        } else if char.is_whitespace() {
            words.extend(word.take());
        } else {
            let char = if char == '\\' { rest.next().expect("find escaped character") } else { char };
            word.get_or_insert_default().push(char);
        }
    }
    words.extend(word);
    words
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Quote {
    Plain,
    Double,
    Escapes,
}

/// Returns the text up to the closing quote, and the number of bytes including that quote.
fn quoted(inside: &str, quote: Quote) -> (String, usize) {
    let close = if quote == Quote::Double { '"' } else { '\'' };
    let mut text = String::new();
    let mut chars = inside.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == close {
            return (text, at + 1);
        }
        if char != '\\' || quote == Quote::Plain {
            text.push(char);
            continue;
        }
        match chars.next().map(|(_, char)| char) {
            Some('n') if quote == Quote::Escapes => text.push('\n'),
            Some('t') if quote == Quote::Escapes => text.push('\t'),
            Some(char) if char == close || char == '\\' => text.push(char),
            Some(char) => text.extend(['\\', char]),
            None => break,
        }
    }
    panic!("a quote that is not closed: {inside}")
}

#[test]
fn split_follows_shell_quoting() {
    let words = split(r#"-k  'a b'  "c\"d\e" $'x\ny' \; '' e'f'g"#);
    assert_eq!(words, ["-k", "a b", "c\"d\\e", "x\ny", ";", "", "efg"]);
}
