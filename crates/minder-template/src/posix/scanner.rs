//! The state of a scan of a shell line, and the steps that every part of the grammar takes.
//!
//! [`Scanner`] is one recursive-descent parser. Its methods are in five files: `commands`,
//! `compound`, `expansion`, `arithmetic` and `redirection`. They call each other, as the grammar
//! does: a command contains words, a word contains `$(…)`, and that contains commands. No file
//! imports another one of the five; each imports this one.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, NumberCheck};
use crate::kinds::ShellSet;
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::posix::flow::Flow;
use crate::program_text::ValueCheck;
use crate::shell::NESTING_MAX;

/// The rules by which a line is scanned.
#[derive(Debug, Clone)]
pub(crate) struct ScanRules {
    /// The shells that may run the line.
    pub(crate) kinds: ShellSet,
    /// The user vouches for the values with `--only`: they may stand where they are code.
    pub(crate) trusted: bool,
    /// Values that each job checks may stand in program texts that are understood.
    pub(crate) accepts_plain_values: bool,
    pub(crate) repeat: Repeat,
    /// Words of placeholders for missing columns disappear.
    pub(crate) omits_missing: bool,
    pub(crate) placeholders: Arc<PlaceholderSet>,
    /// The placeholders whose values each job checks to be numbers, with their positions.
    pub(crate) numbers: Vec<NumberCheck>,
}

/// A region of a line in which no placeholder may stand.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forbidden {
    pub(crate) location: &'static str,
    pub(crate) hint: &'static str,
    /// Values that are checked may stand there: by `--only`, or to be numbers.
    pub(crate) allows_checked: bool,
    /// A value directly in the region may stand there if it is a number. This describes the
    /// position.
    pub(crate) number: Option<&'static str>,
}

/// The end of a list of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListEnd {
    /// At the end of the line.
    Line,
    /// At the `)` of a subshell or substitution.
    Parenthesis,
    /// At the `;;` of a `case`.
    CaseBranch,
    /// After this reserved word.
    Word(&'static str),
}

/// A here-document whose text begins at the next line end.
#[derive(Debug)]
pub(crate) struct HereDocument {
    pub(crate) delimiter: Vec<u8>,
    /// `<<-`: the shell removes tabs before the delimiter.
    pub(crate) strips_tabs: bool,
    /// The delimiter is quoted: the shell expands nothing in the text.
    pub(crate) quoted: bool,
    /// A shell or an interpreter reads it as its program.
    pub(crate) is_program: bool,
}

