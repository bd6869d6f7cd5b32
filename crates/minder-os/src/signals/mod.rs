//! Names of signals, and what an exit says of how a process ended.

#[cfg(unix)]
mod inherited;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

/// Returns the number of the signal of this name (`TERM`, without `SIG`) on this operating system.
///
/// - Unix: the signals of POSIX, and `WINCH`.
/// - Windows: `HUP`, `INT`, `QUIT`, `TERM` and `KILL`, which all end a job at once. There are no
///   signals.
///
/// ```
/// assert_eq!(minder_os::signals::number("TERM"), Some(15));
/// assert_eq!(minder_os::signals::number("SIGTERM"), None);
/// ```
#[must_use]
pub fn number(name: &str) -> Option<i32> {
    system::number(name)
}

/// The words in front of a command that make it ignore the signals which ask a process to end. A program
/// that keeps ignored signals ignored, as ssh(1) does, then ends by itself, or by `SIGKILL`.
///
/// - Windows: none.
///
/// ```
/// # #[cfg(unix)] {
/// let (shell, words) = minder_os::signals::IGNORING.split_first().unwrap();
/// let mut command = std::process::Command::new(shell);
/// let status = command.args(words).args(["sh", "-c", "kill -TERM $$; exit 3"]).status()?;
/// assert_eq!(status.code(), Some(3));
/// # }
/// # Ok::<(), std::io::Error>(())
/// ```
pub const IGNORING: &[&str] =
    if cfg!(unix) { &["/bin/sh", "-c", r#"trap '' HUP INT QUIT TERM; exec "$@""#, "sh"] } else { &[] };

/// Returns whether a process that ended with this exit code or by this signal may have been killed.
///
/// - Unix: by a signal.
/// - Windows: with the exit code that killed children get, 1; others may end with it, too.
#[must_use]
pub fn looks_killed(code: Option<i32>, signal: Option<i32>) -> bool {
    system::looks_killed(code, signal)
}

/// Returns whether a process that ended with this exit code or by this signal may have been
/// terminated by a request, as all processes are when the machine shuts down.
///
/// - Unix: by `SIGHUP`, `SIGINT`, `SIGQUIT`, `SIGTERM` or `SIGKILL`, or with the exit code that
///   shells and many programs use for them, 128 plus the signal number.
/// - Windows: with the code of a console that was closed or interrupted (0xC000013A).
#[must_use]
pub fn looks_terminated(code: Option<i32>, signal: Option<i32>) -> bool {
    system::looks_terminated(code, signal)
}

/// Returns whether the parent of this process made it ignore `SIGPIPE`. Rust's runtime ignores the
/// signal in any case.
///
/// - Windows: `false`.
#[must_use]
pub fn inherited_ignored_sigpipe() -> bool {
    #[cfg(unix)]
    return inherited::ignored_sigpipe();
    #[cfg(windows)]
    false
}
