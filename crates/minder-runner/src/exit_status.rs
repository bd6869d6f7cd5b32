//! The exit statuses of a run. They are those of GNU parallel.

/// All jobs succeeded.
pub const SUCCESS: u8 = 0;
/// The largest status that counts failed jobs.
pub const FAILED_MAX: u8 = 100;
/// More than 100 jobs failed.
pub const FAILED_MORE: u8 = 101;
/// Anything else: flags, the template, no such command, a full disk.
pub const OTHER: u8 = 255;
/// Standard output was closed by its reader: what a shell reports for a filter that SIGPIPE ended.
pub const BROKEN_PIPE: u8 = 141;

/// The third Ctrl-C: the run ends at once, with the shell's status for SIGINT.
pub const INTERRUPTED: u8 = 130;
/// The same, with the shell's status for SIGTERM.
pub const TERMINATED: u8 = 143;

/// Exit statuses of xargs: jobs failed; a job exited with 255; a signal ended a job; the command
/// cannot be run; there is no such command.
pub const XARGS_FAILED: u8 = 123;
/// See [`XARGS_FAILED`].
pub const XARGS_STOPPED: u8 = 124;
/// See [`XARGS_FAILED`].
pub const XARGS_SIGNALED: u8 = 125;
/// See [`XARGS_FAILED`].
pub const XARGS_NOT_RUN: u8 = 126;
/// See [`XARGS_FAILED`].
pub const XARGS_NOT_FOUND: u8 = 127;

/// See [`XARGS_FAILED`]: any other error.
pub const XARGS_OTHER: u8 = 1;

/// Returns the status of xargs for a job with this status; [`SUCCESS`] if it succeeded.
pub fn of_xargs(status: minder::ExitStatus) -> u8 {
    match status {
        _ if status.success() => SUCCESS,
        minder::ExitStatus::Exited(255) => XARGS_STOPPED,
        minder::ExitStatus::Signaled { .. } => XARGS_SIGNALED,
        _ => XARGS_FAILED,
    }
}

/// Returns the status of xargs if a command cannot be started.
pub fn of_xargs_start(error: minder::ErrorKind) -> u8 {
    if error == minder::ErrorKind::NotFound { XARGS_NOT_FOUND } else { XARGS_NOT_RUN }
}

/// Returns the exit status of a process as a shell reports it: 128 plus the number of a signal.
pub fn of_shell(status: minder::ExitStatus) -> u8 {
    match status {
        minder::ExitStatus::Exited(code) => u8::try_from(code).unwrap_or(1),
        minder::ExitStatus::Signaled { signal, .. } => u8::try_from(signal).unwrap_or(0) | 0x80,
        _ => 1,
    }
}

/// Returns the status for this many failed jobs.
pub fn of_failed(failed: u64) -> u8 {
    match u8::try_from(failed) {
        Ok(0) => SUCCESS,
        Ok(failed) if failed <= FAILED_MAX => failed,
        _ => FAILED_MORE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_status_counts_failed_jobs_up_to_100() {
        let statuses = [0, 1, 100, 101, 255, 256, 1_000_000].map(of_failed);
        assert_eq!(statuses, [0, 1, 100, 101, 101, 101, 101]);
    }
}
