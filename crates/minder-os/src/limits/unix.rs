//! Unix: getrlimit(2) and setpriority(2).

use std::io;

use rustix::process::{Resource, getpriority_process, getrlimit};

pub(super) fn stack_limit() -> Option<u64> {
    getrlimit(Resource::Stack).current
}

pub(super) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}

pub(super) fn nice_increment(niceness: i32) -> i32 {
    let Ok(current) = getpriority_process(None) else { return 0 };
    let niceness = niceness.clamp(-20, 19);
    if niceness < current && !can_set(niceness) { 0 } else { niceness - current }
}

/// Returns whether this process may set this niceness.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn can_set(niceness: i32) -> bool {
    // On Linux each thread has its own niceness (setpriority(2)), which disappears with the thread.
    let thread = std::thread::Builder::new().stack_size(64 << 10);
    let attempt = thread.spawn(move || rustix::process::setpriority_process(None, niceness).is_ok());
    attempt.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Elsewhere a trial would change the whole process. The start of the child reports the error.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn can_set(_niceness: i32) -> bool {
    true
}
