//! The spellings of placeholders, and what each placeholder means.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind};
use crate::placeholder::expression::{DefinitionPart, Placeholder, Source, ValueForm};
use crate::placeholder::intern::intern;
use crate::placeholder::transform::Transform;
use minder_os::encoding::os_str_from_encoded;

/// The placeholders that a template may contain: those of GNU parallel, with other spellings and
/// with custom placeholders if the user chose some.
///
/// ```
/// use minder_template::{PlaceholderKind, PlaceholderSet, Options, Template, Job};
///
/// let placeholders = PlaceholderSet::default().replace(PlaceholderKind::Value, "FILE")?;
/// let placeholders = placeholders.define("{thumb}", "{/.}-thumb.png")?;
/// let options = Options { placeholders, shell: Some("/bin/sh".into()), ..Options::default() };
/// let template = Template::parse(&["convert FILE {thumb}".into()], &options)?;
/// let argv = template.argv(&Job { columns: &["a/b.jpg".into()], ..Job::default() })?;
/// assert_eq!(argv[2..], ["convert \"$1\" \"$2\"", "/bin/sh", "a/b.jpg", "b-thumb.png"]);
/// # Ok::<(), minder_template::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlaceholderSet {
    /// Spellings that the user chose.
    chosen: Vec<ChosenPlaceholder>,
    /// The kinds whose usual spelling became text.
    replaced: Vec<PlaceholderKind>,
    plus: bool,
    /// The names of the columns. The name of a column that cannot be named is empty.
    column_names: Vec<Vec<u8>>,
}

/// The placeholders whose spelling can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// `{}`: the value.
    Value,
    /// `{.}`: the value without its extension.
    NoExtension,
    /// `{/}`: the last component of the path.
    BaseName,
    /// `{//}`: the directory of the path.
    DirName,
    /// `{/.}`: the last component without its extension.
    BaseNameNoExtension,
    /// `{#}`: the number of the job.
    Number,
    /// `{%}`: the number of the slot.
    Slot,
}

/// A spelling that the user chose.
#[derive(Debug, Clone)]
struct ChosenPlaceholder {
    text: Vec<u8>,
    source: Source,
    form: ValueForm,
    /// The definition of a custom placeholder as the user wrote it; empty for the others.
    definition: Vec<u8>,
}

/// The maximum number of custom placeholders.
const CUSTOM_MAX: usize = 64;

/// The maximum number of digits of a column number.
const DIGITS_MAX: usize = 6;

/// The maximum length of the text between braces.
const INNER_MAX: usize = 256;

/// Placeholders of GNU parallel's `--plus` that minder does not have: they skip jobs, or name other
/// machines.
const UNSUPPORTED: [&str; 6] = ["{uniq}", "{choose_k}", "{host}", "{sshlogin}", "{hgrp}", "{agrp}"];

impl PlaceholderSet {
    /// Splits an argument into placeholders and the text between them.
    pub(crate) fn split(&self, argument: &[u8]) -> Vec<DefinitionPart> {
        let mut parts = Vec::new();
        let mut start = 0;
        let mut at = 0;
        while at < argument.len() {
            let Some((placeholder, length)) = self.placeholder_at(&argument[at..]) else {
                at += 1;
                continue;
            };
            if start < at {
                parts.push(DefinitionPart::Text(os_str_from_encoded(&argument[start..at]).into_owned()));
            }
            parts.push(DefinitionPart::Value(placeholder));
            at += length;
            start = at;
        }
        if start < argument.len() {
            parts.push(DefinitionPart::Text(os_str_from_encoded(&argument[start..]).into_owned()));
        }
        parts
    }

    /// Gives a placeholder another spelling, such as `FILE` for `{}`. The usual spelling becomes
    /// text.
    ///
    /// # Errors
    ///
    /// If `text` cannot be a placeholder: it is empty, contains a space or a character that is
    /// special in shells, is another placeholder, or begins with a placeholder in braces.
    pub fn replace(
        mut self,
        kind: PlaceholderKind,
        text: impl AsRef<OsStr>,
    ) -> Result<PlaceholderSet, Error> {
        let text = text.as_ref().as_encoded_bytes();
        self.chosen.retain(|chosen| chosen.is_custom() || (chosen.source, chosen.form) != kind.meaning());
        self.replaced.retain(|other| *other != kind);
        self.replaced.push(kind);
        self.check(text)?;
        let (source, form) = kind.meaning();
        self.chosen.push(ChosenPlaceholder { text: text.to_vec(), source, form, definition: Vec::new() });
        Ok(self)
    }

