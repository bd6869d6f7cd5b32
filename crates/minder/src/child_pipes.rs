//! Our ends of the pipes to the standard streams of a child.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use crate::command::Stdio;

/// Our end of the pipe to a child's standard input. Writes block while the pipe is full. Dropping it
/// ends the input.
#[derive(Debug)]
pub struct ChildStdin(pub(crate) File);

/// Our end of the pipe from a child's standard output. Reads block while it is empty.
#[derive(Debug)]
pub struct ChildStdout(pub(crate) File);

/// Our end of the pipe from a child's standard error. Reads block while it is empty.
#[derive(Debug)]
pub struct ChildStderr(pub(crate) File);

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        self.0.write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

macro_rules! reader {
    ($($type:ident)*) => {$(
        impl Read for $type {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                self.0.read(buffer)
            }

            fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                self.0.read_vectored(slices)
            }

            fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
                self.0.read_to_end(bytes)
            }
        }
    )*};
}

reader!(ChildStdout ChildStderr);

macro_rules! into_stdio {
    ($($type:ident)*) => {$(
        /// Connects a stream of another child to this pipe.
        impl From<$type> for Stdio {
            fn from(pipe: $type) -> Self {
                pipe.0.into()
            }
        }
    )*};
}

into_stdio!(ChildStdin ChildStdout ChildStderr);
