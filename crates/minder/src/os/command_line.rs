//! What fits into the command line of a program, for those who put as many arguments into one as it
//! takes.

use super::system;
use crate::command::Command;

/// What the command line of one program may hold, where programs get a line.
///
/// - Unix: programs get words, and there is no such value. See
///   [`ErrorKind::TooLong`](crate::ErrorKind::TooLong) for their bounds.
/// - Windows: 32,766 UTF-16 units with all quotes and escapes (`CreateProcessW`); for a batch file,
///   which `cmd.exe` runs, 8,191 ("Command prompt line string limitation").
#[derive(Clone, Debug)]
pub struct CommandLineLimit(system::CommandLineLimit);

impl CommandLineLimit {
    /// That of this command's program, which is looked for now, in `PATH` or from the command's
    /// directory on. One that is not found is no batch file. `None` on Unix.
    ///
    /// ```
    /// use minder::{Command, os::Line};
    ///
    /// let mut command = Command::new(minder_os::system_paths::system_shell());
    /// assert_eq!(Line::of(&command).map(|line| line.units_max()), cfg!(windows).then_some(32_766));
    /// command.args(std::iter::repeat_n("x", 20_000));
    /// assert!(Line::of(&command).is_none_or(|line| !line.takes(&command)));
    /// ```
    #[must_use]
    pub fn of(command: &Command) -> Option<Self> {
        system::CommandLineLimit::of(command).map(Self)
    }

    /// The longest line, in UTF-16 units.
    #[must_use]
    pub fn max_units(&self) -> usize {
        self.0.units_max()
    }

    /// Returns whether the line of this command, of the same program and in the same directory, is
    /// not too long. What else may keep it from being started is not looked at.
    #[must_use]
    pub fn fits(&self, command: &Command) -> bool {
        self.0.takes(command)
    }
}
