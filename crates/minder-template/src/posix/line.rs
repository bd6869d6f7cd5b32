//! A POSIX shell line: its text depends on the template and on the number of values only, and the
//! values are its positional parameters.

use std::ffi::{OsStr, OsString};
use std::ops::Range;
use std::sync::Arc;

use crate::checks::CheckCache;
use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::Job;
use crate::kinds::{ALL, YASH};
use crate::options::Options;
use crate::placeholder::expression::{Placeholder, Source};
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::posix::builtins;
use crate::posix::scan::{ScannedLine, scan};
use crate::posix::scanner::ScanRules;
use crate::program_text::ValueCheck;
use crate::shell::Shell;
use crate::size::{CommandLength, Size};
use crate::template_line::{LineFragment, TemplateLine};
use minder_os::encoding::os_str_from_encoded;
use minder_os::sync::Mutex;

/// A shell line, and the shell that runs it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// The shell and `-c`.
    head: Vec<OsString>,
    /// `$0` of the line.
    shell: OsString,
    template: TemplateLine,
    /// The placeholders that are the name of a command. Their values must not name builtins that
    /// evaluate.
    command_names: Vec<Placeholder>,
    rules: ScanRules,
    /// Words of placeholders for missing columns disappear.
    omits_missing: bool,
    lenient: bool,
    checks: CheckCache,
    /// The line for one argument.
    one: Arc<RenderedLine>,
    /// The most recent lines for other numbers of arguments. Clones of a template share them; the
    /// mutex protects the list, not the lines, which never change.
    others: Arc<Mutex<Vec<Arc<RenderedLine>>>>,
}

/// The line for one number of arguments.
#[derive(Debug, Default)]
struct RenderedLine {
    count: usize,
    line: OsString,
    /// For `$1`, `$2`, …: a placeholder and the index of the argument that it takes.
    parameters: Vec<(Placeholder, usize)>,
}

/// The number of lines that are kept for numbers of arguments other than one.
const RENDERED_MAX: usize = 4;

/// The maximum length of a line: Linux limits one argument to 128 KiB with its terminating byte
/// (execve(2)).
const LINE_MAX: usize = (128 << 10) - 1;

/// The maximum length of a reference to a parameter: `'"${1234567}"'`.
const REFERENCE_MAX: usize = 14;

impl Line {
    pub(crate) fn parse(line: &OsStr, options: &Options, shell: &Shell) -> Result<Line, Error> {
        let mut rules = ScanRules {
            kinds: shell.kinds.unwrap_or(ALL),
            trusted: options.value_rules.trusts_values(),
            accepts_plain_values: options.plain_values_in_program_texts,
            repeat: options.repeat,
            omits_missing: false,
            placeholders: Arc::new(options.placeholders.clone()),
            numbers: Vec::new(),
        };
        let omits_missing = options.missing_is_empty && options.missing_is_omitted;
        let mut text = line.as_encoded_bytes().to_vec();
        let mut scanned = scan_with_numbers(&text, &mut rules)?;
        if scanned.sites.is_empty() && options.append {
            let at = scanned.tail.ok_or_else(Error::no_last_command)?;
            let value = [b" ", options.placeholders.value().1].concat();
            text.splice(at..at, value);
            scanned = scan_with_numbers(&text, &mut rules)?;
        }
        let checks = CheckCache::default();
        checks.of(1, |_| Ok(scanned.checks.into()))?;
        let mut line = Line {
            head: shell.head(),
            shell: shell.program.clone(),
            template: TemplateLine { text, sites: scanned.sites, spans: scanned.spans },
            command_names: scanned.command_names,
            rules,
            omits_missing,
            lenient: options.missing_is_empty,
            checks,
            one: Arc::default(),
            others: Arc::default(),
        };
        line.one = Arc::new(line.render(1, false));
        Ok(line)
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.template.placeholders()
    }

