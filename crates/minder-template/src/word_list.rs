//! Lists of names that are written as one text.

/// Says whether `name` is one of these, which have blanks between them.
pub(crate) fn lists(names: &str, name: &[u8]) -> bool {
    names.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}
