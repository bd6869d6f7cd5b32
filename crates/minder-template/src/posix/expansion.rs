//! The grammar of words: quotes, backslashes and expansions.

use std::borrow::Cow;

use crate::error::Error;
use crate::kinds::{KSH, ZSH};
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::Quote;
use crate::posix::arithmetic::{ArithmeticForm, refuse_sign_before};
use crate::posix::flow::PARAMETERS;
use crate::posix::names::name_length;
use crate::posix::scanner::{Forbidden, Scanner};
use crate::posix::variables;
use crate::posix::variables::Use;
use crate::word::{PROCESS, Word, only_word};

const PARAMETER: Forbidden = Forbidden {
    location: "in `${…}`, which would read it as its own",
    hint: "write `v={}; … \"${v…}\"`, or check values with `--only REGEXP`",
    allows_checked: true,
    number: None,
};
const SUBSTRING: Forbidden = Forbidden {
    location: "in `${v:offset:length}`, which evaluates it",
    hint: "write it as a value of `cut -c`, or check values with `--only '[0-9]+'`",
    allows_checked: true,
    number: Some("is an offset or a length in `${v:offset:length}`"),
};
const BACKTICKS: Forbidden = Forbidden {
    location: "in backticks, where quoting cannot be followed",
    hint: "write `$(…)`",
    allows_checked: false,
    number: None,
};
const ANSI: Forbidden = Forbidden {
    location: "in `$'…'`, where not every shell ends the quotes alike",
    hint: "write `$'…'{}`",
    allows_checked: false,
    number: None,
};
const TRANSLATED: Forbidden = Forbidden {
    location: "in `$\"…\"`, which is translated before it is expanded",
    hint: "write `\"…\"`",
    allows_checked: false,
    number: None,
};

