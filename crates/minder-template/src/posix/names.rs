//! Names of variables in a shell line.

use crate::word::Word;

/// Says whether this can be a variable's name.
pub(crate) fn is_name(text: &[u8]) -> bool {
    !text.is_empty()
        && !text[0].is_ascii_digit()
        && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// The variables in a word, and those that its text names: arithmetic goes from one to the next.
pub(crate) fn mentions(word: &Word) -> Vec<Vec<u8>> {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let named = word.text.split(|byte| !name(byte)).filter(|text| is_name(text)).map(<[u8]>::to_vec);
    word.names.iter().cloned().chain(named).collect()
}

pub(crate) fn name_length(text: &[u8]) -> usize {
    text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count()
}
