//! What the runs of children return.

use crate::exit_status::ExitInfo;
use crate::{Error, ErrorKind, Operation};

/// What children did that were run to their end.
pub(super) struct Captured {
    /// In the order of the commands.
    pub(super) stages: Vec<CapturedStage>,
    /// What the last of them wrote to its standard output.
    pub(super) stdout: Vec<u8>,
}

/// One of the children.
pub(super) struct CapturedStage {
    pub(super) exit: ExitInfo,
    pub(super) stderr: Vec<u8>,
    pub(super) timed_out: bool,
    pub(super) leaked: bool,
}

/// Returns the error for more output than may be captured.
pub(super) fn too_much() -> Error {
    let reason = "it wrote more than may be captured";
    Error::of_kind(ErrorKind::Limit, "capture the output of", reason).during(Operation::Read)
}
