//! One poll(2) for the outputs of one child.

use rustix::event::{PollFd, PollFlags, poll};

use super::unix::Reader;

/// `true` if [`poll_outputs`] works.
pub(crate) const CAN_POLL_OUTPUTS: bool = true;

/// Waits until a read of one of two outputs does not block. Returns of which.
pub(crate) fn poll_outputs([first, second]: [&Reader; 2]) -> std::io::Result<[bool; 2]> {
    let mut polled = [first, second].map(|it| PollFd::from_borrowed_fd(it.fd(), PollFlags::IN));
    rustix::io::retry_on_intr(|| poll(&mut polled, None))?;
    Ok(polled.map(|it| !it.revents().is_empty()))
}
