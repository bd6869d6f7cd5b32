//! `minder help`: verbs, and topics that are about more than one flag.

use std::io::Write;

use anyhow::{Result, bail};
use clap::{Command, CommandFactory, Parser};

use crate::flags::{Flags, HelpFlags};

/// Each topic's text: a first line `name: title`, then what is to be known, with examples that the
/// tests run.
const TOPICS: [&str; 11] = [
    include_str!("help/input.txt"),
    include_str!("help/placeholders.txt"),
    include_str!("help/quoting.txt"),
    include_str!("help/values.txt"),
    include_str!("help/slots.txt"),
    include_str!("help/control.txt"),
    include_str!("help/output.txt"),
    include_str!("help/pipe.txt"),
    include_str!("help/record.txt"),
    include_str!("help/resume.txt"),
    include_str!("help/exit.txt"),
];

/// What two verbs are that have a command line of their own.
const FACE: &str = "GNU parallel's command line, also as a link of that name";

/// Explains a verb or a topic, or lists them.
pub(crate) fn run(out: &mut dyn Write, flags: &HelpFlags) -> Result<()> {
    let mut all = Flags::command();
    all.build();
    if flags.name.is_empty() {
        return list(out, &all);
    }
    let name = flags.name.join(" ");
    if let Some(text) = TOPICS.iter().find(|text| head(text).0 == name) {
        return Ok(out.write_all(text.as_bytes())?);
    }
    if find(&all, &flags.name).is_some() {
        // The parser knows best whether there is a terminal, how wide it is, and its colours.
        let words = flags.name.iter().map(String::as_str);
        if let Err(help) = Flags::try_parse_from(["minder"].into_iter().chain(words).chain(["--help"])) {
            help.print()?;
        }
        return Ok(());
    }
    if matches!(name.as_str(), "parallel" | "sem") {
        bail!("`minder {name} --help` has it; docs/from-parallel.md names every option");
    }
    let topics: Vec<&str> = titles().map(|(topic, _)| topic).collect();
    bail!(
        "there is no help about `{name}`: there are the verbs {}, and the topics {}",
        verbs(&all).join(", "),
        topics.join(", ")
    );
}

/// The command of a verb, and of what it is to do.
pub(crate) fn find<'a>(all: &'a Command, words: &[String]) -> Option<&'a Command> {
    words.iter().try_fold(all, |command, word| command.find_subcommand(word))
}

/// The names of all verbs.
pub(crate) fn verbs(all: &Command) -> Vec<&str> {
    all.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name).collect()
}

/// Names and titles of the topics.
pub(crate) fn titles() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.into_iter().map(head)
}

fn head(text: &'static str) -> (&'static str, &'static str) {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(": ").unwrap_or((line, ""))
}

fn list(out: &mut dyn Write, all: &Command) -> Result<()> {
    writeln!(out, "minder VERB --help, or minder help VERB:")?;
    for verb in all.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        let about = verb.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "  {:<13} {about}", verb.get_name())?;
    }
    writeln!(out, "  {:<13} {FACE}", "parallel, sem")?;
    writeln!(out, "\nminder help TOPIC:")?;
    for (topic, title) in titles() {
        writeln!(out, "  {topic:<13} {title}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_fit_a_screen_or_two() {
        for text in TOPICS {
            let (topic, title) = head(text);
            assert!(topic.chars().all(|c| c.is_ascii_lowercase()) && !title.is_empty(), "{topic}");
            assert!(text.lines().count() <= 60, "{topic} is too long");
            // Examples are as wide as they are.
            for line in text.lines().filter(|line| !line.starts_with("    ")) {
                assert!(line.chars().count() <= 80, "too wide: {line}");
            }
            assert!(text.contains("\n    $ "), "{topic} has no example");
        }
        let mut all = Flags::command();
        all.build();
        for (topic, _) in titles() {
            assert!(!verbs(&all).contains(&topic), "{topic} is a verb, too");
        }
    }
}
