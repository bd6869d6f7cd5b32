//! Our ends of the pipes to the standard streams of a child.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};

use crate::command::Stdio;
use crate::group::Size;
use crate::sys::pipe::{self, resize_terminal};
use crate::{Error, ErrorKind, Operation};

/// Our end of the pipe to a child's standard input. Writes block while the pipe is full. Dropping it
/// ends the input. A child that has closed its input is the error `BrokenPipe`, whatever this process does
/// with `SIGPIPE`.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildStdin, Command, Stdio};
/// use std::io::Write;
///
/// let mut command = Command::new("cat");
/// command.stdin(Stdio::piped()).stdout(Stdio::null());
/// let mut child = command.spawn()?;
/// let mut input: ChildStdin = child.stdin.take().expect("it is piped");
/// input.write_all(b"text")?;
/// drop(input); // the end of the input
/// assert!(child.wait()?.status.success());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChildStdin(pub(crate) File);

/// Our end of the pipe from a child's standard output. Reads block while it is empty. The output of a
/// terminal ends when no process has it open any more.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildStdout, Command, Stdio};
/// use std::io::{BufRead, BufReader};
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo one; echo two"]).stdout(Stdio::piped());
/// let mut child = command.spawn()?;
/// let output: ChildStdout = child.stdout.take().expect("it is piped");
/// let lines: Vec<String> = BufReader::new(output).lines().collect::<Result<_, _>>()?;
/// assert_eq!(lines, ["one", "two"]);
/// child.wait()?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChildStdout(pub(crate) File);

/// Our end of the pipe from a child's standard error. Reads block while it is empty.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildStderr, Command, Stdio};
///
/// let mut command = Command::new("sh");
/// command.args(["-c", "echo message >&2"]).stderr(Stdio::piped());
/// let mut child = command.spawn()?;
/// let errors: ChildStderr = child.stderr.take().expect("it is piped");
/// assert_eq!(std::io::read_to_string(errors)?, "message\n");
/// child.wait()?;
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ChildStderr(pub(crate) File);

impl Write for &ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        pipe::write(&self.0, &[IoSlice::new(bytes)])
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        pipe::write(&self.0, slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for ChildStdin {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        (&*self).write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the end of the file for the error of a terminal that no process has open any more.
fn at_end(read: io::Result<usize>) -> io::Result<usize> {
    read.or_else(|error| if pipe::is_hung_up(&error) { Ok(0) } else { Err(error) })
}

macro_rules! reader {
    ($($type:ident)*) => {$(
        impl Read for &$type {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                at_end((&self.0).read(buffer))
            }

            fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                at_end((&self.0).read_vectored(slices))
            }
        }

        impl Read for $type {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                (&*self).read(buffer)
            }

            fn read_vectored(&mut self, slices: &mut [IoSliceMut<'_>]) -> io::Result<usize> {
                (&*self).read_vectored(slices)
            }

            fn read_to_end(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
                let len = bytes.len();
                // What was read before the end is in `bytes`.
                at_end(self.0.read_to_end(bytes)).map(|_| bytes.len() - len)
            }
        }
    )*};
}

reader!(ChildStdout ChildStderr);

macro_rules! terminal {
    ($($type:ident)*) => {$(
        impl $type {
            /// Sets the size of the child's terminal: see [`Group::Terminal`](crate::Group::Terminal).
            /// Its foreground processes get `SIGWINCH`.
            ///
            /// ```
            /// # #[cfg(target_os = "linux")] {
            /// use minder::{Command, Group, Size, Termination};
            ///
            /// let mut command = Command::new("cat");
            /// command.group(Group::Terminal(Size::default()));
            /// let mut child = command.spawn()?;
            /// let (input, output) = (child.stdin.take(), child.stdout.take());
            /// let size = Size::new(50, 132);
            /// input.expect("it has a terminal").resize_terminal(size)?;
            /// output.expect("it has a terminal").resize_terminal(size)?;
            /// child.kill_and_wait(Termination::IMMEDIATE)?;
            /// # }
            /// # Ok::<(), minder::Error>(())
            /// ```
            ///
            /// # Errors
            /// - `InvalidInput`: the child has no terminal.
            /// - `Unsupported`: on Windows.
            pub fn resize_terminal(&self, size: Size) -> crate::Result<()> {
                resize_terminal(&self.0, size).map_err(resize_failed)
            }

            /// Sends a signal to the foreground processes of the child's terminal, as Ctrl-C does: see
            /// [`Group::Terminal`](crate::Group::Terminal).
            ///
            /// ```
            /// # #[cfg(target_os = "linux")] {
            /// use minder::{Command, Group, Size};
            ///
            /// let mut command = Command::new("cat");
            /// command.group(Group::Terminal(Size::default()));
            /// let mut child = command.spawn()?;
            /// let (_input, output) = (child.stdin.take(), child.stdout.take());
            /// output.expect("it has a terminal").signal_foreground(2)?;
            /// assert_eq!(child.wait()?.status.signal(), Some(2));
            /// # }
            /// # Ok::<(), minder::Error>(())
            /// ```
            ///
            /// # Errors
            /// - `InvalidInput`: the child has no terminal, or the number is not a signal.
            /// - `Unknown`: the terminal has no foreground processes.
            /// - `PermissionDenied`: they run as another user.
            /// - `Unsupported`: on Windows.
            pub fn signal_foreground(&self, signal: i32) -> crate::Result<()> {
                pipe::signal_foreground(&self.0, signal).map_err(|error| {
                    Error::new("signal the foreground processes of a terminal", error).during(Operation::Kill)
                })
            }
        }
    )*};
}

terminal!(ChildStdin ChildStdout);

impl ChildStdin {
    /// Writes the end-of-file character of the child's terminal, which is usually Ctrl-D. A program that
    /// reads lines from its terminal gets the end of its input, if no incomplete line waits.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, Group, Size};
    ///
    /// let mut command = Command::new("cat");
    /// command.group(Group::Terminal(Size::default()));
    /// let mut child = command.spawn()?;
    /// let input = child.stdin.take().expect("it has a terminal");
    /// input.send_eof()?;
    /// assert!(child.wait()?.status.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `InvalidInput`: the child has no terminal.
    /// - `Unsupported`: on Windows.
    pub fn send_eof(&self) -> crate::Result<()> {
        let is_sent = pipe::eof_byte(&self.0).and_then(|byte| (&*self).write_all(&[byte]));
        is_sent.map_err(|error| Error::new("end the input of a terminal", error).during(Operation::Write))
    }
}

/// Returns the error for a terminal whose size cannot be set.
pub(crate) fn resize_failed(error: io::Error) -> Error {
    // ENOTTY of tcsetwinsize(3).
    let is_no_terminal = !matches!(error.kind(), io::ErrorKind::Unsupported);
    let error = Error::new("resize the terminal of a child", error).during(Operation::Resize);
    if is_no_terminal { error.with_kind(ErrorKind::InvalidInput, "it has no terminal") } else { error }
}

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