    /// Adds the placeholders of GNU parallel's `--plus`: `{..}`, `{+/}`, `{:-default}`, `{%suffix}`
    /// and similar ones.
    ///
    /// Where GNU parallel takes a regular expression, minder takes literal text: `{%.gz}` removes
    /// `.gz`. The numbers of `{:2}` and `{:1:2}` count characters. `{:-default}` replaces empty
    /// values only, not `0`. The texts cannot contain quotes, braces, backslashes, backticks or
    /// `$`.
    #[must_use]
    pub fn plus(mut self, plus: bool) -> PlaceholderSet {
        self.plus = plus;
        self
    }

    /// Adds the names of the columns: `{name}`, `{name.}`, `{name/}`, `{name//}`, `{name/.}`.
    ///
    /// Names come with the input. A name that cannot stand between braces is not an error: the
    /// column then has only its number.
    #[must_use]
    pub fn column_names(mut self, names: &[OsString]) -> PlaceholderSet {
        let is_usable =
            |name: &[u8]| name.iter().all(|b| *b == b' ' || is_plain(*b)) && !name.starts_with(b" ");
        let usable_name = |name: &OsString| {
            let name = name.as_encoded_bytes();
            if is_usable(name) { name.to_vec() } else { Vec::new() }
        };
        self.column_names = names.iter().map(usable_name).collect();
        self
    }

    /// Adds a custom placeholder. Its value for an argument is `definition` with the placeholders
    /// in it replaced. A custom placeholder in braces can have a column number: `{2thumb}` for
    /// `{thumb}`.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace). Also if a custom placeholder would contain another one, or if
    /// there are more than 64.
    pub fn define(
        mut self,
        text: impl AsRef<OsStr>,
        definition: impl AsRef<OsStr>,
    ) -> Result<PlaceholderSet, Error> {
        let text = text.as_ref().as_encoded_bytes();
        let definition = definition.as_ref().as_encoded_bytes();
        self.check(text)?;
        let written = String::from_utf8_lossy(text);
        let fail = |why: &str| Err(Error::new(ErrorKind::Placeholder, format!("`{written}` {why}")));
        if self.chosen.iter().filter(|chosen| chosen.is_custom()).count() >= CUSTOM_MAX {
            return fail("is one placeholder too many: at most 64 can be defined");
        }
        let contains = |outer: &[u8], inner: &[u8]| outer.windows(inner.len()).any(|part| part == inner);
        let is_nested = |other: &ChosenPlaceholder| {
            other.is_custom() && (contains(definition, &other.text) || contains(&other.definition, text))
        };
        if contains(definition, text) || self.chosen.iter().any(is_nested) {
            return fail(
                "would stand for another own placeholder, or for itself: write out what it stands for",
            );
        }
        // Leaked once for each custom placeholder of a command line, so that placeholders are `Copy`.
        let parts: &'static [DefinitionPart] = Vec::leak(self.split(definition));
        self.chosen.push(ChosenPlaceholder {
            text: text.to_vec(),
            source: Source::Each,
            form: ValueForm::Defined(parts),
            definition: definition.to_vec(),
        });
        Ok(self)
    }

