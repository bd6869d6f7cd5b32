//! A line for cmd.exe or PowerShell: the line refers to environment variables, and the values are
//! in those.
//!
//! The line depends on the template, on the number of values, and on which values are empty. It
//! never contains a value. An empty value has no variable, since Windows has no empty environment
//! variables: setting one to the empty string removes it ("SetEnvironmentVariable",
//! learn.microsoft.com).

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
use crate::template_line::{LineFragment, TemplateLine};
use crate::windows::scanned_line::{ScannedLine, SiteContext};
use crate::windows::{cmd, powershell};
use minder_os::encoding::os_str_from_encoded;

/// A line for a Windows shell, and that shell.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    shell: Shell,
    template: TemplateLine,
    /// One for each site of `template`.
    contexts: Vec<SiteContext>,
    placeholders: Arc<PlaceholderSet>,
    repeat: Repeat,
    lenient: bool,
    checks: CheckCache,
}

/// A part of the line of one job.
enum Fragment<'a> {
    Text(Cow<'a, [u8]>),
    Value(ValueFragment),
}

/// A value that the line refers to.
struct ValueFragment {
    context: SiteContext,
    quote: Quote,
    /// The placeholder, and the index of its argument.
    origin: (Placeholder, usize),
    value: OsString,
    /// The number of backslashes that are appended to the value.
    extra_backslashes: usize,
}

/// The variables have this name and a number, counted from 1.
const NAME: &str = "MINDER_V";

/// The maximum length of a reference to a variable, with quotes and a space:
/// `"${env:MINDER_V1234567}" `.
const REFERENCE_MAX: usize = 26;

