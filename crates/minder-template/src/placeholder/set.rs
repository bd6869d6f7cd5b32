//! Which texts are placeholders, and what each stands for.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind};
use crate::placeholder::expression::{DefinitionPart, Placeholder, Source};
use crate::placeholder::intern::intern;
use crate::placeholder::transform::Transform;
use minder_os::encoding::os_str_from_encoded;

/// The placeholders that a template may hold: GNU parallel's, and whatever was added or put in
/// their place.
///
/// ```
/// use minder_template::{PlaceholderKind, PlaceholderSet, Options, Template, Job};
///
/// let lexicon = PlaceholderSet::default().replace(PlaceholderKind::Line, "FILE")?;
/// let lexicon = lexicon.own("{thumb}", "{/.}-thumb.png")?;
/// let options = Options { lexicon, shell: Some("/bin/sh".into()), ..Options::default() };
/// let template = Template::parse(&["convert FILE {thumb}".into()], &options)?;
/// let argv = template.argv(&Job { columns: &["a/b.jpg".into()], ..Job::default() })?;
/// assert_eq!(argv[2..], ["convert \"$1\" \"$2\"", "/bin/sh", "a/b.jpg", "b-thumb.png"]);
/// # Ok::<(), minder_template::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PlaceholderSet {
    /// Texts of the user's own choice.
    entries: Vec<Entry>,
    replaced: Vec<PlaceholderKind>,
    plus: bool,
    names: Vec<Vec<u8>>,
}

/// The placeholders whose text can be chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceholderKind {
    /// `{}`
    Line,
    /// `{.}`
    Extension,
    /// `{/}`
    Name,
    /// `{//}`
    Folder,
    /// `{/.}`
    NameExtension,
    /// `{#}`
    Number,
    /// `{%}`
    Slot,
}

#[derive(Debug, Clone)]
struct Entry {
    text: Vec<u8>,
    source: Source,
    cut: Transform,
    /// What an own placeholder stands for, as it was written.
    definition: Vec<u8>,
}

/// The most own placeholders.
const OWN_MAX: usize = 64;

/// The longest column number that is read, in digits.
const DIGITS_MAX: usize = 6;

/// The longest text between braces that is read.
const INNER_MAX: usize = 256;

/// What `--plus` of GNU parallel has beside ours: they pass over jobs, or name other machines.
const NOT_THERE: [&str; 6] = ["{uniq}", "{choose_k}", "{host}", "{sshlogin}", "{hgrp}", "{agrp}"];

impl PlaceholderSet {
    /// Splits a word into placeholders and the text between them.
    pub(crate) fn split(&self, word: &[u8]) -> Vec<DefinitionPart> {
        let mut pieces = Vec::new();
        let (mut start, mut at) = (0, 0);
        while at < word.len() {
            let Some((placeholder, length)) = self.at(&word[at..]) else {
                at += 1;
                continue;
            };
            if start < at {
                pieces.push(DefinitionPart::Text(os_str_from_encoded(&word[start..at]).into_owned()));
            }
            pieces.push(DefinitionPart::Value(placeholder));
            at += length;
            start = at;
        }
        if start < word.len() {
            pieces.push(DefinitionPart::Text(os_str_from_encoded(&word[start..]).into_owned()));
        }
        pieces
    }

    /// Takes `text` for a builtin placeholder, in place of its usual text; `FILE` for `{}`, say.
    ///
    /// # Errors
    ///
    /// When `text` cannot be a placeholder: it is empty, holds a blank or a character that shells
    /// read, is another placeholder, or begins with one in braces.
    pub fn replace(
        mut self,
        builtin: PlaceholderKind,
        text: impl AsRef<OsStr>,
    ) -> Result<PlaceholderSet, Error> {
        let text = text.as_ref().as_encoded_bytes();
        self.entries
            .retain(|entry| !(entry.definition.is_empty() && (entry.source, entry.cut) == builtin.meaning()));
        self.replaced.retain(|other| *other != builtin);
        self.replaced.push(builtin);
        self.check(text)?;
        let (source, cut) = builtin.meaning();
        self.entries.push(Entry { text: text.to_vec(), source, cut, definition: Vec::new() });
        Ok(self)
    }

    /// Adds what `--plus` of GNU parallel adds: `{..}`, `{+/}`, `{:-default}`, `{%suffix}` and
    /// their like.
    ///
    /// Where GNU parallel takes a regular expression, the text is taken as it is: `{%.gz}` removes
    /// `.gz`. Of `{:2}` and `{:1:2}` the numbers count characters. `{:-default}` is for empty
    /// values only, not for `0`. The texts hold no quotes, no braces, no backslash, no backtick
    /// and no `$`.
    #[must_use]
    pub fn plus(mut self, plus: bool) -> PlaceholderSet {
        self.plus = plus;
        self
    }

