//! The shell form for shells that take values from their environment: a line that refers to
//! variables, and the variables.
//!
//! The line depends on the template, on the number of values and on which of them are empty:
//! Windows has no variable that is empty ("SetEnvironmentVariable", learn.microsoft.com: an empty
//! one of cmd's is one that is not there), so nothing is written for those. What the others are is
//! never in it.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::sync::Arc;

use crate::checks::CheckCache;
use crate::display;
use crate::error::{Error, ErrorKind};
use crate::job::{Invocation, Job};
use crate::options::{Options, Repeat};
use crate::placeholder::expression::{Placeholder, Source};
use crate::placeholder::set::PlaceholderSet;
use crate::placeholder::site::Quote;
use crate::shell::{CMD_LINE_MAX, Dialect, Shell, quoted, too_long, units};
use crate::size::{CommandLength, Size};
use crate::template_line::{Part, TemplateLine};
use crate::windows::scanned_line::{Place, Scanned};
use crate::windows::{cmd, powershell};
use minder_os::encoding::os_str_from_encoded;

/// A line and what it is started with.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    shell: Shell,
    written: TemplateLine,
    places: Vec<Place>,
    placeholders: Arc<PlaceholderSet>,
    repeat: Repeat,
    lenient: bool,
    checks: CheckCache,
}

/// A part of a line for a job.
enum Bit<'a> {
    Text(Cow<'a, [u8]>),
    Value { place: Place, quote: Quote, from: (Placeholder, usize), value: OsString, doubled: usize },
}

/// Our variables are this and a number from 1.
const NAME: &str = "MINDER_V";

/// The longest way of writing a variable in the line, quotes and a blank with it:
/// `"${env:MINDER_V1234567}" `.
const REFERENCE_MAX: usize = 26;

impl Line {
    pub(crate) fn parse(line: &OsStr, options: &Options, shell: Shell) -> Result<Line, Error> {
        let mut text = line.as_encoded_bytes().to_vec();
        let (placeholders, repeat) = (Arc::new(options.placeholders.clone()), options.repeat);
        let mut scanned = scan(shell.dialect, &text, &placeholders, repeat, 1)?;
        if scanned.seen.is_empty() && options.append {
            let at = scanned.tail.ok_or_else(Error::no_last_command)?;
            let value = [b" ", options.placeholders.value().1].concat();
            text.splice(at..at, value);
            scanned = scan(shell.dialect, &text, &placeholders, repeat, 1)?;
        }
        let Scanned { seen, places, spans, .. } = scanned;
        let (written, lenient) = (TemplateLine { text, seen, spans }, options.missing_is_empty);
        Ok(Line { shell, written, places, placeholders, repeat, lenient, checks: CheckCache::default() })
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.written.placeholders()
    }

    pub(crate) fn invocation(&self, job: &Job<'_>) -> Result<Invocation, Error> {
        let look =
            |count| scan(self.shell.dialect, &self.written.text, &self.placeholders, self.repeat, count);
        self.checks.of(job.columns.len(), |count| look(count).map(drop))?;
        let mut bits = self.bits(job)?;
        if self.shell.dialect == Dialect::Cmd {
            double_backslashes(&mut bits);
        }
        let (line, variables) = self.render(bits)?;
        let mut call = Invocation { words: self.shell.head(), tail: None, variables };
        match self.shell.dialect {
            Dialect::Cmd => {
                self.fits(&line, &call.variables)?;
                call.tail = Some(quoted(&line));
            }
            _ => call.words.push(line),
        }
        Ok(call)
    }

