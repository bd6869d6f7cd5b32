//! Reads the input, fills commands and runs them.

use crate::ui::write_stderr;
use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder::{Command, Descriptors, Environment, Error, ErrorKind, Group, Stdio};
use minder_os::stdio::{StdStream, std_file, std_was_closed};
use minder_os::terminal::open_terminal;
use minder_runner::exit_status;
use minder_runner::input::{Separation, WordError, WordSplitter};
use minder_ui::symbols::Symbols;

use super::command_line::{Arguments, replace, size_of, size_of_all};
use super::jobs::{Jobs, Stop};
use super::message::{print_line, quoted_name};
use super::plan::{FAILURE, Packing, XargsPlan};
use super::quote::push_quoted;

/// The time for which a program may stay open for writing, as in `minder run`, and the pause
/// between two starts.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// One invocation of xargs.
pub(super) struct Session<'a> {
    plan: XargsPlan,
    descriptors: Descriptors,
    /// The variables of all jobs.
    environment: Environment,
    jobs: Jobs,
    /// The most jobs that run at once. A signal may change it.
    jobs_max: &'a AtomicUsize,
    /// The arguments of the next command.
    arguments: Arguments,
    /// The number of lines that they are from.
    lines: u64,
    /// The size of the program and its initial arguments.
    initial_size: usize,
    has_run: bool,
    has_warned: bool,
    /// Why standard input could not be read to its end.
    read_error: Option<io::Error>,
    /// The answers to `--interactive`.
    answers: Option<BufReader<File>>,
}

impl<'a> Session<'a> {
    /// Runs all commands, `jobs_max` of them at once. Returns the exit status.
    pub(super) fn run(plan: XargsPlan, descriptors: Descriptors, jobs_max: &'a AtomicUsize) -> u8 {
        match Self::new(plan, descriptors, jobs_max) {
            Ok(mut session) => {
                let result = session.read_input();
                let result = result.and_then(|()| session.jobs.wait_for_all());
                session.finish(result)
            }
            Err(stop) => {
                print_line(stop.message.as_bytes());
                stop.status
            }
        }
    }

    fn new(plan: XargsPlan, descriptors: Descriptors, jobs_max: &'a AtomicUsize) -> Result<Self, Stop> {
        let jobs = Jobs::new(plan.program.clone()).map_err(|error| Stop::new(error.to_string(), FAILURE))?;
        let replaced = if matches!(plan.packing, Packing::Replace(_)) { &[][..] } else { &plan.initial };
        let initial_size = size_of_all(std::iter::once(&plan.program).chain(replaced));
        if initial_size > plan.size_max {
            return Err(Stop::new("cannot fit single argument within argument list size limit", FAILURE));
        }
        Ok(Self {
            plan,
            descriptors,
            environment: Environment::inherited(),
            jobs,
            jobs_max,
            arguments: Arguments::default(),
            lines: 0,
            initial_size,
            has_run: false,
            has_warned: false,
            read_error: None,
            answers: None,
        })
    }

    /// Prints the error that ended the run, waits for the jobs that still run, and returns the exit
    /// status.
    fn finish(mut self, result: Result<(), Stop>) -> u8 {
        let mut status = None;
        if let Err(stop) = result {
            print_line(stop.message.as_bytes());
            // A job that failed before counts more, unless a signal arrived.
            let had_failed = std::mem::replace(&mut self.jobs.has_failed, false);
            let is_overruled = had_failed && stop.status != exit_status::XARGS_SIGNALED;
            status = Some(if is_overruled { exit_status::XARGS_FAILED } else { stop.status });
            // After an error in the input, the jobs that still run may report another one.
            if stop.status == FAILURE
                && let Err(stop) = self.jobs.wait_for_all()
            {
                print_line(stop.message.as_bytes());
                status = Some(stop.status);
            }
            self.jobs.wait_silently();
        }
        if self.jobs.has_failed {
            status = Some(exit_status::XARGS_FAILED);
        }
        if let Some(error) = &self.read_error {
            let closed = std_was_closed(StdStream::Input).then(|| format!(": {}", system_text(error)));
            print_line(format!("error closing file{}", closed.unwrap_or_default()).as_bytes());
            return FAILURE;
        }
        status.unwrap_or(exit_status::SUCCESS)
    }

    /// Reads the input to its end, and starts every command.
    fn read_input(&mut self) -> Result<(), Stop> {
        if let Some(file) = self.open_input()? {
            // xargs does not count the program before it has run once with a replaced text.
            let used = if self.replaces() { 0 } else { self.initial_size };
            let mut words =
                WordSplitter::new(file, self.plan.separation, (self.plan.size_max - used).saturating_sub(1));
            self.read_words(&mut words)?;
        }
        let is_due = !self.has_run && self.plan.run_if_empty && !self.replaces();
        if !self.arguments.is_empty() || is_due { self.execute() } else { Ok(()) }
    }

