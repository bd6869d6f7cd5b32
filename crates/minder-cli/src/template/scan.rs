//! The scanner of shell lines: the grammar of commands, so far as it decides where a word is and what is quoted.
//!
//! It reads what dash, bash, the Korn shells and zsh read alike, and refuses what they read differently. It
//! finds places and changes nothing. Words and what they are made of are in `expansion`.

use std::ops::Range;
use std::sync::Arc;

use super::builtins::{self, Effect};
use super::evaluators::Word;
use super::lexicon::Lexicon;
use super::redirection::{HereDocument, unfollowed};
use super::{Error, Placeholder, Repeat};

/// The quotes around a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quote {
    Bare,
    Double,
    Single,
}

/// A placeholder as it was found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seen {
    pub(super) at: usize,
    pub(super) length: usize,
    pub(super) placeholder: Placeholder,
    pub(super) quote: Quote,
}

/// How a line is read.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// The shell evaluates numbers.
    pub(super) korn: bool,
    /// The shell has `[[`.
    pub(super) conditional: bool,
    pub(super) repeat: Repeat,
    pub(super) lexicon: Arc<Lexicon>,
}

/// What a scan leaves.
#[derive(Debug)]
pub(super) struct Scanned {
    pub(super) seen: Vec<Seen>,
    /// The words that are repeated for each argument, if those are repeated with what stands around their placeholders.
    pub(super) spans: Vec<Range<usize>>,
    /// Where a further word of the last command belongs, if the line ends in a simple command.
    pub(super) tail: Option<usize>,
}

/// A place where no placeholder may stand, and the way out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Forbidden {
    pub(super) place: &'static str,
    pub(super) cure: &'static str,
}

/// The deepest nesting of commands and expansions that is followed.
pub(super) const NESTING_MAX: usize = 64;

/// How a list of commands ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Line,
    Parenthesis,
    Branch,
    Word(&'static str),
}

#[derive(Debug)]
pub(super) struct Scanner<'a> {
    pub(super) source: &'a [u8],
    pub(super) at: usize,
    pub(super) seen: Vec<Seen>,
    pub(super) spans: Vec<Range<usize>>,
    /// A placeholder in what the shell reads as its own, such as a reserved word.
    hidden: Option<Placeholder>,
    pub(super) forbidden: Vec<Forbidden>,
    /// How many `$(…)` and function bodies are open, and how deep everything is.
    pub(super) substitutions: usize,
    pub(super) functions: usize,
    pub(super) nesting: usize,
    pub(super) here_documents: Vec<HereDocument>,
    pub(super) effect: Effect,
    pub(super) redirected: usize,
    pub(super) rules: &'a Rules,
    /// For how many arguments the line is read.
    pub(super) count: usize,
    pub(super) tail: Option<usize>,
}

impl<'a> Scanner<'a> {
    /// Scans a whole line as it is for `count` arguments.
    pub(super) fn scan(source: &'a [u8], rules: &'a Rules, count: usize) -> Result<Scanned, Error> {
        let mut scanner = Scanner::new(source, rules, count);
        scanner.list(&[], false)?;
        if let Some(placeholder) = scanner.hidden {
            return Err(Error::refused(format!(
                "`{placeholder}` is part of what the shell reads as its own, where no value can stand: choose another \
                 placeholder, or quote that word"
            )));
        }
        let Effect { evaluates, stores, reads } = scanner.effect;
        let reads = reads && scanner.seen.len() > scanner.redirected;
        if evaluates && (stores || reads) {
            return Err(Error::refused(
                "the line puts a value into a variable and also evaluates variables (arithmetic, `eval`, program text, \
                 `${!v}`), where the value would be code: use `expr` or `[ … ]`, and `{}` in place of the variable",
            ));
        }
        let Scanner { seen, spans, tail, .. } = scanner;
        Ok(Scanned { seen, spans, tail })
    }