    /// The parts of the line, with the values that stand between them.
    fn bits(&self, job: &Job<'_>) -> Result<Vec<Bit<'_>>, Error> {
        let mut bits = Vec::new();
        let mut failed = None;
        let count = job.columns.len();
        self.written.walk(count, &mut |part| match part {
            Part::Text(text) => bits.push(Bit::Text(text.into())),
            Part::Value(seen, at, arguments) => {
                let (place, quote) = (self.places[at], seen.quote);
                if arguments.is_empty() && quote == Quote::Bare && !self.written.is_word(seen) {
                    bits.push(Bit::Text(self.empty().into()));
                }
                for (i, nth) in arguments.enumerate() {
                    if i > 0 {
                        bits.push(Bit::Text(b" ".into()));
                    }
                    let mut value = OsString::new();
                    if let Err(error) = seen.placeholder.push(job, nth, self.lenient, &mut value) {
                        failed.get_or_insert(error);
                    }
                    bits.push(Bit::Value { place, quote, from: (seen.placeholder, nth), value, doubled: 0 });
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(bits),
        }
    }

    /// An argument without any character.
    fn empty(&self) -> &'static [u8] {
        if self.shell.dialect == Dialect::Cmd { b"\"\"" } else { b"''" }
    }

    /// The line, and the variables that it refers to. Nothing of a value gets into the line.
    fn render(&self, bits: Vec<Bit<'_>>) -> Result<(OsString, Vec<(String, OsString)>), Error> {
        let mut line = Vec::with_capacity(self.written.text.len() + 16);
        let mut variables = Vec::new();
        let mut known: Vec<((Placeholder, usize), usize)> = Vec::new();
        for bit in bits {
            let Bit::Value { place, quote, from, mut value, doubled } = bit else {
                if let Bit::Text(text) = bit {
                    line.extend_from_slice(&text);
                }
                continue;
            };
            self.check(&value, place)?;
            if value.is_empty() {
                line.extend_from_slice(if quote == Quote::Bare { self.empty() } else { b"" });
                continue;
            }
            let number = match known.iter().position(|other| *other == (from, doubled)) {
                Some(place) => place + 1,
                None => {
                    known.push((from, doubled));
                    value.push("\\".repeat(doubled));
                    variables.push((format!("{NAME}{}", known.len()), value));
                    known.len()
                }
            };
            let reference = match (self.shell.dialect, quote) {
                (Dialect::Cmd, Quote::Bare) => format!("\"%{NAME}{number}%\""),
                (Dialect::Cmd, _) => format!("%{NAME}{number}%"),
                (_, Quote::Bare) => format!("$env:{NAME}{number}"),
                (..) => format!("${{env:{NAME}{number}}}"),
            };
            line.extend_from_slice(reference.as_bytes());
        }
        Ok((os_str_from_encoded(&line).into_owned(), variables))
    }

    /// Refuses a value that this shell cannot be handed at this place.
    fn check(&self, value: &OsStr, place: Place) -> Result<(), Error> {
        let bytes = value.as_encoded_bytes();
        let fail = |why: &str| {
            let mut shown = String::new();
            display::text(bytes, &mut shown);
            Err(Error::new(ErrorKind::Value, format!("the value `{shown}` {why}")))
        };
        if self.shell.dialect == Dialect::Cmd {
            if bytes.contains(&b'"') {
                return fail(
                    "holds a quotation mark, which ends the quotes around it for cmd: give the command as several words, or use `--shell pwsh`",
                );
            }
            if bytes.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                return fail(
                    "holds a line end or another control character, which no line for cmd can: give the command as several words, or use `--shell pwsh`",
                );
            }
            if place.twice && bytes.contains(&b'%') {
                return fail(
                    "holds a `%`, and beside a pipe cmd may take it for a variable: give the command as several words, or use `--shell pwsh`",
                );
            }
        }
        // Windows PowerShell hands such words to programs without quoting what is in them; version 7.3 and
        // newer do.
        let open = bytes.contains(&b'"') || (bytes.contains(&b' ') && bytes.ends_with(b"\\"));
        if self.shell.name == "powershell" && open {
            return fail(
                "holds a quotation mark, or a blank and a backslash at its end, which powershell does not hand to programs as they are: use `--shell pwsh`",
            );
        }
        Ok(())
    }

    /// Refuses a line that is too long for cmd, as it is or with all that it refers to.
    fn fits(&self, line: &OsStr, variables: &[(String, OsString)]) -> Result<(), Error> {
        let short = units(line.as_encoded_bytes());
        let mut long = 0;
        let mut rest = line.as_encoded_bytes();
        while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
            let name = &rest[at + 1..];
            let end = name.iter().position(|byte| *byte == b'%');
            let held = end.and_then(|end| held(&name[..end], variables));
            match (end, held) {
                (Some(end), Some(held)) => {
                    long += units(&rest[..at]) + held;
                    rest = &name[end + 1..];
                }
                _ => {
                    long += units(&rest[..=at]);
                    rest = name;
                }
            }
        }
        match short.max(long + units(rest)) {
            units if units > CMD_LINE_MAX => Err(Error::new(ErrorKind::Value, too_long(units))),
            _ => Ok(()),
        }
    }

    /// How many arguments the line can refer to.
    pub(crate) fn arguments_max(&self) -> usize {
        let repeats = self.written.placeholders().any(Placeholder::repeats);
        if self.shell.dialect != Dialect::Cmd || !repeats {
            return usize::MAX;
        }
        let CommandLength { once, times, each } = self.written.lengths();
        (CMD_LINE_MAX.saturating_sub(once) / (times * REFERENCE_MAX + each)).max(1)
    }

    /// How many bytes the line may have with its values.
    pub(crate) fn bytes_max(&self) -> Option<usize> {
        self.shell.bytes_max()
    }

    /// The words before the line.
    pub(crate) fn head(&self) -> Vec<OsString> {
        self.shell.head()
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let mut lengths = self.written.lengths();
        if self.shell.dialect == Dialect::Cmd {
            // The quotes around each value.
            lengths.each += 2 * lengths.times;
        }
        lengths
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        let Ok(bits) = self.bits(job) else {
            display::text(&self.written.text, &mut out);
            return out;
        };
        let plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./\\:+".contains(byte) || !byte.is_ascii();
        for bit in bits {
            match bit {
                Bit::Text(text) => display::text(&text, &mut out),
                Bit::Value { value, quote, .. } => {
                    let bytes = value.as_encoded_bytes();
                    let quotes = quote == Quote::Bare && (bytes.is_empty() || !bytes.iter().all(plain));
                    let mark = match self.shell.dialect {
                        _ if !quotes => "",
                        Dialect::Cmd => "\"",
                        _ => "'",
                    };
                    out += mark;
                    match mark {
                        "'" => display::text(&doubled(bytes, b'\''), &mut out),
                        _ => display::text(bytes, &mut out),
                    }
                    out += mark;
                }
            }
        }
        out
    }

    /// See [`crate::size::Size`].
    pub(crate) fn measure(&self, argument: Option<(usize, &OsStr)>, size: &mut Size) {
        for seen in &self.written.seen {
            seen.placeholder.measure(argument, false, Source::Each, size);
        }
        if argument.is_some() {
            return;
        }
        size.once += self.shell.head().iter().map(|word| word.len() + 1).sum::<usize>();
        self.written.measure(REFERENCE_MAX, size);
    }
}

fn scan(
    dialect: Dialect,
    text: &[u8],
    placeholders: &PlaceholderSet,
    repeat: Repeat,
    count: usize,
) -> Result<Scanned, Error> {
    match dialect {
        Dialect::Cmd => {
            let rules = cmd::Rules { placeholders, repeat, variable: &|name| std::env::var_os(name) };
            cmd::scan(text, &rules, count)
        }
        _ => powershell::scan(text, placeholders, repeat, count),
    }
}

/// How many units a variable holds, if it is there. One of which a part is taken counts whole.
fn held(name: &[u8], variables: &[(String, OsString)]) -> Option<usize> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some((_, value)) = variables.iter().find(|(ours, _)| ours == name) {
        return Some(units(value.as_encoded_bytes()));
    }
    let base = name.split(':').next().filter(|base| !base.is_empty() && !base.contains(['=', '\0']))?;
    Some(units(std::env::var_os(base)?.as_encoded_bytes()))
}

