//! The scanner of shell lines: the grammar of commands, so far as it decides where a word is and
//! what is quoted.
//!
//! It reads what dash, bash, the Korn shells and zsh read alike, and refuses what they read
//! differently. It finds places and changes nothing. Words and what they are made of are in
//! `expansion`.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::eval_commands;
use crate::eval_commands::Word;
use crate::kinds::ShellSet;
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::posix::builtins::Context;
use crate::posix::flow::Flow;
use crate::posix::names::{is_name, mentions};
use crate::posix::redirection::HereDocument;
use crate::posix::variables::Use;
use crate::posix::{builtins, variables};
use crate::shell::NESTING_MAX;

/// The quotes around a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quote {
    Bare,
    Double,
    Single,
    /// Inside of `$((…))` or `${…}`, where quotes would be read as more than quotes.
    Inner,
}

/// A placeholder as it was found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlaceholderSite {
    pub(crate) at: usize,
    pub(crate) length: usize,
    pub(crate) placeholder: Placeholder,
    pub(crate) quote: Quote,
}

/// How a line is read.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The shells that it may be.
    pub(crate) kinds: ShellSet,
    /// Values are what `--only` says: they may stand where they are code.
    pub(crate) harmless: bool,
    pub(crate) repeat: Repeat,
    pub(crate) lexicon: Arc<PlaceholderSet>,
}

/// What a scan leaves.
#[derive(Debug)]
pub(crate) struct Scanned {
    pub(crate) seen: Vec<PlaceholderSite>,
    /// The words that are repeated for each argument, if those are repeated with what stands around
    /// their placeholders.
    pub(crate) spans: Vec<Range<usize>>,
    /// Where a further word of the last command belongs, if the line ends in a simple command.
    pub(crate) tail: Option<usize>,
    /// The placeholders that are a command's name.
    pub(crate) named: Vec<Placeholder>,
}

/// A place where no placeholder may stand, and the way out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forbidden {
    pub(crate) place: &'static str,
    pub(crate) cure: &'static str,
    /// Values that `--only` lets pass may stand there.
    pub(crate) only: bool,
}

/// How a list of commands ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    Line,
    Parenthesis,
    Branch,
    Word(&'static str),
}

#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) at: usize,
    pub(crate) seen: Vec<PlaceholderSite>,
    pub(crate) spans: Vec<Range<usize>>,
    /// A placeholder in what the shell reads as its own, such as a reserved word.
    hidden: Option<Placeholder>,
    pub(crate) forbidden: Vec<Forbidden>,
    /// How many `$(…)` and function bodies are open, and how deep everything is.
    pub(crate) substitutions: usize,
    pub(crate) functions: usize,
    pub(crate) nesting: usize,
    pub(crate) here_documents: Vec<HereDocument>,
    pub(crate) flow: Flow,
    /// The variables that get what is read from the input.
    reads: Vec<Vec<Vec<u8>>>,
    /// The variables that were expanded, in their order.
    pub(crate) expanded: Vec<Vec<u8>>,
    named: Vec<Placeholder>,
    /// The next command runs, whatever those before it did.
    sequenced: bool,
    pub(crate) redirected: usize,
    pub(crate) rules: &'a Rules,
    /// For how many arguments the line is read.
    pub(crate) count: usize,
    pub(crate) tail: Option<usize>,
}

impl<'a> Scanner<'a> {
    /// Scans a whole line as it is for `count` arguments.
    pub(crate) fn scan(source: &'a [u8], rules: &'a Rules, count: usize) -> Result<Scanned, Error> {
        let mut scanner = Scanner::new(source, rules, count);
        scanner.list(&[], false)?;
        if let Some(placeholder) = scanner.hidden {
            return Err(Error::refused(format!(
                "`{placeholder}` is part of what the shell reads as its own, where no value can stand: choose another \
                 placeholder, or quote that word"
            )));
        }
        scanner.judge()?;
        let Scanner { seen, spans, tail, named, .. } = scanner;
        Ok(Scanned { seen, spans, tail, named })
    }

