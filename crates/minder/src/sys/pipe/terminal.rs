//! Pseudo-terminals: one descriptor for us, one for the child's three streams.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use crate::command::Size;

/// Both sides of a new pseudo-terminal.
#[derive(Debug)]
pub(crate) struct Terminal {
    /// Ours: what the child writes is read here.
    pub(crate) host: OwnedFd,
    /// The child's.
    pub(crate) child: OwnedFd,
}

/// Opens a pseudo-terminal of this size. Neither side is inherited by accident, and it does not
/// become ours.
pub(crate) fn open_terminal(size: Size) -> io::Result<Terminal> {
    let host = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | cloexec())?;
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    rustix::io::fcntl_setfd(&host, rustix::io::FdFlags::CLOEXEC)?;
    grantpt(&host)?;
    unlockpt(&host)?;
    let child = open_child_side(&host)?;
    resize_terminal(&child, size)?;
    Ok(Terminal { host, child })
}

/// Sets the size of a terminal, given either side of it. Its foreground processes get `SIGWINCH`.
pub(crate) fn resize_terminal(side: &impl AsFd, size: Size) -> io::Result<()> {
    let size = Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 };
    Ok(tcsetwinsize(side, size)?)
}

#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn cloexec() -> OpenptFlags {
    OpenptFlags::CLOEXEC
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn cloexec() -> OpenptFlags {
    OpenptFlags::empty()
}

/// Opens the child's side by the descriptor of ours: right in any mount namespace, where a path may
/// be another's.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_child_side(host: &OwnedFd) -> io::Result<OwnedFd> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    Ok(rustix::pty::ioctl_tiocgptpeer(host, flags)?)
}

/// The name comes from a function that is not safe with threads there.
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
fn open_child_side(_host: &OwnedFd) -> io::Result<OwnedFd> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "netbsd", target_os = "openbsd")))]
fn open_child_side(host: &OwnedFd) -> io::Result<OwnedFd> {
    use rustix::fs::{Mode, OFlags, open};
    let name = rustix::pty::ptsname(host, Vec::new())?;
    Ok(open(name.as_c_str(), OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty())?)
}
