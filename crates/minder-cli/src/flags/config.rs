//! Flags of `minder config`.

use clap::Args;

/// See [`crate::commands::config`].
#[derive(Debug, Args)]
#[command(override_usage = "minder config [FLAGS]", after_help = "Try: minder help settings")]
pub(crate) struct ConfigFlags {
    /// Show what this profile would set.
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
