//! The scanner of shell lines: the grammar of commands, so far as it decides where a word is and
//! what is quoted.
//!
//! It reads what dash, bash, the Korn shells and zsh read alike, and refuses what they read
//! differently. It finds places and changes nothing. Words and what they are made of are in
//! `expansion`.

use std::ops::Range;

use crate::error::Error;
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::PlaceholderSite;
use crate::posix::scanner::{Rules, Scanner};
use crate::posix::variables;

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

/// Scans a whole line as it is for `count` arguments.
pub(crate) fn scan(source: &[u8], rules: &Rules, count: usize) -> Result<Scanned, Error> {
    let mut scanner = Scanner::new(source, rules, count);
    scanner.list(&[], false)?;
    if let Some(placeholder) = scanner.hidden {
        return Err(Error::refused(format!(
            "`{placeholder}` is part of what the shell reads as its own, where no value can stand: choose \
             another placeholder, or quote that word"
        )));
    }
    scanner.judge()?;
    let Scanner { seen, spans, tail, named, .. } = scanner;
    Ok(Scanned { seen, spans, tail, named })
}

impl Scanner<'_> {
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
}

/// Says whether a line names a variable that shells fill with arguments by themselves.
fn names_filled(line: &[u8]) -> bool {
    let name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    line.split(|byte| !name(byte)).any(variables::is_filled)
}
