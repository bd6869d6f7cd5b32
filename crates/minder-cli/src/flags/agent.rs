//! Flags of `minder agent`, which other processes of minder start.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

// See `crate::commands::run::agent`.
#[derive(Debug, Args)]
#[group(skip)]
#[command(override_usage = "minder agent [FLAGS] --attempt N DIRECTORY\n       minder agent --serve MARK")]
pub(crate) struct AgentFlags {
    /// The directory of the run.
    #[arg(value_name = "DIRECTORY", required_unless_present = "serve")]
    pub(crate) run: Option<PathBuf>,

    /// The attempt that has submitted the jobs.
    #[arg(
        long,
        value_name = "N",
        required_unless_present = "serve",
        default_value_t = 0,
        hide_default_value = true
    )]
    pub(crate) attempt: u32,

    /// Run N jobs at once, in place of what the run asks for.
    #[arg(short, long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) jobs: Option<OsString>,

    /// Take over the jobs of an agent that shows no sign of life for SECONDS.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lost_after: u64,

    /// Run the jobs on HOST, by ssh.
    #[arg(long, value_name = "HOST")]
    pub(crate) host: Option<String>,

    /// Get jobs by standard input. MARK begins the line before the first message.
    #[arg(long, value_name = "MARK", conflicts_with_all = ["run", "jobs", "host"])]
    pub(crate) serve: Option<String>,
}
