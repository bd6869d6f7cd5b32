//! Lists of commands, simple commands and assignments of a shell line.

use crate::error::Error;
use crate::eval_commands;
use crate::placeholder::expression::Placeholder;
use crate::posix::names::{is_name, mentions};
use crate::posix::scanner::{End, Forbidden, Scanner};
use crate::posix::simple_command::Context;
use crate::posix::variables::Use;
use crate::posix::{simple_command, variables};
use crate::word::{Word, single};

impl Scanner<'_> {
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
        let found = simple_command::check(words, context, &mut self.flow)?;
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
        let braces = text.starts_with(b"{") && text.ends_with(b"}") && self.placeholder_at(text).is_none();
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
        let holds =
            single(words, self.seen.get(before), "is assigned to a variable")?.and_then(|word| word.holds);
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

/// `2>`, or `{fd}>`.
fn is_descriptor(text: &[u8]) -> bool {
    let named = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).is_some_and(is_name);
    named || text.iter().all(u8::is_ascii_digit)
}