    pub(crate) fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let count = job.columns.len();
        let omits = self.omits_words(count);
        let scan = |rules: &ScanRules, count| Ok(scan(&self.template.text, rules, count)?.checks.into());
        let checks = if omits {
            // The words after one that disappears move: the next may become program text.
            scan(&ScanRules { omits_missing: true, ..self.rules.clone() }, count)?
        } else {
            self.checks.of(count, |count| scan(&self.rules, count))?
        };
        let rendered = if count == 1 && !omits { Arc::clone(&self.one) } else { self.rendered(count) };
        self.check_command_names(job)?;
        let mut argv = Vec::with_capacity(self.head.len() + 2 + rendered.parameters.len());
        argv.extend_from_slice(&self.head);
        argv.extend([rendered.line.clone(), self.shell.clone()]);
        for (placeholder, nth) in &rendered.parameters {
            let mut value = OsString::new();
            placeholder.push(job, *nth, self.lenient, &mut value)?;
            placeholder.check_number(&value)?;
            let applies = |check: &&ValueCheck| check.placeholder == placeholder.text();
            checks.iter().filter(applies).try_for_each(|check| check.check(&value))?;
            self.check_text(&value)?;
            argv.push(value);
        }
        Ok(argv)
    }

    /// Returns whether words disappear from the line of a job with this many columns.
    fn omits_words(&self, columns: usize) -> bool {
        (0..self.template.sites.len()).any(|index| self.omits(index, columns))
    }

    /// Returns whether the word of the site at `index` disappears.
    fn omits(&self, index: usize, columns: usize) -> bool {
        self.omits_missing && self.template.is_missing_word(index, columns)
    }

    /// Refuses a value that would run as a command and names a builtin that evaluates its
    /// arguments.
    fn check_command_names(&self, job: &Job<'_>) -> Result<(), Error> {
        if self.rules.trusted {
            return Ok(());
        }
        for placeholder in &self.command_names {
            let arguments = if placeholder.repeats() { job.columns.len() } else { 1 };
            for nth in 0..arguments {
                let mut value = OsString::new();
                placeholder.push(job, nth, self.lenient, &mut value)?;
                if builtins::can_evaluate(value.as_encoded_bytes(), self.rules.kinds) {
                    return Err(Error::new(
                        ErrorKind::Value,
                        format!(
                            "the value `{}` would be a builtin of the shell, which can evaluate its \
                             arguments: give the command as several words",
                            value.to_string_lossy()
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Refuses a value that yash would change. yash decodes its arguments in its locale, and drops
    /// those that it cannot decode.
    fn check_text(&self, value: &OsStr) -> Result<(), Error> {
        if self.rules.kinds != YASH || value.is_ascii() {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Value,
            format!(
                "the value `{}` has characters beyond ASCII, which yash drops where its locale lacks them: \
                 use another `--shell`",
                value.to_string_lossy()
            ),
        ))
    }

    /// Returns the line for `count` arguments, rendered before or now.
    fn rendered(&self, count: usize) -> Arc<RenderedLine> {
        let mut others = self.others.lock();
        if let Some(known) = others.iter().find(|other| other.count == count) {
            return Arc::clone(known);
        }
        let rendered = Arc::new(self.render(count, true));
        if others.len() == RENDERED_MAX {
            others.remove(0);
        }
        others.push(Arc::clone(&rendered));
        rendered
    }

    /// Renders the line for `count` arguments. No value is known here, so the line cannot contain
    /// one. With `omits_words`, words for missing columns disappear.
    fn render(&self, count: usize, omits_words: bool) -> RenderedLine {
        let mut line = Vec::with_capacity(self.template.text.len() + 16);
        if count > 1
            && let Some((site, placeholder)) = self.all_arguments_site()
        {
            // `"$@"` keeps the line short for any number of arguments.
            line.extend_from_slice(&self.template.text[..site.at]);
            line.extend_from_slice(b"\"$@\"");
            line.extend_from_slice(&self.template.text[site.at + site.length..]);
            let parameters = (0..count).map(|nth| (placeholder, nth)).collect();
            return RenderedLine { count, line: os_str_from_encoded(&line).into_owned(), parameters };
        }
        let mut numbers = ParamNumbers::new(&self.template.sites);
        self.template.walk(count, &mut |fragment| match fragment {
            LineFragment::Text(text) => line.extend_from_slice(text),
            LineFragment::Value(site, _, arguments) if arguments.is_empty() => {
                line.extend_from_slice(self.no_value(site));
            }
            LineFragment::Value(_, index, _) if omits_words && self.omits(index, count) => (),
            LineFragment::Value(site, index, arguments) => {
                numbers.write(index, site.quote, arguments, &mut line);
            }
        });
        RenderedLine { count, line: os_str_from_encoded(&line).into_owned(), parameters: numbers.parameters }
    }

    /// Returns the only site, if it is a whole word outside of quotes and stands for every
    /// argument.
    fn all_arguments_site(&self) -> Option<(&PlaceholderSite, Placeholder)> {
        let [site] = self.template.sites.as_slice() else { return None };
        if site.quote != Quote::Bare || !site.placeholder.repeats() || !self.template.is_word(site) {
            return None;
        }
        Some((site, site.placeholder))
    }

    /// Returns the shell and `-c`.
    pub(crate) fn head(&self) -> Vec<OsString> {
        self.head.clone()
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        self.template.lengths()
    }

    /// Returns the number of arguments that the line can refer to without exceeding [`LINE_MAX`].
    pub(crate) fn arguments_max(&self) -> usize {
        let repeats = self.template.sites.iter().any(|site| site.placeholder.repeats());
        if self.all_arguments_site().is_some() || !repeats {
            return usize::MAX;
        }
        let fits = |count: usize| self.render(count, false).line.len() <= LINE_MAX;
        // Binary search. Each reference takes at least one byte.
        let mut least = 1;
        let mut most = LINE_MAX;
        while least < most {
            let middle = (least + most).div_ceil(2);
            if fits(middle) {
                least = middle;
            } else {
                most = middle - 1;
            }
        }
        least
    }

    /// Returns the text for a placeholder in a job without arguments. A word that is only the
    /// placeholder disappears; text around a placeholder must remain a word.
    fn no_value(&self, site: &PlaceholderSite) -> &'static [u8] {
        match site.quote {
            Quote::Bare if self.template.is_word(site) => b"",
            Quote::Bare | Quote::Double => b"\"\"",
            Quote::Single => b"''",
            Quote::Inner => b"",
        }
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let mut out: Vec<u8> = Vec::new();
        self.template.walk(job.columns.len(), &mut |fragment| match fragment {
            LineFragment::Text(text) => out.extend_from_slice(text),
            LineFragment::Value(_, index, _) if self.omits(index, job.columns.len()) => (),
            LineFragment::Value(site, _, arguments) if site.quote == Quote::Bare => {
                self.display_bare(site, job, arguments, &mut out);
            }
            LineFragment::Value(site, _, arguments) => {
                self.display_quoted(site, job, arguments, &mut out);
            }
        });
        display::line(out)
    }

    /// Writes the values at a site outside of quotes, as separate words.
    fn display_bare(
        &self,
        site: &PlaceholderSite,
        job: &Job<'_>,
        arguments: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let joined = self.template.is_joined(site);
        let before_redirection = self.template.is_before_redirection(site);
        for (i, nth) in arguments.enumerate() {
            if i > 0 {
                out.push(b' ');
            }
            let mut value = OsString::new();
            if site.placeholder.push(job, nth, self.lenient, &mut value).is_err() {
                out.extend_from_slice(site.placeholder.to_string().as_bytes());
                continue;
            }
            let is_descriptor = before_redirection && value.as_encoded_bytes().iter().all(u8::is_ascii_digit);
            out.extend_from_slice(display::value(&value, joined || is_descriptor).as_bytes());
        }
    }

    /// Writes the values at a site in quotes, separated by spaces.
    fn display_quoted(
        &self,
        site: &PlaceholderSite,
        job: &Job<'_>,
        arguments: Range<usize>,
        out: &mut Vec<u8>,
    ) {
        let mut value = OsString::new();
        for (i, nth) in arguments.enumerate() {
            if i > 0 {
                value.push(" ");
            }
            if site.placeholder.push(job, nth, self.lenient, &mut value).is_err() {
                value.push(site.placeholder.to_string());
            }
        }
        match site.quote {
            Quote::Bare | Quote::Inner => out.extend_from_slice(value.as_encoded_bytes()),
            Quote::Double => {
                if self.template.follows_variable_name(site) {
                    out.extend_from_slice(b"\"\"");
                }
                out.extend_from_slice(display::in_double_quotes(&value).as_bytes());
            }
            Quote::Single => out.extend_from_slice(display::in_single_quotes(&value).as_bytes()),
        }
    }

    /// See [`crate::size::Size`].
    pub(crate) fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        // Each value occurs once, however often the line refers to it.
        for (placeholder, _) in &self.one.parameters {
            placeholder.measure(argument, false, Source::Each, size);
        }
        if argument.is_some() {
            return;
        }
        size.once += self.head.iter().map(|argument| argument.len() + 1).sum::<usize>();
        size.once += self.shell.len() + 1 + self.one.parameters.len();
        self.template.measure(REFERENCE_MAX, size);
    }
}

/// Scans a line for one argument. Where the line is safe only if the values of a placeholder are
/// numbers, adds it to the rules, and scans again. Each scan adds another placeholder of the line.
fn scan_with_numbers(text: &[u8], rules: &mut ScanRules) -> Result<ScannedLine, Error> {
    loop {
        let error = match scan(text, rules, 1) {
            Ok(scanned) => return Ok(scanned),
            Err(error) => error,
        };
        match error.number_check() {
            Some(check) if rules.numbers.iter().all(|known| known.text != check.text) => {
                rules.numbers.push(check);
            }
            _ => return Err(error),
        }
    }
}

/// Assigns numbers of positional parameters to values. Equal placeholders share a number.
struct ParamNumbers {
    /// For each site, the index of the first site with the same placeholder.
    same: Vec<usize>,
    /// For each site, the numbers of its values.
    numbers: Vec<Vec<Option<usize>>>,
    placeholders: Vec<Placeholder>,
    parameters: Vec<(Placeholder, usize)>,
}

impl ParamNumbers {
    fn new(sites: &[PlaceholderSite]) -> ParamNumbers {
        let placeholders: Vec<Placeholder> = sites.iter().map(|site| site.placeholder).collect();
        let same =
            placeholders.iter().map(|p| placeholders.iter().position(|q| p == q).unwrap_or(0)).collect();
        ParamNumbers { same, numbers: vec![Vec::new(); sites.len()], placeholders, parameters: Vec::new() }
    }

    fn number(&mut self, site: usize, nth: usize) -> usize {
        let numbers = &mut self.numbers[self.same[site]];
        if numbers.len() <= nth {
            numbers.resize(nth + 1, None);
        }
        *numbers[nth].get_or_insert_with(|| {
            self.parameters.push((self.placeholders[site], nth));
            self.parameters.len()
        })
    }

    /// Writes the references to the values of a site.
    fn write(&mut self, site: usize, quote: Quote, arguments: Range<usize>, line: &mut Vec<u8>) {
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
            let number = self.number(site, nth);
            // Braces keep the shell from reading a digit that follows as part of the number.
            let text = match (quote, number) {
                (Quote::Bare | Quote::Single, ..10) => format!("${number}"),
                _ => format!("${{{number}}}"),
            };
            line.extend_from_slice(text.as_bytes());
        }
        line.extend_from_slice(after.as_bytes());
    }
}
