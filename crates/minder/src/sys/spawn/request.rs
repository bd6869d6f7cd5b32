//! What a spawn mechanism needs to know of a child on Unix.

#![expect(unsafe_code, reason = "reading the environment pointer of the C library")]

use std::ffi::c_char;
use std::os::fd::RawFd;

use super::exec_args::ExecArgs;
use crate::command::Command;

/// In place of a descriptor: the null device, which nothing has opened yet.
pub(super) const NULL_DEVICE: RawFd = -2;

/// What a mechanism needs to know. The descriptors stay open for the call.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) image: &'a ExecArgs,
    pub(super) command: &'a Command,
    pub(super) dir: Option<&'a std::ffi::CStr>,
    /// For each of the three streams the descriptor that becomes it, or [`NULL_DEVICE`]; -1 leaves it
    /// as it is.
    pub(super) streams: [RawFd; 3],
    /// The soft descriptor limit to give back, if ours was raised.
    #[cfg_attr(
        not(all(
            any(target_os = "linux", target_os = "android"),
            any(target_arch = "x86_64", target_arch = "aarch64")
        )),
        expect(dead_code, reason = "posix_spawn sets no limit")
    )]
    pub(super) nofile: Option<u64>,
}

impl Request<'_> {
    /// The environment for the child: its own, or this process's as it is now.
    pub(super) fn envp(&self) -> *const *const c_char {
        unsafe extern "C" {
            static environ: *const *const c_char;
        }
        match self.image.envp() {
            Some(own) => own,
            // SAFETY: the C library's list. Changing it while another thread reads it is what
            // `std::env::set_var` forbids its callers, as every program that spawns needs it to.
            None => unsafe { environ },
        }
    }
}
