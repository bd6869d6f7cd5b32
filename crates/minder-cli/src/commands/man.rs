//! `minder man`: manual pages, generated from the flags.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use jiff::Timestamp;

use super::help;
use crate::flags::{Flags, ManFlags};
use crate::likeness::nearest;

/// The width of a terminal.
const COLUMNS: usize = 80;

/// How far the text of a section is indented.
const INDENT: usize = 7;

/// Prints the page of a subcommand, or that of minder as a whole. `compat` has the names and help texts of
/// subcommands whose flags are those of another tool.
pub(crate) fn run(out: &mut dyn Write, flags: &ManFlags, compat: &[(&str, &str)]) -> Result<()> {
    let minder = Flags::interface();
    if let Some(dir) = &flags.all {
        write_pages(dir, &minder)?;
        return compat.iter().try_for_each(|(name, help)| {
            write_page(dir, &format!("minder-{name}"), |page| print_compat_page(page, name, help))
        });
    }
    if let [name] = &flags.command[..]
        && let Some((name, help)) = compat.iter().find(|(compat, _)| compat == name)
    {
        return print_compat_page(out, name, help);
    }
    match help::find_subcommand(&minder, &flags.command) {
        Some(command) => print_page(out, command),
        None => {
            let name = flags.command.join(" ");
            let mut known = help::subcommand_names(&minder);
            known.extend(compat.iter().map(|(name, _)| *name));
            if let Some(meant) = nearest(&name, known.iter().copied()) {
                bail!("unknown command `{name}`; did you mean `minder man {meant}`?");
            }
            bail!("unknown command `{name}`: expected one of {}", known.join(", "))
        }
    }
}

/// Writes the page of a command and of each of its subcommands to a file, such as `minder-run.1`.
fn write_pages(dir: &Path, command: &Command) -> Result<()> {
    write_page(dir, command.get_display_name().unwrap_or("minder"), |page| print_page(page, command))?;
    let visible = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    visible.filter(|subcommand| subcommand.get_about().is_some()).try_for_each(|each| write_pages(dir, each))
}

fn write_page(dir: &Path, name: &str, print: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let path = dir.join(format!("{name}.1"));
    let mut page = Vec::new();
    print(&mut page)?;
    std::fs::write(&path, page).with_context(|| format!("cannot write `{}`", path.display()))
}

/// Prints the page of a subcommand from the lines of its help: a sentence, the usage, options, a sentence.
fn print_compat_page(out: &mut dyn Write, name: &str, help: &str) -> Result<()> {
    let (about, rest) = help.split_once("\n\n").unwrap_or((help, ""));
    let (usage, rest) = rest.split_once("\n\n").unwrap_or(("", rest));
    let source = concat!("minder ", env!("CARGO_PKG_VERSION"));
    let title = format!("MINDER-{}", name.to_uppercase());
    let mut roff = Roff::new();
    roff.control("TH", [title.as_str(), "1", &date(), source, "User Commands"]);
    roff.control("SH", ["NAME"]);
    roff.text([roman(format!("minder-{name} - {}", about.trim_end_matches('.')))]);
    let usage = usage.trim_start_matches("Usage: ");
    for (heading, indent, text) in [("SYNOPSIS", "       ", usage), ("DESCRIPTION", "  ", rest)] {
        roff.control("SH", [heading]);
        push_lines(&mut roff, text, indent);
    }
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("minder(1), minder-run(1)")]);
    roff.to_writer(out)?;
    Ok(())
}

/// Returns the date of a page: the time that a package builder states for all its files. Without one there
/// is no date, and the page is the same each day. A blank keeps the place: an empty text would be left out,
/// and what follows would stand there.
fn date() -> String {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let time = epoch.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| " ".to_owned(), |time| time.strftime("%Y-%m-%d").to_string())
}

