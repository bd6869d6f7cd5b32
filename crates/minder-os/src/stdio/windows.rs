//! Windows: duplicates of the standard handles.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::windows::io::AsHandle;
use std::path::PathBuf;

use super::types::StdStream;

pub(super) fn std_file(stream: StdStream) -> io::Result<File> {
    let duplicate = match stream {
        StdStream::Input => io::stdin().as_handle().try_clone_to_owned(),
        StdStream::Output => io::stdout().as_handle().try_clone_to_owned(),
        StdStream::Error => io::stderr().as_handle().try_clone_to_owned(),
    };
    duplicate.map(File::from)
}

pub(super) fn stdin_path() -> Option<PathBuf> {
    None
}

pub(super) fn stdin_is_null() -> bool {
    false
}

pub(super) fn close_std(_stream: StdStream) -> io::Result<()> {
    Ok(())
}

pub(super) fn stderr_is_stdout() -> bool {
    false
}

pub(super) fn stdout_is_pipe() -> bool {
    let is_file = |file: File| file.metadata().is_ok_and(|metadata| metadata.is_file());
    !io::stdout().is_terminal() && !std_file(StdStream::Output).is_ok_and(is_file)
}
