//! A parsed command template.

use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind};
use crate::job::{Invocation, Job};
use crate::options::{Form, Options};
use crate::placeholder::expression::{Placeholder, Source};
use crate::posix::line;
use crate::size::{self, CommandLength, Size};
use crate::value_rules::ValueRules;
use crate::windows::env_vars;
use crate::{direct, display, shell};

/// A command with places for values, parsed once and expanded for every job.
#[derive(Debug, Clone)]
pub struct Template {
    body: TemplateKind,
    demand: ValueRules,
    lenient: bool,
}

#[derive(Debug, Clone)]
enum TemplateKind {
    Direct(direct::DirectCommand),
    Shell(line::Line),
    /// A line whose values come by the environment.
    Environment(env_vars::Line),
    /// The job's arguments are the line, for this shell.
    Script(shell::Shell),
}

impl Template {
    /// Parses what stands before `:::`.
    ///
    /// One word with blanks or shell characters is a shell line; several words, or one plain word,
    /// are run directly. A template without any placeholder gets the value appended as a last
    /// word. [`Options`] change both.
    ///
    /// # Errors
    ///
    /// When there is no command, when the line cannot be followed exactly (an open quote, an
    /// unknown shell), and when a placeholder stands where its value would become code.
    ///
    /// ```
    /// use minder_template::{Job, Options, Template};
    ///
    /// let options = Options { shell: Some("/bin/sh".into()), ..Options::default() };
    /// let template = Template::parse(&["gzip -9 <{} >\"{.}.gz\"".into()], &options)?;
    /// let job = Job { columns: &["a b.log".into()], ..Job::default() };
    /// let argv = template.argv(&job)?;
    /// assert_eq!(argv[1..], ["-c", "gzip -9 <\"$1\" >\"${2}.gz\"", "/bin/sh", "a b.log", "a b"]);
    /// assert_eq!(template.display(&job), "gzip -9 <'a b.log' >\"a b.gz\"");
    /// # Ok::<(), minder_template::Error>(())
    /// ```
    pub fn parse(words: &[OsString], options: &Options) -> Result<Template, Error> {
        let body = match words {
            [] => return Err(Error::new(ErrorKind::Syntax, "no command is given")),
            _ if options.quote => TemplateKind::Direct(direct::DirectCommand::parse(words, options)?),
            _ if options.form == Form::Line => line(&words.join(OsStr::new(" ")), options)?,
            [word] if is_line(word, options) => line(word, options)?,
            _ => TemplateKind::Direct(direct::DirectCommand::parse(words, options)?),
        };
        Ok(Template { body, demand: options.demand.clone(), lenient: options.missing_is_empty })
    }

    /// A template without a command: each job's arguments are a line for the shell, as whoever asks
    /// for this knows.
    pub fn script(shell: Option<&OsStr>) -> Template {
        Template {
            body: TemplateKind::Script(shell::shell(shell)),
            demand: ValueRules::default(),
            lenient: false,
        }
    }

    /// Takes a text with placeholders that is no command, such as a tag. Its only word is the text,
    /// several values joined by a blank.
    pub fn text(word: &OsString, options: &Options) -> Template {
        Template {
            body: TemplateKind::Direct(direct::DirectCommand::text(word, options)),
            demand: ValueRules::default(),
            lenient: options.missing_is_empty,
        }
    }

