//! What a word of a shell line is made of: quotes, backslashes and `$`.

use crate::error::Error;
use crate::kinds::{KSH, ZSH};
use crate::options::Repeat;
use crate::placeholder::site::Quote;
use crate::posix::flow::PARAMETERS;
use crate::posix::names::name_length;
use crate::posix::scanner::{Forbidden, Scanner};
use crate::posix::variables;
use crate::posix::variables::Use;
use crate::word::{PROCESS, Word, single};

const ARITHMETIC: Forbidden = Forbidden {
    place: "in arithmetic, which evaluates the value",
    cure: "check values with `--only '[0-9]+'`, or write `$(expr {} + 1)`",
    only: true,
};
const PARAMETER: Forbidden = Forbidden {
    place: "in `${…}`, which would read it as its own",
    cure: "write `v={}; … \"${v…}\"`, or check values with `--only REGEXP`",
    only: true,
};
const BACKTICKS: Forbidden =
    Forbidden {
        place: "in backticks, where quoting cannot be followed", cure: "write `$(…)`", only: false
    };
const ANSI: Forbidden = Forbidden {
    place: "in `$'…'`, where not every shell ends the quotes alike",
    cure: "write `$'…'{}`",
    only: false,
};
const TRANSLATED: Forbidden = Forbidden {
    place: "in `$\"…\"`, which is translated before it is expanded",
    cure: "write `\"…\"`",
    only: false,
};

