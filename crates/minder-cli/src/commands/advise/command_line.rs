//! The command line that runs the jobs as advised.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::Parser;
use minder_record::event::OsBytes;
use minder_record::manifest::{InputSource, MANIFEST, Manifest};

use crate::advise::{Order, Prediction};
use crate::config::check_conflicts;
use crate::flags::{Flags, RunFlags, Verb};
use crate::ui::message;

/// Flags with a value that the advice replaces.
const REPLACED: [&str; 5] = ["-j", "-P", "--jobs", "--max-procs", "--order"];
/// Flags of a random order: with a value, and without.
const RANDOM: [&str; 2] = ["--seed", "--shuf"];

/// A command line as advised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandLine {
    /// The flags of the advice alone.
    pub(super) flags: String,
    /// The whole line, quoted for a POSIX shell.
    pub(super) line: String,
    /// Why the order cannot be changed, although that is advised.
    pub(super) keeps_order: Option<&'static str>,
}

impl CommandLine {
    /// Returns the flags of the advice alone, for a run of which nothing else is known.
    pub(super) fn without_request(advised: Prediction) -> Self {
        let mut flags = format!("-j{}", advised.slots);
        if advised.order != Order::Given {
            flags.extend([" --order ", advised.order.name()]);
        }
        Self { line: format!("minder run {flags} …"), flags, keeps_order: None }
    }
}

/// The flags and arguments of the run, as its manifest has them.
#[derive(Debug)]
pub(super) struct Request {
    manifest: Manifest,
    /// The flags as they were typed.
    typed: Vec<OsString>,
    /// The separators and the arguments after the command, if the record has them.
    behind: Option<Vec<OsString>>,
    /// The same flags, parsed; `None` if this version does not know them.
    flags: Option<Box<RunFlags>>,
}

impl Request {
    /// Reads what was asked of a run. Prints a message if its arguments cannot be read.
    ///
    /// # Errors
    /// The manifest cannot be read, or is damaged.
    pub(super) fn read(dir: &Path) -> Result<Self> {
        let manifest = Manifest::read(dir)?;
        let behind = match &manifest.input {
            InputSource::Arguments { .. } => manifest.arguments(dir).map(Some),
            _ => Ok(Some(Vec::new())),
        };
        let behind = behind.unwrap_or_else(|error| {
            message(&format!("run {} is damaged: {error}", manifest.run));
            None
        });
        let cannot = || format!("cannot read the manifest `{}`", dir.join(MANIFEST).display());
        Self::new(manifest, behind).with_context(cannot)
    }

    fn new(manifest: Manifest, behind: Option<Vec<OsString>>) -> Result<Self> {
        let typed: Vec<OsBytes> = match manifest.flags.get("typed") {
            Some(typed) => serde_json::from_value(typed.clone())?,
            None => Vec::new(),
        };
        let typed: Vec<OsString> = typed.iter().map(OsBytes::to_os).collect();
        let words = manifest.words.iter().map(OsBytes::to_os);
        let head = ["minder", "run"].map(OsString::from).into_iter();
        let line = head.chain(typed.iter().cloned()).chain(["--".into()]).chain(words);
        let flags = match Flags::try_parse_from(line).map(|flags| flags.verb) {
            Ok(Verb::Run(flags)) => Some(flags),
            _ => None,
        };
        Ok(Self { manifest, typed, behind, flags })
    }

    /// Returns the number of jobs, if it was known when the run began.
    pub(super) fn total(&self) -> Option<u64> {
        match &self.manifest.input {
            InputSource::Arguments { jobs, .. } => *jobs,
            _ => None,
        }
    }

    /// Returns the least time between two starts.
    pub(super) fn delay(&self) -> Duration {
        self.flags.as_ref().and_then(|flags| flags.control.delay).unwrap_or_default()
    }

    /// Returns the command line with its sources, as they were given. Values are not repeated.
    fn with_sources(&self, line: &str) -> String {
        let is_redacted = self.flags.as_ref().is_some_and(|flags| flags.record.redact_args);
        let stdin = match &self.manifest.input {
            InputSource::Arguments { stdin, .. } => stdin.as_deref(),
            // The record does not tell whether there was a list of arguments.
            InputSource::Lost { .. } if is_redacted => return format!("{line} …"),
            stdin => Some(stdin),
        };
        let lists = self.behind.as_ref().map_or_else(|| " …".to_owned(), |behind| self.lists(behind));
        match stdin {
            Some(InputSource::File(file)) => {
                format!("{line}{lists} < {}", minder_template::shell_word(&file.path.to_os()))
            }
            Some(_) => format!("… | {line}{lists}"),
            None => format!("{line}{lists}"),
        }
    }

