//! A word of a shell line or of a command that is run directly, as far as it is known beforehand.

use crate::error::Error;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::PlaceholderSite;

/// What stands in a word's text for `<(…)`.
pub(crate) const PROCESS: &[u8] = b"<()";

/// One word of a simple command, as far as it is known before the command runs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// What is literal in it, quotes removed; values and expansions are left out.
    pub(crate) text: Vec<u8>,
    /// Where in `text` the first value or expansion stands.
    pub(crate) gap: Option<usize>,
    /// The first placeholder in it, nested ones included.
    pub(crate) holds: Option<Placeholder>,
    /// A placeholder stands in a substitution in it.
    pub(crate) nested: bool,
    /// It has an expansion.
    pub(crate) dynamic: bool,
    /// How many placeholders stand in it, not counting nested ones.
    pub(crate) parts: usize,
    /// An expansion outside of the others' quotes gives a word for each element: `"$@"`,
    /// `"${v[@]}"`.
    pub(crate) elements: bool,
    /// One of its placeholders stands for each argument, not counting nested ones.
    pub(crate) repeats: bool,
    /// It is one of the words that one word of the template stands for.
    pub(crate) several: bool,
    /// The variables in it, those in substitutions included.
    pub(crate) names: Vec<Vec<u8>>,
    /// An expansion outside of quotes: it may be several words.
    pub(crate) splits: bool,
    /// A substitution: what it is comes from a command.
    pub(crate) substituted: bool,
    /// It has a brace outside of quotes, with what makes several words of it.
    pub(crate) braces: bool,
    /// The shell makes something else of its text: braces, patterns, `~`, `$'…'`.
    pub(crate) odd: bool,
    /// An expansion makes another text of a variable's: `${v/a/b}`, `${!v}`, flags of zsh.
    pub(crate) made: bool,
    /// The literal texts in expansions such as `${v:-text}`, with where in `text` they stand.
    pub(crate) alternatives: Vec<(usize, Vec<u8>)>,
}

impl Word {
    /// Notes a placeholder at this point.
    pub(crate) fn value(&mut self, placeholder: Placeholder) {
        if !placeholder.is_number() {
            self.holds.get_or_insert(placeholder);
        }
        self.gap.get_or_insert(self.text.len());
        self.parts += 1;
        self.repeats |= placeholder.repeats();
    }

    /// Notes a placeholder in a substitution at this point.
    pub(crate) fn nested(&mut self, placeholder: Placeholder) {
        self.holds.get_or_insert(placeholder);
        self.gap.get_or_insert(self.text.len());
        self.nested = true;
    }

    /// Notes a placeholder for each of `count` arguments: what ends before the last one goes to
    /// `words`.
    pub(crate) fn values(&mut self, placeholder: Placeholder, count: usize, words: &mut Vec<Word>) {
        for nth in 0..count {
            if nth > 0 {
                words.push(std::mem::take(self));
            }
            self.value(placeholder);
            self.several |= count > 1;
        }
    }

    /// The word as one of several.
    pub(crate) fn among_several(self) -> Word {
        Word { several: true, ..self }
    }

    /// Notes an expansion at this point.
    pub(crate) fn expansion(&mut self) {
        self.dynamic = true;
        self.gap.get_or_insert(self.text.len());
    }

    /// The word as if its expansions were placeholders.
    pub(crate) fn as_if_a_value(&self) -> Word {
        let holds = self.holds.or(self.dynamic.then_some(Placeholder::VALUE));
        Word { holds, ..self.clone() }
    }

    /// Returns the text of the word where each of its expansions gives the literal text that is in
    /// it.
    pub(crate) fn with_alternatives(&self) -> Vec<u8> {
        let mut text = self.text.clone();
        for (at, alternative) in self.alternatives.iter().rev() {
            text.splice(*at..*at, alternative.iter().copied());
        }
        text
    }

    /// The literal start of the word.
    pub(crate) fn start(&self) -> &[u8] {
        &self.text[..self.gap.unwrap_or(self.text.len())]
    }

    pub(crate) fn is_option(&self) -> bool {
        self.start().starts_with(b"-") && (self.text.len() > 1 || self.gap.is_some())
    }

    /// Whether it is one value, and nothing else.
    pub(crate) fn is_whole(&self) -> bool {
        self.text.is_empty() && !self.dynamic && !self.nested && self.parts < 2
    }

    /// Whether it is one variable as it is, `"$1"`.
    pub(crate) fn is_variable(&self) -> bool {
        let plain =
            !self.splits && !self.made && !self.odd && !self.substituted && self.alternatives.is_empty();
        plain && self.text.is_empty() && self.holds.is_none() && self.names.len() == 1
    }
}

/// Refuses words that stand for several values, or for none, where there has to be one.
pub(crate) fn single<'w>(
    words: &'w [Word],
    seen: Option<&PlaceholderSite>,
    place: &str,
) -> Result<Option<&'w Word>, Error> {
    match (words, seen) {
        ([word], _) => Ok(Some(word)),
        (_, Some(seen)) => Err(Error::refused(format!(
            "`{0}` {place}, and there is not one value: write it in double quotes, or give each job one value",
            seen.placeholder
        ))),
        _ => Err(Error::syntax("a word is missing")),
    }
}
