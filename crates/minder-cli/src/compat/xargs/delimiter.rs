//! The value of `-d`: a character, or an escape sequence of C.

/// Parses the value of `-d`.
///
/// # Errors
/// It is more than one character and no known escape sequence.
pub(super) fn parse(text: &[u8]) -> Result<u8, String> {
    let shown = String::from_utf8_lossy(text);
    match text {
        [byte] => Ok(*byte),
        [b'\\', b'x', digits @ ..] => number(&shown, digits, 16),
        [b'\\', digits @ ..] if digits.first().is_some_and(u8::is_ascii_digit) => number(&shown, digits, 8),
        [b'\\', letter] => match letter {
            b'a' => Ok(0x07),
            b'b' => Ok(0x08),
            b'f' => Ok(0x0c),
            b'n' => Ok(b'\n'),
            b'r' => Ok(b'\r'),
            b't' => Ok(b'\t'),
            b'v' => Ok(0x0b),
            b'\\' => Ok(b'\\'),
            _ => Err(format!("Invalid escape sequence {shown} in input delimiter specification.")),
        },
        [b'\\', ..] => Err(format!("Invalid escape sequence {shown} in input delimiter specification.")),
        _ => Err(format!(
            "Invalid input delimiter specification {shown}: the delimiter must be either a single character \
             or an escape sequence starting with \\."
        )),
    }
}

/// Parses the number of an escape sequence.
fn number(shown: &str, digits: &[u8], radix: u32) -> Result<u8, String> {
    let len = digits.iter().take_while(|digit| char::from(**digit).is_digit(radix)).count();
    let value = digits[..len].iter().filter_map(|digit| char::from(*digit).to_digit(radix));
    let value = value.fold(0, |value: u32, digit| value.saturating_mul(radix).saturating_add(digit));
    if len < digits.len() {
        return Err(format!(
            "Invalid escape sequence {shown} in input delimiter specification; trailing characters {} not \
             recognised.",
            String::from_utf8_lossy(&digits[len..])
        ));
    }
    u8::try_from(value).map_err(|_| {
        let most = if radix == 16 { "ff" } else { "377" };
        format!(
            "Invalid escape sequence {shown} in input delimiter specification; character values must not \
             exceed {most}."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiter_is_a_character_or_an_escape() {
        for (text, byte) in
            [(",", b','), ("\\n", b'\n'), ("\\0", 0), ("\\x78", b'x'), ("\\170", b'x'), ("\\\\", b'\\')]
        {
            assert_eq!(parse(text.as_bytes()), Ok(byte), "{text}");
        }
        for (text, error) in [
            ("", "must be either a single character"),
            ("abc", "must be either a single character"),
            ("\\q", "Invalid escape sequence \\q in"),
            ("\\xzz", "trailing characters zz"),
            ("\\08", "trailing characters 8"),
            ("\\x400", "must not exceed ff"),
            ("\\777", "must not exceed 377"),
        ] {
            let actual = parse(text.as_bytes()).expect_err(text);
            assert!(actual.contains(error), "{text}: {actual}");
        }
    }
}