    /// Adds the names of the columns: `{name}`, `{name.}`, `{name/}`, `{name//}`, `{name/.}`.
    ///
    /// Names come with the input, so one that cannot be written between braces is no error: that
    /// column has its number.
    #[must_use]
    pub fn header(mut self, names: &[OsString]) -> PlaceholderSet {
        let plain = |name: &&[u8]| name.iter().all(|b| *b == b' ' || is_plain(*b)) && !name.starts_with(b" ");
        let name = |name: &OsString| Some(name.as_encoded_bytes()).filter(plain).unwrap_or_default().to_vec();
        self.names = names.iter().map(name).collect();
        self
    }

    /// Adds a placeholder that stands for a text with other placeholders, for each argument. In
    /// braces, it also has the form with a number: `{2thumb}` for `{thumb}`.
    ///
    /// # Errors
    ///
    /// As [`replace`](Self::replace); when an own placeholder would hold another; when there are
    /// more than 64.
    pub fn own(
        mut self,
        text: impl AsRef<OsStr>,
        definition: impl AsRef<OsStr>,
    ) -> Result<PlaceholderSet, Error> {
        let (text, definition) = (text.as_ref().as_encoded_bytes(), definition.as_ref().as_encoded_bytes());
        self.check(text)?;
        let written = String::from_utf8_lossy(text);
        let fail = |why: &str| Err(Error::new(ErrorKind::Placeholder, format!("`{written}` {why}")));
        if self.entries.iter().filter(|entry| entry.is_own()).count() >= OWN_MAX {
            return fail("is one placeholder too many: 64 own ones are read");
        }
        let holds = |outer: &[u8], inner: &[u8]| outer.windows(inner.len()).any(|part| part == inner);
        let nested = |entry: &Entry| {
            entry.is_own() && (holds(definition, &entry.text) || holds(&entry.definition, text))
        };
        if holds(definition, text) || self.entries.iter().any(nested) {
            return fail(
                "would stand for another own placeholder, or for itself: write out what it stands for",
            );
        }
        // Leaked once for each own placeholder of a command line, so that placeholders can be copied about.
        let pieces: &'static [DefinitionPart] = Vec::leak(self.split(definition));
        let (text, cut) = (text.to_vec(), Transform::Own(pieces));
        self.entries.push(Entry { text, source: Source::Each, cut, definition: definition.to_vec() });
        Ok(self)
    }

