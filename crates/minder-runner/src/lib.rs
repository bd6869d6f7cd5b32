//! The engine of `minder run`: a command for each argument, several at once.
//!
//! A [`RunConfig`] says what to run; it is plain data. An [`input::ArgumentReader`] gives the
//! arguments. [`run`] starts the jobs, writes their output to standard output and standard error,
//! keeps the record of the run, and reports everything else to an [`Observer`]. The engine parses
//! no command line and prints no message.
//!
//! In reading order: [`config`] and [`notice`] are plain data; [`input`] makes arguments; `queue`
//! numbers the jobs; `splitter` cuts standard input for `--pipe`; `admission` decides whether a job
//! may start now; `output` writes what jobs wrote; `recorder` keeps the journal; `worker` runs the
//! jobs of one thread; `main_loop` handles signals; `runner` builds all of them and runs the jobs.

mod confirm;
mod read_range;
mod patience;
pub mod exit_status;
pub mod report;
mod spawn_command;
pub mod text;
pub mod jobs_setting;
pub mod notice;
pub mod observer;
pub mod blocking_io;
pub mod input;
pub mod splitter;
mod block_source;
pub mod conditions;
pub mod config;
mod results;
mod attachment;
mod resume;
pub mod served;
mod agent;
mod claimed_jobs;
pub mod link_files;
pub mod link;
mod spooler;
mod local_agents;
mod remote_results;
mod queue;
mod job_table;
mod output;
mod earlier_output;
mod reader_wait;
mod run_holder;
mod recorder;
mod history;
mod coordinator;
mod job_source;
mod dry_run;
mod commit;
mod job_environment;
mod admission;
mod own_peak;
mod memory_cap;
mod context;
mod outcome;
mod interrupt;
mod main_loop;
mod worker;
mod runner;

pub use self::{
    config::RunConfig,
    confirm::Confirm,
    dry_run::list_commands,
    notice::Notice,
    observer::{Observer, RunningSnapshot, Snapshot},
    output::stdio::{stderr_is_stalled, write_stderr},
    reader_wait::Interrupted,
    recorder::stdin_source,
    report::{RunEnd, RunReport},
    runner::{Inherited, RunRequest, run},
    spawn_command::spawn_command,
};

/// The README, whose example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
