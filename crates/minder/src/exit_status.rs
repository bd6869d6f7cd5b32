//! The end of a child: its exit status, the resources that it used, and its outcome.

use std::fmt;
use std::time::Duration;

/// The exit status of a child.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, ExitStatus, Termination};
///
/// let status = Command::new("sh").args(["-c", "exit 3"]).status()?;
/// assert!(!status.success() && status.code() == Some(3) && status.signal().is_none());
/// assert_eq!((status, status.to_string()), (ExitStatus::Exited(3), "exit 3".to_string()));
///
/// let mut child = Command::new("sleep").arg("60").spawn()?;
/// let status = child.kill_and_wait(Termination::IMMEDIATE)?.status;
/// assert!(status.signal() == Some(9) && !status.core_dumped() && status.code().is_none());
///
/// // `std::process::ExitStatus` converts in both directions.
/// let std_status = std::process::ExitStatus::try_from(status).expect("the status is known");
/// assert_eq!(ExitStatus::from(std_status), status);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ExitStatus {
    /// It exited with this code: 0 to 255 on Unix; 32 bits on Windows.
    Exited(i32),
    /// A signal killed it (Unix).
    Signaled {
        /// The signal's number.
        signal: i32,
        /// `true` if it wrote a core file.
        core_dumped: bool,
    },
    /// It exited, but other code of this process took its status first, or the kernel keeps none
    /// (`SIGCHLD` is ignored).
    Unknown,
}

impl ExitStatus {
    /// Returns whether the child exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Exited(0)
    }

    /// Returns the exit code, if it exited with one.
    pub fn code(self) -> Option<i32> {
        match self {
            Self::Exited(code) => Some(code),
            _ => None,
        }
    }

    /// Returns the number of the signal that killed it, if one did.
    pub fn signal(self) -> Option<i32> {
        match self {
            Self::Signaled { signal, .. } => Some(signal),
            _ => None,
        }
    }

    /// Returns whether a signal killed it, and it wrote a core file.
    pub fn core_dumped(self) -> bool {
        matches!(self, Self::Signaled { core_dumped: true, .. })
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) if *code < 0 => write!(f, "exit {code:#010x}"),
            Self::Exited(code) => write!(f, "exit {code}"),
            Self::Signaled { signal, core_dumped: false } => write!(f, "signal {signal}"),
            Self::Signaled { signal, core_dumped: true } => write!(f, "signal {signal}, core dumped"),
            Self::Unknown => f.write_str("unknown status: other code reaped it, or SIGCHLD is ignored"),
        }
    }
}

/// The resources that a child used, including descendants that it waited for.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use minder::ResourceUsage;
///
/// let usage: Option<ResourceUsage> = minder::Command::new("true").spawn()?.wait()?.usage;
/// let usage = usage.expect("no other code reaped the child");
/// println!("{:?} of processor time, {:?} bytes", usage.user + usage.system, usage.max_rss);
/// assert!(usage.max_rss.is_some());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceUsage {
    /// The processor time in user mode.
    pub user: Duration,
    /// The processor time in the kernel.
    pub system: Duration,
    /// The largest resident set, in bytes.
    ///
    /// - Unix: at least that of the process that started the child, because the child begins in the
    ///   memory of its parent (measured: `/bin/echo` started by a host of 300 MB reports 309 MB).
    ///   In a big host it is therefore not a measurement of the child.
    pub max_rss: Option<u64>,
    /// The times for which the main thread of its process ran and waited.
    ///
    /// - Linux: if [`ChildSetOptions::thread_times`](crate::ChildSetOptions::thread_times) is set, and
    ///   `/proc` is mounted.
    /// - Other systems: `None`.
    pub main_thread: Option<ThreadTimes>,
}

/// The time for which the main thread of a child ran, and the time for which it waited for a
/// processor.
///
/// Its other threads and its descendants are not included. If [`running`](Self::running) is far
/// below the processor time of the child ([`ResourceUsage::user`] and [`ResourceUsage::system`]),
/// they did most of its work.
///
/// - Linux: the first two fields of `/proc/PID/schedstat` (Documentation/scheduler/sched-stats.rst).
///   A kernel without `CONFIG_SCHED_INFO` does not count them.
///
/// ```
/// # #[cfg(target_os = "linux")] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, ThreadTimes};
///
/// let mut set = ChildSet::new(ChildSetOptions::new().thread_times(true))?;
/// set.spawn(&Command::new("true"), SpawnOptions::new())?;
/// set.wait_all(None, |event| {
///     if let Event::Done { outcome, .. } = event {
///         let usage = outcome.exit.usage.expect("no other code reaped the child");
///         if let Some(ThreadTimes { running, ready, .. }) = usage.main_thread {
///             println!("{running:?} on a processor, {ready:?} in the queue of one");
///         }
///     }
/// })?;
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ThreadTimes {
    /// The time on a processor.
    pub running: Duration,
    /// The time in which the thread was ready to run, and waited for a processor.
    pub ready: Duration,
}

/// The exit of a child.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ExitInfo, ExitStatus};
///
/// let exit: ExitInfo = minder::Command::new("true").spawn()?.wait()?;
/// assert!(exit.status.success());
/// assert_eq!(ExitInfo::from(ExitStatus::Exited(0)).usage, None);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ExitInfo {
    /// The exit status.
    pub status: ExitStatus,
    /// The resources that it used. `None` if other code reaped it.
    pub usage: Option<ResourceUsage>,
}

/// The exit of a child whose resource usage is not known.
impl From<ExitStatus> for ExitInfo {
    fn from(status: ExitStatus) -> Self {
        Self { status, usage: None }
    }
}

/// The result of a child that is done.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, Outcome, SpawnOptions, Termination};
/// use std::time::Instant;
///
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// let options = SpawnOptions::new().deadline(Instant::now(), Termination::IMMEDIATE);
/// set.spawn(Command::new("sleep").arg("60"), options)?;
/// let mut outcomes: Vec<Outcome> = Vec::new();
/// set.wait_all(None, |event| {
///     if let Event::Done { outcome, .. } = event {
///         outcomes.push(outcome);
///     }
/// })?;
/// assert!(outcomes[0].timed_out && outcomes[0].killed && !outcomes[0].exit.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Its exit status and resource usage.
    pub exit: ExitInfo,
    /// `true` if the set closed its pipes, because a process that it left behind kept them open and
    /// wrote nothing.
    pub leaked: bool,
    /// `true` if members of its process group are still running (a daemon, a background job).
    pub left_running: bool,
    /// The number of bytes of output that were dropped because memory was full
    /// ([`OverflowPolicy::DropOldest`](crate::OverflowPolicy::DropOldest)).
    pub dropped: u64,
    /// `true` if a kill was requested while its process ran, by the caller or by its deadline.
    pub killed: bool,
    /// `true` if its deadline came while its process ran, or while its outputs were open and
    /// [`ChildSetOptions::leak_timeout`](crate::ChildSetOptions::leak_timeout) did not limit that.
    pub timed_out: bool,
    /// The time for which [`ChildSet::suspend`](crate::ChildSet::suspend) suspended it.
    pub suspended: Duration,
}
