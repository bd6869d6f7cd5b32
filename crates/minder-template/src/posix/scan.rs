//! The scan of a whole shell line: finds the sites of placeholders, or refuses the line.
//!
//! The scanner reads the grammar as far as it decides where a word begins and what is quoted. It
//! accepts what dash, bash, the Korn shells and zsh read alike, and refuses what they read
//! differently. It does not change the line.

use std::ops::Range;

use crate::error::{Error, NumberCheck};
use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::PlaceholderSite;
use crate::posix::scanner::{ScanRules, Scanner};
use crate::posix::variables;
use crate::program_text::ValueCheck;

/// The result of scanning a line.
#[derive(Debug)]
pub(crate) struct ScannedLine {
    pub(crate) sites: Vec<PlaceholderSite>,
    /// The words that are repeated for each argument, if [`Repeat::Context`] asks for that.
    ///
    /// [`Repeat::Context`]: crate::options::Repeat::Context
    pub(crate) spans: Vec<Range<usize>>,
    /// The position for another argument of the last command, if the line ends in a simple command.
    pub(crate) tail: Option<usize>,
    /// The placeholders that are the name of a command.
    pub(crate) command_names: Vec<Placeholder>,
    /// The checks of values in program texts.
    pub(crate) checks: Vec<ValueCheck>,
}

/// Scans a whole line for a job with `count` arguments.
pub(crate) fn scan(source: &[u8], rules: &ScanRules, count: usize) -> Result<ScannedLine, Error> {
    let mut scanner = Scanner::new(source, rules, count);
    scanner.list(&[], false)?;
    if let Some(placeholder) = scanner.hidden_placeholder {
        return Err(Error::refused(format!(
            "`{placeholder}` is part of what the shell reads as its own, where no value can stand: choose \
             another placeholder, or quote that word"
        )));
    }
    scanner.check_whole_line()?;
    let Scanner { sites, spans, tail, command_names, checks, .. } = scanner;
    Ok(ScannedLine { sites, spans, tail, command_names, checks })
}

impl Scanner<'_> {
    /// Checks what depends on the whole line: values in variables, and functions that run their
    /// arguments.
    fn check_whole_line(&mut self) -> Result<(), Error> {
        if self.rules.trusted {
            return Ok(());
        }
        // A value that is only the target of a redirection does not get into a pipe.
        if self.sites.len() > self.redirected_sites {
            self.store_input();
        }
        if self.flow.runs_parameters {
            self.check_function_arguments()?;
            // `Line` checks for each job whether a value is the name of a builtin.
            self.command_names = self.sites.iter().map(|site| site.placeholder).collect();
        }
        if let Some(name) = self.flow.command_set_by_line() {
            let name = String::from_utf8_lossy(name);
            return Err(Error::refused(format!(
                "`${name}` names a command and is set in the line, and may be `eval`: write the name, or \
                 `env \"${name}\"`"
            )));
        }
        if self.flow.expands_prompt && self.first_value_since(0).is_some() {
            return Err(Error::refused(
                "a prompt such as `PS4` is expanded once more, where a value could be code: write a prompt \
                 without expansions",
            ));
        }
        self.flow.names_filled |= names_filled(self.source);
        if self.flow.is_safe() || self.sites.iter().all(|site| site.placeholder.is_number()) {
            return Ok(());
        }
        let error = Error::refused(
            "the line puts a value into a variable and also evaluates variables (arithmetic, `eval`, program \
             text, `${!v}`, an unquoted `$v` in `[ … ]`), where the value would be code: use `expr` or \
             `[ … ]` with `\"$v\"`, or check values with `--only '[0-9]+'`",
        );
        let values = self.flow.values_read_as_numbers();
        Err(match values.iter().find(|placeholder| !placeholder.is_checked()) {
            Some(placeholder) => error.unless_number(NumberCheck {
                text: placeholder.text(),
                position: "is assigned to a variable in a line with arithmetic on variables",
            }),
            None => error,
        })
    }

    /// Records that variables which are read from an input may hold a value.
    fn store_input(&mut self) {
        for name in std::mem::take(&mut self.input_variables).iter().flatten() {
            if name.is_empty() {
                self.flow.store_any();
            } else {
                self.flow.store(name);
            }
        }
    }

    /// Checks the arguments of a function that runs them as a command.
    fn check_function_arguments(&self) -> Result<(), Error> {
        if self.flow.builtin_as_argument {
            return Err(Error::refused(
                "a function runs its arguments as a command, and the name of a builtin that evaluates is \
                 among them: write the command itself",
            ));
        }
        if self.first_value_since(0).is_some() && self.flow.passes_composed_argument() {
            return Err(Error::refused(
                "a function runs its arguments as a command, and one of them is made of values or \
                 variables, which may become `eval`: hand over `{}` by itself, or write the command itself",
            ));
        }
        Ok(())
    }
}

/// Returns whether a line names a variable that shells fill with arguments themselves.
fn names_filled(line: &[u8]) -> bool {
    let is_name_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    line.split(|byte| !is_name_byte(byte)).any(variables::is_filled)
}
