//! `Command` → `Child`, and the words for what can go wrong on the way.

use std::io;

use crate::command::Command;
use crate::sys::spawn::{Failure, NO_FILE, NO_PROGRAM, Spawner, Step, is_no_program};
use crate::{Child, Error, ErrorKind, Result};

impl Command {
    /// Starts the command on the calling thread, and starts no other thread.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) and `PermissionDenied` for the program
    /// or the folder, `PermissionDenied` and `Unsupported` for a [niceness](Command::nice),
    /// `InvalidInput` for a NUL byte, `TooLong` for too large arguments, `Exhausted` when no
    /// descriptor, process or memory is free. No child is left behind by a call that fails.
    pub fn spawn(&self) -> Result<Child> {
        let spawned = Spawner::new().spawn(self).map_err(|failure| explain(self, failure))?;
        Child::new(spawned)
    }
}

/// Says what failed, on which thing, and what can be done.
pub(crate) fn explain(command: &Command, failure: Failure) -> Error {
    let Failure { step, error } = failure;
    let kind = error.kind();
    let general = |error| Error::new("start", error).on(&command.program);
    match (step, kind) {
        (Step::Lookup, io::ErrorKind::NotFound) => {
            general(error).because(ErrorKind::NotFound, "not found in PATH")
        }
        // The system's half has words of its own for it.
        (Step::Exec | Step::Process, _) if error.get_ref().is_some() => general(error),
        (Step::Exec, io::ErrorKind::NotFound) => general(error).because(ErrorKind::NotFound, NO_FILE),
        (Step::Exec, io::ErrorKind::ArgumentListTooLong) => {
            general(error).because(ErrorKind::TooLong, too_long(command))
        }
        (Step::Exec, _) if is_no_program(&error) => general(error).because(ErrorKind::Other, NO_PROGRAM),
        (Step::Arguments, _) => {
            let text = "an argument or variable holds a NUL byte, which no program can be given";
            general(error).because(ErrorKind::InvalidInput, text)
        }
        (Step::Tail, _) => {
            let text = "a raw command line is for Windows: here programs get words";
            general(error).because(ErrorKind::Unsupported, text)
        }
        (Step::Variable, _) => {
            general(error).because(ErrorKind::InvalidInput, "the name of a variable is empty or holds `=`")
        }
        (Step::Folder, _) => {
            let folder = command.current_dir.as_deref().unwrap_or_else(|| std::path::Path::new(""));
            Error::new("enter the folder", error).on(folder)
        }
        (Step::Niceness, io::ErrorKind::PermissionDenied) => general(error).because(
            ErrorKind::PermissionDenied,
            "a niceness that low needs a privilege (CAP_SYS_NICE, or a higher `ulimit -e`)",
        ),
        (Step::Niceness, _) => general(error).because(
            ErrorKind::Unsupported,
            "no niceness can be set without clone3, which is not to be had here",
        ),
        (Step::Streams | Step::Process, _) if crate::sys::is_exhausted(&error) => general(error),
        _ => general(error),
    }
}

/// Which limit of execve(2) the arguments went over. One string may have 32 pages with its end mark
/// on Linux.
fn too_long(command: &Command) -> &'static str {
    const ONE_MAX: usize = 128 << 10;
    if command.args.iter().any(|arg| arg.len() >= ONE_MAX) {
        "one argument is longer than the 131,071 bytes that Linux takes: pass it through a file or standard input"
    } else {
        "arguments and environment together are longer than the system takes: pass them through a file or standard input"
    }
}
