//! The description of a child on Unix for the spawn mechanisms.

use std::os::fd::RawFd;

use super::exec_args::ExecArgs;
use crate::command::Command;
use crate::group::Group;
use crate::sys::guardian::Registration;

/// In place of a descriptor: the null device, which nothing has opened yet.
pub(super) const NULL_DEVICE: RawFd = -2;

/// The description of a child for a mechanism. The descriptors stay open for the call.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) image: &'a ExecArgs,
    pub(super) command: &'a Command,
    pub(super) dir: Option<&'a std::ffi::CStr>,
    /// For each of the three streams the descriptor that becomes it, or [`NULL_DEVICE`]; -1 leaves it
    /// as it is.
    pub(super) streams: [RawFd; 3],
    /// The place of the child on the list of a guardian.
    pub(super) registration: Option<&'a Registration>,
    /// The soft descriptor limit to give back, if ours was raised.
    #[cfg_attr(
        not(any(target_os = "linux", target_os = "android")),
        expect(dead_code, reason = "posix_spawn sets no limit")
    )]
    pub(super) nofile: Option<u64>,
}

impl Request<'_> {
    /// Returns whether the child leads a process group.
    pub(super) fn leads_group(&self) -> bool {
        self.command.group != Group::Inherit
    }
}
