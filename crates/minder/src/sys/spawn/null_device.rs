//! The null device, which the streams of children become, on Unix.

use std::io;
use std::os::fd::OwnedFd;

/// Opens the null device for reading and writing.
pub(super) fn open_null() -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(|error| null_error(error.into()))
}

/// Names the device in an error of opening it. An error that a later try may not have is returned as it
/// is.
pub(super) fn null_error(error: io::Error) -> io::Error {
    if crate::sys::is_exhausted(&error) {
        return error;
    }
    let reason = minder_os::error_text(&error);
    io::Error::other(format!(
        "cannot open `/dev/null`: {reason} (is /dev set up in this container or chroot?)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_names_the_device_unless_it_is_about_descriptors() {
        let text = |errno| null_error(io::Error::from_raw_os_error(errno)).to_string();
        assert!(text(libc::ENOENT).starts_with("cannot open `/dev/null`: no such file or directory (is"));
        assert!(!text(libc::EMFILE).contains("/dev/null"));
    }
}