    fn read_words(&mut self, words: &mut WordSplitter) -> Result<(), Stop> {
        loop {
            let word = match words.next_word() {
                Ok(Some(word)) => word,
                Ok(None) => return Ok(()),
                Err(WordError::Read(error)) => {
                    self.read_error = self.plan.file.is_none().then_some(error);
                    return Ok(());
                }
                Err(WordError::Unclosed(quote)) => {
                    self.execute_if_allowed()?;
                    let kind = if quote == b'"' { "double" } else { "single" };
                    return Err(Stop::new(
                        format!(
                            "unmatched {kind} quote; by default quotes are special to xargs unless you use \
                             the -0 option"
                        ),
                        FAILURE,
                    ));
                }
                Err(WordError::TooLong) => {
                    self.execute_if_allowed()?;
                    return Err(Stop::new("argument line too long", FAILURE));
                }
            };
            if !word.at_end && self.plan.eof.as_deref() == Some(word.bytes) {
                return Ok(());
            }
            self.warn_of_nul(word.bytes);
            match &self.plan.packing {
                Packing::Replace(pattern) => {
                    let pattern = pattern.clone();
                    self.run_replaced(&pattern, word.bytes)?;
                    words.set_bytes_max((self.plan.size_max - self.initial_size).saturating_sub(1));
                }
                _ => self.add(word.bytes, word.ends_line)?,
            }
        }
    }

    /// Opens the input. Returns `None` if standard input is closed, which counts as an empty input.
    fn open_input(&mut self) -> Result<Option<File>, Stop> {
        if let Some(path) = &self.plan.file {
            return File::open(path).map(Some).map_err(|error| {
                let name = quoted_name(path.as_os_str());
                Stop::new(format!("Cannot open input file {name}: {}", system_text(&error)), FAILURE)
            });
        }
        let input =
            if std_was_closed(StdStream::Input) { Err(closed_error()) } else { std_file(StdStream::Input) };
        Ok(input.map_err(|error| self.read_error = Some(error)).ok())
    }

    fn replaces(&self) -> bool {
        matches!(self.plan.packing, Packing::Replace(_))
    }

    fn warn_of_nul(&mut self, word: &[u8]) {
        let is_expected = matches!(self.plan.separation, Separation::Byte(_));
        if !is_expected && !self.has_warned && word.contains(&0) {
            self.has_warned = true;
            print_line(
                b"WARNING: a NUL character occurred in the input.  It cannot be passed through in the \
                  argument list.  Did you mean to use the --null option?",
            );
        }
    }

    /// Adds an argument to the next command, and starts the command that is full.
    fn add(&mut self, word: &[u8], ends_line: bool) -> Result<(), Stop> {
        let count = 1 + self.plan.initial.len() + self.arguments.len();
        let size = self.initial_size + self.arguments.size() + size_of(word);
        if size > self.plan.size_max || count >= self.plan.count_max {
            if self.plan.exit_if_full && self.plan.packing != Packing::Full {
                return Err(Stop::new("argument list too long", FAILURE));
            }
            self.execute()?;
        }
        self.arguments.push(word);
        self.lines += u64::from(ends_line);
        let is_full = match self.plan.packing {
            Packing::Arguments(count) => self.arguments.len() as u64 >= count,
            Packing::Lines(count) => self.lines >= count,
            Packing::Full | Packing::Replace(_) => false,
        };
        if is_full { self.execute() } else { Ok(()) }
    }

    /// Runs the command with `line` in place of each occurrence of `pattern`.
    fn run_replaced(&mut self, pattern: &[u8], line: &[u8]) -> Result<(), Stop> {
        let mut size = self.initial_size;
        for initial in &self.plan.initial {
            let argument = match pattern {
                b"" => return Err(Stop::new("command too long", FAILURE)),
                _ => replace(initial.as_encoded_bytes(), pattern, line),
            };
            size += size_of(&argument);
            if size > self.plan.size_max {
                let is_alone = size_of(&argument) >= self.plan.size_max;
                let what = if is_alone { "command too long" } else { "argument list too long" };
                return Err(Stop::new(what, FAILURE));
            }
            self.arguments.push(&argument);
        }
        self.execute()
    }

    /// Runs the arguments that were read before an error, unless a command must be complete.
    fn execute_if_allowed(&mut self) -> Result<(), Stop> {
        if self.arguments.is_empty() || self.plan.exit_if_full { Ok(()) } else { self.execute() }
    }

    /// Starts the command with the arguments that were gathered, as soon as a slot is free.
    fn execute(&mut self) -> Result<(), Stop> {
        self.has_run = true;
        self.lines = 0;
        if self.is_confirmed()? {
            self.wait_for_slot()?;
            if self.plan.verbose && !self.plan.interactive {
                let mut line = self.shown();
                line.push(b'\n');
                write_stderr(&line);
            }
            self.start(0..self.arguments.len())?;
        }
        self.arguments.clear();
        Ok(())
    }

