//! A word of a shell line, or of a command without a shell, as far as it is known before it runs.

use crate::error::Error;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::PlaceholderSite;

/// The text of `<(…)` in [`Word::text`].
pub(crate) const PROCESS: &[u8] = b"<()";

/// One word of a simple command.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    /// The literal text without quotes. Values and expansions are left out.
    pub(crate) text: Vec<u8>,
    /// The index in `text` of the first value or expansion.
    pub(crate) first_expansion: Option<usize>,
    /// The first placeholder in the word, nested ones included.
    pub(crate) placeholder: Option<Placeholder>,
    /// A substitution in the word contains a placeholder.
    pub(crate) nested: bool,
    /// The word contains an expansion.
    pub(crate) has_expansion: bool,
    /// The number of placeholders in the word, without nested ones.
    pub(crate) placeholder_count: usize,
    /// These placeholders, and the indices in `text` where they stand.
    pub(crate) values: Vec<(usize, Placeholder)>,
    /// An expansion at the top level gives one word for each element: `"$@"`, `"${v[@]}"`.
    pub(crate) array_elements: bool,
    /// A placeholder in the word, not a nested one, stands for each argument.
    pub(crate) repeats: bool,
    /// One word of the template became several, and this is one of them.
    pub(crate) one_of_several: bool,
    /// The names of the variables in the word, including those in substitutions.
    pub(crate) variables: Vec<Vec<u8>>,
    /// An expansion is outside of quotes: the shell may split it into several words.
    pub(crate) splits: bool,
    /// The word contains a command substitution.
    pub(crate) substituted: bool,
    /// The word has an unquoted brace, and a comma or `..` that makes several words of it.
    pub(crate) braces: bool,
    /// The shell changes the literal text: braces, patterns, `~`, `$'…'`.
    pub(crate) special: bool,
    /// An expansion changes the text of a variable: `${v/a/b}`, `${!v}`, flags of zsh.
    pub(crate) altered: bool,
    /// The literal texts in expansions such as `${v:-text}`, with their indices in `text`.
    pub(crate) alternatives: Vec<(usize, Vec<u8>)>,
}

impl Word {
    /// Adds a placeholder after the text so far.
    pub(crate) fn add_value(&mut self, placeholder: Placeholder) {
        if !placeholder.is_number() {
            self.placeholder.get_or_insert(placeholder);
        }
        self.first_expansion.get_or_insert(self.text.len());
        self.placeholder_count += 1;
        self.values.push((self.text.len(), placeholder));
        self.repeats |= placeholder.repeats();
    }

    /// Adds a substitution that contains a placeholder after the text so far.
    pub(crate) fn add_nested(&mut self, placeholder: Placeholder) {
        self.placeholder.get_or_insert(placeholder);
        self.first_expansion.get_or_insert(self.text.len());
        self.nested = true;
    }

    /// Adds a placeholder that stands for `count` separate arguments. Words that end before the
    /// last argument go to `words`.
    pub(crate) fn add_values(&mut self, placeholder: Placeholder, count: usize, words: &mut Vec<Word>) {
        for nth in 0..count {
            if nth > 0 {
                words.push(std::mem::take(self));
            }
            self.add_value(placeholder);
            self.one_of_several |= count > 1;
        }
    }

    pub(crate) fn into_one_of_several(self) -> Word {
        Word { one_of_several: true, ..self }
    }

    /// Adds an expansion after the text so far.
    pub(crate) fn add_expansion(&mut self) {
        self.has_expansion = true;
        self.first_expansion.get_or_insert(self.text.len());
    }

    /// Returns the word with a placeholder in place of its expansions.
    pub(crate) fn with_expansion_as_value(&self) -> Word {
        let assumed = if self.has_expansion { Some(Placeholder::VALUE) } else { None };
        Word { placeholder: self.placeholder.or(assumed), ..self.clone() }
    }

    /// Returns the text of the word if each of its expansions gives its literal alternative.
    pub(crate) fn with_alternatives(&self) -> Vec<u8> {
        let mut text = self.text.clone();
        for (at, alternative) in self.alternatives.iter().rev() {
            text.splice(*at..*at, alternative.iter().copied());
        }
        text
    }

    /// Returns whether the word after `start` is one placeholder whose value is a number.
    pub(crate) fn is_one_number(&self, start: usize) -> bool {
        let is_alone = self.text.len() == start && self.placeholder_count == 1;
        is_alone && self.placeholder.is_none() && !self.has_expansion
    }

    /// Returns whether the text after `start` can become the name of a variable that the line does
    /// not contain: it has expansions or values, and other text.
    pub(crate) fn composes_name(&self, start: usize) -> bool {
        let parts = self.placeholder_count + self.variables.len() + usize::from(self.substituted);
        let has_text = self.text.len() > start || !self.alternatives.is_empty();
        let is_dynamic = self.first_expansion.is_some() || self.special;
        // `{3..300}` and `{1,2}` become numbers.
        let is_numbers = parts == 0
            && self.alternatives.is_empty()
            && self.text.iter().all(|byte| byte.is_ascii_digit() || b"{}.,+-".contains(byte));
        is_dynamic && !is_numbers && (parts > 1 || has_text || self.altered)
    }

    /// Returns the literal text before the first value or expansion.
    pub(crate) fn literal_start(&self) -> &[u8] {
        &self.text[..self.first_expansion.unwrap_or(self.text.len())]
    }

    /// Returns whether the word begins with `-` and is not `-` alone.
    pub(crate) fn is_option(&self) -> bool {
        self.literal_start().starts_with(b"-") && (self.text.len() > 1 || self.first_expansion.is_some())
    }

    /// Returns whether the word is one value and nothing else.
    pub(crate) fn is_single_value(&self) -> bool {
        self.text.is_empty() && !self.has_expansion && !self.nested && self.placeholder_count < 2
    }

    /// Returns whether the word is one unchanged variable: `"$1"`.
    pub(crate) fn is_plain_variable(&self) -> bool {
        let is_changed = self.splits || self.altered || self.special || self.substituted;
        let has_other_text =
            !self.text.is_empty() || !self.alternatives.is_empty() || self.placeholder.is_some();
        !is_changed && !has_other_text && self.variables.len() == 1
    }
}

/// Returns the only word, where the shell takes exactly one. Refuses a placeholder that stands for
/// several values or for none.
pub(crate) fn only_word<'w>(
    words: &'w [Word],
    site: Option<&PlaceholderSite>,
    location: &str,
) -> Result<&'w Word, Error> {
    match (words, site) {
        ([word], _) => Ok(word),
        (_, Some(site)) => Err(Error::refused(format!(
            "`{0}` {location}, and there is not one value: write it in double quotes, or give each job one \
             value",
            site.placeholder
        ))),
        _ => Err(Error::syntax("a word is missing")),
    }
}
