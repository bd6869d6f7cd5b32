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

/// A command with placeholders, parsed once and expanded for every job.
#[derive(Debug, Clone)]
pub struct Template {
    kind: TemplateKind,
    value_rules: ValueRules,
    lenient: bool,
}

#[derive(Debug, Clone)]
enum TemplateKind {
    /// A command without a shell.
    Direct(direct::DirectCommand),
    /// A line for a POSIX shell.
    Shell(line::Line),
    /// A line whose values are in environment variables.
    Environment(env_vars::Line),
    /// The arguments of the job are the line, and this shell runs it.
    Script(shell::Shell),
}

impl Template {
    /// Parses a command line.
    ///
    /// A single argument with spaces or shell characters is a shell line. Several arguments, or one
    /// plain argument, are a program and its arguments. Without a placeholder, the value is
    /// appended as the last argument. [`Options`] change both.
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Syntax`] if the command is missing, or if the line cannot be parsed exactly
    ///   (an unclosed quote, a missing `fi`);
    /// - [`ErrorKind::Shell`] if the shell is unknown;
    /// - [`ErrorKind::Refused`] if a placeholder stands where its value would become code.
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
    pub fn parse(arguments: &[OsString], options: &Options) -> Result<Template, Error> {
        let kind = match arguments {
            [] => return Err(Error::new(ErrorKind::Syntax, "no command given")),
            _ if options.quote => TemplateKind::Direct(direct::DirectCommand::parse(arguments, options)?),
            _ if options.form == Form::Line => line(&arguments.join(OsStr::new(" ")), options)?,
            [argument] if is_line(argument, options) => line(argument, options)?,
            _ => TemplateKind::Direct(direct::DirectCommand::parse(arguments, options)?),
        };
        Ok(Template { kind, value_rules: options.value_rules.clone(), lenient: options.missing_is_empty })
    }

    /// Returns a template without a command: the arguments of each job are a line for the shell.
    /// The caller is responsible for their content. Of the options, only the shell and its options count.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Shell`] if the shell does not have [`Options::pipefail`], which is wanted.
    pub fn script(options: &Options) -> Result<Template, Error> {
        let kind =
            TemplateKind::Script(shell::shell(options.shell.as_deref()).with_pipefail(options.pipefail)?);
        Ok(Template { kind, value_rules: ValueRules::default(), lenient: false })
    }

    /// Parses a text with placeholders that is not a command, such as a tag. It expands to one
    /// argument, in which several values are separated by spaces.
    pub fn text(text: &OsString, options: &Options) -> Template {
        Template {
            kind: TemplateKind::Direct(direct::DirectCommand::text(text, options)),
            value_rules: ValueRules::default(),
            lenient: options.missing_is_empty,
        }
    }

    /// Expands the template for one job: the program, then its arguments.
    ///
    /// A line for a POSIX shell depends on the number of arguments, never on their text. A line for
    /// `cmd.exe` or PowerShell also depends on which arguments are empty. It is the last element
    /// here, and its values are in [`Invocation::variables`].
    ///
    /// # Errors
    ///
    /// - [`ErrorKind::Column`] if a placeholder reads a column that the job does not have;
    /// - [`ErrorKind::Total`] if a placeholder needs [`Job::total`] and it is `None`;
    /// - [`ErrorKind::Refused`] if a value would become code with this number of arguments, or if
    ///   the template takes exactly one value there;
    /// - [`ErrorKind::Nul`] if a value contains a NUL byte;
    /// - [`ErrorKind::Value`] if the shell cannot receive a value, if the line is too long for
    ///   cmd.exe, or if a value breaks [`Options::value_rules`].
    pub fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let Invocation { mut argv, raw_tail, .. } = self.invocation(job)?;
        argv.extend(raw_tail);
        Ok(argv)
    }

    /// Expands the template for one job, with the environment variables of its line.
    ///
    /// # Errors
    ///
    /// As [`argv`](Self::argv).
    pub fn invocation(&self, job: &Job<'_>) -> Result<Invocation, Error> {
        if !self.value_rules.is_empty() {
            self.value_rules.check(job, &mut self.placeholders(), self.lenient)?;
        }
        let argv = match &self.kind {
            TemplateKind::Direct(command) => command.argv(job)?,
            TemplateKind::Shell(line) => line.argv(job)?,
            TemplateKind::Environment(line) => return line.invocation(job),
            TemplateKind::Script(shell) => return script(shell, job),
        };
        Ok(Invocation { argv, ..Invocation::default() })
    }

    /// Returns the size of a job without arguments, for [`add_argument`](Self::add_argument).
    pub fn size(&self) -> Size {
        let mut size = Size::default();
        self.measure(None, &mut size);
        size
    }

    /// Returns an upper bound for the bytes of [`argv`](Self::argv), each element with its
    /// terminating byte.
    pub fn size_of(&self, columns: &[OsString]) -> usize {
        let mut size = self.size();
        for column in columns {
            self.add_argument(&mut size, column);
        }
        size.bytes()
    }

    /// Adds one more argument to the size of a job.
    pub fn add_argument(&self, size: &mut Size, argument: &OsStr) {
        let mut cost = Size::default();
        self.measure(Some((size.count(), argument)), &mut cost);
        size.add(cost);
    }

    /// Returns an upper bound for the bytes of a job without arguments. Together with
    /// [`cost`](Self::cost), it is a simpler bound than a [`Size`].
    pub fn base(&self) -> usize {
        self.size().bytes()
    }

    /// Returns an upper bound for the bytes that one more argument adds, whichever column it is. If
    /// a repeated part of the template also reads a column by its number, that column counts once.
    pub fn cost(&self, argument: &OsStr) -> usize {
        let mut cost = Size::default();
        self.measure(Some((size::ANY_COLUMN, argument)), &mut cost);
        self.size().each + cost.sum()
    }

    fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        match &self.kind {
            TemplateKind::Direct(command) => command.measure(argument, size),
            TemplateKind::Shell(line) => line.measure(argument, size),
            TemplateKind::Environment(line) => line.measure(argument, size),
            TemplateKind::Script(_) => (),
        }
    }

    /// Returns whether a placeholder reads the number of all jobs, [`Job::total`].
    pub fn needs_total(&self) -> bool {
        let counts = |source| matches!(source, Source::Total | Source::PaddedNumber);
        self.placeholders().any(|placeholder| placeholder.any(&counts))
    }

    /// Returns whether a placeholder reads the slot of the job, [`Job::slot`].
    pub fn needs_slot(&self) -> bool {
        let reads = |source| matches!(source, Source::Slot | Source::PaddedSlot);
        self.placeholders().any(|placeholder| placeholder.any(&reads))
    }

    /// Returns whether the template contains a placeholder.
    pub fn has_placeholders(&self) -> bool {
        self.placeholders().next().is_some()
    }

    /// Returns whether a placeholder reads an argument or a column of the job: `{}` does, `{#}` does not.
    pub fn has_values(&self) -> bool {
        let reads = |source| matches!(source, Source::Each | Source::Nth(_) | Source::Last(_));
        self.placeholders().any(|placeholder| placeholder.any(&reads))
    }

    /// Returns the length of a job's command as the user would type it.
    pub fn lengths(&self) -> CommandLength {
        match &self.kind {
            TemplateKind::Direct(command) => command.lengths(),
            TemplateKind::Shell(line) => line.lengths(),
            TemplateKind::Environment(line) => line.lengths(),
            TemplateKind::Script(_) => CommandLength::of_argument(),
        }
    }

    /// Returns the maximum number of arguments of a job. A shell line refers to each argument, and
    /// its length is limited.
    pub fn arguments_max(&self) -> usize {
        match &self.kind {
            TemplateKind::Shell(line) => line.arguments_max(),
            TemplateKind::Environment(line) => line.arguments_max(),
            TemplateKind::Direct(_) | TemplateKind::Script(_) => usize::MAX,
        }
    }

    /// Returns the maximum length in bytes of a job's line with its values, if the shell has a
    /// lower limit than the operating system.
    pub fn bytes_max(&self) -> Option<usize> {
        match &self.kind {
            TemplateKind::Environment(line) => line.bytes_max(),
            TemplateKind::Script(shell) => shell.bytes_max(),
            _ => None,
        }
    }

    /// Returns the largest column number in the template, 3 for `{3}`, or 0 if there is none.
    /// `{-3}` does not count.
    pub fn max_column(&self) -> u32 {
        self.placeholders().map(Placeholder::max_column).max().unwrap_or(0)
    }

    /// Checks the template for jobs that have at most this many columns.
    ///
    /// # Errors
    /// [`ErrorKind::Column`] if a placeholder refers to a later column.
    pub fn check_columns(&self, columns: usize) -> Result<(), Error> {
        match self.placeholders().find(|it| it.max_column() as usize > columns) {
            Some(placeholder) => Err(placeholder.missing_column(columns)),
            None => Ok(()),
        }
    }

    fn placeholders(&self) -> Box<dyn Iterator<Item = Placeholder> + '_> {
        match &self.kind {
            TemplateKind::Direct(command) => Box::new(command.placeholders()),
            TemplateKind::Shell(line) => Box::new(line.placeholders()),
            TemplateKind::Environment(line) => Box::new(line.placeholders()),
            TemplateKind::Script(_) => Box::new(std::iter::empty()),
        }
    }

    /// Returns whether a shell runs the command.
    pub fn is_shell(&self) -> bool {
        !matches!(self.kind, TemplateKind::Direct(_))
    }

    /// Returns whether every job runs the same program.
    pub fn has_fixed_program(&self) -> bool {
        match &self.kind {
            TemplateKind::Direct(command) => command.has_fixed_program(),
            _ => true,
        }
    }

    /// Returns the program that every job runs, if it is the same one.
    pub fn program(&self) -> Option<OsString> {
        match &self.kind {
            TemplateKind::Direct(command) => command.program(),
            TemplateKind::Shell(line) => line.head().into_iter().next(),
            TemplateKind::Environment(line) => line.head().into_iter().next(),
            TemplateKind::Script(shell) => shell.head().into_iter().next(),
        }
    }

    /// Returns the job's command on one line for messages. Control characters are escaped.
    pub fn display_escaped(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        display::text(self.display(job).as_bytes(), &mut out);
        out
    }

    /// Returns the job's command as messages name it. If it does not contain the values of the job, they
    /// follow in a comment: otherwise all jobs would have the same name.
    pub fn display_name(&self, job: &Job<'_>) -> String {
        const NAMED_MAX: usize = 10;
        let mut text = self.display(job);
        let is_script = matches!(self.kind, TemplateKind::Script(_));
        if !is_script && !job.columns.is_empty() && !self.has_values() {
            text.push_str("  #");
            for value in job.columns.iter().take(NAMED_MAX) {
                text.push(' ');
                text.push_str(&value.to_string_lossy());
            }
        }
        text
    }

    /// Returns the job's command as the user would type it. Pasted into any POSIX shell, it has the
    /// same effect. It contains the line ends of values and template. (Commands for cmd and
    /// PowerShell are for reading only, and all control characters are escaped.)
    pub fn display(&self, job: &Job<'_>) -> String {
        match &self.kind {
            TemplateKind::Direct(command) => command.display(job),
            TemplateKind::Shell(line) => line.display(job),
            TemplateKind::Environment(line) => line.display(job),
            TemplateKind::Script(_) => display::line(job.columns.join(OsStr::new(" ")).into_encoded_bytes()),
        }
    }
}

/// Returns whether the only argument of a template is a shell line.
fn is_line(argument: &OsStr, options: &Options) -> bool {
    let shell = shell::shell(options.shell.as_deref());
    shell::is_line(argument.as_encoded_bytes(), &options.placeholders, shell.dialect)
}

fn line(line: &OsStr, options: &Options) -> Result<TemplateKind, Error> {
    let shell = shell::shell(options.shell.as_deref());
    shell.check()?;
    let shell = shell.with_pipefail(options.pipefail)?;
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
