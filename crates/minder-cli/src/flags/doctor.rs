//! Flags of `minder doctor`.

use clap::Args;

/// See [`crate::verbs::doctor`].
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}