impl Line {
    pub(crate) fn parse(line: &OsStr, options: &Options, shell: Shell) -> Result<Line, Error> {
        let mut text = line.as_encoded_bytes().to_vec();
        let placeholders = Arc::new(options.placeholders.clone());
        let repeat = options.repeat;
        let mut scanned = scan(shell.dialect, &text, &placeholders, repeat, 1)?;
        if scanned.sites.is_empty() && options.append {
            let at = scanned.tail.ok_or_else(Error::no_last_command)?;
            let value = [b" ", options.placeholders.value().1].concat();
            text.splice(at..at, value);
            scanned = scan(shell.dialect, &text, &placeholders, repeat, 1)?;
        }
        let ScannedLine { sites, contexts, spans, .. } = scanned;
        Ok(Line {
            shell,
            template: TemplateLine { text, sites, spans },
            contexts,
            placeholders,
            repeat,
            lenient: options.missing_is_empty,
            checks: CheckCache::default(),
        })
    }

    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.template.placeholders()
    }

    pub(crate) fn invocation(&self, job: &Job<'_>) -> Result<Invocation, Error> {
        // The scan for one argument was made when the line was parsed.
        let scan =
            |count| scan(self.shell.dialect, &self.template.text, &self.placeholders, self.repeat, count);
        self.checks.of(job.columns.len(), |count| match count {
            1 => Ok(Arc::default()),
            _ => scan(count).map(|_| Arc::default()),
        })?;
        let mut fragments = self.fragments(job)?;
        if self.shell.dialect == Dialect::Cmd {
            double_backslashes(&mut fragments);
        }
        let (line, variables) = self.render(fragments)?;
        let mut invocation = Invocation { argv: self.shell.head(), raw_tail: None, variables };
        if self.shell.dialect == Dialect::Cmd {
            check_length(&line, &invocation.variables)?;
            invocation.raw_tail = Some(quoted(&line));
        } else {
            invocation.argv.push(line);
        }
        Ok(invocation)
    }

    /// Returns the fragments of the line for a job.
    fn fragments(&self, job: &Job<'_>) -> Result<Vec<Fragment<'_>>, Error> {
        let mut fragments = Vec::new();
        let mut failed = None;
        let count = job.columns.len();
        self.template.walk(count, &mut |part| match part {
            LineFragment::Text(text) => fragments.push(Fragment::Text(text.into())),
            LineFragment::Value(site, at, arguments) => {
                let quote = site.quote;
                if arguments.is_empty() && quote == Quote::Bare && !self.template.is_word(site) {
                    fragments.push(Fragment::Text(self.empty().into()));
                }
                for (i, nth) in arguments.enumerate() {
                    if i > 0 {
                        fragments.push(Fragment::Text(b" ".into()));
                    }
                    let mut value = OsString::new();
                    if let Err(error) = site.placeholder.push(job, nth, self.lenient, &mut value) {
                        failed.get_or_insert(error);
                    }
                    fragments.push(Fragment::Value(ValueFragment {
                        context: self.contexts[at],
                        quote,
                        origin: (site.placeholder, nth),
                        value,
                        extra_backslashes: 0,
                    }));
                }
            }
        });
        failed.map_or(Ok(fragments), Err)
    }

    /// Returns an empty argument as it is written in the line.
    fn empty(&self) -> &'static [u8] {
        if self.shell.dialect == Dialect::Cmd { b"\"\"" } else { b"''" }
    }

    /// Returns the line and the variables that it refers to. The line contains no value.
    fn render(&self, fragments: Vec<Fragment<'_>>) -> Result<(OsString, Vec<(String, OsString)>), Error> {
        let mut line = Vec::with_capacity(self.template.text.len() + 16);
        let mut variables = Vec::new();
        let mut known: Vec<((Placeholder, usize), usize)> = Vec::new();
        for fragment in fragments {
            let value = match fragment {
                Fragment::Text(text) => {
                    line.extend_from_slice(&text);
                    continue;
                }
                Fragment::Value(value) => value,
            };
            let ValueFragment { context, quote, origin, mut value, extra_backslashes } = value;
            self.check(&value, context)?;
            if value.is_empty() {
                line.extend_from_slice(if quote == Quote::Bare { self.empty() } else { b"" });
                continue;
            }
            let key = (origin, extra_backslashes);
            let number = match known.iter().position(|other| *other == key) {
                Some(index) => index + 1,
                None => {
                    known.push(key);
                    value.push("\\".repeat(extra_backslashes));
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

    /// Refuses a value that this shell cannot receive at such a site.
    fn check(&self, value: &OsStr, context: SiteContext) -> Result<(), Error> {
        let bytes = value.as_encoded_bytes();
        let fail = |why: &str| {
            let mut shown = String::new();
            display::text(bytes, &mut shown);
            Err(Error::new(ErrorKind::Value, format!("the value `{shown}` {why}")))
        };
        if self.shell.dialect == Dialect::Cmd {
            if bytes.contains(&b'"') {
                return fail(
                    "holds a quotation mark, which ends the quotes around it for cmd: give the command as \
                     several words, or use `--shell pwsh`",
                );
            }
            if bytes.iter().any(|byte| byte.is_ascii_control() && *byte != b'\t') {
                return fail(
                    "holds a line end or another control character, which no line for cmd can: give the \
                     command as several words, or use `--shell pwsh`",
                );
            }
            if context.expanded_twice && bytes.contains(&b'%') {
                return fail(
                    "holds a `%`, and next to a pipe cmd may take it for a variable: give the command as \
                     several words, or use `--shell pwsh`",
                );
            }
        }
        // Windows PowerShell passes such arguments to programs without quoting them. PowerShell 7.3 and
        // newer quote them.
        let is_passed_unquoted = bytes.contains(&b'"') || (bytes.contains(&b' ') && bytes.ends_with(b"\\"));
        if self.shell.name == "powershell" && is_passed_unquoted {
            return fail(
                "holds a quotation mark, or a space and a backslash at its end, which powershell does not \
                 pass to programs unchanged: use `--shell pwsh`",
            );
        }
        Ok(())
    }

    /// Returns the number of arguments that the line can refer to.
    pub(crate) fn arguments_max(&self) -> usize {
        let repeats = self.template.placeholders().any(Placeholder::repeats);
        if self.shell.dialect != Dialect::Cmd || !repeats {
            return usize::MAX;
        }
        let lengths = self.template.lengths();
        let each = lengths.all_times() * REFERENCE_MAX + lengths.each;
        (CMD_LINE_MAX.saturating_sub(lengths.once) / each).max(1)
    }

    /// Returns the maximum length of the line with its values, if the shell limits it.
    pub(crate) fn bytes_max(&self) -> Option<usize> {
        self.shell.bytes_max()
    }

    /// Returns the arguments before the line.
    pub(crate) fn head(&self) -> Vec<OsString> {
        self.shell.head()
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let mut lengths = self.template.lengths();
        if self.shell.dialect == Dialect::Cmd {
            // The quotes around each value.
            lengths.each += 2 * lengths.all_times();
        }
        lengths
    }

    pub(crate) fn display(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        let Ok(fragments) = self.fragments(job) else {
            display::text(&self.template.text, &mut out);
            return out;
        };
        let plain =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"_-./\\:+".contains(byte) || !byte.is_ascii();
        for fragment in fragments {
            match fragment {
                Fragment::Text(text) => display::text(&text, &mut out),
                Fragment::Value(ValueFragment { value, quote, .. }) => {
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
        for site in &self.template.sites {
            site.placeholder.measure(argument, false, Source::Each, size);
        }
        if argument.is_some() {
            return;
        }
        size.once += self.shell.head().iter().map(|argument| argument.len() + 1).sum::<usize>();
        self.template.measure(REFERENCE_MAX, size);
    }
}

fn scan(
    dialect: Dialect,
    text: &[u8],
    placeholders: &PlaceholderSet,
    repeat: Repeat,
    count: usize,
) -> Result<ScannedLine, Error> {
    match dialect {
        Dialect::Cmd => {
            let rules = cmd::Rules { placeholders, repeat, variable: &|name| std::env::var_os(name) };
            cmd::scan(text, &rules, count)
        }
        _ => powershell::scan(text, placeholders, repeat, count),
    }
}

/// Refuses a line that is too long for cmd, before or after cmd expands its variables.
fn check_length(line: &OsStr, variables: &[(String, OsString)]) -> Result<(), Error> {
    let unexpanded = units(line.as_encoded_bytes());
    let mut expanded = 0;
    let mut rest = line.as_encoded_bytes();
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let name = &rest[at + 1..];
        let end = name.iter().position(|byte| *byte == b'%');
        let length = end.and_then(|end| variable_len(&name[..end], variables));
        match (end, length) {
            (Some(end), Some(length)) => {
                expanded += units(&rest[..at]) + length;
                rest = &name[end + 1..];
            }
            _ => {
                expanded += units(&rest[..=at]);
                rest = name;
            }
        }
    }
    expanded += units(rest);
    let longest = unexpanded.max(expanded);
    if longest > CMD_LINE_MAX {
        return Err(Error::new(ErrorKind::Value, too_long(longest)));
    }
    Ok(())
}

/// Returns the length of a variable in UTF-16 units, if it exists. `%NAME:~0,1%` counts as the
/// whole variable.
fn variable_len(name: &[u8], variables: &[(String, OsString)]) -> Option<usize> {
    let name = std::str::from_utf8(name).ok()?;
    if let Some((_, value)) = variables.iter().find(|(ours, _)| ours == name) {
        return Some(units(value.as_encoded_bytes()));
    }
    let base = name.split(':').next().filter(|base| !base.is_empty() && !base.contains(['=', '\0']))?;
    Some(units(std::env::var_os(base)?.as_encoded_bytes()))
}

/// Doubles the backslashes directly before a quote that ends an argument of a program. The MSVC
/// runtime reads two of them as one there, and a single one as part of `\"`. If the value before
/// the quote is empty, the backslashes of the value or text before that one are doubled.
fn double_backslashes(fragments: &mut [Fragment<'_>]) {
    let trailing = |bytes: &[u8]| bytes.iter().rev().take_while(|byte| **byte == b'\\').count();
    // The loop runs backwards. The next thing after the current fragment is a quote.
    let mut before_quote = false;
    // It is, because the value between them is empty or consists of backslashes.
    let mut after_empty_value = false;
    for fragment in fragments.iter_mut().rev() {
        match fragment {
            Fragment::Text(text) => {
                if before_quote && after_empty_value && text.iter().all(|byte| *byte == b'\\') {
                    *text = Cow::Owned(text.repeat(2));
                } else {
                    before_quote = text.first() == Some(&b'"');
                    after_empty_value = false;
                }
            }
            Fragment::Value(ValueFragment { context, quote, value, extra_backslashes, .. }) => {
                let bytes = value.as_encoded_bytes();
                let ends_argument = *quote == Quote::Bare || before_quote;
                let count = trailing(bytes);
                if ends_argument && context.follows_msvc_rules {
                    *extra_backslashes = count;
                }
                before_quote = ends_argument
                    && context.follows_msvc_rules
                    && count == bytes.len()
                    && *quote == Quote::Double;
                after_empty_value = before_quote;
            }
        }
    }
}

fn doubled(bytes: &[u8], byte: u8) -> Vec<u8> {
    bytes.iter().flat_map(|&one| std::iter::repeat_n(one, if one == byte { 2 } else { 1 })).collect()
}
