//! The scanner of lines for PowerShell (`pwsh`, and `powershell` of Windows): the quotes around
//! each site.
//!
//! A value is in the line as `$env:MINDER_V1`, in double quotes as `${env:MINDER_V1}`. PowerShell
//! reads a variable as a value everywhere: it neither splits the text nor parses it again
//! ("about_Parsing", "about_Quoting_Rules", "about_Environment_Variables", learn.microsoft.com).
//! The scanner refuses sites that are not parsed as a variable, and commands that read text as
//! code. This follows the documentation and was never run: the machines that test minder do not
//! have PowerShell.
//!
//! On Unix, a value that is not UTF-8 is not passed unchanged: .NET decodes the environment as
//! text.

use crate::error::Error;
use crate::eval_commands::{self, Trust};
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::windows::scanned_line::{ScannedLine, SiteContext};
use crate::word::Word;

/// Commands that read text as code.
const CODE: [&str; 17] = [
    "invoke-expression",
    "iex",
    "add-type",
    "invoke-command",
    "icm",
    "start-process",
    "saps",
    "start-job",
    "sajb",
    "start-threadjob",
    "set-alias",
    "sal",
    "new-alias",
    "nal",
    "invoke-history",
    "new-pssession",
    "enter-pssession",
];
/// Parts of words that read text as code.
const CODE_PARTS: [&str; 6] =
    ["[scriptblock]", ".invoke(", ".invokescript(", "expandstring(", "newscriptblock(", "executioncontext"];

pub(crate) fn scan(
    text: &[u8],
    placeholders: &PlaceholderSet,
    repeat: Repeat,
    count: usize,
) -> Result<ScannedLine, Error> {
    // PowerShell accepts typographic quotation marks as quotes.
    let marks = "\u{2018}\u{2019}\u{201a}\u{201b}\u{201c}\u{201d}\u{201e}";
    if String::from_utf8_lossy(text).contains(|letter| marks.contains(letter)) {
        return Err(Error::refused("curly quotes are quotes to PowerShell: write `\"` or `'`"));
    }
    let mut scanner = Scanner {
        text,
        at: 0,
        placeholders,
        repeat,
        count,
        sites: Vec::new(),
        open: Vec::new(),
        words: Vec::new(),
        tail: None,
        code: None,
    };
    scanner.line()?;
    let contexts =
        vec![SiteContext { follows_msvc_rules: false, expanded_twice: false }; scanner.sites.len()];
    if let (Some(code), Some(site)) = (scanner.code, scanner.sites.first()) {
        return Err(Error::refused(format!(
            "`{}` stands in a line with `{code}`, which runs text as code: leave it out, or put it into a \
             script that takes parameters",
            site.placeholder
        )));
    }
    Ok(ScannedLine { sites: scanner.sites, contexts, spans: Vec::new(), tail: scanner.tail })
}

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    placeholders: &'a PlaceholderSet,
    repeat: Repeat,
    count: usize,
    sites: Vec<PlaceholderSite>,
    /// The open brackets: `(`, `{`, and `$` for `$(` and `@(`.
    open: Vec<u8>,
    /// The words of the current statement.
    words: Vec<Word>,
    tail: Option<usize>,
    code: Option<String>,
}