    /// Returns a placeholder of GNU parallel's `--plus` that `text` contains and that minder does
    /// not have. The caller must not treat it as text.
    ///
    /// ```
    /// let placeholders = minder_template::PlaceholderSet::default();
    /// let text = "{1} {uniq}".as_ref();
    /// assert_eq!(placeholders.clone().plus(true).unsupported_in(text), Some("{uniq}"));
    /// assert_eq!(placeholders.unsupported_in(text), None);
    /// ```
    pub fn unsupported_in(&self, text: &OsStr) -> Option<&'static str> {
        if !self.plus {
            return None;
        }
        let text = text.as_encoded_bytes();
        // A custom placeholder or a column may have that name.
        let is_unknown = |at: usize| self.placeholder_at(&text[at..]).is_none();
        let is_used = |name: &str| {
            let mut windows = text.windows(name.len()).enumerate();
            windows.any(|(at, window)| window == name.as_bytes() && is_unknown(at))
        };
        UNSUPPORTED.into_iter().find(|name| is_used(name))
    }

    /// Returns the longest placeholder at the start of `text`, and its length.
    ///
    /// Every scanner calls this at every byte, whatever the byte is: a spelling that the user chose
    /// may begin with any byte.
    pub(crate) fn placeholder_at(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        let mut best = self.in_braces(text);
        for chosen in &self.chosen {
            match (chosen.match_at(text), best) {
                (Some((.., length)), Some((.., longest))) if length < longest => {}
                (Some(found), _) => best = Some(found),
                (None, _) => {}
            }
        }
        let (source, form, length) = best?;
        Some((Placeholder::new(intern(&text[..length]), source, form), length))
    }

    /// Returns the placeholder for the whole value, and its spelling.
    pub(crate) fn value(&self) -> (Placeholder, &[u8]) {
        let is_value =
            |chosen: &&ChosenPlaceholder| (chosen.source, chosen.form) == PlaceholderKind::Value.meaning();
        match self.chosen.iter().find(is_value) {
            Some(chosen) => {
                (Placeholder::new(intern(&chosen.text), chosen.source, chosen.form), &chosen.text)
            }
            None => (Placeholder::VALUE, b"{}"),
        }
    }

    fn in_braces(&self, text: &[u8]) -> Option<(Source, ValueForm, usize)> {
        let rest = text.strip_prefix(b"{")?;
        let length = rest.iter().take(INNER_MAX).position(|&b| b == b'}')?;
        let inner = &rest[..length];
        let (source, transform) = self.builtin(inner).or_else(|| self.named_column(inner))?;
        Some((source, ValueForm::Transformed(transform), length + 2))
    }

    fn builtin(&self, inner: &[u8]) -> Option<(Source, Transform)> {
        let number = match inner {
            b"#" => Some(Source::Number),
            b"%" => Some(Source::Slot),
            b"##" if self.plus => Some(Source::Total),
            b"0#" if self.plus => Some(Source::PaddedNumber),
            b"0%" if self.plus => Some(Source::PaddedSlot),
            b"slot" if self.plus => Some(Source::Slot),
            _ => None,
        };
        let (source, transform) = match number {
            Some(source) => (source, Transform::Identity),
            None => {
                let (source, rest) = column_number(inner);
                let plus = || if self.plus { Transform::plus(rest) } else { None };
                (source, Transform::read(rest).or_else(plus)?)
            }
        };
        if self.is_replaced(source, transform) { None } else { Some((source, transform)) }
    }

    fn is_replaced(&self, source: Source, transform: Transform) -> bool {
        let meaning = (source, ValueForm::Transformed(transform));
        self.replaced.iter().any(|kind| kind.meaning() == meaning)
    }

    fn named_column(&self, inner: &[u8]) -> Option<(Source, Transform)> {
        ["", "//", "/.", "/", "."].into_iter().find_map(|form| {
            let name = inner.strip_suffix(form.as_bytes()).filter(|name| !name.is_empty())?;
            let column = self.column_names.iter().position(|known| known == name)?;
            Some((Source::Nth(u32::try_from(column + 1).ok()?), Transform::read(form.as_bytes())?))
        })
    }

    /// Refuses a text that cannot be a placeholder.
    fn check(&self, text: &[u8]) -> Result<(), Error> {
        let written = String::from_utf8_lossy(text);
        let fail = |why: Cow<'_, str>| {
            Err(Error::new(ErrorKind::Placeholder, format!("`{written}` cannot be a placeholder: {why}")))
        };
        if text.is_empty() {
            return Err(Error::new(ErrorKind::Placeholder, "a placeholder cannot be empty"));
        }
        if text[0] == b'#' {
            return fail("a `#` begins a comment".into());
        }
        if text.len() > INNER_MAX {
            return fail(format!("it is longer than {INNER_MAX} bytes").into());
        }
        if !text.iter().all(|b| is_plain(*b)) {
            return fail("it holds a space or a character that is special to shells".into());
        }
        // Of two chosen spellings the longer one wins. A spelling in braces wins wherever it occurs.
        let same = self.chosen.iter().find(|chosen| chosen.text == text).map(|_| text.len());
        match same.or_else(|| self.in_braces(text).map(|(.., length)| length)) {
            Some(length) => {
                let other = String::from_utf8_lossy(&text[..length]);
                fail(format!("it begins with `{other}`, which would be hidden").into())
            }
            None => Ok(()),
        }
    }
}

