//! The length limit of a command, for programs that pass as many arguments as possible to one.

use super::system;
use crate::command::Command;

/// The limit of one program's command line.
///
/// - Linux: a quarter of the stack limit, at least 128 KiB and at most 6 MiB, minus the environment and 8 KiB
///   of headroom; half of a stack limit below 256 KiB. Each string takes a NUL byte and a pointer more. One
///   argument has at most 131,071 bytes (execve(2)).
/// - Other Unix: 256 KiB, minus the same.
/// - Windows: 32,766 UTF-16 units with all quotes and escapes (`CreateProcessW`); for a batch file,
///   which `cmd.exe` runs, 8,191 ("Command prompt line string limitation").
#[derive(Clone, Debug)]
pub struct CommandLineLimit(system::CommandLineLimit);

impl CommandLineLimit {
    /// Returns the limit for this command's program. The program is looked up now, in `PATH` or
    /// relative to the command's directory. A program that is not found counts as an executable,
    /// not as a batch file.
    ///
    /// - Unix: the environment of the command and the stack limit of this process are read now.
    ///
    /// ```
    /// use minder::{Command, os::CommandLineLimit};
    ///
    /// let mut command = Command::new("cmd.exe");
    /// let limit = CommandLineLimit::of(&command);
    /// assert!(!cfg!(windows) || limit.max_units() == 32_766);
    /// assert!(limit.fits(&command));
    /// command.args(std::iter::repeat_n("x", limit.max_units()));
    /// assert!(!limit.fits(&command));
    /// ```
    #[must_use]
    pub fn of(command: &Command) -> Self {
        Self(system::CommandLineLimit::of(command))
    }

    /// Returns the length of the longest line: in UTF-16 units on Windows, in bytes with the additions above
    /// on Unix.
    #[must_use]
    pub fn max_units(&self) -> usize {
        self.0.max_units()
    }

    /// Returns whether the line of this command, with the same program and directory, is short enough.
    /// Other reasons why it may not start are not checked.
    #[must_use]
    pub fn fits(&self, command: &Command) -> bool {
        self.0.fits(command)
    }
}