    /// Returns the lists after the command: files with their names, and `…` for values.
    fn lists(&self, behind: &[OsString]) -> String {
        let input = self.flags.as_ref().map(|flags| &flags.input);
        let values = input.map_or(OsStr::new(":::"), |input| &input.arg_sep);
        let files = input.map_or(OsStr::new("::::"), |input| &input.arg_file_sep);
        let is = |word: &OsStr, separator: &OsStr| {
            let rest = word.as_encoded_bytes().strip_prefix(separator.as_encoded_bytes());
            rest.is_some_and(|rest| matches!(rest, b"" | b"+"))
        };
        let mut text = String::new();
        let mut names_files = false;
        let mut has_values = false;
        for word in behind {
            let is_separator = is(word, files) || is(word, values);
            if is_separator {
                names_files = is(word, files);
                has_values = false;
            }
            if is_separator || names_files {
                text.extend([" ", &minder_template::shell_word(word)]);
            } else if !has_values {
                text.push_str(" …");
                has_values = true;
            }
        }
        text
    }
}

/// Returns the command of the run with the flags of the advice. Flags that were typed stay, except
/// those that the advice replaces.
pub(super) fn command_line(request: &Request, advised: Prediction) -> CommandLine {
    let typed = &request.typed;
    let words: Vec<OsString> = request.manifest.words.iter().map(OsBytes::to_os).collect();
    let is_parallel = typed.iter().any(|flag| flag == "--parallel-env");
    let mut kept = without_replaced(typed);
    let mut flags: Vec<OsString> = vec![format!("-j{}", advised.slots).into()];
    let mut keeps_order = None;
    if advised.order != Order::Given {
        let order = ["--order".into(), advised.order.name().into()];
        keeps_order = if is_parallel {
            Some("GNU parallel's command line has no `--order`")
        } else {
            why_no_order(&kept, &order, &words)
        };
        if keeps_order.is_none() {
            flags.extend(order);
        }
    }
    if keeps_order.is_some() {
        kept = typed.iter().filter(|flag| !is_jobs_flag(flag)).cloned().collect();
    }
    let mut line = vec!["minder run".to_owned()];
    // The flags of the advice come last, and override what is left of others.
    line.extend(kept.iter().chain(&flags).chain(&words).map(|word| minder_template::shell_word(word)));
    let line = if is_parallel {
        format!("minder parallel {} …", flags[0].display())
    } else {
        request.with_sources(&line.join(" "))
    };
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
    CommandLine { flags: flags.join(" "), line, keeps_order }
}

fn is_jobs_flag(flag: &OsStr) -> bool {
    let flag = flag.to_string_lossy();
    ["-j", "-P"].iter().any(|name| flag.strip_prefix(name).is_some_and(|value| !value.is_empty()))
}

/// Removes the flags that the advice replaces. Others in the same word, such as `-kj4`, stay: the
/// last one counts, and the flags of the advice follow.
fn without_replaced(typed: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut typed = typed.iter();
    while let Some(flag) = typed.next() {
        let text = flag.to_string_lossy();
        let has_value = |name: &&str| text.strip_prefix(*name).is_some_and(|rest| rest.starts_with('='));
        if REPLACED.iter().chain(&RANDOM[..1]).any(|name| text == *name) {
            typed.next();
        } else if text != RANDOM[1]
            && !is_jobs_flag(flag)
            && !REPLACED.iter().chain(&RANDOM[..1]).any(has_value)
        {
            kept.push(flag.clone());
        }
    }
    kept
}

