//! Pseudo-terminals: one descriptor for us, one for the child's three streams.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Signal, kill_process_group};
use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};
use rustix::termios::{LocalModes, SpecialCodeIndex, Winsize, tcgetattr, tcgetpgrp, tcsetwinsize};

use crate::group::Size;

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
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.columns,
        ws_xpixel: size.pixel_width,
        ws_ypixel: size.pixel_height,
    };
    Ok(tcsetwinsize(side, size)?)
}

/// Sends a signal to the foreground process group of a terminal, given our side of it.
pub(crate) fn signal_foreground(side: &impl AsFd, signal: i32) -> io::Result<()> {
    let signal = Signal::from_named_raw(signal).ok_or(io::ErrorKind::InvalidInput)?;
    let group = match tcgetpgrp(side) {
        // There is none: the session has ended.
        Err(Errno::OPNOTSUPP) => return Err(Errno::SRCH.into()),
        Err(Errno::NOTTY) => return Err(io::ErrorKind::InvalidInput.into()),
        group => group?,
    };
    Ok(kill_process_group(group, signal)?)
}

/// Returns whether a read failed because no process has the terminal open any more. A pipe never returns
/// this error.
pub(crate) fn is_hung_up(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::IO.raw_os_error())
}

/// Returns the character that ends the input of a terminal, given our side of it. If the terminal has
/// none, that is Ctrl-D.
pub(crate) fn eof_byte(side: &impl AsFd) -> io::Result<u8> {
    const CTRL_D: u8 = 4;
    match tcgetattr(side) {
        Ok(modes) => Ok(match modes.special_codes[SpecialCodeIndex::VEOF] {
            0 => CTRL_D,
            byte => byte,
        }),
        Err(Errno::NOTTY | Errno::INVAL) => Err(io::ErrorKind::InvalidInput.into()),
        Err(error) => Err(error.into()),
    }
}

/// Returns the characters that end the input of a terminal after the byte `last`, given our side of it. The
/// first one only completes a line that has no end.
pub(super) fn end_of_input(side: &impl AsFd, last: u8) -> io::Result<Vec<u8>> {
    let eof = eof_byte(side)?;
    let reads_lines = tcgetattr(side)?.local_modes.contains(LocalModes::ICANON);
    let is_complete = [b'\n', b'\r', eof].contains(&last);
    Ok(vec![eof; if reads_lines && !is_complete { 2 } else { 1 }])
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
