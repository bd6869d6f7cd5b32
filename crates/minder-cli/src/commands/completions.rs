//! `minder completions`: shell completions, generated from the flags.

use std::io::Write;

use anyhow::Result;
use clap::{Command, CommandFactory};
use clap_complete::Shell;

use crate::flags::{CompletionsFlags, Flags};

/// Completions of names that change, which `minder __candidates` prints.
const BASH_NAMES: &str = include_str!("completions/names.bash");
const ZSH_NAMES: &str = include_str!("completions/names.zsh");
const FISH_NAMES: &str = include_str!("completions/names.fish");

/// Arguments of zsh's completion, by the beginnings of their lines, and the functions that complete them.
const ZSH_ARGUMENTS: [(&str, &str); 5] = [
    ("'::run --", "_minder_runs"),
    ("'*::words --", "_normal"),
    ("'*::name --", "_minder_topics"),
    ("'*::command --", "_minder_commands"),
    ("'--profile=", "_minder_profiles"),
];

/// Prints the completions for a shell.
pub(crate) fn run(out: &mut dyn Write, flags: &CompletionsFlags) -> Result<()> {
    // The generator panics when a write fails, which happens if the reader closes stdout. So it
    // writes to memory.
    let mut text = Vec::new();
    let mut minder = Flags::command();
    // Subcommands of subcommands are added here.
    minder.build();
    clap_complete::generate(flags.shell, &mut without_hidden(&minder), "minder", &mut text);
    let text = String::from_utf8(text)?;
    let text = match flags.shell {
        Shell::Bash => text + &bash_names(&minder),
        Shell::Zsh => zsh_with_names(&text),
        Shell::Fish => text + FISH_NAMES,
        _ => text,
    };
    Ok(out.write_all(text.as_bytes())?)
}

/// Returns the functions of bash. They need the flags that take the next word as their value.
fn bash_names(minder: &Command) -> String {
    let values = |name: &str| {
        let flags = minder.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
        let flags = flags.filter(|flag| flag.get_action().takes_values() && !flag.is_require_equals_set());
        let names = flags.flat_map(|flag| {
            let shorts = flag.get_short_and_visible_aliases().unwrap_or_default();
            let longs = flag.get_long_and_visible_aliases().unwrap_or_default();
            let shorts = shorts.into_iter().map(|short| format!("-{short}"));
            shorts.chain(longs.into_iter().map(|long| format!("--{long}")))
        });
        names.collect::<Vec<_>>().join(" ")
    };
    let text = BASH_NAMES.replace("@RUN@", &values("run")).replace("@RESUME@", &values("resume"));
    text.replace("@LOG@", &values("log"))
}

/// Returns the completions of zsh with functions for names.
fn zsh_with_names(text: &str) -> String {
    let mut lines = Vec::new();
    for line in text.lines() {
        let named = ZSH_ARGUMENTS.iter().find(|(begin, _)| line.starts_with(begin));
        lines.push(match (named, line.rsplit_once(":_default'")) {
            (Some((_, function)), Some((line, end))) => format!("{line}:{function}'{end}"),
            _ => line.to_owned(),
        });
        if line.starts_with("autoload ") {
            lines.push(ZSH_NAMES.to_owned());
        }
    }
    lines.join("\n") + "\n"
}

/// Returns the command without hidden subcommands, which the generator would offer.
fn without_hidden(command: &Command) -> Command {
    let shown = command.get_subcommands().filter(|verb| !verb.is_hide_set());
    // clap removes no subcommand, and takes no name that it would have to own.
    let name: &'static str = command.get_name().to_owned().leak();
    Command::new(name)
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_help_flag(true) // These are among the arguments and subcommands.
        .disable_version_flag(true)
        .version(env!("CARGO_PKG_VERSION"))
        .disable_help_subcommand(true)
        .args(command.get_arguments())
        .subcommands(shown.map(without_hidden))
}
