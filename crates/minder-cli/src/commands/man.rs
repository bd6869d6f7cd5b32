//! `minder man`: manual pages, generated from the flags.

use std::io::Write;

use anyhow::{Result, bail};
use clap::{Arg, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::help;
use crate::flags::{Flags, ManFlags};
use crate::likeness::nearest;

/// Prints the page of a subcommand, or that of minder as a whole.
pub(crate) fn run(out: &mut dyn Write, flags: &ManFlags) -> Result<()> {
    let minder = Flags::interface();
    match help::find_subcommand(&minder, &flags.command) {
        Some(command) => print_page(out, command),
        None => {
            let name = flags.command.join(" ");
            let known = help::subcommand_names(&minder);
            if let Some(meant) = nearest(&name, known.iter().copied()) {
                bail!("unknown command `{name}`; did you mean `minder man {meant}`?");
            }
            bail!("unknown command `{name}`: expected one of {}", known.join(", "))
        }
    }
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
    for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.trim().is_empty()) {
        let list = paragraph
            .split_once(":\n")
            .filter(|(title, rest)| !title.contains('\n') && rest.lines().all(|line| line.starts_with("  ")));
        match list {
            Some((title, rest)) => {
                roff.control(heading, [title.to_uppercase().as_str()]);
                roff.control("nf", []);
                for line in rest.lines() {
                    roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
                }
                roff.control("fi", []);
                after_list = true;
            }
            None => {
                if after_list && heading == "SH" {
                    roff.control(heading, ["NOTES"]);
                }
                roff.control("PP", []);
                roff.text(paragraph.lines().map(|line| roman(format!("{line}\n"))).collect::<Vec<_>>());
                after_list = false;
            }
        }
    }
}
