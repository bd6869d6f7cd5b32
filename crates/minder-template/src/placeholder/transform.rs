//! What a placeholder cuts from its value, or puts in its place.

use std::borrow::Cow;

use crate::placeholder::expression::DefinitionPart;
use crate::placeholder::intern::intern;
use crate::placeholder::path::Form;

/// The forms after GNU parallel, each named by what is cut away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transform {
    Nothing,
    Extension,
    Folder,
    FolderAndExtension,
    Name,
    /// `{..}`, `{...}`: so many extensions, or none.
    Extensions(usize),
    FolderAndExtensions(usize),
    /// `{+/}`: all but the folder.
    AllButFolder,
    /// `{+.}`, `{+..}`, `{+...}`: all but so many extensions.
    AllButExtensions(usize),
    /// `{:-text}`: for a value that is empty.
    Default(&'static [u8]),
    /// `{:start}`, `{:start:length}`, in characters.
    Characters(usize, usize),
    /// `{#text}`, `{%text}`.
    Prefix(&'static [u8]),
    Suffix(&'static [u8]),
    /// `{/text/other}` the first, `{//text/other}` every one.
    Replace {
        text: &'static [u8],
        other: &'static [u8],
        every: bool,
    },
    /// `{^text}` at the start, `{^^text}` every one, in capitals.
    Upper {
        text: &'static [u8],
        every: bool,
    },
    /// `{,text}`, `{,,text}`, in small letters.
    Lower {
        text: &'static [u8],
        every: bool,
    },
    /// An own placeholder.
    Own(&'static [DefinitionPart]),
}

impl Transform {
    /// Reads what stands behind a column's number.
    pub(crate) fn read(text: &[u8]) -> Option<Transform> {
        Some(match text {
            b"" => Transform::Nothing,
            b"." => Transform::Extension,
            b"/" => Transform::Folder,
            b"/." => Transform::FolderAndExtension,
            b"//" => Transform::Name,
            _ => return None,
        })
    }

    /// Reads what `--plus` adds.
    pub(crate) fn plus(text: &[u8]) -> Option<Transform> {
        // A quote in it would make the template's own quotes hard to follow.
        if text.iter().any(|b| b.is_ascii_control() || b"'\"$`\\{".contains(b)) {
            return None;
        }
        Some(match text {
            b".." => Transform::Extensions(2),
            b"..." => Transform::Extensions(3),
            b"/.." => Transform::FolderAndExtensions(2),
            b"/..." => Transform::FolderAndExtensions(3),
            b"+/" => Transform::AllButFolder,
            b"+." => Transform::AllButExtensions(1),
            b"+.." => Transform::AllButExtensions(2),
            b"+..." => Transform::AllButExtensions(3),
            [b':', b'-', default, rest @ ..] => Transform::Default(intern(&[&[*default], rest].concat())),
            [b':', range @ ..] => characters(range)?,
            [b'#', b'#', prefix @ ..] | [b'#', prefix @ ..] if !prefix.is_empty() && prefix[0] != b'#' => {
                Transform::Prefix(intern(prefix))
            }
            [b'%', b'%', first, rest @ ..] => Transform::Suffix(intern(&[&[*first], rest].concat())),
            [b'%', suffix @ ..] if !suffix.is_empty() => Transform::Suffix(intern(suffix)),
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
            Transform::Nothing | Transform::Own(_) => value,
            Transform::Extension => Form::HERE.stem(value, 1),
            Transform::Folder => Form::HERE.name(value),
            Transform::FolderAndExtension => Form::HERE.stem(Form::HERE.name(value), 1),
            Transform::Name => Form::HERE.folder(value),
            Transform::Extensions(count) => Form::HERE.stem(value, count),
            Transform::FolderAndExtensions(count) => Form::HERE.stem(Form::HERE.name(value), count),
            Transform::AllButFolder => Form::HERE.last_separator(value).map_or(b"", |i| &value[..i]),
            // One is looked for in folders too, as GNU parallel does.
            Transform::AllButExtensions(1) => {
                value.iter().rposition(|&b| b == b'.').map_or(b"", |i| &value[i + 1..])
            }
            Transform::AllButExtensions(count) => {
                Form::HERE.extensions(value, count).map_or(b"", |i| &value[i + 1..])
            }
            Transform::Default(text) => {
                if value.is_empty() {
                    text
                } else {
                    value
                }
            }
            Transform::Characters(start, length) => {
                let rest = &value[after_characters(value, start)..];
                &rest[..after_characters(rest, length)]
            }
            Transform::Prefix(text) => value.strip_prefix(text).unwrap_or(value),
            Transform::Suffix(text) => value.strip_suffix(text).unwrap_or(value),
            Transform::Replace { text, other, every } => {
                return Cow::Owned(replaced(value, text, every, |_| other.to_vec()));
            }
            Transform::Upper { text, every } => {
                return Cow::Owned(changed(value, text, every, <[u8]>::to_ascii_uppercase));
            }
            Transform::Lower { text, every } => {
                return Cow::Owned(changed(value, text, every, <[u8]>::to_ascii_lowercase));
            }
        })
    }
}

fn characters(range: &[u8]) -> Option<Transform> {
    let number = |text: &[u8]| {
        (1..=9).contains(&text.len()).then_some(())?;
        std::str::from_utf8(text).ok()?.parse().ok().filter(|_| text.iter().all(u8::is_ascii_digit))
    };
    match range.iter().position(|&b| b == b':') {
        Some(colon) => Some(Transform::Characters(number(&range[..colon])?, number(&range[colon + 1..])?)),
        None => Some(Transform::Characters(number(range)?, usize::MAX)),
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

/// Changes the letters of `text` where it stands: at the start, or everywhere.
fn changed(value: &[u8], text: &[u8], every: bool, change: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    match every || value.starts_with(text) {
        true => replaced(value, text, every, change),
        false => value.to_vec(),
    }
}

/// How many bytes the first `count` characters are; a byte that is no text counts as one.
fn after_characters(value: &[u8], count: usize) -> usize {
    let mut length = 0;
    let mut left = count;
    for chunk in value.utf8_chunks() {
        for c in chunk.valid().chars() {
            if left == 0 {
                return length;
            }
            (length, left) = (length + c.len_utf8(), left - 1);
        }
        let part = chunk.invalid().len().min(left);
        (length, left) = (length + part, left - part);
    }
    length
}
