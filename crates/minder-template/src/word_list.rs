//! Tables of names that are written as one string, separated by white space.

/// Returns whether the table `names` contains `name`.
pub(crate) fn lists(names: &str, name: &[u8]) -> bool {
    names.split_ascii_whitespace().any(|known| known.as_bytes() == name)
}