impl PlaceholderKind {
    fn meaning(self) -> (Source, ValueForm) {
        let (source, transform) = match self {
            PlaceholderKind::Value => (Source::Each, Transform::Identity),
            PlaceholderKind::NoExtension => (Source::Each, Transform::StripExtension),
            PlaceholderKind::BaseName => (Source::Each, Transform::BaseName),
            PlaceholderKind::DirName => (Source::Each, Transform::DirName),
            PlaceholderKind::BaseNameNoExtension => (Source::Each, Transform::BaseNameStripExtension),
            PlaceholderKind::Number => (Source::Number, Transform::Identity),
            PlaceholderKind::Slot => (Source::Slot, Transform::Identity),
        };
        (source, ValueForm::Transformed(transform))
    }
}

impl ChosenPlaceholder {
    fn is_custom(&self) -> bool {
        matches!(self.form, ValueForm::Defined(_))
    }

    /// Returns what this placeholder means at the start of `text`, and its length there.
    fn match_at(&self, text: &[u8]) -> Option<(Source, ValueForm, usize)> {
        if text.starts_with(&self.text) {
            return Some((self.source, self.form, self.text.len()));
        }
        // `{2thumb}` for `{thumb}`.
        let inner = if self.is_custom() { self.text.strip_prefix(b"{")? } else { return None };
        let (source, rest) = column_number(text.strip_prefix(b"{")?);
        if source == Source::Each || !rest.starts_with(inner) {
            return None;
        }
        Some((source, self.form, text.len() - rest.len() + inner.len()))
    }
}

/// Reads a column number, which may count from the end: `2` or `-2`. Returns the rest of the text.
fn column_number(text: &[u8]) -> (Source, &[u8]) {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let digits = unsigned.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=DIGITS_MAX).contains(&digits) || unsigned[0] == b'0' {
        return (Source::Each, text);
    }
    let column = unsigned[..digits].iter().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    let source = if unsigned.len() < text.len() { Source::Last(column) } else { Source::Nth(column) };
    (source, &unsigned[digits..])
}