/// The state of a scan.
#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    pub(crate) source: &'a [u8],
    /// The index of the next byte.
    pub(crate) at: usize,
    pub(crate) sites: Vec<PlaceholderSite>,
    /// The words that are repeated for each argument.
    pub(crate) spans: Vec<Range<usize>>,
    /// A placeholder inside a token of the shell, such as a reserved word.
    pub(crate) hidden_placeholder: Option<Placeholder>,
    /// The forbidden regions around the current byte, innermost last.
    pub(crate) forbidden: Vec<Forbidden>,
    /// The number of command substitutions around the current byte.
    pub(crate) substitutions: usize,
    /// The number of function bodies around the current byte.
    pub(crate) functions: usize,
    /// The depth of the recursion.
    pub(crate) nesting: usize,
    pub(crate) here_documents: Vec<HereDocument>,
    pub(crate) flow: Flow,
    /// For each command that reads its input into variables, the names of those. An empty name
    /// stands for an unknown one.
    pub(crate) input_variables: Vec<Vec<Vec<u8>>>,
    /// The variables that were expanded, in the order of the line.
    pub(crate) expanded: Vec<Vec<u8>>,
    /// The placeholders that are the name of a command.
    pub(crate) command_names: Vec<Placeholder>,
    /// The checks of values in program texts.
    pub(crate) checks: Vec<ValueCheck>,
    /// The next command runs whatever the exit status of the previous one.
    pub(crate) runs_always: bool,
    /// The number of sites that are targets of redirections.
    pub(crate) redirected_sites: usize,
    pub(crate) rules: &'a ScanRules,
    /// The number of arguments that the line is scanned for.
    pub(crate) count: usize,
    /// The next word is required: see [`PlaceholderSite::is_required`].
    pub(crate) is_required: bool,
    /// The position for another argument of the last command, if the line ends in a simple command.
    pub(crate) tail: Option<usize>,
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(source: &'a [u8], rules: &'a ScanRules, count: usize) -> Scanner<'a> {
        Scanner {
            source,
            at: 0,
            sites: Vec::new(),
            spans: Vec::new(),
            hidden_placeholder: None,
            forbidden: Vec::new(),
            substitutions: 0,
            functions: 0,
            nesting: 0,
            here_documents: Vec::new(),
            flow: Flow::new(rules.kinds),
            input_variables: Vec::new(),
            expanded: Vec::new(),
            command_names: Vec::new(),
            checks: Vec::new(),
            runs_always: true,
            redirected_sites: 0,
            rules,
            count,
            is_required: false,
            tail: None,
        }
    }

    /// Scans code in a separate string, such as the text between backticks. The whole text
    /// is a forbidden region.
    pub(crate) fn scan_nested(&mut self, text: &[u8], forbidden: Forbidden) -> Result<(), Error> {
        let mut scanner = Scanner::new(text, self.rules, self.count);
        scanner.forbidden.push(forbidden);
        scanner.functions = self.functions;
        scanner.substitutions = self.substitutions + 1;
        scanner.nesting = self.nesting + 1;
        scanner.flow = std::mem::take(&mut self.flow);
        scanner.list(&[], false)?;
        self.hidden_placeholder = self.hidden_placeholder.or(scanner.hidden_placeholder);
        self.flow = scanner.flow;
        self.input_variables.append(&mut scanner.input_variables);
        self.expanded.append(&mut scanner.expanded);
        self.checks.append(&mut scanner.checks);
        Ok(())
    }

    /// Returns the byte at the given distance from the current one.
    pub(crate) fn peek(&self, ahead: usize) -> Option<u8> {
        self.source.get(self.at + ahead).copied()
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        &self.source[self.at..]
    }

    /// Returns the placeholder at the start of `text`, and its length.
    pub(crate) fn placeholder_at(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        self.rules.placeholders.placeholder_at(text)
    }

    /// Advances over `count` bytes of a token, and records a placeholder that begins in them. A
    /// spelling that the user chose can be a part of any token, even of a reserved word.
    pub(crate) fn advance(&mut self, count: usize) {
        let end = self.source.len().min(self.at + count);
        if self.hidden_placeholder.is_none() {
            let mut found = (self.at..end).filter_map(|at| self.placeholder_at(&self.source[at..]));
            self.hidden_placeholder = found.next().map(|(placeholder, _)| placeholder);
        }
        self.at = end;
    }

    /// Advances over `count` bytes in which a placeholder is only text.
    pub(crate) fn skip_text(&mut self, count: usize) {
        self.at = self.source.len().min(self.at + count);
    }

    /// Reads the placeholder at the current byte, if there is one. It is in these quotes.
    pub(crate) fn placeholder(&mut self, quote: Quote) -> Result<Option<Placeholder>, Error> {
        let Some((placeholder, length)) = self.placeholder_at(self.rest()) else {
            return Ok(None);
        };
        let text = placeholder.text();
        let number = self.rules.numbers.iter().find(|check| check.text == text);
        let placeholder = number.map_or(placeholder, |check| placeholder.checked(check.position));
        let is_checked = self.rules.trusted || placeholder.is_number();
        let applies = |region: &&Forbidden| !(region.allows_checked && is_checked);
        // A region that a check does not lift comes first.
        let mut regions: Vec<&Forbidden> = self.forbidden.iter().rev().filter(applies).collect();
        regions.sort_by_key(|region| region.number.is_some());
        if let Some(Forbidden { location, hint, number, .. }) = regions.first() {
            let error = Error::refused(format!("`{placeholder}` stands {location}: {hint}"));
            return Err(match *number {
                // In a substitution, the output of a command stands there, and not the value.
                Some(position) if quote == Quote::Inner => {
                    error.unless_number(NumberCheck { text, position })
                }
                _ => error,
            });
        }
        self.sites.push(PlaceholderSite { at: self.at, length, placeholder, quote, is_required: false });
        self.at += length;
        Ok(Some(placeholder))
    }

    /// Returns the first placeholder that is not a counter, of those after the first `before` sites.
    pub(crate) fn first_value_since(&self, before: usize) -> Option<Placeholder> {
        self.sites[before..].iter().map(|site| site.placeholder).find(|placeholder| !placeholder.is_counter())
    }

    /// Returns the error for a quote or bracket at `at` that is not closed.
    pub(crate) fn unclosed(&self, what: &str, at: usize) -> Error {
        let character = String::from_utf8_lossy(&self.source[..at]).chars().count() + 1;
        Error::syntax(format!("{what} is opened at character {character} of the line and not closed"))
    }

    /// Counts one more level of recursion, and refuses a line that is nested too deep. The caller
    /// decrements `nesting`.
    pub(crate) fn enter_nesting(&mut self) -> Result<(), Error> {
        self.nesting += 1;
        if self.nesting > NESTING_MAX {
            return Err(Error::syntax(format!(
                "the line is nested more than {NESTING_MAX} deep: put it into a script"
            )));
        }
        Ok(())
    }

    /// Returns the bytes up to the next white space or operator. The shell recognizes a reserved
    /// word only in this form, without quotes.
    pub(crate) fn bare_word(&self) -> &'a [u8] {
        let rest = self.rest();
        &rest[..rest.iter().position(|b| b" \t\n;&|<>()".contains(b)).unwrap_or(rest.len())]
    }

    /// Skips spaces, tabs and line continuations.
    pub(crate) fn skip_spaces(&mut self) -> Result<(), Error> {
        loop {
            match self.peek(0) {
                Some(b' ' | b'\t') => self.advance(1),
                Some(b'\\') if self.peek(1) == Some(b'\n') => self.line_continuation()?,
                _ => return Ok(()),
            }
        }
    }

    /// Reads a backslash at the end of a line. It is allowed between words only, since elsewhere it
    /// can join operators too.
    pub(crate) fn line_continuation(&mut self) -> Result<(), Error> {
        if self.at > 0 && !b" \t\n".contains(&self.source[self.at - 1]) {
            return Err(Error::syntax("a backslash joins two lines inside a word: put a space before it"));
        }
        self.advance(2);
        Ok(())
    }

    /// Skips what may separate the parts of a compound command.
    pub(crate) fn skip_separators(&mut self) -> Result<(), Error> {
        loop {
            self.skip_spaces()?;
            match self.peek(0) {
                Some(b'\n') => self.newline()?,
                Some(b'#') => self.comment()?,
                Some(b';') if self.peek(1) != Some(b';') => self.advance(1),
                _ => return Ok(()),
            }
        }
    }

    /// Skips a comment. A placeholder in it has no meaning.
    pub(crate) fn comment(&mut self) -> Result<(), Error> {
        if self.substitutions > 0 {
            return Err(Error::refused(
                "a comment inside `$(…)` is read differently by different shells: leave it out",
            ));
        }
        let rest = self.rest();
        self.skip_text(rest.iter().position(|&b| b == b'\n').unwrap_or(rest.len()));
        Ok(())
    }
}
