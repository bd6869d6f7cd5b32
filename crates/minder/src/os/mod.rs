//! The parts of the public interface that differ between operating systems, and the functions of the
//! operating system that a command needs.

mod exit_status;
mod child_pipes;
mod jobserver;
mod poller_wait;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
mod descriptors;
mod command_line;
mod wait_handles;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub use self::command_line::CommandLineLimit;
pub use self::jobserver::{JobToken, Jobserver};
pub use self::system::PollHandle;

use std::time::Instant;

use crate::error::{Error, Operation, Result};
use crate::interest::Interest;
use crate::poll::Source;

/// Waits until a source is ready or the deadline has passed. Returns whether it is ready. A file that
/// never blocks is always ready.
///
/// - Unix: poll(2), which needs no further descriptor. Windows: a [`Poller`](crate::poll::Poller).
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, os};
/// use minder::poll::Interest;
/// use std::time::{Duration, Instant};
///
/// let mut child = Command::new("true").spawn()?;
/// let deadline = Instant::now() + Duration::from_secs(60);
/// assert!(os::wait_ready(&child, Interest::READABLE, Some(deadline))?);
/// assert!(child.try_wait()?.is_some());
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Windows: `Unsupported` for a source that cannot be watched.
pub fn wait_ready<'a>(
    source: impl Into<Source<'a>>,
    interest: Interest,
    deadline: Option<Instant>,
) -> Result<bool> {
    let ready = system::wait_ready(source.into(), interest, deadline);
    ready.map_err(|error| Error::new("wait for a source", error).during(Operation::Wait))
}

/// Returns whether [`Event::Stopped`](crate::Event::Stopped) with this signal means that the child
/// wants the terminal, which belongs to another process group: `SIGTTIN` (it reads) or `SIGTTOU`
/// (it writes or changes modes).
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// // A terminal's reader was stopped; a plain `SIGTERM` is something else.
/// assert!(minder::os::wants_terminal(21) && !minder::os::wants_terminal(15));
/// # }
/// ```
pub fn wants_terminal(signal: i32) -> bool {
    system::wants_terminal(signal)
}

/// Returns whether a child can be asked to exit, so that it may clean up first.
///
/// - Unix: yes, by a signal. Windows: no, a job object can only be terminated.
///
/// ```
/// use minder::{Termination, os};
/// use std::time::Duration;
///
/// // On a system that cannot ask, a user need not wait for the grace period.
/// let grace = if os::supports_graceful_termination() { Duration::from_secs(5) } else { Duration::ZERO };
/// assert_eq!(grace.is_zero(), cfg!(windows));
/// let how = Termination::graceful(grace);
/// # let _ = how;
/// ```
pub fn supports_graceful_termination() -> bool {
    system::supports_graceful_termination()
}

/// Returns whether a child can be suspended and resumed.
///
/// - Unix: yes, by signals. Windows: no.
///
/// ```
/// assert_eq!(minder::os::supports_suspend(), cfg!(unix));
/// ```
pub fn supports_suspend() -> bool {
    system::supports_suspend()
}
