//! Unix: `/dev/tty`, ttyname(3) and the window size.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;

use super::types::TerminalSize;

pub(super) fn has_controlling_terminal() -> bool {
    // The call fails without a controlling terminal (ENXIO), whatever the standard streams are.
    File::open("/dev/tty").is_ok()
}

pub(super) fn open_terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

pub(super) fn terminal_name() -> Option<OsString> {
    let name = rustix::termios::ttyname(io::stdin(), Vec::new())
        .or_else(|_| rustix::termios::ttyname(io::stdout(), Vec::new()))
        .or_else(|_| rustix::termios::ttyname(io::stderr(), Vec::new()));
    name.ok().map(|name| OsString::from_vec(name.into_bytes()))
}

pub(super) fn terminal_size() -> Option<TerminalSize> {
    let size = rustix::termios::tcgetwinsize(io::stderr())
        .or_else(|_| rustix::termios::tcgetwinsize(io::stdout()))
        .ok()?;
    let is_known = size.ws_row > 0 && size.ws_col > 0;
    is_known.then_some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
}

pub(super) fn is_in_foreground() -> bool {
    // The call fails for a terminal that is not the controlling one (ENOTTY).
    rustix::termios::tcgetpgrp(io::stderr()).map_or(true, |group| group == rustix::process::getpgrp())
}

pub(super) fn write_console(_file: &File, _bytes: &[u8]) -> io::Result<bool> {
    Ok(false)
}