    /// Judges the line as a whole: what became of values in variables.
    fn judge(&mut self) -> Result<(), Error> {
        if self.rules.harmless {
            return Ok(());
        }
        if self.seen.len() > self.redirected {
            for names in std::mem::take(&mut self.reads) {
                for name in &names {
                    match name.is_empty() {
                        true => self.flow.store_any(),
                        false => self.flow.store(name),
                    }
                }
            }
        }
        if self.flow.runs_parameters {
            if self.flow.builtin_as_argument {
                return Err(Error::refused(
                    "a function runs its arguments as a command, and the name of a builtin that evaluates is among them: write the \
                     command itself",
                ));
            }
            if self.since(0).is_some() && self.flow.hands_over_made_up() {
                return Err(Error::refused(
                    "a function runs its arguments as a command, and one of them is made of values or variables, which may become \
                     `eval`: hand over `{}` by itself, or write the command itself",
                ));
            }
            // Which builtins a value names is looked at job by job.
            self.named = self.seen.iter().map(|seen| seen.placeholder).collect();
        }
        if let Some(name) = self.flow.command_of_the_line() {
            let name = String::from_utf8_lossy(name);
            return Err(Error::refused(format!(
                "`${name}` names a command and is set in the line, and may be `eval`: write the name, or `env \"${name}\"`"
            )));
        }
        if self.flow.expands_prompt && self.since(0).is_some() {
            return Err(Error::refused(
                "a prompt such as `PS4` is expanded once more, where a value could be code: write a prompt without expansions",
            ));
        }
        self.flow.names_filled |= names_filled(self.source);
        if self.flow.is_safe() || self.seen.iter().all(|seen| seen.placeholder.is_number()) {
            return Ok(());
        }
        Err(Error::refused(
            "the line puts a value into a variable and also evaluates variables (arithmetic, `eval`, program text, `${!v}`, an \
             unquoted `$v` in `[ … ]`), where the value would be code: use `expr` or `[ … ]` with `\"$v\"`, or check values with \
             `--only '[0-9]+'`",
        ))
    }

