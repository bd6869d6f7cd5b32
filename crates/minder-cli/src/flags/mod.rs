//! The flags of the command line. A flag is a field, and its doc comment is its help text.

mod advise;
mod bench;
mod clap_error;
mod clock;
mod config;
mod control;
mod display;
mod doctor;
mod file_name;
mod foreign_words;
mod help;
mod input;
mod log;
pub(crate) mod optional_value;
mod output;
mod pipe;
mod relay;
mod resume;
mod run;
mod sizes;
mod turnaround;
mod typed_name;
mod unknown;

pub(crate) use self::{
    advise::AdviseFlags,
    bench::{
        Bench, BenchFlags, CellSweepFlags, ChildLine, ComputeFlags, ExitFlags, MeasureFlags, SpawnFlags,
        WaitFlags,
    },
    clap_error::{asks_for_version, clap_error_hint, clap_error_line},
    clock::{Clock, ClockFlags, ClockOutput, SleepFlags, SweepFlags, WatchFlags},
    config::ConfigFlags,
    control::{ControlFlags, ExitStatusFlag},
    display::{Color, DisplayFlags, StatusLevel},
    doctor::DoctorFlags,
    foreign_words::foreign_flag,
    help::{CompletionsFlags, HelpFlags, ManFlags},
    input::{ArityFlags, InputFlags, OrderFlag, PlaceholderFlags, Trim},
    log::LogFlags,
    output::{OutputFlags, OutputTimeFlag, RecordFlags},
    pipe::PipeFlags,
    relay::RelayFlags,
    resume::{AttemptFlags, ResumeFlags, RetryFlags, resume_error_line},
    run::{Leak, RunFlags},
    sizes::Sizes,
    turnaround::TurnaroundFlags,
};

use clap::{CommandFactory, Parser, Subcommand};

const AFTER_HELP: &str = "\
Try: minder run 'wc -c {}' ::: *.txt
     minder help             topics with examples
     minder parallel --help  GNU parallel's command line";

/// Run thousands of commands, see every byte of their output, know what each cost.
#[derive(Debug, Parser)]
#[command(
    name = "minder",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = AFTER_HELP
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
}

/// The subcommand.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command for each argument, several at once.
    #[command(long_about = run::ABOUT)]
    Run(Box<RunFlags>),
    /// Finish an interrupted run: its unfinished jobs, and output not shown yet.
    Resume(Box<ResumeFlags>),
    /// Run the failed jobs of a run again.
    Retry(Box<RetryFlags>),
    /// Run one command in front of a slow reader, such as an editor.
    #[command(long_about = relay::ABOUT)]
    Relay(RelayFlags),
    /// Show earlier runs, their jobs and failures, as tables or as data.
    Log(Box<LogFlags>),
    /// Advise how to run the jobs of a run again: how many at once, in which order.
    Advise(AdviseFlags),
    /// Show the settings of `minder run` that files and variables make, and where each comes from.
    Config(ConfigFlags),
    /// Show what this machine supports: ways to wait for, start and kill children, and its limits.
    Doctor(DoctorFlags),
    /// Measure what mechanisms cost on this machine, as a table, data or a chart.
    Bench(BenchFlags),
    /// Show what clocks and sleeps do on this machine, and what is unusual.
    Clock(ClockFlags),
    /// Explain a command or a topic; without one, list them.
    Help(HelpFlags),
    /// Print a manual page: minder man run | man -l -
    Man(ManFlags),
    /// Print shell completions: bash, elvish, fish, powershell, zsh.
    Completions(CompletionsFlags),
}
