//! The longest command, by the rules of POSIX for xargs.

/// The size of a command if the user sets none and the system allows it.
const DEFAULT_SIZE: usize = 128 << 10;
/// The room that POSIX requires xargs to leave for the command.
const HEADROOM: usize = 2048;
/// The most bytes of arguments and environment on Linux (execve(2)), however large the stack is.
const ARGUMENTS_MAX: u64 = 6 << 20;
/// The longest command line of Windows, in UTF-16 units. Quotes need room, too; a command that is
/// longer nevertheless is split when it starts.
const WINDOWS_MAX: usize = 32_767;

/// The bounds on the length of a command.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The size of the environment.
    pub(super) environment: usize,
    /// The upper limit of POSIX: what the system takes, without the environment and the headroom.
    pub(super) most: usize,
}

impl Limits {
    /// Returns the limits of this system and this environment.
    ///
    /// # Errors
    /// The environment leaves no room for a command.
    pub(super) fn of_system() -> Result<Self, String> {
        // `NAME=VALUE` and a NUL byte.
        let environment = std::env::vars_os().map(|(name, value)| name.len() + value.len() + 2).sum();
        let system = if std::env::consts::FAMILY == "windows" {
            WINDOWS_MAX + HEADROOM + environment
        } else {
            // A quarter of the stack is for arguments and environment.
            let stack = minder_os::limits::stack_limit().map_or(ARGUMENTS_MAX, |stack| stack / 4);
            usize::try_from(stack).unwrap_or(usize::MAX).max(DEFAULT_SIZE)
        };
        match system.checked_sub(HEADROOM + environment) {
            Some(most) if most > 0 => Ok(Self { environment, most }),
            _ => Err("environment is too large for exec".to_owned()),
        }
    }

    /// Returns how many arguments a command may have: one pointer each, and one that ends the list.
    pub(super) fn count_max(&self) -> usize {
        (self.most / size_of::<*const u8>()).saturating_sub(2).max(2)
    }

    /// Returns the size of a command if the user sets none.
    pub(super) fn default_size(&self) -> usize {
        DEFAULT_SIZE.min(self.most)
    }
}
