//! Flags of `minder config`.

use clap::Args;

const DETAILS: &str = "\
A file minder.toml has flags of `minder run` by their long names:

  [run]
  jobs = 4
  tag = true
  status-level = \"fail\"

  [profile.ci]
  heartbeat = \"30s\"

`minder run --profile ci`, or MINDER_RUN_PROFILE=ci, adds the keys of the
profile. The project's file is the nearest one in this directory and those above
it. The user's file is in $MINDER_CONFIG_DIR, else in $XDG_CONFIG_HOME/minder,
else in ~/.config/minder; on Windows in %APPDATA%\\minder.

A variable sets a flag, too: MINDER_RUN_JOBS=4, MINDER_RUN_TAG=1. Jobs inherit
it.

What was typed counts most; then the environment, the project's file, the user's
file. A setting is ignored if a stronger source sets the same flag, or one that
excludes it. `false` turns off what a weaker source sets.
`minder run --no-config` ignores the files and the variables MINDER_RUN_….
`minder parallel`, `xargs` and `sem` never read them, and a resumed run repeats
the settings of its record.

A project's file may not choose the program that runs, the arguments and
environment of the jobs, or files: docs/configuration.md lists these flags. It
is ignored if it is a link, belongs to another user than you and root, or if
other users may write to it.";

// See `crate::commands::config`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(
    override_usage = "minder config [FLAGS]",
    after_help = "Try: minder help config",
    after_long_help = DETAILS
)]
pub(crate) struct ConfigFlags {
    /// Show what this profile would set.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
