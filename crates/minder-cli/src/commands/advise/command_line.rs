//! The command line that runs the jobs as advised.

use std::ffi::{OsStr, OsString};

use clap::Parser;
use minder_record::event::OsBytes;
use minder_record::manifest::{InputSource, Manifest};

use crate::advise::{Advice, Order};
use crate::config::check_conflicts;
use crate::flags::{Flags, Verb};

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

/// Returns the command of the run with the flags of the advice. Flags that were typed stay, except
/// those that the advice replaces.
pub(super) fn command_line(manifest: &Manifest, advice: &Advice) -> CommandLine {
    let typed = typed_flags(manifest);
    let words: Vec<OsString> = manifest.words.iter().map(OsBytes::to_os).collect();
    let is_parallel = typed.iter().any(|flag| flag == "--parallel-env");
    let mut kept = without_replaced(&typed);
    let mut flags: Vec<OsString> = vec![format!("-j{}", advice.advised.slots).into()];
    let mut keeps_order = None;
    if advice.advised.order != Order::Given {
        let order = ["--order".into(), advice.advised.order.name().into()];
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
        kept = typed.into_iter().filter(|flag| !is_jobs_flag(flag)).collect();
    }
    let mut line = vec!["minder run".to_owned()];
    // The flags of the advice come last, and override what is left of others.
    line.extend(kept.iter().chain(&flags).chain(&words).map(|word| minder_template::shell_word(word)));
    let line = line.join(" ");
    let line = match &manifest.input {
        _ if is_parallel => format!("minder parallel {} …", flags[0].display()),
        InputSource::Arguments { .. } => format!("{line} ::: …"),
        InputSource::File(file) => format!("{line} < {}", minder_template::shell_word(&file.path.to_os())),
        InputSource::Lost { .. } => format!("… | {line}"),
    };
    let flags: Vec<String> = flags.iter().map(|flag| flag.to_string_lossy().into_owned()).collect();
    CommandLine { flags: flags.join(" "), line, keeps_order }
}

/// Returns the flags of the run as they were typed.
fn typed_flags(manifest: &Manifest) -> Vec<OsString> {
    let typed = manifest.flags.get("typed").cloned().unwrap_or_default();
    let typed: Vec<OsBytes> = serde_json::from_value(typed).unwrap_or_default();
    typed.iter().map(OsBytes::to_os).collect()
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
    use crate::advise::{Limit, Prediction};

    /// Returns the line for a run with these flags that is advised to run two jobs at once.
    fn advised(typed: &[&str], input: InputSource, order: Order) -> CommandLine {
        let mut manifest = Manifest::new("/tmp".as_ref(), &["wc -c {}"], input);
        let typed: Vec<OsBytes> = typed.iter().map(|flag| OsBytes::from(*flag)).collect();
        let typed = serde_json::to_value(typed).expect("encode flags");
        manifest.flags.insert("typed".to_owned(), typed);
        let prediction = Prediction { slots: 2, order, elapsed: 1.0, mean: 1.0, p95: 1.0 };
        command_line(
            &manifest,
            &Advice {
                jobs: 9,
                cpu_part: 1.0,
                own: [1.0; 3],
                cores: 2,
                busy: None,
                slots: 4,
                measured: None,
                serial: prediction,
                as_run: prediction,
                advised: prediction,
                other: None,
                limit: Limit::Processors,
                memory: None,
                error: 0.1,
                doubts: Vec::new(),
                attempts: 1,
                retried: 0,
                not_started: 0,
                ended_early: 0,
                too_many: 0,
                killed: false,
            },
        )
    }

    #[test]
    fn command_line_repeats_the_run_with_the_flags_of_the_advice() {
        let arguments = || InputSource::arguments(None, Vec::new(), None);
        let lost = || InputSource::Lost { why: String::new() };
        let line = |typed: &[&str], input, order| {
            let CommandLine { flags, line, keeps_order } = advised(typed, input, order);
            (flags, line, keeps_order)
        };
        assert_eq!(
            line(&["-k", "-j4"], arguments(), Order::Shortest),
            (
                "-j2 --order shortest".into(),
                "minder run -k -j2 --order shortest 'wc -c {}' ::: …".into(),
                None
            )
        );
        assert_eq!(
            line(&["-kj4"], lost(), Order::Given),
            ("-j2".into(), "… | minder run -kj4 -j2 'wc -c {}'".into(), None)
        );
        let redacted = line(&["--redact-args"], arguments(), Order::Longest);
        assert_eq!(redacted.1, "minder run --redact-args -j2 'wc -c {}' ::: …");
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
