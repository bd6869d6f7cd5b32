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

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn grow_pipe(pipe: &File) {
    /// The limit for users without privileges (`/proc/sys/fs/pipe-max-size`).
    const SIZE: usize = 1 << 20;
    if rustix::pipe::fcntl_getpipe_size(pipe).is_ok_and(|size| size < SIZE) {
        let _ = rustix::pipe::fcntl_setpipe_size(pipe, SIZE);
    }
}
