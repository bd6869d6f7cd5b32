//! The complete instructions of one invocation of xargs, with nothing left undecided.

use std::ffi::OsString;
use std::path::PathBuf;

use minder_runner::input::Separation;

/// The exit status for errors of xargs itself.
pub(crate) const FAILURE: u8 = 1;

/// The instructions of one invocation of xargs.
#[derive(Debug)]
pub(crate) struct XargsPlan {
    /// The program.
    pub(crate) program: OsString,
    /// Its first arguments, before those of the input.
    pub(crate) initial: Vec<OsString>,
    /// The file that is read in place of standard input. Jobs read standard input then.
    pub(crate) file: Option<PathBuf>,
    pub(crate) separation: Separation,
    /// A word with this text ends the input.
    pub(crate) eof: Option<Vec<u8>>,
    /// The way in which arguments are put into a command.
    pub(crate) packing: Packing,
    /// The most bytes of a command, each argument with the NUL byte at its end.
    pub(crate) size_max: usize,
    /// The most arguments of a command, the program and the initial arguments among them.
    pub(crate) count_max: usize,
    /// `true` if a command that has no room for its arguments ends the run.
    pub(crate) exit_if_full: bool,
    /// `true` if the command runs once if there are no arguments.
    pub(crate) run_if_empty: bool,
    /// The most commands that run at once.
    pub(crate) jobs_max: usize,
    /// `true` if commands are printed.
    pub(crate) verbose: bool,
    /// `true` if the user confirms each command.
    pub(crate) interactive: bool,
    /// `true` if jobs read the terminal.
    pub(crate) open_tty: bool,
    /// The environment variable with the slot of a job, from 0.
    pub(crate) slot_var: Option<OsString>,
}

/// The way in which arguments are put into a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    /// As many as fit.
    Full,
    /// At most this many.
    Arguments(u64),
    /// Those of at most this many lines.
    Lines(u64),
    /// One argument, which replaces each occurrence of this text in the initial arguments.
    Replace(Vec<u8>),
}
