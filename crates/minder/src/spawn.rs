//! `Command` → `Child`, and the words for what can go wrong on the way.

use std::io;

use crate::command::Command;
use crate::sys::spawn::{Failure, Spawner, Step};
use crate::{Child, Error, ErrorKind, Result};

impl Command {
    /// Starts the command on the calling thread, and starts no other thread.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) and `PermissionDenied` for the program or the folder,
    /// `PermissionDenied` and `Unsupported` for a [niceness](Command::nice), `InvalidInput` for a NUL byte, `TooLong` for too large arguments, `Exhausted` when no descriptor, process or
    /// memory is free. No child is left behind by a call that fails.
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
        (Step::Exec, io::ErrorKind::NotFound) => general(error).because(
            ErrorKind::NotFound,
            "no such file, or the interpreter named in its first line does not exist",
        ),
        (Step::Exec, io::ErrorKind::ArgumentListTooLong) => {
            general(error).because(ErrorKind::TooLong, too_long(command))
        }
        (Step::Exec, _) if is_no_program(&error) => general(error).because(
            ErrorKind::Other,
            "not a program for this system, and no `#!` in its first line names one",
        ),
        (Step::Arguments, _) => {
            let text = "an argument or variable holds a NUL byte, which no program can be given";
            general(error).because(ErrorKind::InvalidInput, text)
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

/// Which limit of execve(2) the arguments went over. One string may have 32 pages with its end mark on Linux.
fn too_long(command: &Command) -> &'static str {
    const ONE_MAX: usize = 128 << 10;
    if command.args.iter().any(|arg| arg.len() >= ONE_MAX) {
        "one argument is longer than the 131,071 bytes that Linux takes: pass it through a file or standard input"
    } else {
        "arguments and environment together are longer than the system takes: pass them through a file or standard input"
    }
}

fn is_no_program(error: &io::Error) -> bool {
    // ENOEXEC has no kind of its own; 8 on every Unix, and the same thought on Windows is 193.
    matches!(error.raw_os_error(), Some(8 | 193))
}