/// Returns why the run cannot have another order with these flags.
fn why_no_order(kept: &[OsString], order: &[OsString], words: &[OsString]) -> Option<&'static str> {
    let head = ["minder", "run"].map(OsString::from);
    let line = head.iter().chain(kept).chain(order).chain(words);
    match Flags::try_parse_from(line).map(|flags| flags.verb) {
        Ok(Verb::Run(flags)) if flags.record.redact_args => {
            Some("its record has no arguments by which jobs are known again")
        }
        Ok(Verb::Run(flags)) if check_conflicts(&flags).is_ok() => None,
        _ => Some("`--order` excludes other flags of it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the line for a run with these flags that is advised to run two jobs at once.
    fn advised(typed: &[&str], input: InputSource, behind: &str, order: Order) -> CommandLine {
        let mut manifest = Manifest::new("/tmp".as_ref(), &["wc -c {}"], input);
        let typed: Vec<OsBytes> = typed.iter().map(|flag| OsBytes::from(*flag)).collect();
        let typed = serde_json::to_value(typed).expect("encode flags");
        manifest.flags.insert("typed".to_owned(), typed);
        let prediction = Prediction { slots: 2, order, elapsed: 1.0, mean: 1.0, p95: 1.0 };
        let behind = behind.split_whitespace().map(OsString::from).collect();
        command_line(&Request::new(manifest, Some(behind)).expect("flags are readable"), prediction)
    }

    #[test]
    fn command_line_repeats_the_run_with_the_flags_of_the_advice() {
        let arguments = || InputSource::arguments(None, Vec::new(), None);
        let lost = || InputSource::Lost { why: String::new() };
        let line = |typed: &[&str], input, order| {
            let behind = if matches!(input, InputSource::Lost { .. }) { "" } else { ":::+ a b c" };
            let CommandLine { flags, line, keeps_order } = advised(typed, input, behind, order);
            (flags, line, keeps_order)
        };
        assert_eq!(
            line(&["-k", "-j4"], arguments(), Order::Shortest),
            (
                "-j2 --order shortest".into(),
                "minder run -k -j2 --order shortest 'wc -c {}' :::+ …".into(),
                None
            )
        );
        assert_eq!(
            line(&["-kj4"], lost(), Order::Given),
            ("-j2".into(), "… | minder run -kj4 -j2 'wc -c {}'".into(), None)
        );
        let redacted = line(&["--redact-args"], lost(), Order::Longest);
        assert_eq!(redacted.1, "minder run --redact-args -j2 'wc -c {}' …");
        assert_eq!(redacted.2, Some("its record has no arguments by which jobs are known again"));
        let blocks = line(&["--pipe", "-N1", "-j4"], lost(), Order::Longest);
        assert_eq!(blocks.1, "… | minder run --pipe -N1 -j2 'wc -c {}'");
        assert_eq!(blocks.2, Some("`--order` excludes other flags of it"));
        let parallel = line(&["--parallel-env", "-j4"], arguments(), Order::Shortest);
        assert_eq!(parallel.1, "minder parallel -j2 …");
        assert_eq!(parallel.2, Some("GNU parallel's command line has no `--order`"));
        // Nothing of another order is left if the jobs keep theirs.
        assert_eq!(line(&["--shuf", "--seed=7"], lost(), Order::Given).1, "… | minder run -j2 'wc -c {}'");
    }

    #[test]
    fn sources_are_those_of_the_run() {
        let line = |typed: &[&str], stdin: Option<InputSource>, behind| {
            let input = InputSource::arguments(None, Vec::new(), stdin.map(Box::new));
            advised(typed, input, behind, Order::Given).line
        };
        let lost = || Some(InputSource::Lost { why: String::new() });
        assert_eq!(line(&["-a", "my file"], None, ""), "minder run -a 'my file' -j2 'wc -c {}'");
        assert_eq!(line(&[], None, ":::: f g"), "minder run -j2 'wc -c {}' :::: f g");
        assert_eq!(
            line(&["-a", "f"], None, "::: a b :::: g :::+ c ::::+ h"),
            "minder run -a f -j2 'wc -c {}' ::: … :::: g :::+ … ::::+ h"
        );
        assert_eq!(line(&[], lost(), ":::: - ::: a"), "… | minder run -j2 'wc -c {}' :::: - ::: …");
        assert_eq!(
            line(&["--arg-sep=,,", "--arg-file-sep", "%"], None, ",, a b % f"),
            "minder run --arg-sep=,, --arg-file-sep % -j2 'wc -c {}' ,, … % f"
        );
    }

    #[test]
    fn without_replaced_removes_slots_and_order() {
        let kept = |line: &str| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            without_replaced(&words).join(OsStr::new(" ")).into_string().expect("flags are UTF-8")
        };
        assert_eq!(kept("-k -j4 --tag"), "-k --tag");
        assert_eq!(kept("-j 4 -k --jobs 7 --max-procs=3 --order shortest"), "-k");
        assert_eq!(kept("--shuf --seed=7 --order=random --seed 8 -kj4 --joblog x"), "-kj4 --joblog x");
    }
}
