//! The compatible face: GNU parallel's command line, and that of its `sem`, in the words of `minder
//! run`.
//!
//! minder wears it when it is called as `parallel` or `sem`, by a link of that name or by the word
//! behind its own. What comes out are the flags, command and arguments of a run like any other;
//! nothing else of minder knows of it. What has no counterpart is refused with the flag's name,
//! never passed over in silence, unless it would change nothing.

mod table;
mod getopt;
mod profile;
mod words;
mod about;
mod quote;
mod sem;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};

use self::getopt::ParsedOption;
pub(crate) use self::sem::Sem;
use self::table::{Mapping, OptionKey, ValueKind};
use crate::report::message;

/// Whose command line it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvokedAs {
    Parallel,
    Sem,
}

/// What a command line comes to.
#[derive(Debug)]
pub(crate) enum Translation {
    /// A run: the words behind `minder run`, flags first.
    Run(Vec<OsString>),
    /// Another verb of ours, with its words.
    Verb(Vec<OsString>),
    /// A command that waits for its turn.
    Sem(Sem),
    /// It was printed, and that was all.
    Said(ExitCode),
}

/// Whether these arguments of minder, its name first, are GNU parallel's; and how many words to
/// pass over.
pub(crate) fn called(args: &[OsString]) -> Option<(InvokedAs, usize)> {
    let known = |name: &OsStr| match name.as_encoded_bytes() {
        b"parallel" => Some(InvokedAs::Parallel),
        b"sem" => Some(InvokedAs::Sem),
        _ => None,
    };
    let own = args.first().and_then(|name| Path::new(name).file_stem()).and_then(known);
    let verb = || args.get(1).and_then(|word| known(word)).map(|called| (called, 2));
    own.map(|called| (called, 1)).or_else(verb)
}

/// Takes the words behind the name.
///
/// # Errors
/// One line that names the flag.
pub(crate) fn take(called: InvokedAs, args: &[OsString]) -> Result<Translation> {
    let wishes = ParallelArgs::read(called, args)?;
    if let Some(face) = about::said(&wishes)? {
        return Ok(face);
    }
    if wishes.has(OptionKey::ShellQuote) {
        return quote::print(&wishes).map(Translation::Said);
    }
    if wishes.is_sem() {
        return wishes.sem().map(Translation::Sem);
    }
    if std::env::var_os("PARALLEL_ENV").is_some_and(|code| !code.is_empty()) {
        note(
            "`PARALLEL_ENV` is set and is not read: functions, aliases and variables that env_parallel or parset hands over \
             do not reach jobs; exported ones do",
        );
    }
    words::run(&wishes).map(Translation::Run)
}

/// What is wanted, from everywhere that options come from.
#[derive(Debug, Default)]
struct ParallelArgs {
    /// Flags of `minder run`, in their order.
    passed: Vec<OsString>,
    /// The names of those.
    names: Vec<&'static str>,
    /// What is looked at together, with every value that was given.
    here: BTreeMap<OptionKey, Vec<OsString>>,
    /// The command and what stands behind it.
    words: Vec<OsString>,
}

impl ParallelArgs {
    fn read(called: InvokedAs, args: &[OsString]) -> Result<Self> {
        let script = profile::of_script(args);
        let args = script.as_deref().unwrap_or(args);
        let mut typed = Self::default();
        typed.add(args)?;
        let mut all = Self::default();
        if called == InvokedAs::Sem {
            all.here.insert(OptionKey::Semaphore, vec![OsString::new()]);
        }
        if !typed.has(OptionKey::Plain) {
            // Each is read to its first other word; those words stand before the command.
            all.add(&profile::words(typed.values(OptionKey::Profile))?)?;
            all.add(&profile::environment()?)?;
        }
        all.add(args)?;
        all.check()?;
        Ok(all)
    }

    /// Adds options, and the words behind them.
    fn add(&mut self, words: &[OsString]) -> Result<()> {
        let (given, rest) = getopt::parse(words)?;
        for given in given {
            let (known, value) = match given {
                ParsedOption::Known(known, value) => (known, value),
                ParsedOption::Own(word) => {
                    self.passed.push(word);
                    continue;
                }
            };
            let name = known.names[0];
            let value = value.or(match known.takes {
                ValueKind::Maybe(default) | ValueKind::MaybeNumber(default) => default.map(OsString::from),
                ValueKind::Nothing | ValueKind::Value => None,
            });
            match (known.does, value) {
                (Mapping::Nothing, _) => (),
                (Mapping::Refuse(why), _) => bail!("`{}` is not supported: {why}", dashed(name)),
                (Mapping::Here(wish), value) => {
                    self.here.entry(wish).or_default().push(value.unwrap_or_default());
                }
                (Mapping::Pass(flag), Some(value)) => self.pass(flag, &value),
                (Mapping::Pass(flag), None) if known.takes == ValueKind::Nothing => {
                    self.passed.push(flag.into());
                    self.names.push(flag);
                }
                // An end of input that is not given is none.
                (Mapping::Pass(_), None) => (),
            }
        }
        self.words.extend(rest);
        Ok(())
    }

