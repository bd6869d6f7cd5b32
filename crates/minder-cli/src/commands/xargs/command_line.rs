//! The command that is being filled with arguments, and its size.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use minder_os::encoding::os_str_from_encoded;

/// Returns the bytes that an argument takes: with the NUL byte at its end.
pub(super) fn size_of(argument: &[u8]) -> usize {
    argument.len() + 1
}

/// Returns the bytes that a program and its initial arguments take.
pub(super) fn size_of_all<'a>(arguments: impl IntoIterator<Item = &'a OsString>) -> usize {
    arguments.into_iter().map(|argument| size_of(argument.as_encoded_bytes())).sum()
}

/// The arguments that are added to a command. Their bytes are stored together: a million of them
/// takes no million allocations.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    bytes: Vec<u8>,
    /// The position at which each argument ends.
    ends: Vec<usize>,
}

impl Arguments {
    /// Adds an argument. It ends before its first NUL byte, as the system cannot pass one.
    pub(super) fn push(&mut self, argument: &[u8]) {
        let len = argument.iter().position(|byte| *byte == 0).unwrap_or(argument.len());
        self.bytes.extend_from_slice(&argument[..len]);
        self.ends.push(self.bytes.len());
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Returns the size of all arguments.
    pub(super) fn size(&self) -> usize {
        self.bytes.len() + self.ends.len()
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// Returns the arguments with these indices.
    pub(super) fn range(&self, range: std::ops::Range<usize>) -> impl Iterator<Item = Cow<'_, OsStr>> {
        range.map(|index| {
            let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
            os_str_from_encoded(&self.bytes[start..self.ends[index]])
        })
    }
}

/// Replaces each occurrence of `pattern`, which is not empty, in `text`.
pub(super) fn replace(text: &[u8], pattern: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.windows(pattern.len()).position(|part| part == pattern) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(value);
        rest = &rest[at + pattern.len()..];
    }
    out.extend_from_slice(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_count_their_nul_bytes() {
        let mut arguments = Arguments::default();
        for argument in [&b"ab"[..], b"", b"c\0d"] {
            arguments.push(argument);
        }
        let all: Vec<_> =
            arguments.range(0..arguments.len()).map(|it| it.to_string_lossy().into_owned()).collect();
        assert_eq!((all, arguments.size()), (vec!["ab".into(), String::new(), "c".to_owned()], 6));
        let middle: Vec<_> = arguments.range(2..3).map(Cow::into_owned).collect();
        assert_eq!(middle, ["c"]);
    }

    #[test]
    fn replace_does_not_look_into_values() {
        assert_eq!(replace(b"[{}{}]", b"{}", b"a{}"), b"[a{}a{}]");
        assert_eq!(replace(b"aaa", b"aa", b"x"), b"xa");
        assert_eq!(replace(b"x", b"{}", b"y"), b"x");
    }
}
