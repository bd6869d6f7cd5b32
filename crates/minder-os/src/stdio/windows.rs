//! Windows: duplicates of the standard handles.

use std::fs::File;
use std::io::{self, IsTerminal, Write};
use std::os::windows::io::AsHandle;
use std::path::PathBuf;

use super::types::StdStream;
use crate::files::send_file;

/// A pipe or a console has no write that does not wait and that leaves other processes alone:
/// `PIPE_NOWAIT` is a property of the pipe (SetNamedPipeHandleState).
#[derive(Debug)]
pub(super) struct NonblockingWriter {
    is_terminal: bool,
}

impl NonblockingWriter {
    pub(super) fn new(file: &File) -> Self {
        Self { is_terminal: file.is_terminal() }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(super) fn has_same_reader(&self, _other: &Self) -> bool {
        false
    }

    pub(super) fn write(&mut self, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        file.write(bytes)
    }

    pub(super) fn send_file(&mut self, file: &File, from: &File, offset: u64, len: u64) -> io::Result<u64> {
        send_file(from, offset, len, file)
    }
}

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
