//! Unix: duplicates of descriptors 0, 1 and 2.

use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::AsFd;
use std::path::PathBuf;

use super::types::StdStream;

pub(super) fn std_file(stream: StdStream) -> io::Result<File> {
    let duplicate = match stream {
        StdStream::Input => io::stdin().as_fd().try_clone_to_owned(),
        StdStream::Output => io::stdout().as_fd().try_clone_to_owned(),
        StdStream::Error => io::stderr().as_fd().try_clone_to_owned(),
    };
    duplicate.map(File::from)
}

pub(super) fn stdin_path() -> Option<PathBuf> {
    let mut input = std_file(StdStream::Input).ok()?;
    if !input.metadata().ok()?.is_file() || input.stream_position().ok()? != 0 {
        return None;
    }
    // This link exists on Linux only.
    std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.is_file())
}
