//! Flags of `minder doctor`.

use clap::Args;

// See `crate::commands::doctor`.
#[derive(Debug, Args)]
#[group(skip)]
pub(crate) struct DoctorFlags {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
