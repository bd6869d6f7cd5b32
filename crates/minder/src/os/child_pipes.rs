//! Descriptors and handles of the pipes to children, and standard streams made of them.

use std::fs::File;
use std::io;

use crate::child_pipes::{ChildStderr, ChildStdin, ChildStdout};
use crate::command::Stdio;

macro_rules! pipe_end {
    ($($type:ident)*) => {$(
        #[cfg(unix)]
        impl std::os::fd::AsFd for $type {
            fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        #[cfg(unix)]
        impl std::os::fd::AsRawFd for $type {
            fn as_raw_fd(&self) -> std::os::fd::RawFd {
                self.0.as_raw_fd()
            }
        }

        #[cfg(unix)]
        impl From<$type> for std::os::fd::OwnedFd {
            fn from(pipe: $type) -> Self {
                pipe.0.into()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsHandle for $type {
            fn as_handle(&self) -> std::os::windows::io::BorrowedHandle<'_> {
                self.0.as_handle()
            }
        }

        #[cfg(windows)]
        impl std::os::windows::io::AsRawHandle for $type {
            fn as_raw_handle(&self) -> std::os::windows::io::RawHandle {
                self.0.as_raw_handle()
            }
        }

        #[cfg(windows)]
        impl From<$type> for std::os::windows::io::OwnedHandle {
            fn from(pipe: $type) -> Self {
                pipe.0.into()
            }
        }
    )*};
}

pipe_end!(ChildStdin ChildStdout ChildStderr);

#[cfg(unix)]
impl From<std::os::fd::OwnedFd> for Stdio {
    fn from(fd: std::os::fd::OwnedFd) -> Self {
        File::from(fd).into()
    }
}

#[cfg(windows)]
impl From<std::os::windows::io::OwnedHandle> for Stdio {
    fn from(handle: std::os::windows::io::OwnedHandle) -> Self {
        File::from(handle).into()
    }
}

macro_rules! of_std {
    ($($type:ty)*) => {$(
        impl From<$type> for Stdio {
            fn from(pipe: $type) -> Self {
                #[cfg(unix)]
                let pipe = std::os::fd::OwnedFd::from(pipe);
                #[cfg(windows)]
                let pipe = std::os::windows::io::OwnedHandle::from(pipe);
                pipe.into()
            }
        }
    )*};
}

of_std!(
    io::PipeReader io::PipeWriter
    std::process::ChildStdin std::process::ChildStdout std::process::ChildStderr
);
