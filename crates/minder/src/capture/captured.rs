//! What the runs of children return.

use crate::exit_status::ExitInfo;

/// What children did that were run to their end.
pub(super) struct Captured {
    /// In the order of the commands.
    pub(super) stages: Vec<CapturedStage>,
    /// What the last of them wrote to its standard output.
    pub(super) stdout: Vec<u8>,
    pub(super) stdout_dropped: u64,
}

/// One of the children.
pub(super) struct CapturedStage {
    pub(super) exit: ExitInfo,
    pub(super) stderr: Vec<u8>,
    pub(super) stderr_dropped: u64,
    pub(super) timed_out: bool,
    pub(super) leaked: bool,
}
