//! Unix: writes that do not wait for a reader.

use std::fs::File;
use std::io::{self, Write};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, fstat};
use rustix::termios::isatty;

use crate::files::send_file;

/// The number of bytes that a ready pipe takes at once: `PIPE_BUF`, which is 4,096 on Linux
/// (pipe(7)) and elsewhere at least 512 (limits.h in POSIX).
const SLICE: usize = if cfg!(any(target_os = "linux", target_os = "android")) { 4096 } else { 512 };

#[derive(Debug)]
pub(super) struct NonblockingWriter {
    method: Method,
    is_terminal: bool,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    is_pipe: bool,
    /// Device and number of the file.
    id: (u64, u64),
}

#[derive(Debug)]
enum Method {
    /// A write waits for no reader.
    Plain,
    /// pwritev2(2) with `RWF_NOWAIT`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    NoWait,
    /// A write to an open file description of our own with `O_NONBLOCK`.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    Private(File),
    /// A write of a few bytes once poll(2) says that there is room.
    Slices,
}

impl NonblockingWriter {
    pub(super) fn new(file: &File) -> Self {
        let Ok(stat) = fstat(file) else {
            return Self {
                method: Method::Plain,
                is_terminal: false,
                #[cfg(any(target_os = "linux", target_os = "android"))]
                is_pipe: false,
                id: (0, 0),
            };
        };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_terminal = kind == FileType::CharacterDevice && isatty(file);
        let method = match kind {
            FileType::Fifo | FileType::Socket => first_method(),
            _ if is_terminal => own_description(file),
            _ => Method::Plain,
        };
        #[allow(
            clippy::unnecessary_cast,
            clippy::cast_sign_loss,
            reason = "the types differ between systems"
        )]
        let id = (stat.st_dev as u64, stat.st_ino as u64);
        Self {
            method,
            is_terminal,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            is_pipe: kind == FileType::Fifo,
            id,
        }
    }

    pub(super) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    pub(super) fn has_same_reader(&self, other: &Self) -> bool {
        let waits = |writer: &Self| !matches!(writer.method, Method::Plain);
        waits(self) && waits(other) && self.id == other.id
    }

    pub(super) fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        let mut plain = file;
        match &self.method {
            Method::Plain => plain.write(bytes),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Method::NoWait => {
                use rustix::io::{Errno, ReadWriteFlags, pwritev2};
                let slices = [io::IoSlice::new(bytes)];
                // The offset -1 stands for that of the file (pwritev2(2)).
                match pwritev2(file, &slices, u64::MAX, ReadWriteFlags::NOWAIT) {
                    Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL | Errno::SPIPE) => {
                        self.method = own_description(file);
                        self.write(file, bytes)
                    }
                    written => Ok(written?),
                }
            }
            #[cfg(any(target_os = "linux", target_os = "android"))]
            Method::Private(private) => {
                let mut private = private;
                private.write(bytes)
            }
            Method::Slices => {
                let mut ends = [PollFd::new(file, PollFlags::OUT)];
                match poll(&mut ends, Some(&Timespec::default()))? {
                    0 => Err(io::ErrorKind::WouldBlock.into()),
                    _ => plain.write(&bytes[..bytes.len().min(SLICE)]),
                }
            }
        }
    }

    pub(super) fn send_file(&mut self, file: &File, from: &File, offset: u64, len: u64) -> io::Result<u64> {
        match &self.method {
            Method::Plain => send_file(from, offset, len, file),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            _ if self.is_pipe => {
                use rustix::pipe::{SpliceFlags, splice};
                let len = usize::try_from(len).unwrap_or(usize::MAX);
                let mut offset = offset;
                Ok(splice(from, Some(&mut offset), file, None, len, SpliceFlags::NONBLOCK)? as u64)
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        }
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn first_method() -> Method {
    Method::NoWait
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn first_method() -> Method {
    Method::Slices
}

/// Opens the file once more. That can be refused: the file may belong to another user, as a terminal
/// does after su(1), and a socket cannot be opened.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn own_description(file: &File) -> Method {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;

    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    match open(path, flags, Mode::empty()) {
        Ok(private) => Method::Private(private.into()),
        Err(_) => Method::Slices,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn own_description(_: &File) -> Method {
    Method::Slices
}
