//! Turns a command template and one input value into the words that are run.
//!
//! No value becomes shell code: in a shell line the values enter only as positional parameters of
//! `sh -c LINE`, and LINE is fixed when the template is parsed. `gzip "{}"` becomes the line
//! `gzip "${1}"`, started with the value as its own argument. Pasting a quoted value into the line,
//! the simpler way, fails inside double quotes, where quote characters mean nothing.
//!
//! Where a parameter's value would be evaluated again (arithmetic, array subscripts, the program text
//! of `eval`, `sh -c`, `ssh`, `awk`, …), and where the quote state cannot be followed exactly, the template is
//! refused with the way out.
//!
//! The line's own `$1`, `$@`, `$#`, `shift` and `set WORDS` are refused too: with `sh -c` they would
//! be empty, here they would silently pick up or replace values. Inside a function they are the function's
//! own, so there they stay, and placeholders are refused instead.
//!
//! # What this cannot see
//!
//! - A program that evaluates its own arguments or input: a script of the user's that calls `eval`, a
//!   sourced file that calls `shift`, `printf '%s' {} | sh`, `make X={}`, SQL.
//! - A value that begins with `-` may be taken for an option: write `--` before it, or `./{}`.
//! - A command's name that is an unquoted `$v` or `$(…)`: its words are run, as in any shell.
//! - `{2}` in a regular expression such as `[a-z]{2}`: it is the second column. Write `[a-z][a-z]`.
//! - A variable's way through the environment, a file or a pipe into a later evaluation. Within the line,
//!   a value in any variable together with anything that evaluates variables is refused.
//! - Aliases and shell options that the user's environment (`BASH_ENV`, `.zshenv`) sets before the line.
//! - A `/bin/sh` that is a Korn shell evaluates the numbers of `[ {} -eq 1 ]`; under that name it is taken
//!   for a POSIX shell, where they are plain numbers. Called `ksh`, `mksh` or `zsh`, it is known.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;

mod placeholder;
mod words;
mod shell;
mod scan;
mod compound;
mod redirection;
mod expansion;
mod builtins;
mod evaluators;
mod display;

#[cfg(test)]
mod tests;

use minder::os::os_str;
use placeholder::Placeholder;

/// A command with places for values, parsed once and expanded for every job.
#[derive(Debug, Clone)]
pub struct Template {
    form: Form,
}

#[derive(Debug, Clone)]
enum Form {
    Direct(words::Words),
    Shell(shell::Line),
}

/// What one job puts into the template.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The columns of the input line; `{}` is all of them, joined by one blank.
    pub columns: &'a [OsString],
    /// The number of the job, from 1: `{#}`.
    pub number: u64,
    /// The slot that it runs in, from 1: `{%}`.
    pub slot: u32,
}

impl Template {
    /// Parses what stands before `:::`.
    ///
    /// One word with blanks or shell characters is a shell line, run by `shell` (default `/bin/sh`); several words,
    /// or one plain word, are run directly. A template without any placeholder gets the value appended as
    /// a last word.
    ///
    /// # Errors
    ///
    /// When there is no command, when the line cannot be followed exactly (an open quote, an unknown shell), and
    /// when a placeholder stands where its value would become code.
    ///
    /// ```
    /// use minder_cli::template::{Job, Template};
    ///
    /// let template = Template::parse(&["gzip -9 <{} >\"{.}.gz\"".into()], None)?;
    /// let job = Job { columns: &["a b.log".into()], number: 1, slot: 1 };
    /// let argv = template.argv(&job)?;
    /// assert_eq!(argv[1..], ["-c", "gzip -9 <\"$1\" >\"${2}.gz\"", "/bin/sh", "a b.log", "a b"]);
    /// assert_eq!(template.display(&job), "gzip -9 <'a b.log' >\"a b.gz\"");
    /// # Ok::<(), minder_cli::template::Error>(())
    /// ```
    pub fn parse(words: &[OsString], shell: Option<&OsStr>) -> Result<Template, Error> {
        let form = match words {
            [] => return Err(Error::new(ErrorKind::Syntax, "no command is given")),
            [line] if shell::is_line(line.as_encoded_bytes()) => {
                Form::Shell(shell::Line::parse(line, shell.unwrap_or(OsStr::new("/bin/sh")))?)
            }
            _ => Form::Direct(words::Words::parse(words)?),
        };
        Ok(Template { form })
    }

    /// Takes a text with placeholders that is no command, such as a tag. Its only word is the text.
    pub fn text(word: &OsString) -> Template {
        Template { form: Form::Direct(words::Words::text(word)) }
    }

    /// Expands the template for one job: the program first, then its arguments.
    ///
    /// # Errors
    ///
    /// When a placeholder asks for a column that the input has not, and when a value that is used holds a NUL byte.
    pub fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        match &self.form {
            Form::Direct(words) => words.argv(job),
            Form::Shell(line) => line.argv(job),
        }
    }

    /// Says whether a shell runs the command.
    pub fn is_shell(&self) -> bool {
        matches!(self.form, Form::Shell(_))
    }

    /// Says whether every job runs the same program.
    pub fn has_fixed_program(&self) -> bool {
        match &self.form {
            Form::Direct(words) => words.has_fixed_program(),
            Form::Shell(_) => true,
        }
    }

    /// Writes the job's command as a person would type it, control characters escaped; for messages.
    pub fn display(&self, job: &Job<'_>) -> String {
        match &self.form {
            Form::Direct(words) => words.display(job),
            Form::Shell(line) => line.display(job),
        }
    }
}

/// Why a template or a job's values were not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    text: Cow<'static, str>,
}

/// The kinds of [`Error`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The template cannot be followed: an open quote, a missing `fi`, no command.
    Syntax,
    /// A placeholder stands where its value could become code.
    Refused,
    /// The shell is not known to quote as POSIX shells do.
    Shell,
    /// The input has fewer columns than the template asks for.
    Column,
    /// A value holds a NUL byte, which no argument can.
    Nul,
}

impl Error {
    fn new(kind: ErrorKind, text: impl Into<Cow<'static, str>>) -> Error {
        Error { kind, text: text.into() }
    }

    fn refused(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Refused, text)
    }

    fn syntax(text: impl Into<Cow<'static, str>>) -> Error {
        Error::new(ErrorKind::Syntax, text)
    }

    /// Returns what kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for std::io::Error {
    fn from(error: Error) -> std::io::Error {
        std::io::Error::new(std::io::ErrorKind::InvalidInput, error)
    }
}
