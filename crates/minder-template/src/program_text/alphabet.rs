//! The texts that a value may be at one position of a program text.

use crate::word_list::lists;

/// The byte that stands for a value in a program text. No argument of a command contains it.
pub(crate) const VALUE: u8 = 0;

/// The texts that a value may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Alphabet {
    /// Letters, digits and [`MARKS`], except these bytes.
    Text { excluded: Vec<u8> },
    /// The same, except a text that begins with `-` or `+`, which could be an option.
    Operand { excluded: Vec<u8> },
    /// A number, or a name that is not in the list. With `dots`, names joined by dots. With `sign`, a `-`
    /// may precede a number.
    Name { reserved: &'static str, dots: bool, sign: bool },
    /// Digits, perhaps with a dot. With `sign`, a `-` may precede them.
    Number { sign: bool },
    /// Digits.
    Digits,
    /// The name of a file that perl opens with `open(F, name)`: not `command|`, `|command` or `>file`.
    PerlFile,
}

/// The characters of a value in a string, besides letters and digits.
pub(crate) const MARKS: &[u8] = b"_.,:/@%+=-";

impl Alphabet {
    /// Returns whether a value may be this text. It is never empty: around an empty text, two characters
    /// could become one token.
    pub(crate) fn contains(&self, value: &[u8]) -> bool {
        match self {
            Alphabet::Operand { .. } if value.starts_with(b"-") || value.starts_with(b"+") => false,
            Alphabet::Text { excluded } | Alphabet::Operand { excluded } => {
                let is_allowed = |byte: &u8| {
                    (byte.is_ascii_alphanumeric() || MARKS.contains(byte)) && !excluded.contains(byte)
                };
                !value.is_empty() && value.iter().all(is_allowed)
            }
            Alphabet::Name { reserved, dots, sign } => {
                let is_allowed = |name: &[u8]| is_name(name) && !lists(reserved, &name.to_ascii_lowercase());
                is_signed_number(value, *sign)
                    || if *dots { value.split(|b| *b == b'.').all(is_allowed) } else { is_allowed(value) }
            }
            Alphabet::Number { sign } => is_signed_number(value, *sign),
            Alphabet::PerlFile => {
                let value = value.trim_ascii();
                !value.ends_with(b"|") && !value.first().is_some_and(|byte| b"|<>+&".contains(byte))
            }
            Alphabet::Digits => !value.is_empty() && value.iter().all(u8::is_ascii_digit),
        }
    }

    /// Describes the accepted values for a message.
    pub(crate) fn describe(&self) -> String {
        match self {
            Alphabet::Text { excluded } | Alphabet::Operand { excluded } => {
                let marks: String = MARKS
                    .iter()
                    .filter(|mark| !excluded.contains(mark))
                    .map(|mark| char::from(*mark))
                    .collect();
                let start = match self {
                    Alphabet::Operand { .. } => ", no `-` or `+` first,",
                    _ => "",
                };
                format!("letters, digits and `{marks}`{start}")
            }
            Alphabet::Name { .. } => "numbers, and names that are not words of its language".to_owned(),
            Alphabet::Number { .. } => "numbers".to_owned(),
            Alphabet::Digits => "digits".to_owned(),
            Alphabet::PerlFile => String::new(),
        }
    }
}

fn is_name(text: &[u8]) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic() || *byte == b'_';
    text.first().is_some_and(is_letter) && text.iter().all(|byte| is_letter(byte) || byte.is_ascii_digit())
}

fn is_signed_number(text: &[u8], sign: bool) -> bool {
    is_number(if sign { text.strip_prefix(b"-").unwrap_or(text) } else { text })
}

fn is_number(text: &[u8]) -> bool {
    let mut parts = text.splitn(2, |byte| *byte == b'.');
    parts.all(|digits| !digits.is_empty() && digits.iter().all(u8::is_ascii_digit))
}