/// Returns whether a placeholder may contain this byte: for a shell it neither begins nor ends a
/// word, a quote or an expansion.
fn is_plain(byte: u8) -> bool {
    !byte.is_ascii_control() && !b" '\"$`\\;&|<>()".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(placeholders: &PlaceholderSet, text: &str) -> bool {
        let found = placeholders.placeholder_at(text.as_bytes());
        if let Some((placeholder, length)) = found {
            assert_eq!(placeholder.to_string(), text[..length]);
        }
        found.is_some_and(|(_, length)| length == text.len())
    }

    #[test]
    fn default_set_has_placeholders_of_parallel_only() {
        let placeholders = PlaceholderSet::default();
        for text in [
            "{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{12}", "{3.}", "{2//}", "{-1}",
            "{-2/.}",
        ] {
            assert!(reads(&placeholders, text), "{text}");
        }
        for text in [
            "",
            "{",
            "}",
            "{ }",
            "{a}",
            "{a,b}",
            "{0}",
            "{01}",
            "{1,2}",
            "{##}",
            "{..}",
            "{1234567}",
            "x{}",
            "{-}",
            "{-0}",
            "{--1}",
            "{1#}",
            "{+/}",
            "{:1}",
            "{0#}",
            "{%a}",
        ] {
            assert_eq!(placeholders.placeholder_at(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn plus_adds_placeholders_of_parallel() {
        let placeholders = PlaceholderSet::default().plus(true);
        for text in [
            "{##}", "{0#}", "{0%}", "{..}", "{...}", "{/..}", "{/...}", "{+/}", "{+.}", "{+..}", "{+...}",
            "{1..}", "{-1+/}", "{:-x}", "{:-x y}", "{1:-x}", "{:2}", "{:1:2}", "{2:1}", "{#a}", "{##a}",
            "{%a}", "{%%a}", "{/a/b}", "{/a/}", "{//a/b}", "{^a}", "{^^a}", "{,a}", "{,,a}", "{1,2}", "{%%}",
            "{^^}", "{,,}", "{slot}",
        ] {
            assert!(reads(&placeholders, text), "{text}");
        }
        for text in [
            "{a,b}", "{,}", "{^}", "{:}", "{:-}", "{+}", "{/a}", "{//x}", "{///}", "{:x}", "{:1:}", "{foo}",
            "{^'}", "{%$x}",
        ] {
            assert_eq!(placeholders.placeholder_at(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn chosen_spelling_replaces_usual_one() {
        let placeholders = PlaceholderSet::default()
            .replace(PlaceholderKind::Value, "FILE")
            .unwrap()
            .replace(PlaceholderKind::NoExtension, "FILE.")
            .unwrap();
        assert!(reads(&placeholders, "FILE") && reads(&placeholders, "FILE."));
        assert_eq!(
            placeholders.replace(PlaceholderKind::BaseName, "FILE").unwrap_err().to_string(),
            "`FILE` cannot be a placeholder: it begins with `FILE`, which would be hidden"
        );
        let placeholders = PlaceholderSet::default()
            .replace(PlaceholderKind::Value, ",,")
            .unwrap()
            .replace(PlaceholderKind::Number, "@n")
            .unwrap();
        for (text, known) in [
            (",,", true),
            ("{}", false),
            ("{.}", true),
            ("@n", true),
            ("{#}", false),
            ("{1}", true),
            (",", false),
        ] {
            assert_eq!(reads(&placeholders, text), known, "{text}");
        }
        assert!(reads(&PlaceholderSet::default().replace(PlaceholderKind::Value, "{}").unwrap(), "{}"));
        let again = PlaceholderSet::default()
            .replace(PlaceholderKind::Value, "a")
            .unwrap()
            .replace(PlaceholderKind::Value, "b")
            .unwrap();
        assert!(reads(&again, "b") && !reads(&again, "a"));
    }

    #[test]
    fn define_refuses_text_that_cannot_be_a_placeholder() {
        for text in [
            "", " ", "a b", "\t", "\n", "'", "\"", "$x", "a`", "\\", ";", "a&", "|", "<", ">", "(", "a)",
            "\u{1}", "\u{7f}", "#", "#a", "{}", "{}x", "{.}", "{1}", "{#}",
        ] {
            let error = PlaceholderSet::default().define(text, "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Placeholder, "{text}");
        }
        for text in ["FILE", "%", "@", "_", "?", "{x}", "[]", "é", "{a", "~", "!", "=", "5"] {
            assert!(PlaceholderSet::default().define(text, "x").is_ok(), "{text}");
            assert!(PlaceholderSet::default().replace(PlaceholderKind::Value, text).is_ok(), "{text}");
        }
    }

    #[test]
    fn define_refuses_nested_and_too_many_placeholders() {
        let placeholders = PlaceholderSet::default().define("{thumb}", "{/.}-t").unwrap();
        for text in ["{thumb}", "{1thumb}", "{-2thumb}"] {
            assert!(reads(&placeholders, text), "{text}");
        }
        assert!(!reads(&placeholders, "{thumb.}"));
        assert!(placeholders.clone().define("{x}", "a{thumb}").is_err());
        assert!(placeholders.clone().define("{x}", "a{x}").is_err());
        assert!(PlaceholderSet::default().define("{x}", "a{y}").unwrap().define("{y}", "b").is_err());
        let many = (0..64)
            .try_fold(PlaceholderSet::default(), |placeholders, n| placeholders.define(format!("@{n}@"), "x"))
            .unwrap();
        assert!(many.define("{y}", "x").is_err());
    }

    #[test]
    fn column_names_are_placeholders() {
        let names = ["foo", "first name", "1", "it's", ""].map(OsString::from);
        let placeholders = PlaceholderSet::default().column_names(&names);
        for text in ["{foo}", "{foo.}", "{foo/}", "{foo//}", "{foo/.}", "{first name}", "{1}"] {
            assert!(reads(&placeholders, text), "{text}");
        }
        for text in ["{fo}", "{it's}", "{1foo}", "{foo..}"] {
            assert!(!reads(&placeholders, text), "{text}");
        }
    }
}
