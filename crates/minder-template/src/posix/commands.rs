//! The grammar of commands: lists, simple commands and assignments.

use crate::error::Error;
use crate::eval_commands;
use crate::placeholder::expression::Placeholder;
use crate::posix::arithmetic::ArithmeticForm;
use crate::posix::names::{is_name, mentions};
use crate::posix::scanner::{Forbidden, ListEnd, Scanner};
use crate::posix::simple_command::CommandContext;
use crate::posix::variables::Use;
use crate::posix::{shell_text, simple_command, variables};
use crate::word::{Word, only_word};

impl Scanner<'_> {
    /// Reads commands up to and including the closing `)` of a subshell or `$(…)`, which opened at
    /// `from`.
    pub(crate) fn commands_in_parentheses(&mut self, what: &str, from: usize) -> Result<(), Error> {
        let outer = std::mem::take(&mut self.here_documents);
        match self.list(&[], true)? {
            ListEnd::Parenthesis if self.here_documents.is_empty() => {}
            ListEnd::Parenthesis => {
                return Err(Error::here_document("it ends after a `)`: put the `)` on a separate line"));
            }
            _ => return Err(self.unclosed(what, from)),
        }
        self.here_documents = outer;
        self.advance(1);
        Ok(())
    }

    /// Reads commands up to and including one of the reserved words `stops` in the place of a
    /// command. With `parenthesis`, a `)` ends the list too and is not read.
    pub(crate) fn list(&mut self, stops: &[&'static str], parenthesis: bool) -> Result<ListEnd, Error> {
        self.enter_nesting()?;
        let end = loop {
            self.skip_spaces()?;
            match self.peek(0) {
                None if stops.is_empty() && !parenthesis => {
                    if !self.here_documents.is_empty() {
                        return Err(Error::here_document("its text is missing"));
                    }
                    break ListEnd::Line;
                }
                None if parenthesis => break ListEnd::Line,
                None => {
                    return Err(Error::syntax(format!(
                        "the line ends where `{}` is missing",
                        stops[stops.len() - 1]
                    )));
                }
                Some(b')') if parenthesis => break ListEnd::Parenthesis,
                Some(b')') => return Err(Error::syntax("a `)` closes nothing")),
                Some(b'\n') => {
                    self.runs_always = true;
                    self.newline()?;
                }
                Some(b'#') => self.comment()?,
                Some(b';') if matches!(self.peek(1), Some(b';' | b'&' | b'|')) => {
                    if !stops.contains(&"esac") {
                        return Err(Error::syntax("`;;` stands outside of `case`"));
                    }
                    let tests_next_pattern = self.rest().starts_with(b";;&");
                    self.advance(if tests_next_pattern { 3 } else { 2 });
                    break ListEnd::CaseBranch;
                }
                Some(byte @ (b';' | b'&' | b'|')) => {
                    self.runs_always = byte == b';';
                    self.advance(1);
                }
                Some(_) => {
                    let word = self.bare_word();
                    if let Some(&stop) = stops.iter().find(|stop| stop.as_bytes() == word) {
                        self.advance(word.len());
                        break ListEnd::Word(stop);
                    }
                    self.command()?;
                }
            }
        };
        self.nesting -= 1;
        Ok(end)
    }

    /// Reads one command, with the redirections after it.
    pub(crate) fn command(&mut self) -> Result<(), Error> {
        let word = self.bare_word();
        let prefix = matches!(word, b"!" | b"time");
        match word {
            b"if" => self.if_command()?,
            b"while" | b"until" => self.while_loop(word)?,
            b"for" | b"select" => self.for_loop(word)?,
            b"case" => self.case()?,
            b"{" => {
                self.advance(1);
                self.list(&["}"], false)?;
            }
            b"[[" => self.conditional()?,
            b"function" => {
                self.advance(word.len());
                self.skip_spaces()?;
                let name = self.bare_word();
                self.flow.function(name);
                self.advance(name.len());
                self.skip_spaces()?;
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
                self.advance(2);
                self.arithmetic(ArithmeticForm::Command)?;
            }
            b"" if self.peek(0) == Some(b'(') => {
                let from = self.at;
                self.advance(1);
                self.commands_in_parentheses("`(`", from)?;
            }
            _ if prefix => {
                self.advance(word.len());
                self.skip_spaces()?;
                if word == b"time" && self.bare_word() == b"-p" {
                    self.advance(2);
                }
                return Ok(());
            }
            _ => return self.simple(),
        }
        self.tail = None;
        self.redirections()
    }

    /// Reads a simple command: assignments, words and redirections.
    fn simple(&mut self) -> Result<(), Error> {
        let mut words: Vec<Word> = Vec::new();
        let mut inputs: Vec<Word> = Vec::new();
        let mut numbers: Vec<Vec<u8>> = Vec::new();
        let certain = self.runs_always && self.nesting == 1;
        let here_documents = self.here_documents.len();
        let mut end = self.at;
        loop {
            self.skip_spaces()?;
            match self.peek(0) {
                None | Some(b'\n' | b';' | b'&' | b'|' | b')' | b'#') => break,
                Some(b'(') if words.len() == 1 && words[0].first_expansion.is_none() => {
                    self.flow.function(&words[0].text);
                    return self.function();
                }
                Some(b'(') => return Err(Error::syntax("`(` after a word opens nothing: quote it")),
                Some(b'<' | b'>') if self.peek(1) != Some(b'(') => inputs.extend(self.redirection()?),
                Some(_) => {
                    let from = self.at;
                    let before = self.sites.len();
                    let found = self.words()?;
                    if matches!(self.peek(0), Some(b'<' | b'>'))
                        && self.first_value_since(before).is_none()
                        && is_descriptor(&self.source[from..self.at])
                    {
                        continue;
                    }
                    self.refuse_variable_descriptor(from)?;
                    if !(words.is_empty() && self.assignment(from, before, &found, &mut numbers)?) {
                        words.extend(found);
                    }
                }
            }
            end = self.at;
        }
        self.tail = if words.is_empty() { None } else { Some(end) };
        let runs_here = self.rest().starts_with(b"&&") || !self.is_in_pipeline_or_background();
        let certain = certain && words.is_empty() && runs_here;
        for name in &numbers {
            self.flow.number(name, certain);
        }
        self.check_command(&words, &inputs, here_documents)
    }

    /// Returns whether the command is part of a pipeline, or runs in the background.
    fn is_in_pipeline_or_background(&self) -> bool {
        matches!(self.peek(0), Some(b'&' | b'|'))
    }

    /// Checks a simple command and its here-strings (`<<<`). There were `here_documents` before it.
    fn check_command(&mut self, words: &[Word], inputs: &[Word], here_documents: usize) -> Result<(), Error> {
        if words.is_empty() {
            return Ok(());
        }
        let kinds = self.rules.kinds;
        let trusted = self.rules.trusted;
        let accepts_plain_values = self.rules.accepts_plain_values;
        let in_function = self.functions > 0;
        let context = CommandContext { kinds, in_function, trusted, accepts_plain_values, depth: 0 };
        let found = simple_command::check(words, context, &mut self.flow)?;
        let sourced = matches!(words[0].text.as_slice(), b"." | b"source")
            && words.get(1).is_some_and(|file| file.text.starts_with(b"/dev/"));
        if sourced && !trusted {
            // A pipe or `<<<` may feed it a value.
            return Err(Error::refused(
                "`.` reads `/dev/…` as code: write what it is to run to a file of your own",
            ));
        }
        self.input_variables.extend(found.input_variables);
        self.command_names.extend(found.command_name);
        self.checks.extend(found.checks);
        for text in &found.shell_texts {
            self.checks.extend(shell_text::check(text, &self.rules.placeholders)?);
        }
        let is_program =
            self.here_documents.len() > here_documents && eval_commands::read_program(words).is_some();
        for document in self.here_documents.iter_mut().skip(here_documents) {
            document.is_program = is_program;
        }
        for input in inputs {
            let input = if trusted { Word { placeholder: None, ..input.clone() } } else { input.clone() };
            let program_text = eval_commands::check_input(words, &input)?;
            self.flow.evaluate(&program_text.variables);
        }
        if let Some(code) = found.code {
            const CODE: Forbidden = Forbidden {
                location: "in code that is read later",
                hint: "write `v={}` before it",
                allows_checked: false,
                number: None,
            };
            let nested =
                Error::syntax("the code of `eval` or `trap` cannot be followed: write it as a function");
            let code: &[u8] = &code;
            self.scan_nested(code, CODE).map_err(|error| match error.kind() {
                crate::error::ErrorKind::Syntax => nested,
                _ => error,
            })?;
        }
        Ok(())
    }

    /// Refuses `{a[i]}>f`: bash reads it as an array element for the descriptor, and evaluates the
    /// subscript.
    fn refuse_variable_descriptor(&self, from: usize) -> Result<(), Error> {
        let redirects = matches!(self.peek(0), Some(b'<' | b'>'));
        let text = &self.source[from..self.at];
        let braces = text.starts_with(b"{") && text.ends_with(b"}") && self.placeholder_at(text).is_none();
        if redirects && braces && text.contains(&b'[') {
            return Err(Error::refused("`{…[…]}` before `<` or `>` is a variable to bash: write `{name}`"));
        }
        Ok(())
    }

    /// Checks whether the word from `from` to the current byte is an assignment, and records it.
    /// There were `before` sites when the word began.
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
        // With a value in the name, the shell reads an ordinary word.
        let operator = if rest.starts_with(b"+=") { 2 } else { 1 };
        let known = self.sites.get(before).is_none_or(|site| site.at >= from + length + operator);
        if !is_name(name) || !known {
            return Ok(false);
        }
        if rest.starts_with(b"[") && rest.contains(&b'=') {
            self.record_assignment(name, None)?;
            self.subscript(name, rest, words);
            if let Some(placeholder) = words.iter().find_map(|word| word.placeholder)
                && !self.rules.trusted
            {
                return Err(Error::refused(format!(
                    "`{placeholder}` stands in an assignment to an array, whose index is evaluated: use a \
                     plain variable"
                )));
            }
            return Ok(true);
        }
        if !rest.starts_with(b"=") && !rest.starts_with(b"+=") {
            return Ok(false);
        }
        let assigned = only_word(words, self.sites.get(before), "is assigned to a variable")?;
        if self.peek(0) == Some(b'(') && rest.ends_with(b"=") {
            return self.array(name).map(|()| true);
        }
        let value = &rest[operator..];
        self.record_assignment(name, assigned.placeholder)?;
        if let Some(placeholder) = assigned.placeholder {
            if !assigned.nested {
                self.flow.assign_value(name, placeholder);
            }
            return Ok(true);
        }
        let is_number =
            is_number(assigned, length + operator, value) || assigned.is_one_number(length + operator);
        let appends = operator == 2 && !(is_number && self.flow.holds_number(name));
        if assigned.composes_name(length + operator) || appends {
            self.flow.compose(name);
        }
        if is_number {
            numbers.push(name.to_vec());
            return Ok(true);
        }
        let has_expansion = assigned.first_expansion.is_some();
        let is_expanded_later = has_expansion || assigned.text.iter().any(|b| b"$`".contains(b));
        if is_expanded_later && variables::assigned(name, self.rules.kinds) == Use::Evaluated {
            self.flow.evaluate_any();
        }
        let from = mentions(assigned);
        if has_expansion || assigned.special {
            self.flow.copy(name, &from);
        } else {
            self.flow.copy_literal(name, &assigned.text[length + operator..], &from);
        }
        Ok(true)
    }

    /// Records `name[…]=`. The shell evaluates the subscript unless it is a number.
    fn subscript(&mut self, name: &[u8], rest: &[u8], words: &[Word]) {
        let end = rest.iter().position(|&byte| byte == b']').unwrap_or(rest.len());
        if !rest[1..end].iter().all(u8::is_ascii_digit) || end < 2 {
            self.flow.evaluate_any();
        }
        self.flow.array(name);
        if words.iter().any(|word| word.placeholder.is_some()) {
            self.flow.store(name);
        } else {
            self.flow.copy(name, &words.iter().flat_map(mentions).collect::<Vec<_>>());
        }
    }

    /// Reads `(…)` after `name=`: the elements of an array.
    fn array(&mut self, name: &[u8]) -> Result<(), Error> {
        const ARRAY: Forbidden = Forbidden {
            location: "in an array, whose indices are evaluated",
            hint: "use a plain variable, or check values with `--only REGEXP`",
            allows_checked: true,
            number: None,
        };
        self.advance(1);
        self.flow.array(name);
        let before = self.expanded.len();
        let sites = self.sites.len();
        self.forbidden.push(ARRAY);
        loop {
            self.skip_separators()?;
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
        self.advance(1);
        self.record_assignment(name, None)?;
        if self.sites.len() > sites {
            self.flow.compose(name);
        }
        let from = self.expanded[before..].to_vec();
        self.flow.copy(name, &from);
        Ok(())
    }

    /// Records that a variable gets text. It contains a value if `placeholder` is given.
    pub(crate) fn record_assignment(
        &mut self,
        name: &[u8],
        placeholder: Option<Placeholder>,
    ) -> Result<(), Error> {
        let used = variables::assigned(name, self.rules.kinds);
        if placeholder.is_some() {
            self.flow.store(name);
        }
        let shown = String::from_utf8_lossy(name);
        match (used, placeholder) {
            _ if self.rules.trusted => Ok(()),
            (Use::Grammar, _) => Err(Error::refused(format!(
                "`{shown}` changes how the rest of the line is read: use another name"
            ))),
            (Use::Evaluated, Some(placeholder)) => Err(Error::refused(format!(
                "`{placeholder}` is assigned to `{shown}`, which shells evaluate: use another name"
            ))),
            (Use::Run, Some(placeholder)) => Err(Error::refused(format!(
                "`{placeholder}` is assigned to `{shown}`, which programs run as code: write a command \
                 without values, or check values with `--only REGEXP`"
            ))),
            _ => Ok(()),
        }
    }
}

/// Returns whether an assigned word is a number: digits, or one arithmetic expansion. The assigned
/// text begins at `start` in the word's text.
fn is_number(word: &Word, start: usize, written: &[u8]) -> bool {
    let plain = word.variables.is_empty() && !word.substituted && word.placeholder.is_none() && !word.special;
    let inner = written.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(written);
    let digits = word.first_expansion.is_none() && word.text[start..].iter().all(u8::is_ascii_digit);
    plain && (digits || (word.text.len() == start && inner.starts_with(b"$((") && inner.ends_with(b"))")))
}

/// Returns whether this text before a redirection names a descriptor: `2>`, `{fd}>`.
fn is_descriptor(text: &[u8]) -> bool {
    let named = text.strip_prefix(b"{").and_then(|t| t.strip_suffix(b"}")).is_some_and(is_name);
    named || text.iter().all(u8::is_ascii_digit)
}
