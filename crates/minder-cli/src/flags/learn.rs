//! Flags of the verbs that teach: `help`, `man` and `completions`.

use clap::Args;
use clap_complete::Shell;

/// See [`crate::verbs::help`].
#[derive(Debug, Args)]
#[command(override_usage = "minder help [VERB|TOPIC]")]
pub(crate) struct HelpFlags {
    /// A verb, with what it is to do where it has several things to do, or a topic. Without it, all
    /// of them are listed.
    pub(crate) name: Vec<String>,
}

/// See [`crate::verbs::man`].
#[derive(Debug, Args)]
#[command(after_help = "Try: minder man run | man -l -")]
pub(crate) struct ManFlags {
    /// The verb, with what it is to do where it has several things to do. Without it, the page is
    /// about minder as a whole.
    pub(crate) verb: Vec<String>,
}

/// See [`crate::verbs::completions`].
#[derive(Debug, Args)]
#[command(after_long_help = COMPLETIONS)]
pub(crate) struct CompletionsFlags {
    /// The shell.
    #[arg(hide_possible_values = true)]
    pub(crate) shell: Shell,
}

const COMPLETIONS: &str = "\
Where they go:
  bash        minder completions bash > ~/.local/share/bash-completion/completions/minder
  zsh         minder completions zsh > DIR/_minder, with DIR in $fpath before compinit
  fish        minder completions fish > ~/.config/fish/completions/minder.fish
  elvish      minder completions elvish > ~/.config/elvish/lib/minder.elv, then `use minder`
  powershell  minder completions powershell >> $PROFILE";