    pub(super) fn new(source: &'a [u8], rules: &'a Rules, count: usize) -> Scanner<'a> {
        Scanner {
            source,
            at: 0,
            seen: Vec::new(),
            spans: Vec::new(),
            hidden: None,
            forbidden: Vec::new(),
            substitutions: 0,
            functions: 0,
            nesting: 0,
            here_documents: Vec::new(),
            effect: Effect::default(),
            redirected: 0,
            rules,
            count,
            tail: None,
        }
    }

    /// Scans the text of an old-style substitution, which only may not hold placeholders.
    pub(super) fn check_inner(&mut self, inner: &[u8], forbidden: Forbidden) -> Result<(), Error> {
        let mut scanner = Scanner::new(inner, self.rules, self.count);
        scanner.forbidden.push(forbidden);
        scanner.functions = self.functions;
        scanner.substitutions = self.substitutions + 1;
        scanner.nesting = self.nesting + 1;
        scanner.list(&[], false)?;
        let (effect, hidden) = (scanner.effect, scanner.hidden);
        self.hidden = self.hidden.or(hidden);
        self.merge(effect);
        Ok(())
    }

    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// The placeholder at the start of `text`.
    pub(super) fn lexed(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        self.rules.lexicon.at(text)
    }

    /// Goes over `count` bytes that stay as they are, and notes a placeholder that begins among them: its text may be a part of
    /// any word, also of the shell's own.
    pub(super) fn copy(&mut self, count: usize) {
        let end = self.source.len().min(self.at + count);
        if self.hidden.is_none() {
            self.hidden = (self.at..end).find_map(|at| self.lexed(&self.source[at..])).map(|found| found.0);
        }
        self.at = end;
    }

    /// Goes over `count` bytes in which a placeholder is none.
    pub(super) fn skip(&mut self, count: usize) {
        self.at = self.source.len().min(self.at + count);
    }

    /// Takes a placeholder that stands here, in these quotes.
    pub(super) fn placeholder(&mut self, quote: Quote) -> Result<Option<Placeholder>, Error> {
        let Some((placeholder, length)) = self.lexed(self.rest()) else {
            return Ok(None);
        };
        if let Some(Forbidden { place, cure }) = self.forbidden.last() {
            return Err(Error::refused(format!("`{placeholder}` stands {place}: {cure}")));
        }
        self.seen.push(Seen { at: self.at, length, placeholder, quote });
        self.at += length;
        Ok(Some(placeholder))
    }

    /// The first placeholder found since `before` were known.
    pub(super) fn since(&self, before: usize) -> Option<Placeholder> {
        self.seen.get(before).map(|seen| seen.placeholder)
    }

    pub(super) fn open(&self, what: &str, at: usize) -> Error {
        let place = String::from_utf8_lossy(&self.source[..at]).chars().count() + 1;
        Error::syntax(format!("{what} is opened at character {place} of the line and not closed"))
    }

    pub(super) fn deeper(&mut self) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(Error::syntax(format!(
                "the line is nested more than {NESTING_MAX} deep: put it into a script"
            )));
        }
        Ok(())
    }

    pub(super) fn merge(&mut self, other: Effect) {
        self.effect.evaluates |= other.evaluates;
        self.effect.stores |= other.stores;
        self.effect.reads |= other.reads;
    }

    /// Reads commands up to a closing `)`, as in `$(…)`; the parenthesis is copied.
    pub(super) fn commands_in_parentheses(&mut self, what: &str, from: usize) -> Result<(), Error> {
        let outer = std::mem::take(&mut self.here_documents);
        match self.list(&[], true)? {
            End::Parenthesis if self.here_documents.is_empty() => {}
            End::Parenthesis => {
                return Err(unfollowed("it ends behind a `)`: put the `)` on a line of its own"));
            }
            _ => return Err(self.open(what, from)),
        }
        self.here_documents = outer;
        self.copy(1);
        Ok(())
    }

    /// Reads commands until one of the reserved words `stops` stands where a command would.
    pub(super) fn list(&mut self, stops: &[&'static str], parenthesis: bool) -> Result<End, Error> {
        self.deeper()?;
        let end = loop {
            self.blanks()?;
            match self.peek(0) {
                None if stops.is_empty() && !parenthesis => {
                    if !self.here_documents.is_empty() {
                        return Err(unfollowed("its text is missing"));
                    }
                    break End::Line;
                }
                None if parenthesis => break End::Line,
                None => {
                    return Err(Error::syntax(format!(
                        "the line ends where `{}` is missing",
                        stops[stops.len() - 1]
                    )));
                }
                Some(b')') if parenthesis => break End::Parenthesis,
                Some(b')') => return Err(Error::syntax("a `)` closes nothing")),
                Some(b'\n') => self.newline()?,
                Some(b'#') => self.comment()?,
                Some(b';') if matches!(self.peek(1), Some(b';' | b'&' | b'|')) => {
                    if !stops.contains(&"esac") {
                        return Err(Error::syntax("`;;` stands outside of `case`"));
                    }
                    let resumed = self.rest().starts_with(b";;&");
                    self.copy(if resumed { 3 } else { 2 });
                    break End::Branch;
                }
                Some(b';' | b'&' | b'|') => self.copy(1),
                Some(_) => {
                    let word = self.plain();
                    if let Some(&stop) = stops.iter().find(|stop| stop.as_bytes() == word) {
                        self.copy(word.len());
                        break End::Word(stop);
                    }
                    self.command()?;
                }
            }
        };
        self.nesting -= 1;
        Ok(end)
    }

    /// The bytes up to the next blank or operator: a reserved word only if it stands so, without quotes.
    pub(super) fn plain(&self) -> &'a [u8] {
        let rest = self.rest();
        &rest[..rest.iter().position(|b| b" \t\n;&|<>()".contains(b)).unwrap_or(rest.len())]
    }

    pub(super) fn command(&mut self) -> Result<(), Error> {
        let word = self.plain();
        let prefix = matches!(word, b"!" | b"time");
        match word {
            b"if" => self.branches()?,
            b"while" | b"until" => self.loop_body(word)?,
            b"for" | b"select" => self.for_loop(word)?,
            b"case" => self.case()?,
            b"{" => {
                self.copy(1);
                self.list(&["}"], false)?;
            }
            b"[[" => self.conditional()?,
            b"function" => {
                self.copy(word.len());
                self.blanks()?;
                self.copy(self.plain().len());
                self.blanks()?;
                self.function()?;
            }
            b"coproc" | b"repeat" | b"foreach" => {
                let word = String::from_utf8_lossy(word);
                return Err(Error::refused(format!(
                    "`{word}` is not followed here: put the line into a script"
                )));
            }
            b"then" | b"else" | b"elif" | b"fi" | b"do" | b"done" | b"esac" | b"}" => {
                let word = String::from_utf8_lossy(word);
                return Err(Error::syntax(format!("`{word}` stands where no command is open for it")));
            }
            b"" if self.rest().starts_with(b"((") => {
                self.copy(2);
                self.arithmetic("((…))")?;
            }
            b"" if self.peek(0) == Some(b'(') => {
                let from = self.at;
                self.copy(1);
                self.commands_in_parentheses("`(`", from)?;
            }
            _ if prefix => {
                self.copy(word.len());
                self.blanks()?;
                if word == b"time" && self.plain() == b"-p" {
                    self.copy(2);
                }
                return Ok(());
            }
            _ => return self.simple(),
        }
        self.tail = None;
        self.redirections()
    }

    fn simple(&mut self) -> Result<(), Error> {
        let mut words: Vec<Word> = Vec::new();
        let mut end = self.at;
        loop {
            self.blanks()?;
            match self.peek(0) {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') if words.len() == 1 && words[0].gap.is_none() => return self.function(),
                Some(b'(') => return Err(Error::syntax("`(` after a word opens nothing: quote it")),
                Some(b'<' | b'>') if self.peek(1) != Some(b'(') => self.redirection()?,
                Some(_) => {
                    let from = self.at;
                    let before = self.seen.len();
                    let found = self.words()?;
                    if matches!(self.peek(0), Some(b'<' | b'>'))
                        && self.since(before).is_none()
                        && is_descriptor(&self.source[from..self.at])
                    {
                        continue;
                    }
                    if !(words.is_empty() && self.assignment(from, before, &found)?) {
                        words.extend(found);
                    }
                }
            }
            end = self.at;
        }
        self.tail = (!words.is_empty()).then_some(end);
        let effect = builtins::check(&words, self.rules.korn, self.functions > 0)?;
        self.merge(effect);
        Ok(())
    }

    /// Judges the word that began at `from` as an assignment; `before` placeholders were known there.
    fn assignment(&mut self, from: usize, before: usize, words: &[Word]) -> Result<bool, Error> {
        let text = &self.source[from..self.at];
        let length = text.iter().take_while(|b| b.is_ascii_alphanumeric() || **b == b'_').count();
        let (name, rest) = text.split_at(length);
        // A name with a value in it is a word like any other to the shell.
        let operator = if rest.starts_with(b"+=") { 2 } else { 1 };
        let known = self.seen.get(before).is_none_or(|seen| seen.at >= from + length + operator);
        if !is_name(name) || !known {
            return Ok(false);
        }
        if rest.starts_with(b"[") && rest.contains(&b'=') {
            self.effect.evaluates = true;
            return match words.iter().find_map(|word| word.holds) {
                None => Ok(true),
                Some(placeholder) => Err(Error::refused(format!(
                    "`{placeholder}` stands in an assignment to an array, whose index is evaluated: use a plain variable"
                ))),
            };
        }
        if !rest.starts_with(b"=") && !rest.starts_with(b"+=") {
            return Ok(false);
        }
        let holds = Self::alone(words, self.seen.get(before), "is assigned to a variable")?
            .and_then(|word| word.holds);
        if self.peek(0) == Some(b'(') && rest.ends_with(b"=") {
            return self.array().map(|()| true);
        }
        if let Some(placeholder) = holds {
            self.stored(name, placeholder)?;
        }
        Ok(true)
    }

    fn array(&mut self) -> Result<(), Error> {
        const ARRAY: Forbidden =
            Forbidden { place: "in an array, whose indices are evaluated", cure: "use a plain variable" };
        self.copy(1);
        self.forbidden.push(ARRAY);
        loop {
            self.separators()?;
            match self.peek(0) {
                Some(b')') => break,
                None | Some(b';' | b'&' | b'|' | b'<' | b'>' | b'(') => {
                    return Err(Error::syntax("an array has no `)`"));
                }
                Some(_) => drop(self.word()?),
            }
        }
        self.forbidden.pop();
        self.copy(1);
        Ok(())
    }

    pub(super) fn stored(&mut self, name: &[u8], placeholder: Placeholder) -> Result<(), Error> {
        self.effect.stores = true;
        if !builtins::evaluated_variable(name) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        Err(Error::refused(format!(
            "`{placeholder}` is assigned to `{name}`, which shells evaluate: use another name"
        )))
    }

    /// Copies blanks and joined lines.
    pub(super) fn blanks(&mut self) -> Result<(), Error> {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t') => self.copy(1),
                Some(b'\\') if self.peek(1) == Some(b'\n') => self.joined()?,
                _ => return Ok(()),
            }
        }
    }

    /// A backslash at the end of a line: followed between words only, since it can also join operators.
    pub(super) fn joined(&mut self) -> Result<(), Error> {
        if self.at > 0 && !b" \t\n".contains(&self.source[self.at - 1]) {
            return Err(Error::syntax("a backslash joins two lines inside a word: put a blank before it"));
        }
        self.copy(2);
        Ok(())
    }

    /// Copies what may stand between the parts of a compound command.
    pub(super) fn separators(&mut self) -> Result<(), Error> {
        loop {
            self.blanks()?;
            match self.peek(0) {
                Some(b'\n') => self.newline()?,
                Some(b'#') => self.comment()?,
                Some(b';') if self.peek(1) != Some(b';') => self.copy(1),
                _ => return Ok(()),
            }
        }
    }

    /// Copies a comment as it is: a placeholder in it means nothing.
    pub(super) fn comment(&mut self) -> Result<(), Error> {
        if self.substitutions > 0 {
            return Err(Error::refused(
                "a comment inside `$(…)` is read differently by different shells: leave it out",
            ));
        }
        let rest = self.rest();
        self.skip(rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()));
        Ok(())
    }
}

/// Says whether this can be a variable's name.
pub(super) fn is_name(text: &[u8]) -> bool {
    !text.is_empty()
        && !text[0].is_ascii_digit()
        && text.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

/// `2>`, or `{fd}>`.
fn is_descriptor(text: &[u8]) -> bool {
    let named = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).is_some_and(is_name);
    named || text.iter().all(u8::is_ascii_digit)
}
