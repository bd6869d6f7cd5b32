//! One poll(2) for the exit and the outputs of one child, where its exit has a descriptor.

use std::io;
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;

use super::types::ChildReadiness;
use super::unix::Process;
use crate::sys::pipe::Reader;
use crate::sys::time::timespec;

/// Returns whether the exits of children have descriptors, unless too many are open.
pub(crate) fn can_poll_children() -> bool {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    return crate::sys::pid::pidfd_available();
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    false
}

/// Waits until an output is readable or, if `process` is given, it has exited, until `deadline` at the
/// latest. Returns `None` if the process has no descriptor.
pub(crate) fn poll_child(
    process: Option<&Process>,
    outputs: &[Option<Reader>; 2],
    deadline: Option<Instant>,
) -> io::Result<Option<ChildReadiness>> {
    let exit = match process.map(Process::pidfd) {
        Some(None) => return Ok(None),
        Some(pidfd) => pidfd,
        None => None,
    };
    let descriptors = [exit, outputs[0].as_ref().map(Reader::fd), outputs[1].as_ref().map(Reader::fd)];
    let mut polled: Vec<_> =
        descriptors.into_iter().flatten().map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
    loop {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        match poll(&mut polled, left.map(timespec).as_ref()) {
            Err(Errno::INTR) => continue,
            result => result?,
        };
        break;
    }
    let mut ready = polled.iter().map(|fd| !fd.revents().is_empty());
    let [exited, first, second] = descriptors.map(|fd| fd.is_some() && ready.next().unwrap_or(false));
    Ok(Some(ChildReadiness { exited, outputs: [first, second] }))
}
