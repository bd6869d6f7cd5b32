//! Text for people: numbers, and foreign text such as names, paths, values and what other programs have said.

use std::fmt::Write;

/// Escapes everything that a terminal would interpret or that deceives a reader: control characters and
/// [invisible ones](is_invisible) become `\n`, `\x1b`, `\u{202e}`; bytes that are not UTF-8 become `\xff`.
/// Escaped text does not change.
#[must_use]
pub fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\r' | '\t' => text.extend(c.escape_default()),
                // Writing to a string does not fail.
                '\0'..' ' | '\x7f' => _ = write!(text, "\\x{:02x}", u32::from(c)),
                c if c.is_control() || is_invisible(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| _ = write!(text, "\\x{byte:02x}"));
    }
    text
}

/// Formats a number with commas between its thousands.
///
/// ```
/// assert_eq!(minder_os::grouped(1_048_576), "1,048,576");
/// ```
#[must_use]
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Returns whether a character has no width, changes the direction of others, or ends a line: soft hyphens,
/// joiners, bidirectional marks, line separators, tags.
#[must_use]
pub fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_leaves_what_is_visible() {
        let text = "a \\ `b` \"c\" é 日本 · … \u{301}";
        assert_eq!(escape(text.as_bytes()), text);
        assert_eq!(
            escape(b"a\x1b]52;c;eA==\x07\n\t\x7f\xc2\x9b\xff"),
            r"a\x1b]52;c;eA==\x07\n\t\x7f\u{9b}\xff"
        );
    }

    #[test]
    fn escape_shows_what_is_invisible() {
        for c in
            "\u{ad}\u{200b}\u{200d}\u{200f}\u{2028}\u{202a}\u{202e}\u{2060}\u{2066}\u{2069}\u{feff}".chars()
        {
            let shown = escape(c.to_string().as_bytes());
            assert_eq!(shown, c.escape_unicode().to_string());
            assert_eq!(escape(shown.as_bytes()), shown);
        }
    }
}
