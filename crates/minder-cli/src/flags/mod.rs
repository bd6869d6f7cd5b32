//! The flags of the command line. A flag is a field, and its doc comment is its help text.

mod advise;
mod agent;
mod config;
mod control;
mod doctor;
mod input;
mod log;
mod machines;
mod output;
mod pipe;
mod relay;
mod status;
mod foreign_words;
mod typed_name;
mod unknown;
mod clap_error;
mod display;
mod properties;
mod short_help;
mod run;
mod attach;
mod resume;
mod help;

pub(crate) use self::{
    advise::AdviseFlags,
    agent::AgentFlags,
    attach::{AttachFlags, CancelFlags},
    clap_error::{asks_for_version, clap_error_hint, clap_error_line},
    config::ConfigFlags,
    control::{ControlFlags, ExitStatusFlag},
    display::{Color, DisplayFlags, StatusLevel},
    doctor::DoctorFlags,
    foreign_words::{WITHOUT_NUMBER, foreign_word, related_flag},
    help::{CompletionsFlags, HelpFlags, ManFlags},
    input::{ArityFlags, InputFlags, OrderFlag, PlaceholderFlags, Trim},
    log::LogFlags,
    machines::{MachineFlags, OnInterrupt},
    output::{OutputFlags, OutputTimeFlag, RecordFlags},
    pipe::PipeFlags,
    properties::{Flag, FlagSource, UNRECORDED},
    relay::RelayFlags,
    resume::{AttemptFlags, ResumeFlags, RetryFlags, resume_error_line},
    run::{Leak, RunFlags},
    short_help::{Group, command_groups},
    status::StatusFlags,
    typed_name::flag_named,
};

use std::ffi::OsString;

use clap::{CommandFactory, Parser, Subcommand};

/// Run a command for many arguments at once; every run is recorded and can be resumed.
#[derive(Debug, Parser)]
#[command(
    name = "minder",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    override_usage = "minder COMMAND [ARGUMENT]…",
    help_template = short_help::MINDER_TEMPLATE,
    after_help = short_help::MINDER_EXAMPLES
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Flags {
    /// Returns the command line interface, with what clap derives from it: the flags of each subcommand are
    /// complete.
    pub(crate) fn interface() -> clap::Command {
        let mut minder = Self::command();
        minder.build();
        minder
    }

    /// Returns the help or the error that clap has for a command line. The first argument is the name of
    /// the program. The help is complete, unlike that of an error of parsing.
    pub(crate) fn help(args: impl IntoIterator<Item: Into<OsString> + Clone>) -> Option<clap::Error> {
        short_help::complete(Self::interface()).try_get_matches_from(args).err()
    }

    /// Returns the command line interface with help of this width.
    #[cfg(test)]
    fn command_of_width(columns: usize) -> clap::Command {
        Self::command().term_width(columns)
    }
}

/// The subcommand. clap creates the flags of the one that is named: those of all take longer than a
/// short run. They are created after the doc comment was read, and a doc comment of their struct would
/// replace it. So these structs, and those flattened into them, have plain comments.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum Verb {
    /// Run a command for each argument, several at once.
    Run(Box<RunFlags>),
    /// Finish a run that was interrupted or killed.
    Resume(Box<ResumeFlags>),
    /// Run the failed jobs of a run again.
    Retry(Box<RetryFlags>),
    /// Run one command in front of a slow reader, such as an editor.
    #[command(long_about = relay::ABOUT)]
    Relay(RelayFlags),
    /// Show earlier runs, their jobs and failures, as tables or data.
    Log(Box<LogFlags>),
    /// Show the runs that run now, and their running jobs.
    Status(StatusFlags),
    /// Show the output of a detached run, and wait for its end.
    Attach(AttachFlags),
    /// End a run whose jobs run on other machines.
    Cancel(CancelFlags),
    /// Advise how many jobs to run at once, and in which order.
    Advise(AdviseFlags),
    /// Show the settings of `minder run` from files and variables.
    Config(ConfigFlags),
    /// Show what this machine supports, and its limits.
    Doctor(DoctorFlags),
    /// Measure what mechanisms cost, as tables, data or charts.
    #[cfg(feature = "lab")]
    Bench(minder_lab::BenchFlags),
    /// Show what clocks and sleeps do, and what is unusual.
    #[cfg(feature = "lab")]
    Clock(minder_lab::ClockFlags),
    /// Explain a command or a topic; without one, list them all.
    Help(HelpFlags),
    /// Print a manual page: minder man run | man -l -
    Man(ManFlags),
    /// Print shell completions: bash, elvish, fish, powershell, zsh.
    Completions(CompletionsFlags),
    /// Say what to remove to uninstall minder; removes nothing.
    Uninstall,
    /// Run jobs of a run that other processes work on, too.
    #[command(hide = true)]
    Agent(AgentFlags),
}
