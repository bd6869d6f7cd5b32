//! The shell form: a line that the template and the number of values fix, and the values as its
//! positional parameters.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use crate::checks::CheckCache;
use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::kinds::{ALL, YASH};
use crate::options::Options;
use crate::placeholder::expression::{Placeholder, Source};
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::posix::builtins;
use crate::posix::scan::scan;
use crate::posix::scanner::Rules;
use crate::shell::Shell;
use crate::size::{CommandLength, Size};
use crate::template_line::{Part, TemplateLine};
use minder_os::encoding::os_str_from_encoded;

/// A shell line and what it is started with.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The shell and `-c`.
    head: Vec<OsString>,
    shell: OsString,
    written: TemplateLine,
    /// The placeholders that are a command's name: their values must be no builtins that evaluate.
    named: Vec<Placeholder>,
    rules: Rules,
    lenient: bool,
    checks: CheckCache,
    /// The line for one argument.
    one: Arc<Rendered>,
    /// The last lines for other numbers of arguments.
    others: Arc<Mutex<Vec<Arc<Rendered>>>>,
}

/// The line for one number of arguments.
#[derive(Debug, Default)]
struct Rendered {
    count: usize,
    line: OsString,
    /// `$1`, `$2`, …: a placeholder, and the argument that it takes.
    parameters: Vec<(Placeholder, usize)>,
}

/// How many lines for other numbers of arguments than one are kept.
const RENDERED_MAX: usize = 4;

impl Line {
    pub(crate) fn parse(line: &OsStr, options: &Options, shell: &Shell) -> Result<Line, Error> {
        let rules = Rules {
            kinds: shell.kinds.unwrap_or(ALL),
            harmless: options.demand.is_harmless(),
            repeat: options.repeat,
            placeholders: Arc::new(options.placeholders.clone()),
        };
        let mut written = line.as_encoded_bytes().to_vec();
        let mut scanned = scan(&written, &rules, 1)?;
        if scanned.seen.is_empty() && options.append {
            let at = scanned.tail.ok_or_else(Error::no_last_command)?;
            let value = [b" ", options.placeholders.value().1].concat();
            written.splice(at..at, value);
            scanned = scan(&written, &rules, 1)?;
        }
        let mut line = Line {
            head: shell.head(),
            shell: shell.program.clone(),
            written: TemplateLine { text: written, seen: scanned.seen, spans: scanned.spans },
            named: scanned.named,
            rules,
            lenient: options.missing_is_empty,
            checks: CheckCache::default(),
            one: Arc::default(),
            others: Arc::default(),
        };
        line.one = Arc::new(line.render(1));
        Ok(line)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.written.placeholders()
    }

