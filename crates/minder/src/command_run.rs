//! `Command::spawn`, `status` and `output`: start a command, and run it to its end.

use std::time::Duration;

use crate::capture::{CaptureOptions, Output, output};
use crate::command::Command;
use crate::spawn::spawn;
use crate::{Child, ExitStatus, Result};

impl Command {
    /// Starts the command on the calling thread. Starts no other thread.
    ///
    /// A call that fails leaves no child behind.
    ///
    /// # Errors
    /// - [`NotFound`](crate::ErrorKind::NotFound): the program or the working directory does not exist.
    /// - `PermissionDenied`: the program, the working directory, a [niceness](Command::nice), a
    ///   [user](Command::uid) or a [limit](Command::limit) is not allowed.
    /// - `Unsupported`: the operating system lacks a requested feature, such as a niceness or a user id.
    /// - `InvalidInput`: an argument or variable contains a NUL byte.
    /// - `TooLong`: the arguments are too long.
    /// - `Exhausted`: no descriptor, process or memory is free.
    /// - `Other`, with [`ExecutableFileBusy`](std::io::ErrorKind::ExecutableFileBusy) as the kind of
    ///   [`Error::io_error`](crate::Error::io_error): the program is open for writing (Linux). It may be for
    ///   a moment after it was written and closed: a process that is being started has a copy of the
    ///   descriptor. The call does not wait; a [`JobPool`](crate::jobs::JobPool) tries such a start for one
    ///   second.
    ///
    /// [`Error::operation`](crate::Error::operation) is
    /// [`Operation::EnterDirectory`](crate::Operation::EnterDirectory) if the working directory is the
    /// cause, and [`Operation::Spawn`](crate::Operation::Spawn) otherwise.
    pub fn spawn(&self) -> Result<Child> {
        spawn(self)
    }

    /// Starts the command, waits until it exits, and returns how it exited. Its streams are those of
    /// this process unless they are set.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// assert!(minder::Command::new("true").status()?.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn) and [`Child::wait`](crate::Child::wait).
    pub fn status(&self) -> Result<ExitStatus> {
        Ok(spawn(self)?.wait()?.status)
    }

    /// Starts the command, waits until it exits and its outputs end, and returns what it wrote. Its input
    /// is the null device, and its outputs are captured, unless they are set. On a
    /// [terminal](crate::Group::Terminal), the input is the terminal, and gets its end-of-file character. A
    /// process that the child leaves behind and that keeps an output open is waited for, without a limit:
    /// see [`CaptureOptions::leak_timeout`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let output = minder::Command::new("echo").arg("text").output()?;
    /// assert!(output.status.success());
    /// assert_eq!(output.stdout, b"text\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`output_with`](Self::output_with).
    pub fn output(&self) -> Result<Output> {
        self.output_with(CaptureOptions::new())
    }

    /// Does the same as [`output`](Self::output), with a time limit: see [`CaptureOptions::timeout`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::Command;
    /// use std::time::Duration;
    ///
    /// let output = Command::new("sleep").arg("60").output_timeout(Duration::from_millis(20))?;
    /// assert!(output.timed_out);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`output_with`](Self::output_with).
    pub fn output_timeout(&self, timeout: Duration) -> Result<Output> {
        self.output_with(CaptureOptions::new().timeout(timeout))
    }

    /// Does the same as [`output`](Self::output), with these options.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{CaptureOptions, Command};
    ///
    /// let input = CaptureOptions::new().input("text");
    /// let output = Command::new("tr").args(["a-z", "A-Z"]).output_with(input)?;
    /// assert_eq!(output.stdout, b"TEXT");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - As [`spawn`](Self::spawn).
    /// - [`Limit`](crate::ErrorKind::Limit): the child wrote more than [`CaptureOptions::max_bytes`], and
    ///   [`CaptureOptions::truncate`] is not set.
    /// - The error of the reader of [`CaptureOptions::input_reader`]; its
    ///   [`operation`](crate::Error::operation) is `Read`.
    ///
    /// A call that fails leaves no child behind, except one that no signal ends within 5 s.
    pub fn output_with(&self, options: CaptureOptions) -> Result<Output> {
        output(self, options)
    }
}