/// Doubles the backslashes right before a quote that ends a word for a program: its runtime takes
/// two for one there, and one for the quote itself. Where a value is empty, those of the value or
/// text before it stand there.
fn double_backslashes(bits: &mut [Bit<'_>]) {
    let trailing = |bytes: &[u8]| bytes.iter().rev().take_while(|byte| **byte == b'\\').count();
    // Behind what was looked at so far comes a quote, with nothing else before it.
    let mut before_quote = false;
    // Whether that is so for want of a value only.
    let mut by_empty = false;
    for bit in bits.iter_mut().rev() {
        match bit {
            Bit::Text(text) if before_quote && by_empty && text.iter().all(|byte| *byte == b'\\') => {
                *text = Cow::Owned(text.repeat(2));
            }
            Bit::Text(text) => {
                (before_quote, by_empty) = (text.first() == Some(&b'"'), false);
            }
            Bit::Value { place, quote, value, doubled, .. } => {
                let bytes = value.as_encoded_bytes();
                let ends = *quote == Quote::Bare || before_quote;
                let count = trailing(bytes);
                if ends && place.program {
                    *doubled = count;
                }
                let all = count == bytes.len();
                before_quote = ends && place.program && all && *quote == Quote::Double;
                by_empty = before_quote;
            }
        }
    }
}

fn doubled(bytes: &[u8], byte: u8) -> Vec<u8> {
    bytes.iter().flat_map(|&one| std::iter::repeat_n(one, if one == byte { 2 } else { 1 })).collect()
}
