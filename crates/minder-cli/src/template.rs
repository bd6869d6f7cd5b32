//! Turns a command template and the values of one job into the words that are run.
//!
//! No value becomes shell code: in a shell line the values enter only as positional parameters of
//! `sh -c LINE`, and LINE is fixed by the template and by the number of values. `gzip "{}"` becomes the line
//! `gzip "${1}"`, started with the value as its own argument. Pasting a quoted value into the line,
//! the simpler way, fails inside double quotes, where quote characters mean nothing.
//!
//! cmd.exe and PowerShell have no such parameters: there the line refers to variables of the environment, `"%MINDER_V1%"` and
//! `$env:MINDER_V1`; `cmd` and `powershell` say why that is safe and where it would not be.
//!
//! # What is promised, what is a courtesy, what is out of reach
//!
//! **Promised**: the shell that minder starts never evaluates a value. This holds for dash, bash (as `sh`, too), busybox, zsh,
//! ksh93, mksh and yash; cmd and PowerShell have scanners of their own. The scanner knows which places are safe: `builtins` says
//! for each shell which builtins take any text, `variables` what may be assigned, `expansion` which forms of `${…}` read a variable
//! as text, `redirection` which operators all shells read alike, and `flow` follows variables by name. What is not known is
//! refused, and so is every other shell, by name. `sh` is held to the rules of the shell behind its link (`kinds`), or to those of
//! all. yash replaces an argument that is no text of its locale by an empty one, so it gets ASCII only: a value is never altered.
//!
//! **Refused as a courtesy**: a place that a known program reads as code (`programs`, `evaluators`). No such list is whole.
//!
//! **Out of reach** is what the section below lists.
//!
//! With `--only` ([`Demand`]) the user says what values are: they may then stand where they would be refused, except where a
//! place cannot be followed at all.
//!
//! The line's own `$1`, `$@`, `$#`, `shift` and `set WORDS` are refused too: with `sh -c` they would
//! be empty, here they would silently pick up or replace values. Inside a function they are the function's
//! own, so there they stay, and placeholders are refused instead.
//!
//! A job may have several values. A placeholder without a number stands for each of them: outside of quotes as a word of its own,
//! `"$1" "$2"`, inside of quotes with blanks between, `"${1} ${2}"`. Words then move, and what was an option's argument may become a
//! program's text, or a command: `awk -v x={} f`, `v={} cmd`, `env V={} cmd`. So a template is read anew for each number of values up
//! to four, and refused for those where a value could become code. With more than four it is as with four.
//!
//! The user may choose the texts of placeholders, letters too. One that begins within a reserved word, a variable's name or anything
//! else that the shell reads as its own is refused, and so is one directly behind a `$` or a backslash.
//!
//! # What this cannot see
//!
//! - A program that evaluates its own arguments or input: a script of the user's that calls `eval`, a
//!   sourced file that calls `shift`, `printf '%s' {} | sh`, `make X={}`, SQL.
//! - A program of the user's own that runs its arguments: with several values, `my-env V={} cmd` runs the second. The programs
//!   that do so and are known are in `evaluators`.
//! - A value that begins with `-` may be taken for an option: write `--` before it, or `./{}`; or `--no-dash-values`.
//! - A command's name that is a variable of the environment, `$CC`: it may be `eval`. One that the line itself sets is refused.
//! - `{2}` in a regular expression such as `[a-z]{2}`: it is the second column. Write `[a-z][a-z]`.
//! - A value's way through the environment, a file or a pipe into a later evaluation: `eval "$(cat file)"`.
//! - What a program prints, where arithmetic reads it: `: {}; n=$(prog); echo $((n))` evaluates the value
//!   if `prog` prints `_`.
//! - Arithmetic that goes by a variable of the environment to one of the line: `X=v`, `echo $((X))`; refused beside stored values.
//! - A batch file that takes the quotes off its arguments (`%~1`), or a variable of the user's that holds a shell's name, in a
//!   line for cmd.
//! - Delayed expansion that the registry switches on for every cmd: beside a pipe, `!x!` in a value is then a variable.
//! - Aliases and shell options that the user's environment (`BASH_ENV`, `.zshenv`) sets before the line.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::sync::{Arc, OnceLock};

mod kinds;
mod lexicon;
mod placeholder;
mod cut;
mod path;
mod words;
mod written;
mod dialect;
mod shell;
mod environment;
mod cmd;
mod powershell;
mod scan;
mod compound;
mod redirection;
mod expansion;
mod variables;
mod flow;
mod builtins;
mod programs;
mod evaluators;
mod display;
mod size;
mod demand;

#[cfg(test)]
mod tests;

use placeholder::{Placeholder, Source};