    /// Expands the template for one job: the program first, then its arguments.
    ///
    /// A shell line depends on the number of the job's arguments, never on what they are. One for
    /// `cmd.exe` or PowerShell also depends on which are empty; it is the last word here, and
    /// its values are in the variables of [`invocation`](Self::invocation).
    ///
    /// # Errors
    ///
    /// When a placeholder asks for a column that the input has not, or for the number of jobs and
    /// the job does not say it; when with so many arguments a value would become code, or one
    /// value is needed; when a value that is used holds a NUL byte, or what the shell cannot be
    /// handed.
    pub fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let Invocation { mut words, tail, .. } = self.invocation(job)?;
        words.extend(tail);
        Ok(words)
    }

    /// Expands the template for one job: all that it is started with.
    ///
    /// # Errors
    ///
    /// As [`argv`](Self::argv).
    pub fn invocation(&self, job: &Job<'_>) -> Result<Invocation, Error> {
        if !self.demand.is_empty() {
            self.demand.check(job, &mut self.placeholders(), self.lenient)?;
        }
        let words = match &self.body {
            TemplateKind::Direct(words) => words.argv(job)?,
            TemplateKind::Shell(line) => line.argv(job)?,
            TemplateKind::Environment(line) => return line.invocation(job),
            TemplateKind::Script(shell) => return script(shell, job),
        };
        Ok(Invocation { words, ..Invocation::default() })
    }

    /// The size of a job without any argument, to which arguments are added.
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        self.measure(None, &mut size);
        size
    }

    /// The bytes that the words of [`argv`](Self::argv) take at most, each with the byte that ends
    /// it.
    pub fn size_of(&self, columns: &[OsString]) -> usize {
        let mut size = self.size();
        for column in columns {
            self.add_argument(&mut size, column);
        }
        size.bytes()
    }

    /// Adds an argument to the size of a job.
    pub fn add_argument(&self, size: &mut Size, argument: &OsStr) {
        let mut cost = Size::default();
        self.measure(Some((size.count(), argument)), &mut cost);
        size.add(cost);
    }

    /// The bytes of a job without any argument; with [`cost`](Self::cost), a plain reckoning in
    /// place of a [`Size`].
    pub fn base(&self) -> usize {
        self.size().bytes()
    }

    /// What one more argument adds at most, whichever column it is. Where a word is repeated and
    /// also asks for a column by its number, that column counts once.
    pub fn cost(&self, argument: &OsStr) -> usize {
        let mut cost = Size::default();
        self.measure(Some((size::ANY_COLUMN, argument)), &mut cost);
        self.size().each + cost.sum()
    }

    fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        match &self.body {
            TemplateKind::Direct(words) => words.measure(argument, size),
            TemplateKind::Shell(line) => line.measure(argument, size),
            TemplateKind::Environment(line) => line.measure(argument, size),
            TemplateKind::Script(_) => (),
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
    pub fn lengths(&self) -> CommandLength {
        match &self.body {
            TemplateKind::Direct(words) => words.lengths(),
            TemplateKind::Shell(line) => line.lengths(),
            TemplateKind::Environment(line) => line.lengths(),
            TemplateKind::Script(_) => CommandLength { times: 1, each: 1, once: 0 },
        }
    }

    /// How many arguments a job may have at most: a shell line refers to each, and has an end.
    pub fn arguments_max(&self) -> usize {
        match &self.body {
            TemplateKind::Shell(line) => line.arguments_max(),
            TemplateKind::Environment(line) => line.arguments_max(),
            TemplateKind::Direct(_) | TemplateKind::Script(_) => usize::MAX,
        }
    }

    /// How many bytes a job's line may have with its values, where its shell takes less than the
    /// system.
    pub fn bytes_max(&self) -> Option<usize> {
        match &self.body {
            TemplateKind::Environment(line) => line.bytes_max(),
            TemplateKind::Script(shell) => shell.bytes_max(),
            _ => None,
        }
    }

    /// The largest column number that the template asks for, `{3}`; 0 if there is none. `{-3}` does
    /// not count.
    pub fn max_column(&self) -> u32 {
        self.placeholders().map(Placeholder::max_column).max().unwrap_or(0)
    }

    fn placeholders(&self) -> Box<dyn Iterator<Item = Placeholder> + '_> {
        match &self.body {
            TemplateKind::Direct(words) => Box::new(words.placeholders()),
            TemplateKind::Shell(line) => Box::new(line.placeholders()),
            TemplateKind::Environment(line) => Box::new(line.placeholders()),
            TemplateKind::Script(_) => Box::new(std::iter::empty()),
        }
    }

    /// Says whether a shell runs the command.
    pub fn is_shell(&self) -> bool {
        !matches!(self.body, TemplateKind::Direct(_))
    }

    /// Says whether every job runs the same program.
    pub fn has_fixed_program(&self) -> bool {
        match &self.body {
            TemplateKind::Direct(words) => words.has_fixed_program(),
            _ => true,
        }
    }

    /// The program that every job runs, if it is the same one.
    pub fn program(&self) -> Option<OsString> {
        match &self.body {
            TemplateKind::Direct(words) => words.program(),
            TemplateKind::Shell(line) => line.head().into_iter().next(),
            TemplateKind::Environment(line) => line.head().into_iter().next(),
            TemplateKind::Script(shell) => shell.head().into_iter().next(),
        }
    }

    /// Writes the job's command on one line, control characters escaped; for messages.
    pub fn display_escaped(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        display::text(self.display(job).as_bytes(), &mut out);
        out
    }

    /// Writes the job's command as a person would type it: pasted into any POSIX shell, it does the
    /// same. A line end in a value or in the template is one in what is written. (Lines for cmd
    /// and PowerShell are for reading, with all control characters escaped.)
    pub fn display(&self, job: &Job<'_>) -> String {
        match &self.body {
            TemplateKind::Direct(words) => words.display(job),
            TemplateKind::Shell(line) => line.display(job),
            TemplateKind::Environment(line) => line.display(job),
            TemplateKind::Script(_) => display::line(job.columns.join(OsStr::new(" ")).into_encoded_bytes()),
        }
    }
}

/// Whether a template's only word is a shell line.
fn is_line(word: &OsStr, options: &Options) -> bool {
    let shell = shell::shell(options.shell.as_deref());
    shell::is_line(word.as_encoded_bytes(), &options.placeholders, shell.dialect)
}

fn line(line: &OsStr, options: &Options) -> Result<TemplateKind, Error> {
    let shell = shell::shell(options.shell.as_deref());
    shell.check()?;
    Ok(match shell.dialect {
        shell::Dialect::Posix => TemplateKind::Shell(line::Line::parse(line, options, &shell)?),
        _ => TemplateKind::Environment(env_vars::Line::parse(line, options, shell)?),
    })
}

fn script(shell: &shell::Shell, job: &Job<'_>) -> Result<Invocation, Error> {
    if job.columns.iter().any(|column| column.as_encoded_bytes().contains(&0)) {
        let text = format!("the line of job {} holds a NUL byte, which no argument can", job.number);
        return Err(Error::new(ErrorKind::Nul, text));
    }
    shell.invocation(&job.columns.join(OsStr::new(" ")))
}
