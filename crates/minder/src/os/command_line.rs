//! The length limit of a command line, for programs that pass as many arguments as possible in one.

use super::system;
use crate::command::Command;

/// The limit of one program's command line, on systems where programs get a line.
///
/// - Unix: programs get separate arguments, and there is no such value. See
///   [`ErrorKind::TooLong`](crate::ErrorKind::TooLong) for their limits.
/// - Windows: 32,766 UTF-16 units with all quotes and escapes (`CreateProcessW`); for a batch file,
///   which `cmd.exe` runs, 8,191 ("Command prompt line string limitation").
#[derive(Clone, Debug)]
pub struct CommandLineLimit(system::CommandLineLimit);

impl CommandLineLimit {
    /// Returns the limit for this command's program. The program is looked up now, in `PATH` or
    /// relative to the command's directory. A program that is not found counts as an executable,
    /// not as a batch file. Returns `None` on Unix.
    ///
    /// ```
    /// use minder::{Command, os::CommandLineLimit};
    ///
    /// let mut command = Command::new("cmd.exe");
    /// let limit = CommandLineLimit::of(&command);
    /// assert_eq!(limit.map(|limit| limit.max_units()), cfg!(windows).then_some(32_766));
    /// command.args(std::iter::repeat_n("x", 20_000));
    /// assert!(CommandLineLimit::of(&command).is_none_or(|limit| !limit.fits(&command)));
    /// ```
    #[must_use]
    pub fn of(command: &Command) -> Option<Self> {
        system::CommandLineLimit::of(command).map(Self)
    }

    /// Returns the length of the longest line, in UTF-16 units.
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
