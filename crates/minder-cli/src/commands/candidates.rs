//! `minder __candidates KIND`: names for the completions of a shell.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::process::ExitCode;

use minder_record::store;
use minder_runner::text::shorten;
use minder_ui::table::escape;

use super::help;
use crate::flags::Flags;
use crate::recorded::command_text;
use crate::settings;

/// The word after the name of the program.
const WORD: &str = "__candidates";

/// The maximum number of runs. A longer list of completions is not read.
const RUNS_MAX: usize = 50;

/// Returns the kind of names that a command line asks for.
pub(crate) fn asked(args: &[OsString]) -> Option<&str> {
    match args {
        [_, word, kind] if word == WORD => kind.to_str(),
        _ => None,
    }
}

/// Prints the names of a kind, one per line, each with a tab and a description if it has one. Without a
/// record or settings, there are none: a completion prints no errors.
pub(crate) fn print(kind: &str) -> ExitCode {
    let lines = match kind {
        "runs" => runs(),
        "profiles" => settings::gather(None, &[]).map(|gathered| gathered.profiles).unwrap_or_default(),
        "commands" => commands(),
        "topics" => topics(),
        _ => Vec::new(),
    };
    let mut text = String::new();
    for line in lines {
        let _ = writeln!(text, "{line}");
    }
    let _ = minder_runner::blocking_io::write_all(&std::io::stdout(), text.as_bytes());
    ExitCode::SUCCESS
}

/// Returns `last` and the ids of runs, the newest first.
fn runs() -> Vec<String> {
    let entries = store::state_root().and_then(|root| store::recent(&root, RUNS_MAX)).unwrap_or_default();
    let line = |entry: store::RunEntry| {
        let command = entry.manifest.map(|manifest| command_text(&manifest.words)).unwrap_or_default();
        format!("{}\t{}", entry.id, escape(shorten(&command).as_bytes()))
    };
    let last = (!entries.is_empty()).then(|| "last\tthe last run".to_owned());
    last.into_iter().chain(entries.into_iter().map(line)).collect()
}

fn commands() -> Vec<String> {
    let minder = Flags::interface();
    let commands = help::subcommand_names(&minder).into_iter().map(|name| {
        let about = minder.find_subcommand(name).and_then(clap::Command::get_about);
        format!("{name}\t{}", about.map(ToString::to_string).unwrap_or_default())
    });
    commands.collect()
}

/// Returns what `minder help` explains.
fn topics() -> Vec<String> {
    let topics = help::topic_titles().map(|(topic, title)| format!("{topic}\t{title}"));
    commands().into_iter().chain(topics).collect()
}
