//! Flags of `minder agent`, which other processes of minder start.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

// See `crate::commands::run::agent`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(override_usage = "minder agent [FLAGS] --attempt N DIRECTORY")]
pub(crate) struct AgentFlags {
    /// The directory of the run.
    #[arg(value_name = "DIRECTORY")]
    pub(crate) run: PathBuf,

    /// The attempt that has submitted the jobs.
    #[arg(long, value_name = "N")]
    pub(crate) attempt: u32,

    /// Run N jobs at once, in place of what the run asks for.
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) jobs: Option<OsString>,

    /// Take over the jobs of an agent that shows no sign of life for SECONDS.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lost_after: u64,
}
