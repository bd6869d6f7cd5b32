//! The values of one job, and the command that they make of a template.

use std::ffi::OsString;

/// What one job puts into the template.
#[derive(Debug, Clone, Copy)]
pub struct Job<'a> {
    /// The arguments of the job: the columns of one or more input lines. A placeholder without a
    /// number stands for each of them, blanks between words.
    pub columns: &'a [OsString],
    /// The number of the job, from 1: `{#}`.
    pub number: u64,
    /// The slot that it runs in, from 1: `{%}`.
    pub slot: u32,
    /// How many jobs there are, if that is known: `{##}`, and the width of `{0#}`.
    pub total: Option<u64>,
    /// How many slots there are, if that is known: the width of `{0%}`.
    pub slots: Option<u32>,
}

impl Default for Job<'_> {
    fn default() -> Self {
        Job { columns: &[], number: 1, slot: 1, total: None, slots: None }
    }
}

/// What is started for a job.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Invocation {
    /// The program, then its arguments.
    pub words: Vec<OsString>,
    /// The end of the command line as it is, for `cmd.exe`: see `raw_tail` of the crate `minder`.
    pub tail: Option<OsString>,
    /// The variables that the line refers to.
    pub variables: Vec<(String, OsString)>,
}