    /// Reads the placeholder at the start of `text`, the longest one, with its length.
    ///
    /// Every scanner asks here at every byte, whatever the byte is: texts of the user's own choice
    /// begin with any. Returns a placeholder of GNU parallel's `--plus` that stands in `text`
    /// and is not there, so that it is no text either.
    ///
    /// ```
    /// let lexicon = minder_template::PlaceholderSet::default();
    /// assert_eq!(lexicon.clone().plus(true).absent("{1} {uniq}".as_ref()), Some("{uniq}"));
    /// assert_eq!(lexicon.absent("{1} {uniq}".as_ref()), None);
    /// ```
    pub fn absent(&self, text: &OsStr) -> Option<&'static str> {
        let stands = |name: &str| {
            let text = text.as_encoded_bytes();
            let mut places =
                text.windows(name.len()).enumerate().filter(|(_, word)| *word == name.as_bytes());
            // It may be the user's own, or a column's name.
            places.any(|(at, _)| self.at(&text[at..]).is_none())
        };
        NOT_THERE.into_iter().find(|name| self.plus && stands(name))
    }

    pub(crate) fn at(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        let mut best = self.in_braces(text);
        for entry in &self.entries {
            match (entry.at(text), best) {
                (Some((.., length)), Some((.., longest))) if length < longest => {}
                (Some(found), _) => best = Some(found),
                (None, _) => {}
            }
        }
        let (source, cut, length) = best?;
        Some((Placeholder::new(intern(&text[..length]), source, cut), length))
    }

    /// The text of the placeholder for the whole value.
    pub(crate) fn value(&self) -> (Placeholder, &[u8]) {
        let chosen = self
            .entries
            .iter()
            .find(|entry| !entry.is_own() && (entry.source, entry.cut) == PlaceholderKind::Line.meaning());
        match chosen {
            Some(entry) => (Placeholder::new(intern(&entry.text), entry.source, entry.cut), &entry.text),
            None => (Placeholder::VALUE, b"{}"),
        }
    }

    fn in_braces(&self, text: &[u8]) -> Option<(Source, Transform, usize)> {
        let rest = text.strip_prefix(b"{")?;
        let length = rest.iter().take(INNER_MAX).position(|&b| b == b'}')?;
        let inner = &rest[..length];
        let (source, cut) = self.inner(inner).or_else(|| self.named(inner))?;
        Some((source, cut, length + 2))
    }

    fn inner(&self, inner: &[u8]) -> Option<(Source, Transform)> {
        let source = match inner {
            b"#" => Some(Source::Number),
            b"%" => Some(Source::Slot),
            b"##" if self.plus => Some(Source::Total),
            b"0#" if self.plus => Some(Source::PaddedNumber),
            b"0%" if self.plus => Some(Source::PaddedSlot),
            b"slot" if self.plus => Some(Source::Slot),
            _ => None,
        };
        if let Some(source) = source {
            return Some((source, Transform::Nothing)).filter(|meaning| !self.is_replaced(*meaning));
        }
        let (source, rest) = position(inner);
        let cut = Transform::read(rest).or_else(|| self.plus.then(|| Transform::plus(rest)).flatten())?;
        Some((source, cut)).filter(|meaning| !self.is_replaced(*meaning))
    }

    fn is_replaced(&self, meaning: (Source, Transform)) -> bool {
        self.replaced.iter().any(|builtin| builtin.meaning() == meaning)
    }

    fn named(&self, inner: &[u8]) -> Option<(Source, Transform)> {
        ["", "//", "/.", "/", "."].into_iter().find_map(|cut| {
            let name = inner.strip_suffix(cut.as_bytes()).filter(|name| !name.is_empty())?;
            let column = self.names.iter().position(|known| known == name)?;
            Some((Source::Nth(u32::try_from(column + 1).ok()?), Transform::read(cut.as_bytes())?))
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
            return fail("it holds a blank or a character that means something to shells".into());
        }
        // Of two texts of the user's own choice the longer one is read; those in braces are meant wherever
        // they stand.
        let same = self.entries.iter().any(|entry| entry.text == text).then_some(text.len());
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
    fn meaning(self) -> (Source, Transform) {
        match self {
            PlaceholderKind::Line => (Source::Each, Transform::Nothing),
            PlaceholderKind::Extension => (Source::Each, Transform::Extension),
            PlaceholderKind::Name => (Source::Each, Transform::Folder),
            PlaceholderKind::Folder => (Source::Each, Transform::Name),
            PlaceholderKind::NameExtension => (Source::Each, Transform::FolderAndExtension),
            PlaceholderKind::Number => (Source::Number, Transform::Nothing),
            PlaceholderKind::Slot => (Source::Slot, Transform::Nothing),
        }
    }
}

impl Entry {
    fn is_own(&self) -> bool {
        matches!(self.cut, Transform::Own(_))
    }

    fn at(&self, text: &[u8]) -> Option<(Source, Transform, usize)> {
        if text.starts_with(&self.text) {
            return Some((self.source, self.cut, self.text.len()));
        }
        let (b"{", inner) = self.text.split_first_chunk::<1>().filter(|_| self.is_own())? else {
            return None;
        };
        let (source, rest) = position(text.strip_prefix(b"{")?);
        (source != Source::Each && rest.starts_with(inner))
            .then(|| (source, self.cut, text.len() - rest.len() + inner.len()))
    }
}

/// Reads a column's number, which may count from the last: `2` or `-2`.
fn position(text: &[u8]) -> (Source, &[u8]) {
    let unsigned = text.strip_prefix(b"-").unwrap_or(text);
    let digits = unsigned.iter().take_while(|b| b.is_ascii_digit()).count();
    if !(1..=DIGITS_MAX).contains(&digits) || unsigned[0] == b'0' {
        return (Source::Each, text);
    }
    let column = unsigned[..digits].iter().fold(0, |n, b| n * 10 + u32::from(b - b'0'));
    let source = if unsigned.len() < text.len() { Source::Last(column) } else { Source::Nth(column) };
    (source, &unsigned[digits..])
}

/// What may stand in a placeholder: nothing that opens or ends a word, a quote or an expansion for
/// a shell.
fn is_plain(byte: u8) -> bool {
    !byte.is_ascii_control() && !b" '\"$`\\;&|<>()".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reads(lexicon: &PlaceholderSet, text: &str) -> bool {
        let found = lexicon.at(text.as_bytes());
        if let Some((placeholder, length)) = found {
            assert_eq!(placeholder.to_string(), text[..length]);
        }
        found.is_some_and(|(_, length)| length == text.len())
    }

    #[test]
    fn reads_what_parallel_knows_and_nothing_else() {
        let lexicon = PlaceholderSet::default();
        for text in [
            "{}", "{.}", "{/}", "{//}", "{/.}", "{#}", "{%}", "{1}", "{12}", "{3.}", "{2//}", "{-1}",
            "{-2/.}",
        ] {
            assert!(reads(&lexicon, text), "{text}");
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
            assert_eq!(lexicon.at(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn plus_adds_what_parallel_adds() {
        let lexicon = PlaceholderSet::default().plus(true);
        for text in [
            "{##}", "{0#}", "{0%}", "{..}", "{...}", "{/..}", "{/...}", "{+/}", "{+.}", "{+..}", "{+...}",
            "{1..}", "{-1+/}", "{:-x}", "{:-x y}", "{1:-x}", "{:2}", "{:1:2}", "{2:1}", "{#a}", "{##a}",
            "{%a}", "{%%a}", "{/a/b}", "{/a/}", "{//a/b}", "{^a}", "{^^a}", "{,a}", "{,,a}", "{1,2}", "{%%}",
            "{^^}", "{,,}", "{slot}",
        ] {
            assert!(reads(&lexicon, text), "{text}");
        }
        for text in [
            "{a,b}", "{,}", "{^}", "{:}", "{:-}", "{+}", "{/a}", "{//x}", "{///}", "{:x}", "{:1:}", "{foo}",
            "{^'}", "{%$x}",
        ] {
            assert_eq!(lexicon.at(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn texts_of_the_users_choice_stand_in_the_place_of_others() {
        let lexicon = PlaceholderSet::default()
            .replace(PlaceholderKind::Line, "FILE")
            .unwrap()
            .replace(PlaceholderKind::Extension, "FILE.")
            .unwrap();
        assert!(reads(&lexicon, "FILE") && reads(&lexicon, "FILE."));
        assert_eq!(
            lexicon.replace(PlaceholderKind::Name, "FILE").unwrap_err().to_string(),
            "`FILE` cannot be a placeholder: it begins with `FILE`, which would be hidden"
        );
        let lexicon = PlaceholderSet::default()
            .replace(PlaceholderKind::Line, ",,")
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
            assert_eq!(reads(&lexicon, text), known, "{text}");
        }
        assert!(reads(&PlaceholderSet::default().replace(PlaceholderKind::Line, "{}").unwrap(), "{}"));
        let again = PlaceholderSet::default()
            .replace(PlaceholderKind::Line, "a")
            .unwrap()
            .replace(PlaceholderKind::Line, "b")
            .unwrap();
        assert!(reads(&again, "b") && !reads(&again, "a"));
    }

    #[test]
    fn a_text_that_cannot_be_a_placeholder_is_refused() {
        for text in [
            "", " ", "a b", "\t", "\n", "'", "\"", "$x", "a`", "\\", ";", "a&", "|", "<", ">", "(", "a)",
            "\u{1}", "\u{7f}", "#", "#a", "{}", "{}x", "{.}", "{1}", "{#}",
        ] {
            let error = PlaceholderSet::default().own(text, "x").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Placeholder, "{text}");
        }
        for text in ["FILE", "%", "@", "_", "?", "{x}", "[]", "é", "{a", "~", "!", "=", "5"] {
            assert!(PlaceholderSet::default().own(text, "x").is_ok(), "{text}");
            assert!(PlaceholderSet::default().replace(PlaceholderKind::Line, text).is_ok(), "{text}");
        }
    }

    #[test]
    fn own_placeholders_hold_no_own_ones_and_are_few() {
        let lexicon = PlaceholderSet::default().own("{thumb}", "{/.}-t").unwrap();
        for text in ["{thumb}", "{1thumb}", "{-2thumb}"] {
            assert!(reads(&lexicon, text), "{text}");
        }
        assert!(!reads(&lexicon, "{thumb.}"));
        assert!(lexicon.clone().own("{x}", "a{thumb}").is_err());
        assert!(lexicon.clone().own("{x}", "a{x}").is_err());
        assert!(PlaceholderSet::default().own("{x}", "a{y}").unwrap().own("{y}", "b").is_err());
        let many = (0..64)
            .try_fold(PlaceholderSet::default(), |lexicon, n| lexicon.own(format!("@{n}@"), "x"))
            .unwrap();
        assert!(many.own("{y}", "x").is_err());
    }

    #[test]
    fn columns_have_names() {
        let names = ["foo", "first name", "1", "it's", ""].map(OsString::from);
        let lexicon = PlaceholderSet::default().header(&names);
        for text in ["{foo}", "{foo.}", "{foo/}", "{foo//}", "{foo/.}", "{first name}", "{1}"] {
            assert!(reads(&lexicon, text), "{text}");
        }
        for text in ["{fo}", "{it's}", "{1foo}", "{foo..}"] {
            assert!(!reads(&lexicon, text), "{text}");
        }
    }
}
