//! The flags as they are typed. A flag is a field with its documentation beside it; help is printed
//! from here.

mod bench;
mod control;
mod doctor;
mod eyes;
pub(crate) mod habits;
mod input;
mod learn;
mod log;
mod mistake;
mod output;
mod pipe;
mod run;

pub(crate) use self::{
    bench::{Bench, BenchFlags, ChildLine, ExitFlags, MeasureFlags, SpawnFlags, WaitFlags},
    doctor::DoctorFlags,
    eyes::Colour,
    input::{ArityFlags, InputFlags, OrderFlag, PlaceholderFlags, Trim},
    learn::{CompletionsFlags, HelpFlags, ManFlags},
    log::LogFlags,
    mistake::mistake,
    output::{OutputFlags, RecordFlags},
    pipe::PipeFlags,
    run::{Leak, RunFlags},
};

use clap::{Parser, Subcommand};

/// Run thousands of commands, see every byte of their output, know what each cost.
#[derive(Debug, Parser)]
#[command(
    name = "minder",
    version,
    max_term_width = 100,
    disable_help_subcommand = true,
    after_help = "Try: minder run 'wc -c {}' ::: *.txt\n     minder help             topics, with examples\n     minder parallel --help  GNU parallel's command line"
)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Run a command for each argument, several at once.
    #[command(long_about = run::ABOUT)]
    Run(Box<RunFlags>),
    /// Show what was run: runs, their jobs, what failed, as tables or as data.
    Log(Box<LogFlags>),
    /// Show what this machine offers: ways to wait, to start and to end children, and its limits.
    Doctor(DoctorFlags),
    /// Measure what mechanisms cost on this machine: a table, data, or a chart.
    Bench(BenchFlags),
    /// Explain a verb or a topic; without one, list them.
    Help(HelpFlags),
    /// Print a manual page: minder man run | man -l -
    Man(ManFlags),
    /// Print the completions for a shell: bash, elvish, fish, powershell, zsh.
    Completions(CompletionsFlags),
}
