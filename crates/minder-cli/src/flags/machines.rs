//! Flags about other machines.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Other machines")]
pub(crate) struct MachineFlags {
    /// Run the jobs on other machines.
    ///
    /// `ssh:alpha,8/beta,ann@gamma` uses three hosts, by ssh, and runs 8 jobs at once on `beta`. Elsewhere -j
    /// decides, or the number of processors of the host. A login without a password is needed. `:` is this
    /// machine. Jobs run in the home directory of the login; see --wd.
    #[arg(long, value_name = "PLACE")]
    pub(crate) on: Option<String>,

    /// Run the jobs on the hosts in FILE, one on each line.
    ///
    /// Each is written as with --on ssh:…. Empty lines, and lines that begin with `#`, are left out.
    #[arg(long, value_name = "FILE")]
    pub(crate) hosts: Option<PathBuf>,

    /// The command that connects to hosts, with its options.
    ///
    /// It is divided at blanks, and run without a shell: --ssh 'ssh -F my_config'.
    #[arg(long, value_name = "COMMAND", default_value = "ssh")]
    pub(crate) ssh: OsString,

    /// Send the file that the argument names to the host, before the job.
    ///
    /// The same as --transferfile {}.
    #[arg(long)]
    pub(crate) transfer: bool,

    /// Send FILE to the host, before the job.
    ///
    /// FILE may contain placeholders. It has the same name below the directory of the jobs; with `/./` in
    /// it, what follows that. The name of a directory stands for all that is in it. An absolute name is the
    /// same on the host.
    #[arg(long, visible_alias = "tf", value_name = "FILE")]
    pub(crate) transferfile: Vec<OsString>,

    /// Fetch FILE from the host, after the job.
    ///
    /// Names are as with --transferfile: --return {.}.out. A job that did not make the file stays as it is,
    /// and one line says so.
    #[arg(long, value_name = "FILE")]
    pub(crate) r#return: Vec<OsString>,

    /// The same as --transfer --return FILE --cleanup.
    #[arg(long, value_name = "FILE")]
    pub(crate) trc: Vec<OsString>,

    /// Send FILE to each host, before its first job.
    #[arg(long, visible_alias = "bf", value_name = "FILE")]
    pub(crate) basefile: Vec<PathBuf>,

    /// Seconds without a sign of life after which others run the jobs of an agent.
    ///
    /// This is for agents that share a directory. A host that is reached by ssh is lost after 20 s.
    #[arg(long, value_name = "SECONDS", hide = true, default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) lost_after: u64,

    /// End when the hosts work and have all of the input. Print the id of the run.
    ///
    /// The hosts continue without this process. `minder attach` shows the output, waits for the end, and has
    /// the exit status of the run. `minder status` shows how far it is, and `minder cancel` ends it.
    #[arg(long)]
    pub(crate) detach: bool,

    /// What Ctrl-C does with --on: it ends the run, or this process alone.
    ///
    /// `detach` lets the hosts continue: see --detach. Default: `ask` on a terminal, else `cancel`. A second
    /// Ctrl-C ends the run.
    #[arg(long, value_name = "HOW")]
    pub(crate) on_interrupt: Option<OnInterrupt>,
}

impl MachineFlags {
    /// Returns whether machines are given.
    pub(crate) fn are_given(&self) -> bool {
        self.on.is_some() || self.hosts.is_some()
    }

    /// Returns a flag that is given and has no meaning without machines, if there is one.
    pub(crate) fn dependent_flag(&self) -> Option<&'static str> {
        let rows = [
            (self.transfer, "--transfer"),
            (!self.transferfile.is_empty(), "--transferfile"),
            (!self.r#return.is_empty(), "--return"),
            (!self.trc.is_empty(), "--trc"),
            (!self.basefile.is_empty(), "--basefile"),
            (self.detach, "--detach"),
            (self.on_interrupt.is_some(), "--on-interrupt"),
        ];
        rows.into_iter().find(|row| row.0).map(|row| row.1)
    }
}

/// What Ctrl-C does to a run whose jobs run on agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnInterrupt {
    /// Ask on the terminal.
    Ask,
    /// End the agents, and the run.
    Cancel,
    /// End this process. The agents continue.
    Detach,
}