pub use demand::Demand;
pub(crate) use dialect::is_posix as is_posix_shell;
pub use lexicon::{Builtin, Lexicon};
pub use size::{Lengths, Size};

/// A command with places for values, parsed once and expanded for every job.
#[derive(Debug, Clone)]
pub struct Template {
    body: Body,
    demand: Demand,
    lenient: bool,
}

#[derive(Debug, Clone)]
enum Body {
    Direct(words::Words),
    Shell(shell::Line),
    /// A line whose values come by the environment.
    Environment(environment::Line),
    /// The job's arguments are the line, for this shell.
    Script(dialect::Shell),
}

/// What is started for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// The program, then its arguments.
    pub words: Vec<OsString>,
    /// The end of the command line as it is, for `cmd.exe`: see [`minder::Command::raw_tail`].
    pub tail: Option<OsString>,
    /// The variables that the line refers to.
    pub variables: Vec<(String, OsString)>,
}

impl Call {
    /// What runs this line as it is, which the user answers for; by the system's shell if none is given.
    ///
    /// # Errors
    ///
    /// When it has more than one line, or is too long, for `cmd.exe`.
    pub fn of_line(shell: Option<&OsStr>, line: &OsStr) -> Result<Call, Error> {
        dialect::shell(shell).call(line)
    }

    /// The same as a command of the library.
    pub fn command(&self) -> minder::Command {
        let mut words = self.words.iter();
        let mut command = minder::Command::new(words.next().map_or(OsStr::new(""), OsString::as_os_str));
        command.args(words);
        if let Some(tail) = &self.tail {
            command.raw_tail(tail);
        }
        for (name, value) in &self.variables {
            command.env(name, value);
        }
        command
    }
}

/// How a template is read.
#[derive(Debug, Clone)]
pub struct Options {
    /// The placeholders.
    pub lexicon: Lexicon,
    /// The shell of shell lines; [the system's](minder_os::system_paths::system_shell) if there is none.
    pub shell: Option<OsString>,
    /// What is a shell line.
    pub form: Form,
    /// What is repeated when a job has several arguments.
    pub repeat: Repeat,
    /// The words are run as they stand, whatever characters they hold.
    pub quote: bool,
    /// A column that the input has not is empty; otherwise it is an error.
    pub missing_is_empty: bool,
    /// A template without any placeholder gets the value as a last word.
    pub append: bool,
    /// What values must be.
    pub demand: Demand,
}

/// What is a shell line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// One word with blanks or shell characters; other words are run directly.
    #[default]
    Auto,
    /// All words, joined by one blank.
    Line,
}

/// What is repeated when a job has several arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeat {
    /// The value: `a{}b` is `ax yb`.
    #[default]
    Joined,
    /// The word that holds it, with its quotes: `a{}b` is `axb ayb`.
    Context,
}

/// What one job puts into the template.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The arguments of the job: the columns of one or more input lines. A placeholder without a number stands for each of
    /// them, blanks between words.
    pub columns: &'a [OsString],
    /// The number of the job, from 1: `{#}`.
    pub number: u64,
    /// The slot that it runs in, from 1: `{%}`.
    pub slot: u32,
    /// How many jobs there are, if that is known: `{##}`, and the width of `{0#}`.
    pub total: Option<u64>,
    /// How many slots there are, if that is known: the width of `{0%}`.
    pub slots: Option<u32>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            lexicon: Lexicon::default(),
            shell: None,
            form: Form::Auto,
            repeat: Repeat::Joined,
            quote: false,
            missing_is_empty: false,
            append: true,
            demand: Demand::default(),
        }
    }
}

impl Default for Job<'_> {
    fn default() -> Self {
        Job { columns: &[], number: 1, slot: 1, total: None, slots: None }
    }
}

impl Template {
    /// Parses what stands before `:::`.
    ///
    /// One word with blanks or shell characters is a shell line; several words, or one plain word, are run directly. A template
    /// without any placeholder gets the value appended as a last word. [`Options`] change both.
    ///
    /// # Errors
    ///
    /// When there is no command, when the line cannot be followed exactly (an open quote, an unknown shell), and
    /// when a placeholder stands where its value would become code.
    ///
    /// ```
    /// use minder_cli::template::{Job, Options, Template};
    ///
    /// let options = Options { shell: Some("/bin/sh".into()), ..Options::default() };
    /// let template = Template::parse(&["gzip -9 <{} >\"{.}.gz\"".into()], &options)?;
    /// let job = Job { columns: &["a b.log".into()], ..Job::default() };
    /// let argv = template.argv(&job)?;
    /// assert_eq!(argv[1..], ["-c", "gzip -9 <\"$1\" >\"${2}.gz\"", "/bin/sh", "a b.log", "a b"]);
    /// assert_eq!(template.display(&job), "gzip -9 <'a b.log' >\"a b.gz\"");
    /// # Ok::<(), minder_cli::template::Error>(())
    /// ```
    pub fn parse(words: &[OsString], options: &Options) -> Result<Template, Error> {
        let body = match words {
            [] => return Err(Error::new(ErrorKind::Syntax, "no command is given")),
            _ if options.quote => Body::Direct(words::Words::parse(words, options)?),
            _ if options.form == Form::Line => line(&words.join(OsStr::new(" ")), options)?,
            [word] if is_line(word, options) => line(word, options)?,
            _ => Body::Direct(words::Words::parse(words, options)?),
        };
        Ok(Template { body, demand: options.demand.clone(), lenient: options.missing_is_empty })
    }