    /// Waits until another job may start. A signal may change the number of jobs meanwhile: it is read again
    /// after each end of a job.
    fn wait_for_slot(&mut self) -> Result<(), Stop> {
        while self.jobs.running() >= self.jobs_max.load(Ordering::Relaxed) {
            self.jobs.wait_for_one(None)?;
        }
        Ok(())
    }

    /// Starts the command with these arguments. If the system takes fewer of them, starts several.
    fn start(&mut self, range: std::ops::Range<usize>) -> Result<(), Stop> {
        let mut command = self.command(range.clone())?;
        let mut busy_since = None;
        loop {
            let error = match self.jobs.start(&mut command, self.plan.slot_var.as_deref()) {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            match error.kind() {
                ErrorKind::TooLong if range.len() > 1 && !self.replaces() => {
                    let middle = range.start + range.len() / 2;
                    self.start(range.start..middle)?;
                    self.wait_for_slot()?;
                    return self.start(middle..range.end);
                }
                ErrorKind::TooLong => {
                    return Err(Stop::new("can't call exec() due to argument size restrictions", FAILURE));
                }
                ErrorKind::Exhausted if self.jobs.running() > 0 => self.jobs.wait_for_one(None)?,
                _ if error.io_error().kind() == io::ErrorKind::ExecutableFileBusy
                    && busy_since.get_or_insert_with(Instant::now).elapsed() < BUSY_TIMEOUT =>
                {
                    self.jobs.wait_for_one(Some(Instant::now() + BUSY_PAUSE))?;
                }
                _ => return Err(self.cannot_start(&error)),
            }
        }
    }

    fn cannot_start(&self, error: &Error) -> Stop {
        let text = match error.kind() {
            ErrorKind::NotFound => "No such file or directory".to_owned(),
            ErrorKind::PermissionDenied => "Permission denied".to_owned(),
            _ => system_text(error.io_error()),
        };
        Stop::new(
            format!("{}: {text}", self.plan.program.display()),
            exit_status::of_xargs_start(error.kind()),
        )
    }

    fn command(&self, range: std::ops::Range<usize>) -> Result<Command, Stop> {
        let plan = &self.plan;
        let mut command = Command::new(&plan.program);
        command.args(self.fixed()).args(self.arguments.range(range));
        command.group(Group::Inherit).die_with_parent(true).descriptors(&self.descriptors);
        command.environment(&self.environment);
        command.stdin(if plan.open_tty {
            Stdio::from(open_terminal().map_err(|error| no_terminal(&error))?)
        } else if plan.file.is_some() {
            Stdio::inherit()
        } else {
            Stdio::null()
        });
        command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
        Ok(command)
    }

    /// Returns the arguments that every command begins with.
    fn fixed(&self) -> &[OsString] {
        if self.replaces() { &[] } else { &self.plan.initial }
    }

    /// Returns the command as a line for the shell.
    fn shown(&self) -> Vec<u8> {
        let utf8 = Symbols::of_locale() == Symbols::Unicode;
        let mut line = Vec::new();
        push_quoted(self.plan.program.as_encoded_bytes(), utf8, &mut line);
        let fixed = self.fixed().iter().map(|argument| Cow::Borrowed(argument.as_os_str()));
        for argument in fixed.chain(self.arguments.range(0..self.arguments.len())) {
            line.push(b' ');
            push_quoted(argument.as_encoded_bytes(), utf8, &mut line);
        }
        line
    }

    /// Asks whether to run the command, if the user wants to be asked.
    fn is_confirmed(&mut self) -> Result<bool, Stop> {
        if !self.plan.interactive {
            return Ok(true);
        }
        let mut question = self.shown();
        let answers = match &mut self.answers {
            Some(answers) => answers,
            None => match open_terminal() {
                Ok(terminal) => self.answers.insert(BufReader::with_capacity(256, terminal)),
                Err(error) => {
                    write_stderr(&question);
                    let why = system_text(&error);
                    return Err(Stop::new(format!("failed to open /dev/tty for reading: {why}"), FAILURE));
                }
            },
        };
        // One write: a job may print something at the same time.
        question.extend_from_slice(b"?...");
        write_stderr(&question);
        let mut answer = Vec::new();
        let _ = answers.read_until(b'\n', &mut answer);
        Ok(matches!(answer.first(), Some(b'y' | b'Y')))
    }
}

/// The child of findutils' xargs that finds no terminal aborts: its end counts as that of a job by a signal.
fn no_terminal(error: &io::Error) -> Stop {
    let message = format!("{}: {}", quoted_name("/dev/tty".as_ref()), system_text(error));
    Stop::new(message, exit_status::XARGS_SIGNALED)
}

fn closed_error() -> io::Error {
    // The text of EBADF, which Rust's runtime hides behind the null device.
    io::Error::other("Bad file descriptor")
}

/// Returns the text of strerror(3).
fn system_text(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
