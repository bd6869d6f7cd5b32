//! Conversions between our exit status and that of the standard library.

use crate::exit_status::ExitStatus;

impl ExitStatus {
    /// Ends this process as the child has ended: with the same exit code, or by the same signal, without a
    /// core file. Its parent sees what it would see of the child. Destructors do not run. For programs that
    /// run another program in their place.
    ///
    /// An [`Unknown`](Self::Unknown) status becomes exit code 255. Where the signal cannot end this process
    /// (pid 1 of a container), the exit code is that of a shell, 128 and the number of the signal.
    ///
    /// ```standalone_crate
    /// fn main() -> minder::Result<()> {
    ///     # if cfg!(windows) { return Ok(()); }
    ///     minder::Command::new("true").status()?.exit_process()
    /// }
    /// ```
    pub fn exit_process(self) -> ! {
        crate::sys::guard::exit_like(self)
    }
}

/// The status of the standard library.
type StdStatus = std::process::ExitStatus;

impl From<StdStatus> for ExitStatus {
    #[cfg(unix)]
    fn from(status: StdStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exited(code),
            (None, Some(signal)) => Self::Signaled { signal, core_dumped: status.core_dumped() },
            (None, None) => Self::Unknown,
        }
    }

    #[cfg(windows)]
    fn from(status: StdStatus) -> Self {
        status.code().map_or(Self::Unknown, Self::Exited)
    }
}

/// The status for functions that take one of the standard library. The error is
/// [`ExitStatus::Unknown`], for which the standard library has no value.
///
/// ```
/// use minder::ExitStatus;
/// let status = std::process::ExitStatus::try_from(ExitStatus::Exited(3));
/// assert_eq!(status.map(|status| status.code()), Ok(Some(3)));
/// ```
impl TryFrom<ExitStatus> for StdStatus {
    type Error = ExitStatus;

    #[cfg(unix)]
    fn try_from(status: ExitStatus) -> Result<Self, ExitStatus> {
        use std::os::unix::process::ExitStatusExt;
        // The layout of waitpid(2), which is the same on all systems that this library supports.
        const CORE_DUMPED: i32 = 0x80;
        match status {
            ExitStatus::Exited(code) => Ok(Self::from_raw((code & 0xff) << 8)),
            ExitStatus::Signaled { signal, core_dumped } => {
                Ok(Self::from_raw(signal & 0x7f | if core_dumped { CORE_DUMPED } else { 0 }))
            }
            ExitStatus::Unknown => Err(status),
        }
    }

    #[cfg(windows)]
    fn try_from(status: ExitStatus) -> Result<Self, ExitStatus> {
        use std::os::windows::process::ExitStatusExt;
        status.code().map(|code| Self::from_raw(code.cast_unsigned())).ok_or(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn statuses_survive_both_conversions() {
        let signaled = |signal, core_dumped| ExitStatus::Signaled { signal, core_dumped };
        for status in [
            ExitStatus::Exited(0),
            ExitStatus::Exited(255),
            signaled(9, false),
            signaled(11, true),
            signaled(64, false),
        ] {
            let std = StdStatus::try_from(status).unwrap();
            assert_eq!(ExitStatus::from(std), status);
            assert_eq!(std.success(), status.success());
        }
        assert_eq!(StdStatus::try_from(ExitStatus::Unknown), Err(ExitStatus::Unknown));
    }

    #[cfg(windows)]
    #[test]
    fn statuses_survive_both_conversions() {
        for status in [ExitStatus::Exited(0), ExitStatus::Exited(-1_073_741_510)] {
            let std = StdStatus::try_from(status).unwrap();
            assert_eq!(ExitStatus::from(std), status);
        }
        assert_eq!(StdStatus::try_from(ExitStatus::Unknown), Err(ExitStatus::Unknown));
    }
}
