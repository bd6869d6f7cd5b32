//! `minder help`: subcommands, and topics that involve more than one flag.

use std::io::Write;

use anyhow::{Result, bail};
use clap::Command;

use super::flag_help;
use crate::flags::{Flags, Group, HelpFlags, command_groups};
use crate::likeness::nearest;
use crate::ui::print_help;
use minder_ui::symbols::Symbols;

/// The texts of the topics in reading order: a line `name: title`, then an explanation with examples. The
/// tests run the examples.
const TOPICS: [&str; 13] = [
    include_str!("help/xargs.txt"),
    include_str!("help/parallel.txt"),
    include_str!("help/input.txt"),
    include_str!("help/placeholders.txt"),
    include_str!("help/quoting.txt"),
    include_str!("help/output.txt"),
    include_str!("help/slots.txt"),
    include_str!("help/control.txt"),
    include_str!("help/resuming.txt"),
    include_str!("help/record.txt"),
    include_str!("help/exit.txt"),
    include_str!("help/values.txt"),
    include_str!("help/pipe.txt"),
];

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
        if let Some(help) = Flags::help(["minder"].into_iter().chain(path).chain(["--help"])) {
            print_help(&help)?;
        }
        return Ok(());
    }
    if let [flag, ..] = flags.name.as_slice()
        && let Some(text) = flag_help::explain(&minder, flag, &TOPICS)?
    {
        return Ok(out.write_all(Symbols::of_locale().convert(&text).as_bytes())?);
    }
    if name == "version" {
        bail!("see `minder --version`");
    }
    if name == "sem" {
        bail!("see `minder sem --help`; docs/from-parallel.md describes every option");
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
    let visible = minder.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    visible.map(Command::get_name).collect()
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
    writeln!(out, "minder COMMAND -h is the short help of a command, minder help COMMAND the full one;")?;
    writeln!(out, "minder help TOPIC explains a topic, with examples, and minder help --FLAG one flag.\n")?;
    let items = topic_titles().map(|(topic, title)| (topic.to_owned(), title.to_owned())).collect();
    let groups = command_groups(minder).into_iter().chain([Group { title: "Topics", items }]);
    let lists: Vec<String> = groups.map(|group| group.lines()).collect();
    write!(out, "{}", lists.join("\n"))?;
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
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{topic} is too wide: {line}");
            }
            assert!(text.contains("\n    $ "), "{topic} has no example");
        }
        let minder = Flags::interface();
        for (topic, _) in topic_titles() {
            assert!(!subcommand_names(&minder).contains(&topic), "{topic} is also a subcommand");
        }
    }
}