    fn pass(&mut self, flag: &'static str, value: &OsStr) {
        let mut word = OsString::from(flag);
        word.push("=");
        word.push(value);
        self.passed.push(word);
        self.names.push(flag);
    }

    fn has(&self, wish: OptionKey) -> bool {
        self.here.contains_key(&wish)
    }

    fn has_passed(&self, flag: &str) -> bool {
        self.names.contains(&flag)
    }

    /// Every value that was given, in their order.
    fn values(&self, wish: OptionKey) -> &[OsString] {
        self.here.get(&wish).map_or(&[], Vec::as_slice)
    }

    /// The last value that was given.
    fn value(&self, wish: OptionKey) -> Option<&OsString> {
        self.values(wish).last()
    }

    /// The shell for the jobs.
    fn shell(&self) -> OsString {
        self.value(OptionKey::Shell).cloned().unwrap_or_else(profile::shell)
    }

    /// What is neither a run nor a semaphore of ours, whatever else is wanted.
    fn check(&mut self) -> Result<()> {
        for login in self.values(OptionKey::Login).to_vec() {
            // This machine, with so many jobs on it if nothing else says how many.
            let here = login.to_str().and_then(|login| login.strip_suffix(':'));
            let jobs = here.map(|here| here.strip_suffix('/').unwrap_or(here));
            match jobs {
                Some("") => (),
                Some(jobs) if jobs.bytes().all(|byte| byte.is_ascii_digit()) => {
                    self.here.entry(OptionKey::Jobs).or_insert_with(|| vec![jobs.into()]);
                }
                _ => {
                    bail!("`--sshlogin {}` is not supported: jobs run on this machine only", login.display())
                }
            }
        }
        for text in self.values(OptionKey::Placeholder) {
            if is_perl(text.as_encoded_bytes()) {
                bail!(
                    "`--rpl {}` is not supported: it is Perl, which is not run here; a name and placeholders are \
                     known, as in --rpl '{{thumb}} {{/.}}-thumb.png'",
                    text.display()
                );
            }
        }
        let texts = [OptionKey::TagString, OptionKey::ColourTagString, OptionKey::Results];
        let mut texts = texts.iter().flat_map(|wish| self.values(*wish)).chain(&self.passed);
        texts.try_for_each(without_perl)
    }
}

fn dashed(name: &str) -> String {
    if name.len() == 1 { format!("-{name}") } else { format!("--{name}") }
}

/// Refuses a text that has a placeholder in Perl.
fn without_perl(text: &OsString) -> Result<()> {
    let bytes = text.as_encoded_bytes();
    let opens = bytes.windows(2).position(|pair| pair == b"{=");
    if opens.is_some_and(|at| bytes[at + 2..].windows(2).any(|pair| pair == b"=}")) {
        bail!(
            "`{}` is not supported: {{= =}} holds Perl, which is not run here; --plus knows more placeholders",
            text.display()
        );
    }
    Ok(())
}

/// Whether what stands behind a placeholder's name is Perl, and not a text with placeholders.
fn is_perl(text: &[u8]) -> bool {
    let text = String::from_utf8_lossy(text);
    let Some((_, body)) = text.trim_start().split_once(char::is_whitespace) else { return false };
    let body = body.trim();
    let operator = ["s", "tr", "y", "m"].iter().any(|name| {
        let next = body.strip_prefix(name).and_then(|rest| rest.chars().next());
        next.is_some_and(|next| next.is_ascii_punctuation() && !matches!(next, '{' | '.' | '-' | '_'))
    });
    let braces = ["s{", "tr{", "y{"].iter().any(|begin| body.starts_with(begin)) && body.contains("}{");
    operator || braces || body.contains("$_") || body.contains(';') || !body.contains('{')
}

/// Says that something is done otherwise than asked.
fn note(line: &str) {
    message(&crate::report::table::escape(line.as_bytes()));
}
