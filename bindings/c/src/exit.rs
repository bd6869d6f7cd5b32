//! Exit: how a child ended and what it used.
#![expect(unsafe_code, reason = "a promise about a type")]

use minder::{ExitInfo, ExitStatus, Outcome, ResourceUsage};

use crate::arg::{Growing, nanoseconds};

/// The way in which a child exited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_exit_kind {
    /// It exited with a code.
    MINDER_EXIT_CODE = 1,
    /// A signal killed it (Unix).
    MINDER_EXIT_SIGNAL = 2,
    /// It exited, but other code of this process took its status first, or SIGCHLD is ignored.
    MINDER_EXIT_UNKNOWN = 3,
}

/// The exit of a child, and the resources that it used, including those of descendants that it
/// waited for.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_exit {
    /// The size of this structure.
    pub size: u32,
    /// One of minder_exit_kind.
    pub kind: i32,
    /// The exit code, if it exited with one; otherwise -1.
    pub code: i32,
    /// The signal that killed it, if one did; otherwise 0.
    pub signal: i32,
    /// It wrote a core file.
    pub core_dumped: bool,
    /// `user`, `system` and `max_rss` are known.
    pub has_usage: bool,
    /// Its time-out came while it ran.
    pub timed_out: bool,
    /// A kill was requested while it ran, by a call or by its time-out.
    pub killed: bool,
    /// Its outputs were closed, because a process that it left behind kept them open and wrote nothing.
    pub leaked: bool,
    /// Members of its process group are still running.
    pub left_running: bool,
    /// Zero.
    pub reserved: [u8; 2],
    /// The processor time in user mode, in nanoseconds.
    pub user: i64,
    /// The processor time in the kernel, in nanoseconds.
    pub system: i64,
    /// The time for which minder_set_suspend() suspended it, in nanoseconds.
    pub suspended: i64,
    /// The largest resident set, in bytes. On Unix it is at least that of this process at the start.
    pub max_rss: u64,
    /// The number of bytes of output that were dropped: see MINDER_OVERFLOW_DROP_OLDEST.
    pub dropped: u64,
}

// SAFETY: it begins with its size, and zero is a value of every member.
unsafe impl Growing for minder_exit {}

impl From<ExitStatus> for minder_exit {
    fn from(status: ExitStatus) -> Self {
        let kind = match status {
            ExitStatus::Exited(_) => minder_exit_kind::MINDER_EXIT_CODE,
            ExitStatus::Signaled { .. } => minder_exit_kind::MINDER_EXIT_SIGNAL,
            _ => minder_exit_kind::MINDER_EXIT_UNKNOWN,
        };
        Self {
            size: size_of::<Self>() as u32,
            kind: kind as i32,
            code: status.code().unwrap_or(-1),
            signal: status.signal().unwrap_or(0),
            core_dumped: status.core_dumped(),
            has_usage: false,
            timed_out: false,
            killed: false,
            leaked: false,
            left_running: false,
            reserved: [0; 2],
            user: 0,
            system: 0,
            suspended: 0,
            max_rss: 0,
            dropped: 0,
        }
    }
}

impl minder_exit {
    pub(crate) fn with_usage(mut self, usage: Option<ResourceUsage>) -> Self {
        if let Some(usage) = usage {
            self.has_usage = true;
            self.user = nanoseconds(usage.user);
            self.system = nanoseconds(usage.system);
            self.max_rss = usage.max_rss.unwrap_or(0);
        }
        self
    }
}

impl From<ExitInfo> for minder_exit {
    fn from(exit: ExitInfo) -> Self {
        Self::from(exit.status).with_usage(exit.usage)
    }
}

impl From<Outcome> for minder_exit {
    fn from(outcome: Outcome) -> Self {
        Self {
            timed_out: outcome.timed_out,
            killed: outcome.killed,
            leaked: outcome.leaked,
            left_running: outcome.left_running,
            suspended: nanoseconds(outcome.suspended),
            dropped: outcome.dropped,
            ..Self::from(outcome.exit)
        }
    }
}