/// Adds lines that stay as they are. Wide ones begin further left than the text around them, so that the
/// widest one fits the terminal, as in the help.
fn push_lines(roff: &mut Roff, text: &str, indent: &str) {
    let lines = text.lines().map(|line| line.strip_prefix(indent).unwrap_or(line));
    let widest = lines.clone().map(|line| line.chars().count()).max().unwrap_or_default();
    let left = COLUMNS.saturating_sub(widest);
    roff.control("nf", []);
    if left < INDENT {
        roff.control("in", [format!("{left}n").as_str()]);
    }
    for line in lines {
        roff.text([roman(line)]);
    }
    if left < INDENT {
        roff.control("in", []);
    }
    roff.control("fi", []);
}

fn print_page(out: &mut dyn Write, command: &Command) -> Result<()> {
    let is_minder = command.get_name() == "minder";
    let has_subcommands = command.has_subcommands();
    let command = command.clone().mut_args(with_aliases);
    let name = command.get_display_name().unwrap_or("minder").to_owned();
    let about = command.get_long_about().or(command.get_about()).into_iter();
    let about: Vec<String> = about.chain(command.get_before_help()).map(ToString::to_string).collect();
    let after = command.get_after_long_help().or(command.get_after_help());
    let after = after.map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command)
        .title(name.to_uppercase())
        .date(date())
        .source(concat!("minder ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    push_paragraphs(&mut roff, &about.join("\n\n"), "SS");
    roff.to_writer(out)?;
    man.render_options_section(out)?;
    let mut roff = Roff::new();
    if has_subcommands {
        man.render_subcommands_section(out)?;
    }
    if is_minder {
        roff.control("SH", ["TOPICS"]);
        for (topic, title) in help::topic_titles() {
            roff.control("TP", []);
            roff.text([roman(format!("minder help {topic}"))]);
            roff.text([roman(title)]);
        }
    }
    push_paragraphs(&mut roff, &after, "SH");
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(if is_minder {
        "minder-run(1), minder-resume(1), minder-log(1)"
    } else {
        "minder(1), minder help"
    })]);
    roff.to_writer(out)?;
    Ok(())
}

/// Adds the aliases of a flag to its help text. The generator omits them.
fn with_aliases(arg: Arg) -> Arg {
    let short = arg.get_visible_short_aliases().unwrap_or_default();
    let short = short.iter().map(|name| format!("-{name}"));
    let long = arg.get_visible_aliases().unwrap_or_default();
    let names: Vec<String> = short.chain(long.iter().map(|name| format!("--{name}"))).collect();
    if names.is_empty() {
        return arg;
    }
    let Some(help) = arg.get_long_help().or(arg.get_help()) else { return arg };
    let help = format!("{help}\n\nAlso: {}.", names.join(", "));
    arg.long_help(help)
}

/// Converts the format of our help texts: paragraphs, and lists with a title, which keep their lines.
/// `heading` is the macro for a title.
fn push_paragraphs(roff: &mut Roff, text: &str, heading: &str) {
    // Prose after a list needs its own heading: otherwise it would appear to belong to the list.
    let mut after_list = heading == "SH";
    let paragraphs = text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty());
    for (at, paragraph) in paragraphs.enumerate() {
        let list = paragraph
            .split_once(":\n")
            .filter(|(title, rest)| !title.contains('\n') && rest.lines().all(|line| line.starts_with("  ")));
        match list {
            Some((title, rest)) => {
                roff.control(heading, [title.to_uppercase().as_str()]);
                push_lines(roff, rest, "  ");
                after_list = true;
            }
            None => {
                // A heading begins a paragraph, and so does the one above the first paragraph.
                if after_list && heading == "SH" {
                    roff.control(heading, ["NOTES"]);
                } else if at > 0 {
                    roff.control("PP", []);
                }
                for line in paragraph.lines() {
                    roff.text([roman(line.trim_end())]);
                }
                after_list = false;
            }
        }
    }
}
