//! Names of variables in a shell line.

use crate::word::Word;

/// Returns whether this can be the name of a variable.
pub(crate) fn is_name(text: &[u8]) -> bool {
    !text.is_empty()
        && !text[0].is_ascii_digit()
        && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// Returns the variables in a word, and the names in its text. Arithmetic evaluates the text of a
/// variable, which may name another one.
pub(crate) fn mentions(word: &Word) -> Vec<Vec<u8>> {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let named = word.text.split(|byte| !is_name_byte(byte)).filter(|text| is_name(text)).map(<[u8]>::to_vec);
    word.variables.iter().cloned().chain(named).collect()
}

/// Returns the length of the name at the start of `text`.
pub(crate) fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}
