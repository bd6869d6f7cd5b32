//! Flags of `minder help`, `man` and `completions`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

// See `crate::commands::help`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(override_usage = "minder help [COMMAND|TOPIC|--FLAG]")]
pub(crate) struct HelpFlags {
    /// A command, with its subcommand if it has several, a topic, or a flag. Without it, all are listed.
    #[arg(allow_hyphen_values = true)]
    pub(crate) name: Vec<String>,
}

// See `crate::commands::man`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_help = "Try: minder man run | man -l -")]
pub(crate) struct ManFlags {
    /// The command, with its subcommand if it has several. Without it, the page describes minder as a
    /// whole.
    pub(crate) command: Vec<String>,

    /// Write the pages of all commands to files in this directory, for a package.
    #[arg(long, value_name = "DIR", conflicts_with = "command")]
    pub(crate) all: Option<PathBuf>,
}

// See `crate::commands::completions`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(after_long_help = COMPLETIONS)]
pub(crate) struct CompletionsFlags {
    /// The shell.
    #[arg(hide_possible_values = true)]
    pub(crate) shell: Shell,
}

const COMPLETIONS: &str = "\
Installation:
  bash        minder completions bash >
                ~/.local/share/bash-completion/completions/minder
  zsh         minder completions zsh > DIR/_minder, with DIR in $fpath
                before compinit
  fish        minder completions fish > ~/.config/fish/completions/minder.fish
  elvish      minder completions elvish > ~/.config/elvish/lib/minder.elv
                then `use minder`
  powershell  minder completions powershell >> $PROFILE";
