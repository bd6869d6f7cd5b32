//! Backslash escapes in texts that are typed as arguments.
//!
//! GNU xargs and GNU parallel know different escapes for different options, so the caller names the
//! set. A backslash that begins no escape of the set stays as it is.

/// A set of escapes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EscapeSet {
    /// Those of `xargs --delimiter`: `\a \b \e \f \n \r \t \v \\`, octal numbers of one to three
    /// digits, `\xHH` with one or two digits.
    Delimiter,
    /// Those of `--recstart` and `--recend`: `\n \r \t \0 \\`, and `\xHH` with two digits.
    Separator,
    /// Those of `--tagstring`: `\n \r \t`, octal numbers of one digit, or of three digits up to
    /// `\377`. The set does not contain `\\`: both backslashes stay, and the second may begin an
    /// escape.
    Tag,
}

/// Replaces the escapes in `text` by the bytes that they stand for.
pub(crate) fn unescape(text: &[u8], set: EscapeSet) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escape = if first == b'\\' { set.parse(after) } else { None };
        match escape {
            Some((byte, len)) => {
                out.push(byte);
                rest = &after[len..];
            }
            None => {
                out.push(first);
                rest = after;
            }
        }
    }
    out
}

impl EscapeSet {
    /// Returns the byte of the escape whose text after the backslash begins `text`, and the length
    /// of that text.
    fn parse(self, text: &[u8]) -> Option<(u8, usize)> {
        let letter = *text.first()?;
        match (self, letter) {
            (_, b'n') => Some((b'\n', 1)),
            (_, b'r') => Some((b'\r', 1)),
            (_, b't') => Some((b'\t', 1)),
            (Self::Delimiter, b'a') => Some((0x07, 1)),
            (Self::Delimiter, b'b') => Some((0x08, 1)),
            (Self::Delimiter, b'v') => Some((0x0b, 1)),
            (Self::Delimiter, b'f') => Some((0x0c, 1)),
            (Self::Delimiter, b'e') => Some((0x1b, 1)),
            (Self::Delimiter | Self::Separator, b'\\') => Some((b'\\', 1)),
            // Without digits, or beyond 255, xargs drops the backslash and keeps the letter.
            (Self::Delimiter, b'x') => Some(match number(&text[1..], 2, 16) {
                Some((byte, len)) => (byte, len + 1),
                None => (letter, 1),
            }),
            (Self::Delimiter, b'0'..=b'7') => Some(number(text, 3, 8).unwrap_or((letter, 1))),
            (Self::Separator, b'0') => Some((0, 1)),
            (Self::Separator, b'x') => {
                number(&text[1..], 2, 16).filter(|(_, len)| *len == 2).map(|(byte, _)| (byte, 3))
            }
            (Self::Tag, b'0'..=b'7') => {
                let octal = number(text, 3, 8).filter(|(_, len)| *len == 3);
                octal.or_else(|| number(text, 1, 8))
            }
            _ => None,
        }
    }
}

/// Reads a number of at most `digits_max` digits. Returns it with its length, or `None` if there is
/// no digit or the number does not fit into a byte.
fn number(text: &[u8], digits_max: usize, radix: u32) -> Option<(u8, usize)> {
    let digits = text.iter().take(digits_max).map_while(|byte| char::from(*byte).to_digit(radix));
    let mut value = 0;
    let mut len = 0;
    for digit in digits {
        value = value * radix + digit;
        len += 1;
    }
    if len == 0 {
        return None;
    }
    let byte = u8::try_from(value).ok()?;
    Some((byte, len))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks one text in the sets `Delimiter`, `Separator` and `Tag`.
    #[track_caller]
    fn check(text: &str, expected: [&[u8]; 3]) {
        let sets = [EscapeSet::Delimiter, EscapeSet::Separator, EscapeSet::Tag];
        let bytes = sets.map(|set| unescape(text.as_bytes(), set));
        assert_eq!(bytes, expected.map(<[u8]>::to_vec), "{text}");
    }

    #[test]
    fn unescape_replaces_what_all_sets_share() {
        for (text, expected) in [
            ("", &b""[..]),
            ("plain", b"plain"),
            (r"\n\t\r", b"\n\t\r"),
            (r"a\qb", br"a\qb"),
            (r"\", br"\"),
            (r"a\n\", b"a\n\\"),
            (r"\0", b"\0"),
        ] {
            check(text, [expected; 3]);
        }
    }

    #[test]
    fn unescape_keeps_the_differences_between_sets() {
        check(r"\a\b\e\f\v", [b"\x07\x08\x1b\x0c\x0b", br"\a\b\e\f\v", br"\a\b\e\f\v"]);
        check(r"\\", [br"\", br"\", br"\\"]);
        check(r"\\101", [br"\101", br"\101", br"\A"]);
        check(r"\x41\x4\xg", [b"A\x04xg", br"A\x4\xg", br"\x41\x4\xg"]);
        check(r"\101", [b"A", br"\101", b"A"]);
        check(r"\0603", [b"03", b"\x00603", b"03"]);
        check(r"\12", [b"\n", br"\12", b"\x012"]);
        check(r"\012", [b"\n", b"\x0012", b"\n"]);
        check(r"\400", [b"400", br"\400", b"\x0400"]);
        check(r"\377", [b"\xff", br"\377", b"\xff"]);
        check(r"\8", [br"\8", br"\8", br"\8"]);
    }

    #[test]
    fn unescape_reads_delimiters() {
        for (text, bytes) in [
            (r"\n", &b"\n"[..]),
            (r"\0", b"\0"),
            (r"\x2c,", b",,"),
            (r"\054", b","),
            (r"a\\b\q", br"a\b\q"),
            (r"\", br"\"),
            (r"\xzz", b"xzz"),
            (r"\400", b"400"),
        ] {
            assert_eq!(unescape(text.as_bytes(), EscapeSet::Delimiter), bytes, "{text}");
        }
    }

    #[test]
    fn unescape_reads_separators() {
        let text = br"a\n\t\r\0\\n\x41\xzz\q\";
        assert_eq!(unescape(text, EscapeSet::Separator), b"a\n\t\r\0\\nA\\xzz\\q\\");
    }
}
