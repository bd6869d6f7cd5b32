//! Unix systems other than Linux.

use minder_os::grouped;

use super::types::{Capability, limit};
use super::unix::{descriptors, terminal, user_processes};
use crate::backend::Backend;

/// Returns why a wait backend could not be opened.
pub(crate) fn refusal(_backend: Backend, error: &std::io::Error) -> String {
    error.to_string()
}

/// Returns the mechanisms that start and watch children.
pub(crate) fn children() -> Vec<Capability> {
    let linux_only = |name| Capability::available("children", name).absent("Linux only");
    vec![
        Capability::available("children", "posix_spawn").chosen(true),
        exits(),
        linux_only("pidfd"),
        linux_only("subreaper"),
        terminal(),
    ]
}

/// Returns whether the kernel reports exits.
fn exits() -> Capability {
    let mechanism = Capability::available("children", "EVFILT_PROC");
    match crate::sys::wait::open(Some(Backend::Kqueue)) {
        Ok(_) => mechanism,
        Err(error) => mechanism.refused(refusal(Backend::Kqueue, &error)),
    }
}

/// Returns the limits of descriptors and processes.
pub(crate) fn limits() -> Vec<Capability> {
    let processes = user_processes().map(|most| {
        limit("processes", Some(most), format!("{} processes (RLIMIT_NPROC of this user)", grouped(most)))
    });
    [Some(descriptors(2)), processes].into_iter().flatten().collect()
}
