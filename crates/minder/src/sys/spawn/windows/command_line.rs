//! What fits into a command line, as it would be written for a start.

use std::io;
use std::path::PathBuf;

use super::process_params::ProcessParams;
use super::{Spawner, folder, search};
use crate::command::Command;
use crate::sys::spawn::{cmd_quote, quote};

/// Where a program was found, and the folder that it is to start in.
#[derive(Clone, Debug)]
pub(crate) struct CommandLineLimit {
    program: PathBuf,
    folder: Option<PathBuf>,
}

impl CommandLineLimit {
    pub(crate) fn of(command: &Command) -> Option<Self> {
        // What is wrong with them is told by the start.
        let folder = command.current_dir.as_deref().and_then(|given| folder(given).ok());
        let program = Spawner::new().resolve(&command.program, folder.as_deref()).unwrap_or_default();
        Some(Self { program, folder })
    }

    pub(crate) fn units_max(&self) -> usize {
        // The line of a program has its end mark counted.
        if search::is_batch(&self.program) { cmd_quote::LINE_MAX } else { quote::LINE_MAX - 1 }
    }

    pub(crate) fn takes(&self, command: &Command) -> bool {
        match ProcessParams::line(command, &self.program, self.folder.as_deref()) {
            Err(failure) => failure.error.kind() != io::ErrorKind::ArgumentListTooLong,
            Ok(_) => true,
        }
    }
}
