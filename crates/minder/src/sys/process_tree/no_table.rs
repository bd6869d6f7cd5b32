//! Systems on which a process cannot be found by its parent: all except Linux.

#[cfg(unix)]
use std::collections::HashSet;
#[cfg(unix)]
use std::io;
#[cfg(unix)]
use std::time::Instant;

/// One look at the process table for many trees: there is none.
#[derive(Debug)]
pub(crate) enum TreeTable {}

impl TreeTable {
    /// More than there can be.
    pub(crate) const TREES_MIN: usize = usize::MAX / 2;
}

#[cfg(unix)]
impl TreeTable {
    pub(super) fn is_readable() -> bool {
        false
    }

    pub(super) fn read(_groups: impl Iterator<Item = libc::pid_t>, _others_max: usize) -> Option<Self> {
        None
    }
}

/// A process and its start time.
#[cfg(unix)]
pub(super) type Found = (libc::pid_t, u64);

/// The processes of a tree that were found in its group: none.
#[cfg(unix)]
#[derive(Debug, Default)]
pub(super) struct Members;

#[cfg(unix)]
impl Members {
    #[expect(clippy::unused_self, reason = "the form of Linux")]
    pub(super) fn leavers(&self, _group: Option<libc::pid_t>) -> impl Iterator<Item = Found> {
        std::iter::empty()
    }

    #[expect(clippy::unused_self, reason = "the form of Linux")]
    pub(super) fn all(&self) -> impl Iterator<Item = Found> {
        std::iter::empty()
    }
}

/// One process of the table.
#[cfg(unix)]
pub(super) struct Entry {
    pub(super) pid: libc::pid_t,
    pub(super) group: libc::pid_t,
    pub(super) started: u64,
    pub(super) exiting: bool,
}

/// Visits no process.
#[cfg(unix)]
pub(super) fn each_of(_is_wanted: impl Fn(libc::pid_t) -> bool, _visit: impl FnMut(Entry)) -> io::Result<()> {
    Ok(())
}

/// Returns `false`: no process is asked about.
#[cfg(unix)]
pub(super) fn has_exited(_pid: libc::pid_t) -> bool {
    false
}

/// Finds no process.
#[cfg(unix)]
pub(super) fn descendants(
    _root: Option<libc::pid_t>,
    _group: Option<libc::pid_t>,
    _detached: &mut HashSet<Found>,
    _table: Option<&TreeTable>,
) -> Members {
    Members
}

/// Signals no process: none was found.
#[cfg(unix)]
pub(super) fn signal(_process: Found, _signal: i32) -> bool {
    false
}

/// Returns at once: no process that was found is stopped.
#[cfg(unix)]
pub(super) fn wait_stopped(
    _processes: impl Iterator<Item = libc::pid_t>,
    _until: Instant,
    _busy: &mut HashSet<libc::pid_t>,
) {
}