    pub(crate) fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let count = job.columns.len();
        self.checks.of(count, |count| scan(&self.written.text, &self.rules, count).map(drop))?;
        let other;
        let rendered: &Rendered = if count == 1 {
            &self.one
        } else {
            other = self.rendered(count);
            &other
        };
        self.check_commands(job)?;
        let mut argv = Vec::with_capacity(self.head.len() + 2 + rendered.parameters.len());
        argv.extend_from_slice(&self.head);
        argv.extend([rendered.line.clone(), self.shell.clone()]);
        for (placeholder, nth) in &rendered.parameters {
            let mut value = OsString::new();
            placeholder.push(job, *nth, self.lenient, &mut value)?;
            self.check_text(&value)?;
            argv.push(value);
        }
        Ok(argv)
    }

    /// Refuses a value that is the name of a builtin which evaluates its arguments, where it would
    /// be run.
    fn check_commands(&self, job: &Job<'_>) -> Result<(), Error> {
        for placeholder in &self.named {
            let arguments = if placeholder.repeats() { job.columns.len() } else { 1 };
            for nth in 0..arguments {
                let mut value = OsString::new();
                placeholder.push(job, nth, self.lenient, &mut value)?;
                if builtins::can_evaluate(value.as_encoded_bytes(), self.rules.kinds) && !self.rules.harmless
                {
                    return Err(Error::new(
                        ErrorKind::Value,
                        format!(
                            "the value `{}` would be a builtin of the shell, which can evaluate its arguments: give the command as \
                             several words",
                            value.to_string_lossy()
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Refuses a value that yash would alter: it reads its arguments as text of its locale and
    /// drops what is none.
    fn check_text(&self, value: &OsStr) -> Result<(), Error> {
        if self.rules.kinds != YASH || value.is_ascii() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Value,
            format!(
                "the value `{}` has characters beyond ASCII, which yash drops where its locale lacks them: use another `--shell`",
                value.to_string_lossy()
            ),
        ))
    }

    fn rendered(&self, count: usize) -> Arc<Rendered> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = others.iter().find(|other| other.count == count) {
            return Arc::clone(known);
        }
        let rendered = Arc::new(self.render(count));
        if others.len() == RENDERED_MAX {
            others.remove(0);
        }
        others.push(Arc::clone(&rendered));
        rendered
    }

    /// The line for `count` arguments. No value is known here, so none can be in it.
    fn render(&self, count: usize) -> Rendered {
        let mut line = Vec::with_capacity(self.written.text.len() + 16);
        if count > 1
            && let Some((seen, placeholder)) = self.all()
        {
            // All parameters in their order: the line stays short, however many there are.
            line.extend_from_slice(&self.written.text[..seen.at]);
            line.extend_from_slice(b"\"$@\"");
            line.extend_from_slice(&self.written.text[seen.at + seen.length..]);
            let parameters = (0..count).map(|nth| (placeholder, nth)).collect();
            return Rendered { count, line: os_str_from_encoded(&line).into_owned(), parameters };
        }
        let mut numbers = Numbers::new(&self.written.seen);
        self.written.walk(count, &mut |part| match part {
            Part::Text(text) => line.extend_from_slice(text),
            Part::Value(seen, _, arguments) if arguments.is_empty() => {
                line.extend_from_slice(self.nothing(seen));
            }
            Part::Value(seen, place, arguments) => numbers.write(place, seen.quote, arguments, &mut line),
        });
        Rendered { count, line: os_str_from_encoded(&line).into_owned(), parameters: numbers.parameters }
    }

    /// The only placeholder, if it is a word of its own and takes every argument.
    fn all(&self) -> Option<(&PlaceholderSite, Placeholder)> {
        let [seen] = self.written.seen.as_slice() else { return None };
        let alone = seen.quote == Quote::Bare && seen.placeholder.repeats() && self.written.is_word(seen);
        alone.then_some((seen, seen.placeholder))
    }

    /// The shell and `-c`.
    pub(crate) fn head(&self) -> Vec<OsString> {
        self.head.clone()
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        self.written.lengths()
    }

    /// How many arguments the line can refer to and still be one word of a command.
    pub(crate) fn arguments_max(&self) -> usize {
        if self.all().is_some() || !self.written.seen.iter().any(|seen| seen.placeholder.repeats()) {
            return usize::MAX;
        }
        let fits = |count: usize| self.render(count).line.len() <= LINE_MAX;
        // Each argument takes some bytes.
        let (mut least, mut most) = (1, LINE_MAX);
        while least < most {
            let middle = (least + most).div_ceil(2);
            match fits(middle) {
                true => least = middle,
                false => most = middle - 1,
            }
        }
        least
    }

    /// What stands for no value at all: a word that is nothing else goes, but what stands around it
    /// never becomes one.
    fn nothing(&self, seen: &PlaceholderSite) -> &'static [u8] {
        match seen.quote {
            Quote::Bare if self.written.is_word(seen) => b"",
            Quote::Bare | Quote::Double => b"\"\"",
            Quote::Single => b"''",
            Quote::Inner => b"",
        }
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let mut out: Vec<u8> = Vec::new();
        self.written.walk(job.columns.len(), &mut |part| match part {
            Part::Text(text) => out.extend_from_slice(text),
            Part::Value(seen, _, arguments) => {
                let several = seen.quote != Quote::Bare;
                let joined = self.written.is_joined(seen);
                let mut value = OsString::new();
                for (i, nth) in arguments.enumerate() {
                    let blank = if i > 0 { " " } else { "" };
                    if !several {
                        value.clear();
                        out.extend_from_slice(blank.as_bytes());
                    } else {
                        value.push(blank);
                    }
                    match seen.placeholder.push(job, nth, self.lenient, &mut value) {
                        Err(_) if several => value.push(seen.placeholder.to_string()),
                        Err(_) => out.extend_from_slice(seen.placeholder.to_string().as_bytes()),
                        Ok(()) if several => {}
                        Ok(()) => {
                            let descriptor = self.written.is_before_redirection(seen)
                                && value.as_encoded_bytes().iter().all(u8::is_ascii_digit);
                            out.extend_from_slice(display::value(&value, joined || descriptor).as_bytes());
                        }
                    }
                }
                match seen.quote {
                    Quote::Bare => {}
                    Quote::Double if self.written.is_behind_name(seen) => {
                        out.extend_from_slice(b"\"\"");
                        out.extend_from_slice(display::in_double_quotes(&value).as_bytes());
                    }
                    Quote::Double => out.extend_from_slice(display::in_double_quotes(&value).as_bytes()),
                    Quote::Single => out.extend_from_slice(display::in_single_quotes(&value).as_bytes()),
                    Quote::Inner => out.extend_from_slice(value.as_encoded_bytes()),
                }
            }
        });
        display::line(out)
    }

    /// See [`crate::size::Size`].
    pub(crate) fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        // The values are there once, however often the line refers to them.
        for (placeholder, _) in &self.one.parameters {
            placeholder.measure(argument, false, Source::Each, size);
        }
        if argument.is_some() {
            return;
        }
        size.once += self.head.iter().map(|word| word.len() + 1).sum::<usize>();
        size.once += self.shell.len() + 1 + self.one.parameters.len();
        self.written.measure(REFERENCE_MAX, size);
    }
}

/// The longest line: what one word of a command may have on Linux (128 KiB with its end mark,
/// execve(2)).
const LINE_MAX: usize = (128 << 10) - 1;
/// The longest way of writing a parameter in the line: `'"${1234567}"'`.
const REFERENCE_MAX: usize = 14;

/// Gives the values their places as parameters, equal ones the same.
struct Numbers {
    /// For each placeholder seen, the first that is the same.
    same: Vec<usize>,
    /// For each placeholder seen, the numbers of its values.
    numbers: Vec<Vec<Option<usize>>>,
    placeholders: Vec<Placeholder>,
    parameters: Vec<(Placeholder, usize)>,
}

impl Numbers {
    fn new(seen: &[PlaceholderSite]) -> Numbers {
        let placeholders: Vec<Placeholder> = seen.iter().map(|seen| seen.placeholder).collect();
        let same =
            placeholders.iter().map(|p| placeholders.iter().position(|q| p == q).unwrap_or(0)).collect();
        Numbers { same, numbers: vec![Vec::new(); seen.len()], placeholders, parameters: Vec::new() }
    }

    fn number(&mut self, place: usize, nth: usize) -> usize {
        let numbers = &mut self.numbers[self.same[place]];
        if numbers.len() <= nth {
            numbers.resize(nth + 1, None);
        }
        *numbers[nth].get_or_insert_with(|| {
            self.parameters.push((self.placeholders[place], nth));
            self.parameters.len()
        })
    }

    fn write(&mut self, place: usize, quote: Quote, arguments: Range<usize>, line: &mut Vec<u8>) {
        let (before, between, after) = match quote {
            Quote::Double => ("", " ", ""),
            Quote::Bare => ("\"", "\" \"", "\""),
            Quote::Single => ("'\"", " ", "\"'"),
            Quote::Inner => ("", " ", ""),
        };
        line.extend_from_slice(before.as_bytes());
        for (i, nth) in arguments.enumerate() {
            if i > 0 {
                line.extend_from_slice(between.as_bytes());
            }
            let number = self.number(place, nth);
            // Braces, so that a digit that follows is not read with it.
            let text = match (quote, number) {
                (Quote::Bare | Quote::Single, ..10) => format!("${number}"),
                _ => format!("${{{number}}}"),
            };
            line.extend_from_slice(text.as_bytes());
        }
        line.extend_from_slice(after.as_bytes());
    }
}
