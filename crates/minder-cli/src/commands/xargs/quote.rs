//! Quotes an argument for the shell, in the form that xargs prints (`-t`).
//!
//! The form is the one of the GNU programs: nothing, single quotes, double quotes around a single
//! quote, and `$'\n'` for bytes that cannot be printed.

/// Appends `argument` to `out`. With `utf8`, characters beyond ASCII are printed as they are.
pub(super) fn push_quoted(argument: &[u8], utf8: bool, out: &mut Vec<u8>) {
    let units = units(argument, utf8);
    if !argument.is_empty() && units.iter().enumerate().all(|(at, unit)| unit.is_plain(at, units.len())) {
        out.extend_from_slice(argument);
    } else if argument.contains(&b'\'') && units.iter().all(Unit::is_plain_in_double_quotes) {
        out.push(b'"');
        out.extend_from_slice(argument);
        out.push(b'"');
    } else {
        push_in_single_quotes(&units, out);
    }
}

/// A printable character, or a byte that is not part of one.
#[derive(Clone, Copy)]
enum Unit<'a> {
    Char(&'a str),
    Byte(u8),
}

fn units(argument: &[u8], utf8: bool) -> Vec<Unit<'_>> {
    let mut units = Vec::with_capacity(argument.len());
    for chunk in argument.utf8_chunks() {
        let text = chunk.valid();
        for (at, character) in text.char_indices() {
            let text = &text[at..at + character.len_utf8()];
            let is_printable = if utf8 { !character.is_control() } else { matches!(character, ' '..='~') };
            if is_printable {
                units.push(Unit::Char(text));
            } else {
                units.extend(text.bytes().map(Unit::Byte));
            }
        }
        units.extend(chunk.invalid().iter().copied().map(Unit::Byte));
    }
    units
}

impl Unit<'_> {
    /// Returns whether it needs no quotes as the character number `at` of `len` characters.
    fn is_plain(&self, at: usize, len: usize) -> bool {
        let Self::Char(text) = self else { return false };
        match text.as_bytes() {
            b"{" | b"}" => len > 1,
            b"#" | b"~" => at > 0,
            [byte] => !b" !\"$&'()*;<=>?[\\^`|".contains(byte),
            _ => true,
        }
    }

    fn is_plain_in_double_quotes(&self) -> bool {
        let Self::Char(text) = self else { return false };
        !matches!(text.as_bytes(), [byte] if b"#~{}!\"$&()*;<=>?[\\^`|".contains(byte))
    }
}

fn push_in_single_quotes(units: &[Unit<'_>], out: &mut Vec<u8>) {
    out.push(b'\'');
    // The GNU programs scan an argument with a single quote twice, and begin the second scan with the
    // state at the end of the first one. A shell reads the same argument, unless its first byte cannot
    // be printed either.
    let is_scanned_twice = units.iter().any(|unit| matches!(unit, Unit::Char("'")));
    let mut is_escaping = is_scanned_twice && matches!(units.last(), Some(Unit::Byte(_)));
    for unit in units {
        match unit {
            Unit::Byte(byte) => {
                if !is_escaping {
                    out.extend_from_slice(b"'$'");
                }
                is_escaping = true;
                push_escape(*byte, out);
            }
            Unit::Char("'") => {
                // It ends the quotes, and an escape with them.
                out.extend_from_slice(b"'\\''");
                is_escaping = false;
            }
            Unit::Char(text) => {
                if is_escaping {
                    out.extend_from_slice(b"''");
                }
                is_escaping = false;
                out.extend_from_slice(text.as_bytes());
            }
        }
    }
    out.push(b'\'');
}

fn push_escape(byte: u8, out: &mut Vec<u8>) {
    let letter = match byte {
        0x07 => b'a',
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0b => b'v',
        0x0c => b'f',
        0x0d => b'r',
        _ => return out.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
    };
    out.extend_from_slice(&[b'\\', letter]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(argument: &[u8], utf8: bool) -> String {
        let mut out = Vec::new();
        push_quoted(argument, utf8, &mut out);
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn quotes_are_those_of_the_gnu_programs() {
        for (argument, expected) in [
            ("", "''"),
            ("abc/1.x@y%", "abc/1.x@y%"),
            ("a  b", "'a  b'"),
            ("{a}", "{a}"),
            ("{", "'{'"),
            ("#x", "'#x'"),
            ("x#y~", "x#y~"),
            ("a=b", "'a=b'"),
            ("a'b", "\"a'b\""),
            ("a'b\"", "'a'\\''b\"'"),
            ("a\tb\nc", "'a'$'\\t''b'$'\\n''c'"),
            ("a'b\n", "'''a'\\''b'$'\\n'"),
            ("\u{1}\u{2}x", "''$'\\001\\002''x'"),
            ("ä", "ä"),
        ] {
            assert_eq!(quoted(argument.as_bytes(), true), expected, "{argument:?}");
        }
        assert_eq!(quoted("ä".as_bytes(), false), "''$'\\303\\244'");
        assert_eq!(quoted(b"\xff", true), "''$'\\377'");
    }
}
