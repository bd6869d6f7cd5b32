//! The languages whose program texts are understood.

use super::alphabet::{Alphabet, VALUE};
use super::syntax::{AWK, NODE, PYTHON, RUBY};
use super::{lexer, perl, sed, sql};

/// A language of program texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Language {
    Awk,
    Node,
    Perl,
    Python,
    Ruby,
    Sed,
    /// The text is scanned as a shell line, and not here.
    Shell,
    Sql,
}

/// Returns what each value in a program text may be, or `None` if the text is not accepted. [`VALUE`]
/// stands for each value.
pub(crate) fn alphabets(language: Language, text: &[u8]) -> Option<Vec<Alphabet>> {
    // A value after a backslash would be a part of an escape.
    if text.windows(2).any(|pair| pair == [b'\\', VALUE]) {
        return None;
    }
    let found = match language {
        Language::Awk => lexer::alphabets(&AWK, text),
        Language::Node => lexer::alphabets(&NODE, text),
        Language::Python => lexer::alphabets(&PYTHON, text),
        Language::Ruby => lexer::alphabets(&RUBY, text),
        Language::Perl => perl::alphabets(text),
        Language::Sed => sed::alphabets(text),
        Language::Sql => sql::alphabets(text),
        Language::Shell => None,
    }?;
    (found.len() == text.iter().filter(|byte| **byte == VALUE).count()).then_some(found)
}