    /// A template without a command: each job's arguments are a line for the shell, as whoever asks for this knows.
    pub fn script(shell: Option<&OsStr>) -> Template {
        Template { body: Body::Script(dialect::shell(shell)), demand: Demand::default(), lenient: false }
    }

    /// Takes a text with placeholders that is no command, such as a tag. Its only word is the text, several values joined by
    /// a blank.
    pub fn text(word: &OsString, options: &Options) -> Template {
        Template {
            body: Body::Direct(words::Words::text(word, options)),
            demand: Demand::default(),
            lenient: options.missing_is_empty,
        }
    }

    /// Expands the template for one job: the program first, then its arguments.
    ///
    /// A shell line depends on the number of the job's arguments, never on what they are. One for `cmd.exe` or PowerShell also
    /// depends on which are empty; it is the last word here, and its values are in the variables of [`call`](Self::call).
    ///
    /// # Errors
    ///
    /// When a placeholder asks for a column that the input has not, or for the number of jobs and the job does not say it; when
    /// with so many arguments a value would become code, or one value is needed; when a value that is used holds a NUL byte, or
    /// what the shell cannot be handed.
    pub fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let Call { mut words, tail, .. } = self.call(job)?;
        words.extend(tail);
        Ok(words)
    }

    /// Expands the template for one job: all that it is started with.
    ///
    /// # Errors
    ///
    /// As [`argv`](Self::argv).
    pub fn call(&self, job: &Job<'_>) -> Result<Call, Error> {
        if !self.demand.is_empty() {
            self.demand.check(job, &mut self.placeholders(), self.lenient)?;
        }
        let words = match &self.body {
            Body::Direct(words) => words.argv(job)?,
            Body::Shell(line) => line.argv(job)?,
            Body::Environment(line) => return line.call(job),
            Body::Script(shell) => return script(shell, job),
        };
        Ok(Call { words, ..Call::default() })
    }

    /// The size of a job without any argument, to which arguments are added.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        self.reckon(None, &mut size);
        size
    }

    /// The bytes that the words of [`argv`](Self::argv) take at most, each with the byte that ends it.
    pub fn size_of(&self, columns: &[OsString]) -> usize {
        let mut size = self.size();
        for column in columns {
            size.add(self, column);
        }
        size.bytes()
    }

    /// The bytes of a job without any argument; with [`cost`](Self::cost), a plain reckoning in place of a [`Size`].
    pub fn base(&self) -> usize {
        self.size().bytes()
    }

    /// What one more argument adds at most, whichever column it is. Where a word is repeated and also asks for a column by its number,
    /// that column counts once.
    pub fn cost(&self, argument: &OsStr) -> usize {
        let mut cost = Size::default();
        self.reckon(Some((size::ANY, argument)), &mut cost);
        self.size().each + cost.sum()
    }

    fn reckon(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        match &self.body {
            Body::Direct(words) => words.reckon(argument, size),
            Body::Shell(line) => line.reckon(argument, size),
            Body::Environment(line) => line.reckon(argument, size),
            Body::Script(_) => (),
        }
    }

    /// Says whether the template asks for the number of jobs, [`Job::total`].
    pub fn needs_total(&self) -> bool {
        let counts = |source| matches!(source, Source::Total | Source::PaddedNumber);
        self.placeholders().any(|placeholder| placeholder.any(&counts))
    }

    /// Whether there is any placeholder.
    pub fn has_placeholders(&self) -> bool {
        self.placeholders().next().is_some()
    }

    /// How long a job's command is as it is written.
    pub fn lengths(&self) -> Lengths {
        match &self.body {
            Body::Direct(words) => words.lengths(),
            Body::Shell(line) => line.lengths(),
            Body::Environment(line) => line.lengths(),
            Body::Script(_) => Lengths { times: 1, each: 1, once: 0 },
        }
    }

    /// How many arguments a job may have at most: a shell line refers to each, and has an end.
    pub fn arguments_max(&self) -> usize {
        match &self.body {
            Body::Shell(line) => line.arguments_max(),
            Body::Environment(line) => line.arguments_max(),
            Body::Direct(_) | Body::Script(_) => usize::MAX,
        }
    }

    /// How many bytes a job's line may have with its values, where its shell takes less than the system.
    pub fn bytes_max(&self) -> Option<usize> {
        match &self.body {
            Body::Environment(line) => line.bytes_max(),
            Body::Script(shell) => shell.bytes_max(),
            _ => None,
        }
    }

    /// The largest column number that the template asks for, `{3}`; 0 if there is none. `{-3}` does not count.
    pub fn max_column(&self) -> u32 {
        self.placeholders().map(Placeholder::max_column).max().unwrap_or(0)
    }

    fn placeholders(&self) -> Box<dyn Iterator<Item = Placeholder> + '_> {
        match &self.body {
            Body::Direct(words) => Box::new(words.placeholders()),
            Body::Shell(line) => Box::new(line.placeholders()),
            Body::Environment(line) => Box::new(line.placeholders()),
            Body::Script(_) => Box::new(std::iter::empty()),
        }
    }

    /// Says whether a shell runs the command.
    pub fn is_shell(&self) -> bool {
        !matches!(self.body, Body::Direct(_))
    }

    /// Says whether every job runs the same program.
    pub fn has_fixed_program(&self) -> bool {
        match &self.body {
            Body::Direct(words) => words.has_fixed_program(),
            _ => true,
        }
    }

    /// The program that every job runs, if it is the same one.
    pub fn program(&self) -> Option<OsString> {
        match &self.body {
            Body::Direct(words) => words.program(),
            Body::Shell(line) => line.head().into_iter().next(),
            Body::Environment(line) => line.head().into_iter().next(),
            Body::Script(shell) => shell.head().into_iter().next(),
        }
    }

    /// Writes the job's command on one line, control characters escaped; for messages.
    pub fn display_escaped(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        display::text(self.display(job).as_bytes(), &mut out);
        out
    }

    /// Writes the job's command as a person would type it: pasted into any POSIX shell, it does the same. A line end in a value or
    /// in the template is one in what is written. (Lines for cmd and PowerShell are for reading, with all control characters escaped.)
    pub fn display(&self, job: &Job<'_>) -> String {
        match &self.body {
            Body::Direct(words) => words.display(job),
            Body::Shell(line) => line.display(job),
            Body::Environment(line) => line.display(job),
            Body::Script(_) => display::line(job.columns.join(OsStr::new(" ")).into_encoded_bytes()),
        }
    }
}

