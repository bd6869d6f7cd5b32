//! The state of a scan of a shell line, and the steps that every part of the grammar takes.
//!
//! [`Scanner`] is one recursive-descent parser. Its methods are in four files: `commands`,
//! `compound`, `expansion` and `redirection`. They call each other, as the grammar does: a command
//! contains words, a word contains `$(…)`, and that contains commands. No file imports another one
//! of the four; each imports this one.

use std::ops::Range;
use std::sync::Arc;

use crate::error::Error;
use crate::kinds::ShellSet;
use crate::options::Repeat;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::posix::flow::Flow;
use crate::shell::NESTING_MAX;

/// How a line is read.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// The shells that it may be.
    pub(crate) kinds: ShellSet,
    /// Values are what `--only` says: they may stand where they are code.
    pub(crate) harmless: bool,
    pub(crate) repeat: Repeat,
    pub(crate) placeholders: Arc<PlaceholderSet>,
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

/// A here-document whose text is still to come.
#[derive(Debug)]
pub(crate) struct HereDocument {
    pub(crate) end: Vec<u8>,
    pub(crate) tabs: bool,
    pub(crate) quoted: bool,
}

#[derive(Debug)]
pub(crate) struct Scanner<'a> {
    pub(crate) source: &'a [u8],
    pub(crate) at: usize,
    pub(crate) seen: Vec<PlaceholderSite>,
    pub(crate) spans: Vec<Range<usize>>,
    /// A placeholder in what the shell reads as its own, such as a reserved word.
    pub(crate) hidden: Option<Placeholder>,
    pub(crate) forbidden: Vec<Forbidden>,
    /// How many `$(…)` and function bodies are open, and how deep everything is.
    pub(crate) substitutions: usize,
    pub(crate) functions: usize,
    pub(crate) nesting: usize,
    pub(crate) here_documents: Vec<HereDocument>,
    pub(crate) flow: Flow,
    /// The variables that get what is read from the input.
    pub(crate) reads: Vec<Vec<Vec<u8>>>,
    /// The variables that were expanded, in their order.
    pub(crate) expanded: Vec<Vec<u8>>,
    pub(crate) named: Vec<Placeholder>,
    /// The next command runs, whatever those before it did.
    pub(crate) sequenced: bool,
    pub(crate) redirected: usize,
    pub(crate) rules: &'a Rules,
    /// For how many arguments the line is read.
    pub(crate) count: usize,
    pub(crate) tail: Option<usize>,
}

impl<'a> Scanner<'a> {
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
    pub(crate) fn placeholder_at(&self, text: &[u8]) -> Option<(Placeholder, usize)> {
        self.rules.placeholders.placeholder_at(text)
    }

    /// Goes over `count` bytes that stay as they are, and notes a placeholder that begins among
    /// them: its text may be a part of any word, also of the shell's own.
    pub(crate) fn copy(&mut self, count: usize) {
        let end = self.source.len().min(self.at + count);
        if self.hidden.is_none() {
            self.hidden =
                (self.at..end).find_map(|at| self.placeholder_at(&self.source[at..])).map(|found| found.0);
        }
        self.at = end;
    }

    /// Goes over `count` bytes in which a placeholder is none.
    pub(crate) fn skip(&mut self, count: usize) {
        self.at = self.source.len().min(self.at + count);
    }

    /// Takes a placeholder that stands here, in these quotes.
    pub(crate) fn placeholder(&mut self, quote: Quote) -> Result<Option<Placeholder>, Error> {
        let Some((placeholder, length)) = self.placeholder_at(self.rest()) else {
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

    /// The bytes up to the next blank or operator: a reserved word only if it stands so, without
    /// quotes.
    pub(crate) fn plain(&self) -> &'a [u8] {
        let rest = self.rest();
        &rest[..rest.iter().position(|b| b" \t\n;&|<>()".contains(b)).unwrap_or(rest.len())]
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
