//! The values of one job, and the command that a template makes of them.

use std::ffi::OsString;

/// The values of one job.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The arguments of the job: the columns of one or more input lines. A placeholder without a
    /// number stands for all of them, separated by spaces.
    pub columns: &'a [OsString],
    /// The number of the job, counted from 1: `{#}`.
    pub number: u64,
    /// The slot that it runs in, counted from 1: `{%}`. 0 if it is not known: a command that is shown
    /// then keeps the placeholder, and none is built.
    pub slot: u32,
    /// The number of all jobs, if it is known: `{##}`, and the width of `{0#}`.
    pub total: Option<u64>,
    /// The number of slots, if it is known: the width of `{0%}`.
    pub slots: Option<u32>,
}

impl Default for Job<'_> {
    fn default() -> Self {
        Job { columns: &[], number: 1, slot: 1, total: None, slots: None }
    }
}

/// The command of a job, as the operating system starts it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program, then its arguments.
    pub argv: Vec<OsString>,
    /// For `cmd.exe`, text that is appended to the command line without quoting: see
    /// `Command::raw_tail` of the crate `minder`.
    pub raw_tail: Option<OsString>,
    /// The environment variables that the line refers to, with their values.
    pub variables: Vec<(String, OsString)>,
}
