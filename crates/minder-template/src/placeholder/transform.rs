//! The changes that a placeholder makes to its value.

use std::borrow::Cow;

use crate::placeholder::intern::intern;
use crate::placeholder::path::PathStyle;

/// A change of a value. The forms are those of GNU parallel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    /// `{}`: the value as it is.
    Identity,
    /// `{.}`: without its last extension.
    StripExtension,
    /// `{/}`: the last component of the path.
    BaseName,
    /// `{/.}`
    BaseNameStripExtension,
    /// `{//}`: the directory, as dirname(1) prints it.
    DirName,
    /// `{..}`, `{...}`: without this number of extensions, if the value has them.
    StripExtensions(usize),
    /// `{/..}`, `{/...}`
    BaseNameStripExtensions(usize),
    /// `{+/}`: only what is before the last separator.
    OnlyDirectory,
    /// `{+.}`, `{+..}`, `{+...}`: only the last extensions.
    OnlyExtensions(usize),
    /// `{:-text}`: the text if the value is empty.
    Default(&'static [u8]),
    /// `{:start}`, `{:start:length}`, in characters.
    Characters { start: usize, length: usize },
    /// `{#text}`: without this prefix.
    StripPrefix(&'static [u8]),
    /// `{%text}`: without this suffix.
    StripSuffix(&'static [u8]),
    /// `{/text/other}` replaces the first occurrence, `{//text/other}` every one.
    Replace { text: &'static [u8], other: &'static [u8], every: bool },
    /// `{^text}` at the start, `{^^text}` everywhere: in upper case.
    Upper { text: &'static [u8], every: bool },
    /// `{,text}` at the start, `{,,text}` everywhere: in lower case.
    Lower { text: &'static [u8], every: bool },
}

impl Transform {
    /// Returns whether the value may be a text of the template.
    pub(crate) fn has_default(self) -> bool {
        matches!(self, Self::Default(_))
    }

    /// Parses what follows a column number.
    pub(crate) fn read(text: &[u8]) -> Option<Transform> {
        Some(match text {
            b"" => Transform::Identity,
            b"." => Transform::StripExtension,
            b"/" => Transform::BaseName,
            b"/." => Transform::BaseNameStripExtension,
            b"//" => Transform::DirName,
            _ => return None,
        })
    }

    /// Parses the forms that `--plus` adds.
    pub(crate) fn plus(text: &[u8]) -> Option<Transform> {
        // A quote in a placeholder would make the quotes around it hard to follow.
        if text.iter().any(|b| b.is_ascii_control() || b"'\"$`\\{".contains(b)) {
            return None;
        }
        Some(match text {
            b".." => Transform::StripExtensions(2),
            b"..." => Transform::StripExtensions(3),
            b"/.." => Transform::BaseNameStripExtensions(2),
            b"/..." => Transform::BaseNameStripExtensions(3),
            b"+/" => Transform::OnlyDirectory,
            b"+." => Transform::OnlyExtensions(1),
            b"+.." => Transform::OnlyExtensions(2),
            b"+..." => Transform::OnlyExtensions(3),
            [b':', b'-', default, rest @ ..] => Transform::Default(intern(&[&[*default], rest].concat())),
            [b':', range @ ..] => characters(range)?,
            [b'#', b'#', prefix @ ..] | [b'#', prefix @ ..] if !prefix.is_empty() && prefix[0] != b'#' => {
                Transform::StripPrefix(intern(prefix))
            }
            [b'%', b'%', first, rest @ ..] => Transform::StripSuffix(intern(&[&[*first], rest].concat())),
            [b'%', suffix @ ..] if !suffix.is_empty() => Transform::StripSuffix(intern(suffix)),
            [b'/', b'/', pair @ ..] => replace(pair, true)?,
            [b'/', pair @ ..] => replace(pair, false)?,
            [b'^', b'^', text @ ..] if !text.is_empty() => {
                Transform::Upper { text: intern(text), every: true }
            }
            [b'^', text @ ..] if !text.is_empty() => Transform::Upper { text: intern(text), every: false },
            [b',', b',', text @ ..] if !text.is_empty() => {
                Transform::Lower { text: intern(text), every: true }
            }
            [b',', text @ ..] if !text.is_empty() => Transform::Lower { text: intern(text), every: false },
            _ => return None,
        })
    }

    pub(crate) fn apply(self, value: &[u8]) -> Cow<'_, [u8]> {
        Cow::Borrowed(match self {
            Transform::Identity => value,
            Transform::StripExtension => PathStyle::NATIVE.stem(value, 1),
            Transform::BaseName => PathStyle::NATIVE.base_name(value),
            Transform::BaseNameStripExtension => {
                PathStyle::NATIVE.stem(PathStyle::NATIVE.base_name(value), 1)
            }
            Transform::DirName => PathStyle::NATIVE.dir_name(value),
            Transform::StripExtensions(count) => PathStyle::NATIVE.stem(value, count),
            Transform::BaseNameStripExtensions(count) => {
                PathStyle::NATIVE.stem(PathStyle::NATIVE.base_name(value), count)
            }
            Transform::OnlyDirectory => PathStyle::NATIVE.last_separator(value).map_or(b"", |i| &value[..i]),
            // GNU parallel finds a single extension in directories too.
            Transform::OnlyExtensions(1) => {
                value.iter().rposition(|&b| b == b'.').map_or(b"", |i| &value[i + 1..])
            }
            Transform::OnlyExtensions(count) => {
                PathStyle::NATIVE.extensions(value, count).map_or(b"", |i| &value[i + 1..])
            }
            Transform::Default(text) if value.is_empty() => text,
            Transform::Default(_) => value,
            Transform::Characters { start, length } => {
                let rest = &value[char_prefix_len(value, start)..];
                &rest[..char_prefix_len(rest, length)]
            }
            Transform::StripPrefix(text) => value.strip_prefix(text).unwrap_or(value),
            Transform::StripSuffix(text) => value.strip_suffix(text).unwrap_or(value),
            Transform::Replace { text, other, every } => {
                return Cow::Owned(replaced(value, text, every, |_| other.to_vec()));
            }
            Transform::Upper { text, every } => {
                return Cow::Owned(with_case(value, text, every, <[u8]>::to_ascii_uppercase));
            }
            Transform::Lower { text, every } => {
                return Cow::Owned(with_case(value, text, every, <[u8]>::to_ascii_lowercase));
            }
        })
    }
}

fn characters(range: &[u8]) -> Option<Transform> {
    let number = |text: &[u8]| -> Option<usize> {
        if !(1..=9).contains(&text.len()) || !text.iter().all(u8::is_ascii_digit) {
            return None;
        }
        std::str::from_utf8(text).ok()?.parse().ok()
    };
    match range.iter().position(|&b| b == b':') {
        Some(colon) => {
            let start = number(&range[..colon])?;
            let length = number(&range[colon + 1..])?;
            Some(Transform::Characters { start, length })
        }
        None => Some(Transform::Characters { start: number(range)?, length: usize::MAX }),
    }
}

fn replace(pair: &[u8], every: bool) -> Option<Transform> {
    let slash = pair.iter().position(|&b| b == b'/').filter(|&slash| slash > 0)?;
    Some(Transform::Replace { text: intern(&pair[..slash]), other: intern(&pair[slash + 1..]), every })
}

/// Replaces the first occurrence of `text`, or every one.
fn replaced(value: &[u8], text: &[u8], every: bool, other: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len());
    let mut at = 0;
    let mut more = true;
    while at < value.len() {
        if more && value[at..].starts_with(text) {
            out.extend(other(text));
            at += text.len();
            more = every;
        } else {
            out.push(value[at]);
            at += 1;
        }
    }
    out
}

/// Changes the letters of `text` at the start of `value`, or wherever `value` contains it.
fn with_case(value: &[u8], text: &[u8], every: bool, change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    if every || value.starts_with(text) { replaced(value, text, every, change) } else { value.to_vec() }
}

/// Returns the length in bytes of the first `count` characters. A byte that is not UTF-8 counts as
/// one character.
fn char_prefix_len(value: &[u8], count: usize) -> usize {
    let mut length = 0;
    let mut left = count;
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return length;
            }
            length += c.len_utf8();
            left -= 1;
        }
        let invalid = chunk.invalid().len().min(left);
        length += invalid;
        left -= invalid;
    }
    length
}