impl Scanner<'_> {
    /// Reads a word where the shell wants exactly one.
    pub(crate) fn word(&mut self) -> Result<Word, Error> {
        let before = self.seen.len();
        let mut words = self.words()?;
        single(&words, self.seen.get(before), "stands where the shell takes one word")?;
        Ok(words.remove(0))
    }

    /// Reads one word of the template up to a blank or an operator: with several arguments it may
    /// be several words, with none no word.
    pub(crate) fn words(&mut self) -> Result<Vec<Word>, Error> {
        let (from, before, spans) = (self.at, self.seen.len(), self.spans.len());
        let expanded = self.expanded.len();
        let mut word = Word::default();
        let mut words = Vec::new();
        // Where each argument has its own word, one word is read, and repeated below.
        let count = if self.rules.repeat == Repeat::Context && self.count > 0 { 1 } else { self.count };
        let (mut literal, mut braces) = (false, false);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Bare)? {
                let count = if placeholder.repeats() { count } else { 1 };
                word.values(placeholder, count, &mut words);
                literal |= count == 1;
                continue;
            }
            literal |=
                !matches!(self.peek(0), None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')'));
            match self.peek(0) {
                None | Some(b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')') => break,
                Some(b'<' | b'>') if self.peek(1) == Some(b'(') => self.process(&mut word)?,
                Some(b'<' | b'>') => break,
                Some(b'\'') => self.single(&mut word)?,
                Some(b'"') => self.double(&mut word)?,
                Some(b'\\') => self.escape(&mut word, Quote::Bare)?,
                Some(b'$') => self.dollar(&mut word, Quote::Bare)?,
                Some(b'`') => self.backticks(&mut word, Quote::Bare)?,
                Some(byte) => {
                    braces |= byte == b'{';
                    word.odd |= b"*?[~".contains(&byte)
                        && !(byte == b'[' && matches!(self.rest(), [b'[', b' ' | b'\t' | b'\n', ..]));
                    word.text.push(byte);
                    self.copy(1);
                }
            }
        }
        self.one_line(from)?;
        // `{a,b}` and `{1..3}` are several words.
        word.braces = braces && (word.text.contains(&b',') || word.text.windows(2).any(|two| two == b".."));
        // In zsh, `=name` is the path of the program `name`.
        let equals = self.rules.kinds.meets(ZSH) && self.source.get(from) == Some(&b'=');
        word.odd |= word.braces || equals;
        word.names = self.expanded[expanded..].to_vec();
        for earlier in &mut words {
            (earlier.names, earlier.odd, earlier.braces) = (word.names.clone(), word.odd, word.braces);
        }
        if let (Some(seen), true) = (self.seen.get(before), equals) {
            return Err(Error::refused(format!(
                "`{}` stands in a word that begins with `=`, which zsh expands: write `'='`",
                seen.placeholder
            )));
        }
        if self.rules.repeat == Repeat::Context && word.repeats {
            // The outermost word is the one that is repeated.
            self.spans.truncate(spans);
            self.spans.push(from..self.at);
            if self.count > 1 {
                return Ok(vec![word.among_several(); self.count]);
            }
        }
        // With no argument, a word that is nothing else is none.
        if literal || self.count > 0 || self.at == from {
            words.push(word);
        }
        Ok(words)
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.copy(1);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Single)? {
                word.value(placeholder);
                continue;
            }
            match self.peek(0) {
                None => return Err(self.open("a single quote", from)),
                Some(b'\'') => break,
                Some(byte) => word.text.push(byte),
            }
            self.copy(1);
        }
        self.copy(1);
        Ok(())
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.copy(1);
        loop {
            if let Some(placeholder) = self.placeholder(Quote::Double)? {
                word.value(placeholder);
                continue;
            }
            match self.peek(0) {
                None => return Err(self.open("a double quote", from)),
                Some(b'"') => break,
                Some(b'\\') => self.escape(word, Quote::Double)?,
                Some(b'$') => self.dollar(word, Quote::Double)?,
                Some(b'`') => self.backticks(word, Quote::Double)?,
                Some(byte) => {
                    word.text.push(byte);
                    self.copy(1);
                }
            }
        }
        self.copy(1);
        Ok(())
    }

    fn escape(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        match self.peek(1) {
            None => return Err(Error::syntax("the line ends in a backslash: leave it out, or quote it")),
            Some(b'\n') if quote == Quote::Bare => return self.joined(),
            Some(b'\n') => {}
            Some(_) if self.placeholder_at(&self.rest()[1..]).is_some() => {
                return Err(Error::refused(
                    "a placeholder follows a backslash: leave the backslash out, or write `\\\\` for one before the value",
                ));
            }
            Some(byte) => {
                if quote == Quote::Double && !b"$`\"\\".contains(&byte) {
                    word.text.push(b'\\');
                }
                word.text.push(byte);
            }
        }
        self.copy(2);
        Ok(())
    }

    pub(crate) fn dollar(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        if let (Some((placeholder, _)), true) =
            (self.placeholder_at(&self.rest()[1..]), self.peek(1) != Some(b'{'))
        {
            return Err(Error::refused(format!(
                "`${placeholder}` would be an expansion to the shell: write `\\${placeholder}` for a dollar sign before the value"
            )));
        }
        if quote == Quote::Bare && !matches!(self.peek(1), Some(b'\'' | b'"')) {
            word.splits = true;
        }
        self.only_in_zsh()?;
        match self.peek(1) {
            Some(b'(') if self.peek(2) == Some(b'(') => {
                word.expansion();
                self.copy(3);
                self.arithmetic("$((…))")
            }
            Some(b'(') => {
                self.copy(1);
                self.substitution(word, "`$(`")
            }
            Some(b'{') => {
                word.expansion();
                self.parameter(word, quote)
            }
            Some(b'\'') if quote == Quote::Bare => self.ansi(word),
            Some(b'"') if quote == Quote::Bare => {
                self.copy(1);
                self.forbidden.push(TRANSLATED);
                word.odd = true;
                self.double(word)?;
                self.forbidden.pop();
                Ok(())
            }
            Some(b'[') => Err(Error::refused(
                "`$[` is arithmetic in some shells and text in others: write `$((…))`, or `\\$[` for the text",
            )),
            Some(b'\\') if self.peek(2) == Some(b'\n') => {
                Err(Error::syntax("a backslash joins two lines after a `$`: write them as one"))
            }
            Some(byte @ (b'1'..=b'9' | b'@' | b'*' | b'#')) => {
                self.own_parameter(&[byte])?;
                word.expansion();
                word.elements |= byte == b'@';
                // The separator is the line's.
                word.made |= byte == b'*';
                self.expanded.push(PARAMETERS.to_vec());
                self.copy(2);
                self.behind_name()
            }
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                let rest = &self.rest()[1..];
                let length = name_length(rest);
                self.named(word, &rest[..length]);
                self.copy(1 + length);
                self.behind_name()
            }
            Some(byte @ (b'0' | b'?' | b'!' | b'$' | b'-')) => {
                // All but `$0` are numbers or letters of the shell's own.
                word.gap.get_or_insert(word.text.len());
                if byte == b'0' {
                    self.named(word, b"0");
                }
                self.copy(2);
                self.behind_name()
            }
            _ => {
                word.text.push(b'$');
                self.copy(1);
                Ok(())
            }
        }
    }

    /// Refuses the expansions of zsh that have no braces: other shells read text there, and what
    /// zsh reads has its own rules.
    fn only_in_zsh(&self) -> Result<(), Error> {
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

    /// Refuses what zsh reads behind a variable's name: subscripts, which it evaluates, and
    /// modifiers, which hold text.
    fn behind_name(&self) -> Result<(), Error> {
        self.may_follow_name(self.rest())
    }

    /// The same for a name in text that is not read as a word.
    pub(crate) fn may_follow_name(&self, rest: &[u8]) -> Result<(), Error> {
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

    /// Notes a variable; those that name a shell count as one.
    fn named(&mut self, word: &mut Word, name: &[u8]) {
        word.expansion();
        self.expanded.push(name.to_vec());
        self.holding(name);
        if matches!(name, b"SHELL" | b"BASH" | b"0") {
            word.text.extend_from_slice(b"sh");
        }
    }

    /// Notes the variables into which shells put arguments of their own accord.
    fn holding(&mut self, name: &[u8]) {
        if variables::is_filled(name) {
            self.flow.store(name);
        }
    }

    /// Refuses the line's own positional parameters outside of functions.
    fn own_parameter(&self, name: &[u8]) -> Result<(), Error> {
        if self.functions > 0 {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        Err(Error::refused(format!(
            "`${name}` would be minder's own parameter: write `{{}}` or `{{1}}` for the value, or `\\${name}` for the text"
        )))
    }

    /// `(` and what follows, as commands; the byte before it is copied already.
    fn substitution(&mut self, word: &mut Word, what: &str) -> Result<(), Error> {
        let (from, before) = (self.at - 1, self.seen.len());
        self.deeper()?;
        word.expansion();
        word.substituted = true;
        self.copy(1);
        self.substitutions += 1;
        self.commands_in_parentheses(what, from)?;
        self.substitutions -= 1;
        self.nesting -= 1;
        if let Some(placeholder) = self.since(before) {
            word.nested(placeholder);
        }
        Ok(())
    }

    /// `<(…)` and `>(…)`.
    fn process(&mut self, word: &mut Word) -> Result<(), Error> {
        self.copy(1);
        self.substitution(word, "`<(`")?;
        word.text.extend_from_slice(PROCESS);
        Ok(())
    }

    /// Arithmetic up to its `))`; the opening is copied already.
    pub(crate) fn arithmetic(&mut self, what: &str) -> Result<(), Error> {
        let from = self.at;
        self.deeper()?;
        self.forbidden.push(ARITHMETIC);
        let mut open = 0;
        let mut word = Word::default();
        loop {
            if self.placeholder(Quote::Inner)?.is_some() {
                continue;
            }
            match self.peek(0) {
                None => return Err(self.open(&format!("`{what}`"), from)),
                Some(b')') if open == 0 => break,
                Some(b')') => open -= 1,
                Some(b'(') => open += 1,
                Some(b'\'' | b'"' | b'`' | b'\\') => {
                    return Err(Error::refused(format!(
                        "quotes inside `{what}` are read differently by different shells: leave them out"
                    )));
                }
                Some(b'$') => {
                    let name = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
                    let before = self.at > 0 && name(self.source[self.at - 1]);
                    self.number(&mut word)?;
                    // With what stands beside it, it is a name that the line does not have.
                    self.flow.names_filled |= before || self.peek(0).is_some_and(name);
                    continue;
                }
                Some(byte) if byte.is_ascii_digit() => {
                    let digit = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
                    let length = self.rest().iter().take_while(|byte| digit(byte)).count();
                    self.copy(length);
                    continue;
                }
                Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                    let name = &self.rest()[..name_length(self.rest())];
                    self.flow.measure(name);
                    self.holding(name);
                    self.copy(name.len());
                    continue;
                }
                Some(_) => {}
            }
            self.copy(1);
        }
        if self.peek(1) != Some(b')') {
            return Err(Error::refused(format!(
                "`{what}` does not end in `))`: write `( (` with a blank for nested commands"
            )));
        }
        self.copy(2);
        self.forbidden.pop();
        self.nesting -= 1;
        Ok(())
    }

    /// A `$` in arithmetic: a number is harmless there, and what else it may be is not.
    fn number(&mut self, word: &mut Word) -> Result<(), Error> {
        let rest = &self.rest()[1..];
        let braces = rest.first() == Some(&b'{');
        let inner = if braces { &rest[1..] } else { rest };
        let length = name_length(inner);
        let name = &inner[..length];
        let closed = !braces || inner.get(length) == Some(&b'}');
        match inner.first() {
            Some(b'#')
                if braces
                    && name_length(&inner[1..]) > 0
                    && inner.get(1 + name_length(&inner[1..])) == Some(&b'}') =>
            {
                let before = self.expanded.len();
                self.dollar(word, Quote::Double)?;
                self.expanded.truncate(before);
                Ok(())
            }
            Some(b'?' | b'$' | b'!') if !braces => self.dollar(word, Quote::Double),
            Some(byte) if crate::posix::names::is_name(name) && closed && !byte.is_ascii_digit() => {
                self.flow.measure(name);
                self.holding(name);
                let before = self.expanded.len();
                self.dollar(word, Quote::Double)?;
                self.expanded.truncate(before);
                Ok(())
            }
            _ => {
                self.flow.evaluate_any();
                self.dollar(word, Quote::Double)
            }
        }
    }

    /// `${…}`.
    fn parameter(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        let from = self.at;
        let header = &self.rest()[2..];
        self.own_parameter_in_braces(header)?;
        if let Some((placeholder, _)) =
            self.placeholder_at(&self.rest()[1..]).filter(|_| header.first() != Some(&b'#'))
        {
            return Err(Error::refused(format!(
                "`${placeholder}` is an expansion to the shell: write `\\${placeholder}` for a dollar sign before the value"
            )));
        }
        if evaluates(header) {
            self.flow.evaluate_any();
        }
        self.named_in_braces(word, header);
        let (before, first) = (self.expanded.len(), self.seen.len());
        self.deeper()?;
        // `${#` is the shell's, also where `{#` begins a placeholder.
        self.skip(2);
        self.forbidden.push(PARAMETER);
        let mut inner = Word::default();
        loop {
            if self.placeholder(Quote::Inner)?.is_some() {
                continue;
            }
            match self.peek(0) {
                None => return Err(self.open("`${`", from)),
                Some(b'}') => break,
                Some(b'\'' | b'"') if quote == Quote::Double => {
                    return Err(Error::refused(
                        "quotes inside `\"${…}\"` are read differently by different shells: use a variable for the inner text",
                    ));
                }
                Some(b'\'') => self.single(&mut inner)?,
                Some(b'"') => self.double(&mut inner)?,
                Some(b'\\') => self.escape(&mut inner, Quote::Double)?,
                Some(b'$') => self.dollar(&mut inner, quote)?,
                Some(b'`') => self.backticks(&mut inner, quote)?,
                Some(byte) => {
                    inner.text.push(byte);
                    self.copy(1);
                }
            }
        }
        self.copy(1);
        self.forbidden.pop();
        self.nesting -= 1;
        // Where the variable is not set, ksh93 puts in the text of the line.
        if let (Some(seen), [b'/', b'%' | b'#', ..], true) =
            (self.seen.get(first), &header[name_length(header)..], self.rules.kinds.meets(KSH))
        {
            return Err(Error::refused(format!(
                "`{}` stands in `${{name/%…}}` or `${{name/#…}}`, which is text to ksh93 where the variable is not set: write `${{name%…}}`",
                seen.placeholder
            )));
        }
        let rest = &header[name_length(header)..];
        word.elements |= header.starts_with(b"@") || rest.starts_with(b"[@]");
        word.made |= header.starts_with(b"*") || rest.starts_with(b"[*]");
        becomes(word, header, &inner);
        // `${name:=word}` assigns.
        let name = &header[..name_length(header)];
        if matches!(&header[name.len()..], [b'=', ..] | [b':', b'=', ..]) {
            let words = &header[name.len()..];
            let text: Vec<Vec<u8>> =
                words.split(|b| !(b.is_ascii_alphanumeric() || *b == b'_')).map(<[u8]>::to_vec).collect();
            let from = [&self.expanded[before..], &text[..]].concat();
            self.stored(name, None)?;
            self.flow.copy(name, &from);
            if variables::assigned(name, self.rules.kinds) != Use::Text {
                self.flow.evaluate_any();
            }
        }
        Ok(())
    }

    fn own_parameter_in_braces(&self, header: &[u8]) -> Result<(), Error> {
        let inner = match header {
            [b'#' | b'!', next, ..] if *next != b'}' => &header[1..],
            _ => header,
        };
        match inner.first() {
            Some(b'@' | b'*' | b'#' | b'1'..=b'9') => {
                let length = header.iter().position(|&b| b == b'}').map_or(header.len(), |end| end + 1);
                self.own_parameter(&[b"{", &header[..length]].concat())
            }
            _ => Ok(()),
        }
    }

    fn named_in_braces(&mut self, word: &mut Word, header: &[u8]) {
        let name = header.strip_prefix(b"!").or(header.strip_prefix(b"#")).unwrap_or(header);
        match name.first() {
            Some(b'0'..=b'9' | b'@' | b'*') => self.named(word, PARAMETERS),
            _ => self.named(word, &name[..name_length(name)]),
        }
    }

    /// `$'…'`: not POSIX. Where shells disagree on its end, it is refused.
    fn ansi(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.forbidden.push(ANSI);
        self.copy(2);
        loop {
            self.placeholder(Quote::Single)?;
            match self.peek(0) {
                None => return Err(self.open("`$'`", from)),
                Some(b'\'') => break,
                Some(b'\\') if self.peek(1) == Some(b'\'') => {
                    return Err(Error::refused(
                        "`\\'` inside `$'…'` ends the quotes in some shells: write `\"'\"`",
                    ));
                }
                Some(b'\\') => self.copy(1),
                Some(_) => {}
            }
            self.copy(1);
        }
        self.copy(1);
        self.forbidden.pop();
        // Its text is what the shell makes of it: unknown here.
        self.flow.names_filled = true;
        word.expansion();
        word.odd = true;
        Ok(())
    }

    /// Old-style substitution: its text is unescaped as the shell does, and scanned on its own.
    fn backticks(&mut self, word: &mut Word, quote: Quote) -> Result<(), Error> {
        let from = self.at;
        let mut inner = Vec::new();
        let mut at = self.at + 1;
        loop {
            match self.source.get(at) {
                None => return Err(self.open("a backtick", from)),
                Some(b'`') => break,
                Some(b'\\') => {
                    match self.source.get(at + 1) {
                        Some(byte @ (b'`' | b'\\' | b'$')) => inner.push(*byte),
                        Some(b'"') if quote == Quote::Double => {
                            return Err(Error::refused(
                                "`\\\"` in backticks in double quotes is read differently by different shells: write `$(…)`",
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
        self.deeper()?;
        self.check_inner(&inner, BACKTICKS)?;
        self.nesting -= 1;
        word.expansion();
        word.substituted = true;
        word.splits |= quote == Quote::Bare;
        self.copy(at + 1 - self.at);
        Ok(())
    }
}

/// Notes what an expansion `${header` can become; `inner` is its text, as one word.
fn becomes(word: &mut Word, header: &[u8], inner: &Word) {
    word.substituted |= inner.substituted;
    let rest = &header[name_length(header)..];
    let operator = match rest {
        [b'}', ..] if rest.len() < header.len() => return,
        [b':', b'-' | b'=' | b'+', ..] => 2,
        [b'-' | b'=' | b'+', ..] => 1,
        [b':', b'?', ..] | [b'?', ..] if rest.len() < header.len() => return,
        _ => {
            word.made = true;
            return;
        }
    };
    let skipped = header.len() - rest.len() + operator;
    let text = inner.with_alternatives();
    word.odd |= inner.odd || text.iter().any(|byte| b"*?[~".contains(byte));
    word.made |= inner.made;
    word.alternatives.push((word.text.len(), text.get(skipped..).unwrap_or_default().to_vec()));
}

/// Says whether `${header` may evaluate what a variable holds: it is none of the forms that are
/// known not to.
///
/// Those are POSIX's, substrings by literal numbers, replacements, changes of case, `@Q` and its
/// like, subscripts that are numbers or stand for all, zsh's `:h`, `:t`, `:r`, `:e`. The rest, such
/// as `${!v}`, `${v@P}` and flags of zsh, counts.
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
