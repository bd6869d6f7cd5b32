//! Unix systems other than Linux.

use super::types::{Capability, grouped, limit};
use super::unix::{descriptors, terminal, user_processes};

/// Why a wait backend could not be opened.
pub(crate) fn refusal(_backend: &str, error: &std::io::Error) -> String {
    error.to_string()
}

/// What children are started and watched by.
pub(crate) fn children() -> Vec<Capability> {
    let linux_only = |name| Capability::there("children", name).absent("Linux only");
    vec![
        Capability::there("children", "posix_spawn").chosen(true),
        exits(),
        linux_only("pidfd"),
        linux_only("subreaper"),
        terminal(),
    ]
}

/// Returns whether the kernel reports exits.
fn exits() -> Capability {
    let mechanism = Capability::there("children", "EVFILT_PROC");
    match crate::sys::wait::open(Some("kqueue")) {
        Ok(_) => mechanism,
        Err(error) => mechanism.refused(refusal("kqueue", &error)),
    }
}

/// How far descriptors and processes reach.
pub(crate) fn limits() -> Vec<Capability> {
    let processes = user_processes().map(|most| {
        limit("processes", Some(most), format!("{} processes (RLIMIT_NPROC of this user)", grouped(most)))
    });
    [Some(descriptors(2)), processes].into_iter().flatten().collect()
}