impl<'a> Scanner<'a> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    fn placeholder(&self) -> Option<(Placeholder, usize)> {
        self.placeholders.placeholder_at(&self.text[self.at..])
    }

    fn line(&mut self) -> Result<(), Error> {
        loop {
            if self.placeholder().is_some() {
                self.bare()?;
                continue;
            }
            match self.peek(0) {
                None => break,
                Some(b' ' | b'\t') => self.at += 1,
                Some(b'\n' | b'\r' | b';' | b'|' | b'&') => {
                    let is_call =
                        self.peek(0) == Some(b'&') && self.peek(1) != Some(b'&') && self.words.is_empty();
                    self.statement()?;
                    self.at += if self.peek(1) == self.peek(0) { 2 } else { 1 };
                    if is_call {
                        self.check_callee()?;
                    }
                }
                Some(b'.') if self.words.is_empty() && matches!(self.peek(1), Some(b' ' | b'\t')) => {
                    self.at += 1;
                    self.check_callee()?;
                }
                Some(b'(' | b'{') => self.open_bracket(1)?,
                Some(b'$' | b'@') if matches!(self.peek(1), Some(b'(' | b'{')) => self.open_bracket(2)?,
                Some(b'@') if matches!(self.peek(1), Some(b'"' | b'\'')) => {
                    return Err(Error::refused(
                        "a here-string is not followed here: put the line into a script",
                    ));
                }
                Some(b')' | b'}') => {
                    self.statement()?;
                    if self.open.pop().is_none() {
                        return Err(Error::syntax("a `)` or `}` closes nothing"));
                    }
                    self.at += 1;
                    // The brackets are a word of the statement around them.
                    self.words.push(Word::default());
                }
                Some(b'#') => {
                    self.statement()?;
                    let end = self.text[self.at..].iter().position(|byte| *byte == b'\n');
                    self.at = end.map_or(self.text.len(), |end| self.at + end);
                    self.tail = None;
                }
                Some(b'<') if self.peek(1) == Some(b'#') => {
                    return Err(Error::refused("a comment within a line is not followed here: leave it out"));
                }
                Some(b'<' | b'>' | b',' | b'=') => {
                    self.at += 1;
                    self.words.push(Word::default());
                }
                Some(_) => self.word()?,
            }
        }
        let end = self.at;
        let simple = !self.words.is_empty() && self.open.is_empty();
        self.statement()?;
        match self.open.last() {
            Some(b'{') => Err(Error::syntax("a `{` is not closed")),
            Some(_) => Err(Error::syntax("a `(` is not closed")),
            None => {
                self.tail = simple.then_some(end);
                Ok(())
            }
        }
    }

    /// Refuses a placeholder after the call operators `&` and `.`, which run their operand.
    fn check_callee(&mut self) -> Result<(), Error> {
        while matches!(self.peek(0), Some(b' ' | b'\t')) {
            self.at += 1;
        }
        match self.placeholder() {
            Some((placeholder, _)) => Err(in_command_position(placeholder)),
            None => Ok(()),
        }
    }

    /// Reads an opening bracket of `length` bytes.
    fn open_bracket(&mut self, length: usize) -> Result<(), Error> {
        self.statement()?;
        let mark = match (length, self.peek(length - 1)) {
            (_, Some(b'{')) => b'{',
            (1, _) => b'(',
            _ => b'$',
        };
        if self.open.len() >= crate::shell::NESTING_MAX {
            return Err(Error::syntax("the line is nested too deep: put it into a script"));
        }
        self.open.push(mark);
        self.at += length;
        Ok(())
    }

    /// Reads a placeholder outside of quotes. It must be a whole word, or follow `=` or `[`.
    fn bare(&mut self) -> Result<(), Error> {
        let Some((placeholder, length)) = self.placeholder() else { return Ok(()) };
        self.check_brackets(placeholder)?;
        let ends = |byte: Option<&u8>| byte.is_none_or(|byte| b" \t\r\n;|&(){},".contains(byte));
        let before = self.at.checked_sub(1).and_then(|at| self.text.get(at));
        let opens = |byte: &u8| b"=[".contains(byte);
        if !(ends(before) || before.is_some_and(opens)) || !ends(self.text.get(self.at + length)) {
            return Err(Error::refused(format!(
                "`{placeholder}` is joined to other text, which PowerShell may read as a part of the \
                 variable: put the whole word into double quotes"
            )));
        }
        // In parentheses, a variable is an expression.
        if self.words.is_empty() && self.open.last() != Some(&b'(') {
            return Err(in_command_position(placeholder));
        }
        self.add_site(placeholder, length, Quote::Bare);
        let mut word = Word::default();
        if placeholder.repeats() && self.repeat == Repeat::Joined {
            word.add_values(placeholder, self.count, &mut self.words);
        } else {
            word.add_value(placeholder);
        }
        self.words.push(word);
        Ok(())
    }

    fn add_site(&mut self, placeholder: Placeholder, length: usize, quote: Quote) {
        self.sites.push(PlaceholderSite { at: self.at, length, placeholder, quote, is_required: false });
        self.at += length;
    }

    /// Refuses a placeholder in a script block or a subexpression.
    fn check_brackets(&self, placeholder: Placeholder) -> Result<(), Error> {
        let (location, hint) = match self.open.iter().find(|mark| **mark != b'(') {
            None => return Ok(()),
            Some(b'{') => ("a script block", "write it outside, as an argument or in a variable"),
            Some(_) => ("`$(…)`", "write it outside, in a variable"),
        };
        Err(Error::refused(format!(
            "`{placeholder}` stands in {location}, which may be run elsewhere: {hint}"
        )))
    }

    fn word(&mut self) -> Result<(), Error> {
        let mut word = Word::default();
        let from = self.at;
        loop {
            if self.placeholder().is_some() {
                // Refused, unless the text of this word ends in `[`.
                return self.bare();
            }
            match self.peek(0) {
                None
                | Some(
                    b' ' | b'\t' | b'\r' | b'\n' | b';' | b'|' | b'&' | b'(' | b')' | b'{' | b'}' | b',',
                ) => break,
                Some(b'=' | b'<' | b'>') => break,
                Some(b'$' | b'@') if matches!(self.peek(1), Some(b'(' | b'{')) => break,
                Some(b'"') => self.double(&mut word)?,
                Some(b'\'') => self.single(&mut word)?,
                Some(b'`') => {
                    self.at += 1;
                    if let Some((placeholder, _)) = self.placeholder() {
                        return Err(after_backtick(placeholder));
                    }
                    word.text.extend(self.peek(0));
                    self.at += usize::from(self.peek(0).is_some());
                }
                Some(byte) => {
                    word.text.push(byte);
                    self.at += 1;
                }
            }
        }
        if self.text[from..self.at].starts_with(b"--%") {
            return Err(Error::refused("`--%` changes how the rest of the line is read: leave it out"));
        }
        let lower = String::from_utf8_lossy(&self.text[from..self.at]).to_ascii_lowercase();
        if lower.contains("env:minder_v") {
            return Err(Error::refused(
                "`$env:MINDER_V…` would be minder's own variable: write `{}` or `{1}` for the value",
            ));
        }
        let known = CODE.iter().find(|code| lower == **code || lower.ends_with(&format!("\\{code}")));
        let rest = String::from_utf8_lossy(&self.text[from..]).to_ascii_lowercase();
        let part = CODE_PARTS.iter().find(|part| rest.find(*part).is_some_and(|place| place < lower.len()));
        if let Some(code) = known.or(part) {
            self.code.get_or_insert_with(|| (*code).to_owned());
        }
        self.words.push(word);
        Ok(())
    }

    fn double(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.at += 1;
        loop {
            if let Some((placeholder, length)) = self.placeholder() {
                self.check_brackets(placeholder)?;
                if self.text[..self.at].ends_with(b"$") {
                    return Err(Error::refused(format!(
                        "`${placeholder}` is an expansion to the shell: write `` `${placeholder} `` for a \
                         dollar sign before the value"
                    )));
                }
                self.add_site(placeholder, length, Quote::Double);
                word.add_value(placeholder);
                continue;
            }
            match self.peek(0) {
                None => return Err(self.unclosed("a double quote", from)),
                Some(b'"') if self.peek(1) == Some(b'"') => {
                    word.text.push(b'"');
                    self.at += 2;
                }
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'`') => {
                    self.at += 1;
                    if let Some((placeholder, _)) = self.placeholder() {
                        return Err(after_backtick(placeholder));
                    }
                    self.at += usize::from(self.peek(0).is_some());
                }
                Some(b'$') if self.peek(1) == Some(b'(') => {
                    return Err(Error::refused(
                        "`$(…)` in double quotes is not followed here: put it into a variable before",
                    ));
                }
                Some(byte) => {
                    word.text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn single(&mut self, word: &mut Word) -> Result<(), Error> {
        let from = self.at;
        self.at += 1;
        loop {
            if let Some((placeholder, _)) = self.placeholder() {
                return Err(Error::refused(format!(
                    "`{placeholder}` stands in single quotes, where PowerShell reads no variable: write \
                     double quotes"
                )));
            }
            match self.peek(0) {
                None => return Err(self.unclosed("a single quote", from)),
                Some(b'\'') if self.peek(1) == Some(b'\'') => {
                    word.text.push(b'\'');
                    self.at += 2;
                }
                Some(b'\'') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(byte) => {
                    word.text.push(byte);
                    self.at += 1;
                }
            }
        }
    }

    fn unclosed(&self, what: &str, from: usize) -> Error {
        let character = String::from_utf8_lossy(&self.text[..from]).chars().count() + 1;
        Error::syntax(format!("{what} is opened at character {character} of the line and not closed"))
    }

    /// Checks the statement that ended.
    fn statement(&mut self) -> Result<(), Error> {
        let mut words = std::mem::take(&mut self.words);
        if let Some(first) = words.first_mut() {
            first.text.make_ascii_lowercase();
            for byte in first.text.iter_mut().filter(|byte| **byte == b'\\') {
                *byte = b'/';
            }
            eval_commands::check_programs(&words, Trust::Nothing, true)?;
        }
        Ok(())
    }
}

fn in_command_position(placeholder: Placeholder) -> Error {
    Error::refused(format!(
        "`{placeholder}` stands where PowerShell looks for a command: give the command as several words, \
         without a shell"
    ))
}

fn after_backtick(placeholder: Placeholder) -> Error {
    Error::refused(format!("`{placeholder}` follows a backtick: leave it out"))
}
