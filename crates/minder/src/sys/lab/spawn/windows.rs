//! No mechanism to measure here yet.

use std::io;
use std::time::Instant;

use crate::command::Command;

/// The names of the baselines that this system has.
pub(crate) const BASELINES: &[&str] = &[];

/// See the file for Unix.
#[derive(Debug)]
pub(crate) struct Baseline;

impl Baseline {
    pub(crate) fn new(_name: &str, _command: &Command) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn spawn(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn wait(&mut self, _deadline: Instant) -> io::Result<bool> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// See the file for Unix.
#[derive(Debug)]
pub(crate) struct Ballast;

impl Ballast {
    pub(crate) fn new(_bytes: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }
}
