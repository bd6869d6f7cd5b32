//! The arguments that fit into a command line, as it would be written for a start.

use std::io;
use std::path::PathBuf;

use super::process_params::ProcessParams;
use super::search;
use super::spawner::Spawner;
use super::working_dir::working_dir;
use crate::command::Command;
use crate::sys::spawn::{cmd_quote, quote};

/// The path of a program that was found, and the directory in which it will start.
#[derive(Clone, Debug)]
pub(crate) struct CommandLineLimit {
    program: PathBuf,
    dir: Option<PathBuf>,
}

impl CommandLineLimit {
    pub(crate) fn of(command: &Command) -> Self {
        // The start itself reports their errors.
        let dir = command.current_dir.as_deref().and_then(|given| working_dir(given).ok());
        let program = Spawner::new().resolve(&command.program, dir.as_deref()).unwrap_or_default();
        Self { program, dir }
    }

    pub(crate) fn max_units(&self) -> usize {
        // The line of a program has its end mark counted.
        if search::is_batch(&self.program) { cmd_quote::LINE_MAX } else { quote::LINE_MAX - 1 }
    }

    pub(crate) fn fits(&self, command: &Command) -> bool {
        match ProcessParams::line(command, &self.program, self.dir.as_deref()) {
            Err(failure) => failure.error.kind() != io::ErrorKind::ArgumentListTooLong,
            Ok(_) => true,
        }
    }
}
