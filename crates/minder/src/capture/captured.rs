//! The common parts of runs of children: their streams, their results and their errors.

use std::time::Duration;

use super::read_order::ReadOrder;
use crate::command::{Command, Stdio};
use crate::exit_status::ExitInfo;
use crate::group::Group;
use crate::{Error, ErrorKind, Operation};

/// The time for which a call waits for a child that it killed, or for the outputs after that.
pub(super) const KILL_TIMEOUT: Duration = Duration::from_secs(5);

/// The results of children that were run to their end.
pub(super) struct Captured {
    /// In the order of the commands.
    pub(super) stages: Vec<CapturedStage>,
    /// The standard output of the last of them.
    pub(super) stdout: Vec<u8>,
    pub(super) stdout_dropped: u64,
    pub(super) order: ReadOrder,
}

/// One of the children.
pub(super) struct CapturedStage {
    pub(super) exit: ExitInfo,
    pub(super) stderr: Vec<u8>,
    pub(super) stderr_dropped: u64,
    pub(super) timed_out: bool,
    pub(super) leaked: bool,
}

/// Returns the error for a reader that failed.
pub(super) fn input_failed(error: std::io::Error) -> Error {
    Error::new("read the input of", error).during(Operation::Read)
}

/// Returns the error for a child that outlives its kill.
pub(super) fn not_gone() -> Error {
    let reason = "it is not gone 5 s after it was killed";
    Error::of_kind(ErrorKind::Other, "wait for", reason).during(Operation::Wait)
}

/// Sets the streams that the commands leave open.
pub(super) fn set_streams(commands: &mut [Command], merge_stderr: bool) {
    for command in commands.iter_mut() {
        command.stderr.get_or_insert(Stdio::piped());
    }
    // A terminal is the input as well, which ends at once.
    if let Some(first) = commands.first_mut().filter(|first| !matches!(first.group, Group::Terminal(_))) {
        first.stdin.get_or_insert(Stdio::null());
    }
    if let Some(last) = commands.last_mut() {
        last.stdout.get_or_insert(Stdio::piped());
        if merge_stderr {
            last.stderr_to_stdout();
        }
    }
}