impl Scanner<'_> {
    /// Reads a word where the shell takes exactly one.
    pub(crate) fn word(&mut self) -> Result<Word, Error> {
        let before = self.sites.len();
        self.is_required = true;
        let mut words = self.words()?;
        only_word(&words, self.sites.get(before), "stands where the shell takes one word")?;
        Ok(words.remove(0))
    }

    /// Reads one word of the template up to white space or an operator. For several arguments it
    /// may become several words, for none no word.
    pub(crate) fn words(&mut self) -> Result<Vec<Word>, Error> {
        let from = self.at;
        let before = self.sites.len();
        let spans = self.spans.len();
        let expanded = self.expanded.len();
        let mut word = Word::default();
        let mut words = Vec::new();
        // If each argument has a separate word, one word is read here and repeated below.
        let count = if self.rules.repeat == Repeat::Context && self.count > 0 { 1 } else { self.count };
        let mut literal = false;
        let mut has_value = false;
        let mut braces = false;
        let is_required = std::mem::take(&mut self.is_required);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Bare)? {
                let count = self.values_of(placeholder, count, is_required);
                has_value |= count > 0;
                word.add_values(placeholder, count, &mut words);
                literal |= count == 1;
                continue;
            }
            literal |=
                !matches!(self.peek(0), None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')'));
            match self.peek(0) {
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')') => break,
                Some(b'<' | b'>') if self.peek(1) == Some(b'(') => self.process(&mut word)?,
                Some(b'<' | b'>') => break,
                Some(b'\'') => self.single_quoted(&mut word)?,
                Some(b'"') => self.double_quoted(&mut word)?,
                Some(b'\\') => self.escape(&mut word, Quote::Bare)?,
                Some(b'$') => self.dollar(&mut word, Quote::Bare)?,
                Some(b'`') => self.backticks(&mut word, Quote::Bare)?,
                Some(byte) => {
                    braces |= byte == b'{';
                    word.special |= b"*?[~".contains(&byte)
                        && !(byte == b'[' && matches!(self.rest(), [b'[', b' ' | b'\t' | b'\n', ..]));
                    word.text.push(byte);
                    self.advance(1);
                }
            }
        }
        self.refuse_many_lines(from)?;
        // `{a,b}` and `{1..3}` are several words.
        word.braces = braces && (word.text.contains(&b',') || word.text.windows(2).any(|two| two == b".."));
        // In zsh, `=name` is the path of the program `name`.
        let equals = self.rules.kinds.meets(ZSH) && self.source.get(from) == Some(&b'=');
        word.special |= word.braces || equals;
        word.variables = self.expanded[expanded..].to_vec();
        for earlier in &mut words {
            earlier.variables = word.variables.clone();
            earlier.special = word.special;
            earlier.braces = word.braces;
        }
        if let Some(site) = self.sites.get(before)
            && equals
        {
            return Err(Error::refused(format!(
                "`{}` stands in a word that begins with `=`, which zsh expands: write `'='`",
                site.placeholder
            )));
        }
        if self.rules.repeat == Repeat::Context && word.repeats {
            // Of nested words, the outermost is repeated.
            self.spans.truncate(spans);
            self.spans.push(from..self.at);
            if self.count > 1 {
                return Ok(vec![word.into_one_of_several(); self.count]);
            }
        }
        // Without a value, a word that is only placeholders disappears.
        if literal || has_value || self.at == from {
            words.push(word);
        }
        Ok(words)
    }

    /// Returns how many words a placeholder outside of quotes stands for, and marks its site.
    fn values_of(&mut self, placeholder: Placeholder, count: usize, is_required: bool) -> usize {
        if let Some(site) = self.sites.last_mut() {
            site.is_required = is_required;
        }
        let is_omitted = self.rules.omits_missing && !is_required && placeholder.is_missing(self.count);
        if placeholder.repeats() { count } else { usize::from(!is_omitted) }
    }

    /// Reads text between single quotes.
    fn single_quoted(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.advance(1);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Single)? {
                word.add_value(placeholder);
                continue;
            }
            match self.peek(0) {
                None => return Err(self.unclosed("a single quote", from)),
                Some(b'\'') => break,
                Some(byte) => word.text.push(byte),
            }
            self.advance(1);
        }
        self.advance(1);
        Ok(())
    }

    /// Reads text between double quotes.
    fn double_quoted(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.advance(1);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Double)? {
                word.add_value(placeholder);
                continue;
            }
            match self.peek(0) {
                None => return Err(self.unclosed("a double quote", from)),
                Some(b'"') => break,
                Some(b'\\') => self.escape(word, Quote::Double)?,
                Some(b'$') => self.dollar(word, Quote::Double)?,
                Some(b'`') => self.backticks(word, Quote::Double)?,
                Some(byte) => {
                    word.text.push(byte);
                    self.advance(1);
                }
            }
        }
        self.advance(1);
        Ok(())
    }

    /// Reads a backslash and the byte after it.
    fn escape(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        match self.peek(1) {
            None => return Err(Error::syntax("the line ends in a backslash: leave it out, or quote it")),
            Some(b'\n') if quote == Quote::Bare => return self.line_continuation(),
            Some(b'\n') => {}
            Some(_) if self.placeholder_at(&self.rest()[1..]).is_some() => {
                return Err(Error::refused(
                    "a placeholder follows a backslash: leave the backslash out, or write `\\\\` for one \
                     before the value",
                ));
            }
            Some(byte) => {
                if quote == Quote::Double && !b"$`\"\\".contains(&byte) {
                    word.text.push(b'\\');
                }
                word.text.push(byte);
            }
        }
        self.advance(2);
        Ok(())
    }

    /// Reads a `$`, and the expansion that it begins.
    pub(crate) fn dollar(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        self.refuse_placeholder_after_dollar()?;
        if quote == Quote::Bare && !matches!(self.peek(1), Some(b'\'' | b'"')) {
            word.splits = true;
        }
        self.refuse_zsh_expansion()?;
        match self.peek(1) {
            Some(b'(') if self.peek(2) == Some(b'(') => {
                word.add_expansion();
                self.advance(3);
                self.arithmetic(ArithmeticForm::Expansion)
            }
            Some(b'(') => {
                self.advance(1);
                self.substitution(word, "`$(`")
            }
            Some(b'{') => {
                word.add_expansion();
                self.braced_expansion(word, quote)
            }
            Some(b'\'') if quote == Quote::Bare => self.ansi(word),
            Some(b'"') if quote == Quote::Bare => {
                self.advance(1);
                self.forbidden.push(TRANSLATED);
                word.special = true;
                self.double_quoted(word)?;
                self.forbidden.pop();
                Ok(())
            }
            Some(b'[') => self.bracket_arithmetic(word),
            Some(b'\\') if self.peek(2) == Some(b'\n') => {
                Err(Error::syntax("a backslash joins two lines after a `$`: write them as one"))
            }
            Some(byte @ (b'1'..=b'9' | b'@' | b'*' | b'#')) => {
                self.refuse_own_parameter(&[byte])?;
                word.add_expansion();
                word.array_elements |= byte == b'@';
                // The shell joins the parameters with `$IFS`, which the line may set.
                word.altered |= byte == b'*';
                self.expanded.push(PARAMETERS.to_vec());
                self.advance(2);
                self.check_after_name()
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let rest = &self.rest()[1..];
                let length = name_length(rest);
                self.record_variable(word, &rest[..length]);
                self.advance(1 + length);
                self.check_after_name()
            }
            Some(byte @ (b'0' | b'?' | b'!' | b'$' | b'-')) => {
                // Except `$0`, their text is numbers and letters that the shell sets.
                word.first_expansion.get_or_insert(word.text.len());
                if byte == b'0' {
                    self.record_variable(word, b"0");
                }
                self.advance(2);
                self.check_after_name()
            }
            _ => {
                word.text.push(b'$');
                self.advance(1);
                Ok(())
            }
        }
    }

    /// Refuses a placeholder directly after a `$`. `${` may still begin an expansion in braces.
    fn refuse_placeholder_after_dollar(&self) -> Result<(), Error> {
        match self.placeholder_at(&self.rest()[1..]) {
            Some((placeholder, _)) if self.peek(1) != Some(b'{') => Err(Error::refused(format!(
                "`${placeholder}` would be an expansion to the shell: write `\\${placeholder}` for a dollar \
                 sign before the value"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses expansions without braces that only zsh has, such as `$=name`. Other shells read
    /// text there.
    fn refuse_zsh_expansion(&self) -> Result<(), Error> {
        let flag = |byte: u8| b"+^=~".contains(&byte);
        let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_{*@#?$!(:+^=~".contains(&byte);
        match self.rest() {
            [_, byte, next, ..] if self.rules.kinds.meets(ZSH) && flag(*byte) && name(*next) => {
                Err(Error::refused(format!(
                    "`${0}` is an expansion to zsh, which is followed in braces only: write `${{{0}…}}`",
                    char::from(*byte)
                )))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what zsh reads as part of an expansion after a name: subscripts, which it evaluates,
    /// and modifiers.
    fn check_after_name(&self) -> Result<(), Error> {
        self.check_text_after_name(self.rest())
    }

    /// Does the same for the text after a name.
    pub(crate) fn check_text_after_name(&self, rest: &[u8]) -> Result<(), Error> {
        let number = |text: &[u8]| {
            let end = text.iter().position(|&byte| byte == b']').unwrap_or(0);
            end > 0
                && (text[..end].iter().all(|b| b.is_ascii_digit() || b"-,".contains(b))
                    || matches!(&text[..end], b"@" | b"*"))
        };
        let why = match rest {
            _ if !self.rules.kinds.meets(ZSH) => return Ok(()),
            [b'[', inner @ ..] if !number(inner) => {
                "`[` behind `$name` begins a subscript in zsh: write `${name}[`, or `${name[…]}`"
            }
            [b':', next, ..] if next.is_ascii_alphabetic() || *next == b'&' => {
                "`:` and a letter behind `$name` is a modifier in zsh: write `${name}:`"
            }
            _ => return Ok(()),
        };
        Err(Error::refused(why))
    }

    /// Records a variable. The text of a variable that names a shell is `sh`.
    fn record_variable(&mut self, word: &mut Word, name: &[u8]) {
        word.add_expansion();
        self.expanded.push(name.to_vec());
        self.record_filled(name);
        if matches!(name, b"SHELL" | b"BASH" | b"0") {
            word.text.extend_from_slice(b"sh");
        }
    }

    /// Records a value in a variable that shells fill with arguments.
    pub(crate) fn record_filled(&mut self, name: &[u8]) {
        if variables::is_filled(name) {
            self.flow.store(name);
        }
    }

    /// Refuses positional parameters outside of functions, where they are minder's.
    fn refuse_own_parameter(&self, name: &[u8]) -> Result<(), Error> {
        if self.functions > 0 {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        Err(Error::refused(format!(
            "`${name}` would be minder's own parameter: write `{{}}` or `{{1}}` for the value, or \
             `\\${name}` for the text"
        )))
    }

    /// Reads `(`, commands and `)`. The byte before the parenthesis was read already.
    fn substitution(&mut self, word: &mut Word, what: &str) -> Result<(), Error> {
        let from = self.at - 1;
        let before = self.sites.len();
        self.enter_nesting()?;
        word.add_expansion();
        word.substituted = true;
        self.advance(1);
        self.substitutions += 1;
        self.commands_in_parentheses(what, from)?;
        self.substitutions -= 1;
        self.nesting -= 1;
        if let Some(placeholder) = self.first_value_since(before) {
            word.add_nested(placeholder);
        }
        Ok(())
    }

    /// Reads `<(…)` or `>(…)`.
    fn process(&mut self, word: &mut Word) -> Result<(), Error> {
        self.advance(1);
        self.substitution(word, "`<(`")?;
        word.text.extend_from_slice(PROCESS);
        Ok(())
    }

    /// Reads `${…}`.
    fn braced_expansion(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        let from = self.at;
        let header = &self.rest()[2..];
        self.refuse_own_parameter_in_braces(header)?;
        if let Some((placeholder, _)) = self.placeholder_at(&self.rest()[1..])
            && header.first() != Some(&b'#')
        {
            return Err(Error::refused(format!(
                "`${placeholder}` is an expansion to the shell: write `\\${placeholder}` for a dollar sign \
                 before the value"
            )));
        }
        let is_substring = is_substring(header);
        if evaluates(&self.with_digits(header)) {
            self.flow.evaluate_any();
        }
        self.record_variable_in_braces(word, header);
        let before = self.expanded.len();
        let first = self.sites.len();
        self.enter_nesting()?;
        // `${#` belongs to the shell, even if `{#` begins a placeholder.
        self.skip_text(2);
        self.forbidden.push(if is_substring { SUBSTRING } else { PARAMETER });
        let mut inner = Word::default();
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Inner)? {
                refuse_sign_before(placeholder, &inner.text)?;
                continue;
            }
            match self.peek(0) {
                None => return Err(self.unclosed("`${`", from)),
                Some(b'}') => break,
                Some(b'\'' | b'"') if quote == Quote::Double => {
                    return Err(Error::refused(
                        "quotes inside `\"${…}\"` are read differently by different shells: use a variable \
                         for the inner text",
                    ));
                }
                Some(b'\'') => self.single_quoted(&mut inner)?,
                Some(b'"') => self.double_quoted(&mut inner)?,
                Some(b'\\') => self.escape(&mut inner, Quote::Double)?,
                Some(b'$') => self.dollar(&mut inner, quote)?,
                Some(b'`') => self.backticks(&mut inner, quote)?,
                Some(byte) => {
                    inner.text.push(byte);
                    self.advance(1);
                }
            }
        }
        self.advance(1);
        self.forbidden.pop();
        self.nesting -= 1;
        if self.sites.len() > first {
            self.flow.compose(&header[..name_length(header)]);
        }
        // If the variable is not set, ksh93 inserts the text of the pattern.
        let rest = &header[name_length(header)..];
        if let Some(site) = self.sites.get(first)
            && matches!(rest, [b'/', b'%' | b'#', ..])
            && self.rules.kinds.meets(KSH)
        {
            return Err(Error::refused(format!(
                "`{}` stands in `${{name/%…}}` or `${{name/#…}}`, which is text to ksh93 where the variable \
                 is not set: write `${{name%…}}`",
                site.placeholder
            )));
        }
        word.array_elements |= header.starts_with(b"@") || rest.starts_with(b"[@]");
        word.altered |= header.starts_with(b"*") || rest.starts_with(b"[*]");
        add_outcomes(word, header, &inner);
        self.assignment_in_braces(header, before)
    }

    /// Returns the text with a digit in place of each placeholder in an offset or a length.
    fn with_digits<'t>(&self, header: &'t [u8]) -> Cow<'t, [u8]> {
        if !is_substring(header) {
            return Cow::Borrowed(header);
        }
        let mut text = Vec::new();
        let mut at = 0;
        while at < header.len() {
            let length = self.placeholder_at(&header[at..]).map(|(_, length)| length);
            text.push(if length.is_some() { b'0' } else { header[at] });
            at += length.unwrap_or(1);
            if length.is_none() && header[at - 1] == b'}' {
                break;
            }
        }
        Cow::Owned(text)
    }

    /// Records the assignment of `${name:=word}`. The first `before` expansions are not part of it.
    fn assignment_in_braces(&mut self, header: &[u8], before: usize) -> Result<(), Error> {
        let (name, rest) = header.split_at(name_length(header));
        if !matches!(rest, [b'=', ..] | [b':', b'=', ..]) {
            return Ok(());
        }
        let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let names: Vec<Vec<u8>> = rest.split(|byte| !is_name_byte(byte)).map(<[u8]>::to_vec).collect();
        let from = [&self.expanded[before..], &names[..]].concat();
        self.record_assignment(name, None)?;
        self.flow.copy(name, &from);
        if variables::assigned(name, self.rules.kinds) != Use::Text {
            self.flow.evaluate_any();
        }
        Ok(())
    }

    fn refuse_own_parameter_in_braces(&self, header: &[u8]) -> Result<(), Error> {
        let inner = match header {
            [b'#' | b'!', next, ..] if *next != b'}' => &header[1..],
            _ => header,
        };
        match inner.first() {
            Some(b'@' | b'*' | b'#' | b'1'..=b'9') => {
                let length = header.iter().position(|&b| b == b'}').map_or(header.len(), |end| end + 1);
                self.refuse_own_parameter(&[b"{", &header[..length]].concat())
            }
            _ => Ok(()),
        }
    }

    fn record_variable_in_braces(&mut self, word: &mut Word, header: &[u8]) {
        let name = header.strip_prefix(b"!").or(header.strip_prefix(b"#")).unwrap_or(header);
        match name.first() {
            Some(b'0'..=b'9' | b'@' | b'*') => self.record_variable(word, PARAMETERS),
            _ => self.record_variable(word, &name[..name_length(name)]),
        }
    }

    /// Reads `$'…'`, which not every shell has. It is refused where shells disagree about its end.
    fn ansi(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.forbidden.push(ANSI);
        self.advance(2);
        loop {
            self.placeholder(Quote::Single)?;
            match self.peek(0) {
                None => return Err(self.unclosed("`$'`", from)),
                Some(b'\'') => break,
                Some(b'\\') if self.peek(1) == Some(b'\'') => {
                    return Err(Error::refused(
                        "`\\'` inside `$'…'` ends the quotes in some shells: write `\"'\"`",
                    ));
                }
                Some(b'\\') => self.advance(1),
                Some(_) => {}
            }
            self.advance(1);
        }
        self.advance(1);
        self.forbidden.pop();
        // The shell replaces escapes, so the text is unknown here.
        self.flow.names_filled = true;
        word.add_expansion();
        word.special = true;
        Ok(())
    }

    /// Reads a substitution in backticks. Its text is unescaped as the shell does it, and scanned
    /// separately.
    fn backticks(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        let from = self.at;
        let mut inner = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.source.get(at) {
                None => return Err(self.unclosed("a backtick", from)),
                Some(b'`') => break,
                Some(b'\\') => {
                    match self.source.get(at + 1) {
                        Some(byte @ (b'`' | b'\\' | b'$')) => inner.push(*byte),
                        Some(b'"') if quote == Quote::Double => {
                            return Err(Error::refused(
                                "`\\\"` in backticks in double quotes is read differently by different \
                                 shells: write `$(…)`",
                            ));
                        }
                        Some(byte) => inner.extend([b'\\', *byte]),
                        None => {}
                    }
                    at += 2;
                }
                Some(byte) => {
                    inner.push(*byte);
                    at += 1;
                }
            }
        }
        self.enter_nesting()?;
        self.scan_nested(&inner, BACKTICKS)?;
        self.nesting -= 1;
        word.add_expansion();
        word.substituted = true;
        word.splits |= quote == Quote::Bare;
        self.advance(at + 1 - self.at);
        Ok(())
    }
}

/// Returns whether `${header` is `${name:offset…}`. The offset begins neither with an operator nor
/// with a letter, which is a modifier in zsh.
fn is_substring(header: &[u8]) -> bool {
    match &header[name_length(header)..] {
        [b':', next, ..] => !b"-=?+".contains(next) && !next.is_ascii_alphabetic(),
        _ => false,
    }
}

/// Returns whether `${header` is the length of a variable: `${#name}`.
fn is_length(header: &[u8]) -> bool {
    let name = header.strip_prefix(b"#").unwrap_or_default();
    let length = name_length(name);
    length > 0 && name.get(length) == Some(&b'}')
}

/// Adds to `word` what the expansion `${header` can become. `inner` is its text, as one word.
fn add_outcomes(word: &mut Word, header: &[u8], inner: &Word) {
    word.substituted |= inner.substituted;
    if is_length(header) {
        return;
    }
    let rest = &header[name_length(header)..];
    let operator = match rest {
        [b'}', ..] if rest.len() < header.len() => return,
        [b':', b'-' | b'=' | b'+', ..] => 2,
        [b'-' | b'=' | b'+', ..] => 1,
        [b':', b'?', ..] | [b'?', ..] if rest.len() < header.len() => return,
        _ => {
            word.altered = true;
            return;
        }
    };
    let skipped = header.len() - rest.len() + operator;
    let text = inner.with_alternatives();
    word.special |= inner.special || text.iter().any(|byte| b"*?[~".contains(byte));
    word.altered |= inner.altered;
    word.alternatives.push((word.text.len(), text.get(skipped..).unwrap_or_default().to_vec()));
}

/// Returns whether `${header` may evaluate the text of a variable.
///
/// The forms that do not are: those of POSIX, substrings with literal numbers, replacements,
/// changes of case, `@Q` and similar operators, subscripts that are numbers, `@` or `*`, and `:h`,
/// `:t`, `:r`, `:e` of zsh. Every other form counts, such as `${!v}`, `${v@P}` and flags of zsh.
fn evaluates(header: &[u8]) -> bool {
    let name = match header {
        [b'#', b'}', ..] | [b'?' | b'$' | b'!' | b'-', b'}', ..] => return false,
        [b'#', rest @ ..] => rest,
        _ => header,
    };
    let length = match name.first() {
        Some(b'@' | b'*') => 1,
        _ => name_length(name),
    };
    let mut rest = &name[length..];
    if let Some(inner) = rest.strip_prefix(b"[") {
        let end = inner.iter().position(|&byte| byte == b']').unwrap_or(0);
        let index = &inner[..end];
        if !(matches!(index, b"@" | b"*")
            || end > 0 && index.iter().all(|b| b.is_ascii_digit() || *b == b'-'))
        {
            return true;
        }
        rest = &inner[end + 1..];
    }
    let end = rest.iter().position(|&byte| byte == b'}').unwrap_or(rest.len());
    match rest {
        _ if length == 0 => true,
        [b'}' | b'-' | b'=' | b'?' | b'+' | b'#' | b'%' | b'/' | b'^' | b',', ..] => false,
        [b':', b'-' | b'=' | b'?' | b'+', ..] => false,
        [b':', b'h' | b't' | b'r' | b'e', b'}', ..] => false,
        [b':', ..] => !rest[1..end].iter().all(|byte| byte.is_ascii_digit() || b": -".contains(byte)),
        [b'@', b'Q' | b'U' | b'u' | b'L', b'}', ..] => false,
        _ => true,
    }
}
