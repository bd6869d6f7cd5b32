//! `minder man`: manual pages, from the flags themselves.

use std::io::Write;

use anyhow::{Result, bail};
use clap::{Arg, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::help;
use crate::flags::{Flags, ManFlags};

/// Prints the page of a verb, or that of minder as a whole.
pub(crate) fn run(out: &mut dyn Write, flags: &ManFlags) -> Result<()> {
    let mut all = Flags::command();
    all.build();
    match help::find(&all, &flags.verb) {
        Some(command) => page(out, command),
        None => bail!("there is no verb `{}`: {}", flags.verb.join(" "), help::verbs(&all).join(", ")),
    }
}

fn page(out: &mut dyn Write, command: &Command) -> Result<()> {
    let whole = command.get_name() == "minder";
    let several = command.has_subcommands();
    let command = command.clone().mut_args(with_aliases);
    let name = command.get_display_name().unwrap_or("minder").to_owned();
    let (about, after) = (command.get_long_about().or(command.get_about()), command.get_after_long_help());
    let after = after.or(command.get_after_help()).map(ToString::to_string).unwrap_or_default();
    let about = about.map(ToString::to_string).unwrap_or_default();
    let man = Man::new(command)
        .title(name.to_uppercase())
        .source(concat!("minder ", env!("CARGO_PKG_VERSION")))
        .manual("User Commands");
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    let mut roff = Roff::new();
    roff.control("SH", ["DESCRIPTION"]);
    paragraphs(&mut roff, &about, "SS");
    roff.to_writer(out)?;
    man.render_options_section(out)?;
    let mut roff = Roff::new();
    if several {
        man.render_subcommands_section(out)?;
    }
    if whole {
        roff.control("SH", ["TOPICS"]);
        for (topic, title) in help::titles() {
            roff.control("TP", []);
            roff.text([roman(format!("minder help {topic}"))]);
            roff.text([roman(title)]);
        }
    }
    paragraphs(&mut roff, &after, "SH");
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(if whole { "minder-run(1), minder-log(1)" } else { "minder(1), minder help" })]);
    roff.to_writer(out)?;
    Ok(())
}

/// The generator leaves other spellings out: they are put into the text.
fn with_aliases(arg: Arg) -> Arg {
    let short = arg.get_visible_short_aliases().unwrap_or_default();
    let short = short.iter().map(|name| format!("-{name}"));
    let long = arg.get_visible_aliases().unwrap_or_default();
    let names: Vec<String> = short.chain(long.iter().map(|name| format!("--{name}"))).collect();
    let Some(help) = arg.get_long_help().or(arg.get_help()).filter(|_| !names.is_empty()) else { return arg };
    let help = format!("{help}\n\nAlso: {}.", names.join(", "));
    arg.long_help(help)
}

/// Our help's form: paragraphs, and lists with a title before them, which stay as they are.
/// `heading` is the macro for a title.
fn paragraphs(roff: &mut Roff, text: &str, heading: &str) {
    // After a list under a heading, prose has to have a heading, too, or it would seem to belong there.
    let mut listed = heading == "SH";
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
                listed = true;
            }
            None => {
                if listed && heading == "SH" {
                    roff.control(heading, ["NOTES"]);
                }
                roff.control("PP", []);
                roff.text(paragraph.lines().map(|line| roman(format!("{line}\n"))).collect::<Vec<_>>());
                listed = false;
            }
        }
    }
}