/// What a template's look at itself gave, by the number of arguments.
///
/// With several arguments, words move: what was an option's argument with one may be a program's text with two. Equal words that
/// follow each other mean nothing new from the fourth on: no option takes more than one.
#[derive(Debug, Clone, Default)]
struct Checks(Arc<[OnceLock<Result<(), Error>>; COUNTS]>);

const COUNTS: usize = 5;

impl Checks {
    /// What `check` says for so many arguments. One argument was checked when the template was parsed.
    fn of(&self, count: usize, check: impl FnOnce(usize) -> Result<(), Error>) -> Result<(), Error> {
        match count {
            1 => Ok(()),
            _ => {
                let count = count.min(COUNTS - 1);
                self.0[count].get_or_init(|| check(count)).clone()
            }
        }
    }
}

/// Whether a template's only word is a shell line.
fn is_line(word: &OsStr, options: &Options) -> bool {
    let shell = dialect::shell(options.shell.as_deref());
    dialect::is_line(word.as_encoded_bytes(), &options.lexicon, shell.dialect)
}

fn line(line: &OsStr, options: &Options) -> Result<Body, Error> {
    let shell = dialect::shell(options.shell.as_deref());
    shell.check()?;
    Ok(match shell.dialect {
        dialect::Dialect::Posix => Body::Shell(shell::Line::parse(line, options, &shell)?),
        _ => Body::Environment(environment::Line::parse(line, options, shell)?),
    })
}

fn script(shell: &dialect::Shell, job: &Job<'_>) -> Result<Call, Error> {
    if job.columns.iter().any(|column| column.as_encoded_bytes().contains(&0)) {
        let text = format!("the line of job {} holds a NUL byte, which no argument can", job.number);
        return Err(Error::new(ErrorKind::Nul, text));
    }
    shell.call(&job.columns.join(OsStr::new(" ")))
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
    /// The shell cannot be handed this value, or so many.
    Value,
    /// A text cannot be a placeholder.
    Placeholder,
    /// A placeholder asks for the number of jobs, which is not known.
    Total,
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