    pub(crate) fn new(source: &'a [u8], rules: &'a Rules, count: usize) -> Scanner<'a> {
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
            flow: Flow::new(rules.kinds),
            reads: Vec::new(),
            expanded: Vec::new(),
            named: Vec::new(),
            sequenced: true,
            redirected: 0,
            rules,
            count,
            tail: None,
        }
    }

    /// Scans the text of an old-style substitution, which only may not hold placeholders.
    pub(crate) fn check_inner(&mut self, inner: &[u8], forbidden: Forbidden) -> Result<(), Error> {
        let mut scanner = Scanner::new(inner, self.rules, self.count);
        scanner.forbidden.push(forbidden);
        scanner.functions = self.functions;
        scanner.substitutions = self.substitutions + 1;
        scanner.nesting = self.nesting + 1;
        scanner.flow = std::mem::take(&mut self.flow);
        scanner.list(&[], false)?;
        self.hidden = self.hidden.or(scanner.hidden);
        self.flow = scanner.flow;
        self.reads.append(&mut scanner.reads);
        self.expanded.append(&mut scanner.expanded);
        Ok(())
    }

    pub(crate) fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// The placeholder at the start of `text`.
    pub(crate) fn lexed(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        self.rules.lexicon.at(text)
    }

    /// Goes over `count` bytes that stay as they are, and notes a placeholder that begins among
    /// them: its text may be a part of any word, also of the shell's own.
    pub(crate) fn copy(&mut self, count: usize) {
        let end = self.source.len().min(self.at + count);
        if self.hidden.is_none() {
            self.hidden = (self.at..end).find_map(|at| self.lexed(&self.source[at..])).map(|found| found.0);
        }
        self.at = end;
    }

    /// Goes over `count` bytes in which a placeholder is none.
    pub(crate) fn skip(&mut self, count: usize) {
        self.at = self.source.len().min(self.at + count);
    }

    /// Takes a placeholder that stands here, in these quotes.
    pub(crate) fn placeholder(&mut self, quote: Quote) -> Result<Option<Placeholder>, Error> {
        let Some((placeholder, length)) = self.lexed(self.rest()) else {
            return Ok(None);
        };
        let harmless = self.rules.harmless || placeholder.is_number();
        let lifted = |place: &&Forbidden| !(place.only && harmless);
        if let Some(Forbidden { place, cure, .. }) = self.forbidden.iter().rev().find(lifted) {
            return Err(Error::refused(format!("`{placeholder}` stands {place}: {cure}")));
        }
        self.seen.push(PlaceholderSite { at: self.at, length, placeholder, quote });
        self.at += length;
        Ok(Some(placeholder))
    }

    /// The first placeholder found since `before` were known.
    pub(crate) fn since(&self, before: usize) -> Option<Placeholder> {
        self.seen[before..].iter().map(|seen| seen.placeholder).find(|placeholder| !placeholder.is_number())
    }

    pub(crate) fn open(&self, what: &str, at: usize) -> Error {
        let place = String::from_utf8_lossy(&self.source[..at]).chars().count() + 1;
        Error::syntax(format!("{what} is opened at character {place} of the line and not closed"))
    }

    pub(crate) fn deeper(&mut self) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(Error::syntax(format!(
                "the line is nested more than {NESTING_MAX} deep: put it into a script"
            )));
        }
        Ok(())
    }

    /// Reads commands up to a closing `)`, as in `$(…)`; the parenthesis is copied.
    pub(crate) fn commands_in_parentheses(&mut self, what: &str, from: usize) -> Result<(), Error> {
        let outer = std::mem::take(&mut self.here_documents);
        match self.list(&[], true)? {
            End::Parenthesis if self.here_documents.is_empty() => {}
            End::Parenthesis => {
                return Err(Error::here_document("it ends behind a `)`: put the `)` on a line of its own"));
            }
            _ => return Err(self.open(what, from)),
        }
        self.here_documents = outer;
        self.copy(1);
        Ok(())
    }

    /// Reads commands until one of the reserved words `stops` stands where a command would.
    pub(crate) fn list(&mut self, stops: &[&'static str], parenthesis: bool) -> Result<End, Error> {
        self.deeper()?;
        let end = loop {
            self.blanks()?;
            match self.peek(0) {
                None if stops.is_empty() && !parenthesis => {
                    if !self.here_documents.is_empty() {
                        return Err(Error::here_document("its text is missing"));
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
                Some(b'\n') => {
                    self.sequenced = true;
                    self.newline()?;
                }
                Some(b'#') => self.comment()?,
                Some(b';') if matches!(self.peek(1), Some(b';' | b'&' | b'|')) => {
                    if !stops.contains(&"esac") {
                        return Err(Error::syntax("`;;` stands outside of `case`"));
                    }
                    let resumed = self.rest().starts_with(b";;&");
                    self.copy(if resumed { 3 } else { 2 });
                    break End::Branch;
                }
                Some(byte @ (b';' | b'&' | b'|')) => {
                    self.sequenced = byte == b';';
                    self.copy(1);
                }
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

    /// The bytes up to the next blank or operator: a reserved word only if it stands so, without
    /// quotes.
    pub(crate) fn plain(&self) -> &'a [u8] {
        let rest = self.rest();
        &rest[..rest.iter().position(|b| b" \t\n;&|<>()".contains(b)).unwrap_or(rest.len())]
    }

    pub(crate) fn command(&mut self) -> Result<(), Error> {
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
                let name = self.plain();
                self.flow.function(name);
                self.copy(name.len());
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
        let mut inputs: Vec<Word> = Vec::new();
        let mut numbers: Vec<Vec<u8>> = Vec::new();
        let surely = self.sequenced && self.nesting == 1;
        let mut end = self.at;
        loop {
            self.blanks()?;
            match self.peek(0) {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') if words.len() == 1 && words[0].gap.is_none() => {
                    self.flow.function(&words[0].text);
                    return self.function();
                }
                Some(b'(') => return Err(Error::syntax("`(` after a word opens nothing: quote it")),
                Some(b'<' | b'>') if self.peek(1) != Some(b'(') => inputs.extend(self.redirection()?),
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
                    self.odd_descriptor(from)?;
                    if !(words.is_empty() && self.assignment(from, before, &found, &mut numbers)?) {
                        words.extend(found);
                    }
                }
            }
            end = self.at;
        }
        self.tail = (!words.is_empty()).then_some(end);
        let surely = surely && words.is_empty() && (self.rest().starts_with(b"&&") || !self.joined_to_next());
        numbers.iter().for_each(|name| self.flow.number(name, surely));
        self.judge_command(&words, &inputs)
    }

    /// Says whether what was read is a part of a pipe, or runs beside the rest of the line.
    fn joined_to_next(&self) -> bool {
        matches!(self.peek(0), Some(b'&' | b'|'))
    }

    /// Judges a simple command, and what it gets as its input with `<<<`.
    fn judge_command(&mut self, words: &[Word], inputs: &[Word]) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let (kinds, harmless) = (self.rules.kinds, self.rules.harmless);
        let context = Context { kinds, function: self.functions > 0, harmless, depth: 0 };
        let found = builtins::check(words, context, &mut self.flow)?;
        let sourced = matches!(words[0].text.as_slice(), b"." | b"source")
            && words.get(1).is_some_and(|file| file.text.starts_with(b"/dev/"));
        if sourced && !harmless {
            // What it reads may be a value, by a pipe or `<<<`.
            return Err(Error::refused(
                "`.` reads `/dev/…` as code: write what it is to run to a file of your own",
            ));
        }
        self.reads.extend(found.reads);
        self.named.extend(found.named);
        for input in inputs {
            let input = if harmless { Word { holds: None, ..input.clone() } } else { input.clone() };
            let reached = eval_commands::check_input(words, &input)?;
            self.flow.evaluate(&reached.names);
        }
        if let Some(code) = found.code {
            const CODE: Forbidden = Forbidden {
                place: "in code that is read later",
                cure: "write `v={}` before it",
                only: false,
            };
            let nested =
                Error::syntax("the code of `eval` or `trap` cannot be followed: write it as a function");
            let code: &[u8] = &code;
            self.check_inner(code, CODE).map_err(|error| match error.kind() {
                crate::error::ErrorKind::Syntax => nested,
                _ => error,
            })?;
        }
        Ok(())
    }

    /// Refuses what bash reads as a variable for a descriptor, whose subscript it evaluates:
    /// `{a[i]}>f`.
    fn odd_descriptor(&self, from: usize) -> Result<(), Error> {
        let redirects = matches!(self.peek(0), Some(b'<' | b'>'));
        let text = &self.source[from..self.at];
        let braces = text.starts_with(b"{") && text.ends_with(b"}") && self.lexed(text).is_none();
        match redirects && braces && text.contains(&b'[') {
            true => Err(Error::refused("`{…[…]}` before `<` or `>` is a variable to bash: write `{name}`")),
            false => Ok(()),
        }
    }

    /// Judges the word that began at `from` as an assignment; `before` placeholders were known
    /// there.
    fn assignment(
        &mut self,
        from: usize,
        before: usize,
        words: &[Word],
        numbers: &mut Vec<Vec<u8>>,
    ) -> Result<bool, Error> {
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
            self.stored(name, None)?;
            self.subscript(name, rest, words);
            return match words.iter().find_map(|word| word.holds).filter(|_| !self.rules.harmless) {
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
            return self.array(name).map(|()| true);
        }
        let value = &rest[operator..];
        match (holds, words) {
            (Some(placeholder), _) => self.stored(name, Some(placeholder))?,
            (None, [word]) if is_number(word, length + operator, value) => {
                self.stored(name, None)?;
                numbers.push(name.to_vec());
            }
            (None, _) => {
                self.stored(name, None)?;
                let reads_again = words
                    .iter()
                    .any(|word| word.gap.is_some() || word.text.iter().any(|b| b"$`".contains(b)));
                if reads_again && variables::assigned(name, self.rules.kinds) == Use::Evaluated {
                    self.flow.evaluate_any();
                }
                let from: Vec<Vec<u8>> = words.iter().flat_map(mentions).collect();
                match words {
                    [word] if word.gap.is_none() && !word.odd => {
                        self.flow.text(name, &word.text[length + operator..], &from)
                    }
                    _ => self.flow.copy(name, &from),
                }
            }
        }
        Ok(true)
    }

    /// Notes `name[…]=`: its subscript is evaluated, unless it is a number.
    fn subscript(&mut self, name: &[u8], rest: &[u8], words: &[Word]) {
        let end = rest.iter().position(|&byte| byte == b']').unwrap_or(rest.len());
        if !rest[1..end].iter().all(u8::is_ascii_digit) || end < 2 {
            self.flow.evaluate_any();
        }
        self.flow.array(name);
        match words.iter().any(|word| word.holds.is_some()) {
            true => self.flow.store(name),
            false => self.flow.copy(name, &words.iter().flat_map(mentions).collect::<Vec<_>>()),
        }
    }

    fn array(&mut self, name: &[u8]) -> Result<(), Error> {
        const ARRAY: Forbidden = Forbidden {
            place: "in an array, whose indices are evaluated",
            cure: "use a plain variable, or check values with `--only REGEXP`",
            only: true,
        };
        self.copy(1);
        self.flow.array(name);
        let before = self.expanded.len();
        self.forbidden.push(ARRAY);
        loop {
            self.separators()?;
            match self.peek(0) {
                Some(b')') => break,
                None | Some(b';' | b'&' | b'|' | b'<' | b'>' | b'(') => {
                    return Err(Error::syntax("an array has no `)`"));
                }
                Some(byte) => {
                    let word = self.word()?;
                    let end = word.text.iter().position(|&byte| byte == b']').unwrap_or(0);
                    if byte == b'[' && !(end > 1 && word.text[1..end].iter().all(u8::is_ascii_digit)) {
                        self.flow.evaluate_any();
                    }
                }
            }
        }
        self.forbidden.pop();
        self.copy(1);
        self.stored(name, None)?;
        let from = self.expanded[before..].to_vec();
        self.flow.copy(name, &from);
        Ok(())
    }

    /// Notes that a variable gets a text; `placeholder`: one with a value.
    pub(crate) fn stored(&mut self, name: &[u8], placeholder: Option<Placeholder>) -> Result<(), Error> {
        let used = variables::assigned(name, self.rules.kinds);
        if placeholder.is_some() {
            self.flow.store(name);
        }
        let shown = String::from_utf8_lossy(name);
        match (used, placeholder) {
            _ if self.rules.harmless => Ok(()),
            (Use::Grammar, _) => Err(Error::refused(format!(
                "`{shown}` changes how the rest of the line is read: use another name"
            ))),
            (Use::Evaluated, Some(placeholder)) => Err(Error::refused(format!(
                "`{placeholder}` is assigned to `{shown}`, which shells evaluate: use another name"
            ))),
            _ => Ok(()),
        }
    }

    /// Copies blanks and joined lines.
    pub(crate) fn blanks(&mut self) -> Result<(), Error> {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t') => self.copy(1),
                Some(b'\\') if self.peek(1) == Some(b'\n') => self.joined()?,
                _ => return Ok(()),
            }
        }
    }

    /// A backslash at the end of a line: followed between words only, since it can also join
    /// operators.
    pub(crate) fn joined(&mut self) -> Result<(), Error> {
        if self.at > 0 && !b" \t\n".contains(&self.source[self.at - 1]) {
            return Err(Error::syntax("a backslash joins two lines inside a word: put a blank before it"));
        }
        self.copy(2);
        Ok(())
    }

    /// Copies what may stand between the parts of a compound command.
    pub(crate) fn separators(&mut self) -> Result<(), Error> {
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
    pub(crate) fn comment(&mut self) -> Result<(), Error> {
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

/// Says whether a word that is assigned is a number: digits, or one arithmetic expansion.
///
/// `start`: where the value begins in the word's text.
fn is_number(word: &Word, start: usize, written: &[u8]) -> bool {
    let plain = word.names.is_empty() && !word.substituted && word.holds.is_none() && !word.odd;
    let inner = written.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(written);
    let digits = word.gap.is_none() && word.text[start..].iter().all(u8::is_ascii_digit);
    plain && (digits || (word.text.len() == start && inner.starts_with(b"$((") && inner.ends_with(b"))")))
}

/// Says whether a line names a variable that shells fill with arguments by themselves.
fn names_filled(line: &[u8]) -> bool {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    line.split(|byte| !name(byte)).any(variables::is_filled)
}

/// `2>`, or `{fd}>`.
fn is_descriptor(text: &[u8]) -> bool {
    let named = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).is_some_and(is_name);
    named || text.iter().all(u8::is_ascii_digit)
}
