//! `minder help`: subcommands, and topics that involve more than one flag.

use std::io::Write;

use anyhow::{Result, bail};
use clap::{Command, Parser};

use crate::flags::{Flags, HelpFlags};
use crate::likeness::nearest;
use crate::ui::print_help;
use crate::ui::symbols::Symbols;

/// The texts of the topics: a line `name: title`, then an explanation with examples. The tests run
/// the examples.
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
    include_str!("help/resuming.txt"),
    include_str!("help/exit.txt"),
];

/// The description of `parallel` and `sem`, which clap does not know.
const COMPAT_ABOUT: &str = "GNU parallel's command line, also as a link of that name";

/// The description of `xargs`, which clap does not know either.
const XARGS_ABOUT: &str = "the command line of findutils' xargs, also as a link of that name";

/// Explains a subcommand or a topic, or lists them.
pub(crate) fn run(out: &mut dyn Write, flags: &HelpFlags) -> Result<()> {
    let minder = Flags::interface();
    if flags.name.is_empty() {
        return print_list(out, &minder);
    }
    let name = flags.name.join(" ");
    if let Some(text) = TOPICS.iter().find(|text| topic_title(text).0 == name) {
        return Ok(out.write_all(Symbols::of_locale().convert(text).as_bytes())?);
    }
    if find_subcommand(&minder, &flags.name).is_some() {
        // clap prints the help itself: it knows the width and the colors of the terminal.
        let path = flags.name.iter().map(String::as_str);
        if let Err(help) = Flags::try_parse_from(["minder"].into_iter().chain(path).chain(["--help"])) {
            print_help(&help)?;
        }
        return Ok(());
    }
    if name == "version" {
        bail!("see `minder --version`");
    }
    if name == "xargs" {
        bail!("see `minder xargs --help`; docs/from-xargs.md compares it with `minder run`");
    }
    if matches!(name.as_str(), "parallel" | "sem") {
        bail!("see `minder {name} --help`; docs/from-parallel.md describes every option");
    }
    let topics: Vec<&str> = topic_titles().map(|(topic, _)| topic).collect();
    if let Some(meant) = nearest(&name, subcommand_names(&minder).into_iter().chain(topics.iter().copied())) {
        bail!("no help for `{name}`; did you mean `minder help {meant}`?");
    }
    bail!(
        "no help for `{name}`: the commands are {}; the topics are {}",
        subcommand_names(&minder).join(", "),
        topics.join(", ")
    );
}

/// Returns the subcommand at this path, such as `bench wait`.
pub(crate) fn find_subcommand<'a>(minder: &'a Command, path: &[String]) -> Option<&'a Command> {
    path.iter().try_fold(minder, |command, name| command.find_subcommand(name))
}

/// Returns the names of all subcommands.
pub(crate) fn subcommand_names(minder: &Command) -> Vec<&str> {
    visible_subcommands(minder).map(Command::get_name).collect()
}

fn visible_subcommands(minder: &Command) -> impl Iterator<Item = &Command> {
    minder.get_subcommands().filter(|subcommand| !subcommand.is_hide_set())
}

/// Returns the names and titles of the topics.
pub(crate) fn topic_titles() -> impl Iterator<Item = (&'static str, &'static str)> {
    TOPICS.into_iter().map(topic_title)
}

fn topic_title(text: &'static str) -> (&'static str, &'static str) {
    let line = text.lines().next().unwrap_or_default();
    line.split_once(": ").unwrap_or((line, ""))
}

fn print_list(out: &mut dyn Write, minder: &Command) -> Result<()> {
    writeln!(out, "minder COMMAND --help, or minder help COMMAND:")?;
    for subcommand in visible_subcommands(minder) {
        let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
        writeln!(out, "  {:<13} {about}", subcommand.get_name())?;
    }
    writeln!(out, "  {:<13} {COMPAT_ABOUT}", "parallel, sem")?;
    writeln!(out, "  {:<13} {XARGS_ABOUT}", "xargs")?;
    writeln!(out, "\nminder help TOPIC:")?;
    for (topic, title) in topic_titles() {
        writeln!(out, "  {topic:<13} {title}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_fit_two_screens_and_have_examples() {
        for text in TOPICS {
            let (topic, title) = topic_title(text);
            assert!(topic.chars().all(|c| c.is_ascii_lowercase()) && !title.is_empty(), "{topic}");
            assert!(text.lines().count() <= 60, "{topic} is too long");
            // Examples may be wider.
            for line in text.lines().filter(|line| !line.starts_with("    ")) {
                assert!(line.chars().count() <= 80, "too wide: {line}");
            }
            assert!(text.contains("\n    $ "), "{topic} has no example");
        }
        let minder = Flags::interface();
        for (topic, _) in topic_titles() {
            assert!(!subcommand_names(&minder).contains(&topic), "{topic} is also a subcommand");
        }
    }
}
