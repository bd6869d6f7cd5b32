//! Unix: `/dev/tty`, ttyname(3) and the window size.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStringExt;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};

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
    tcgetpgrp(io::stderr()).map_or(true, |group| group == rustix::process::getpgrp())
}

/// The terminal, and its modes when they were saved.
pub(super) struct Modes {
    terminal: File,
    modes: Termios,
}

impl Modes {
    pub(super) fn save() -> Option<Self> {
        let terminal = open_terminal().ok()?;
        let modes = tcgetattr(&terminal).ok()?;
        Some(Self { terminal, modes })
    }

    pub(super) fn restore(&self) {
        if tcgetpgrp(&self.terminal).is_ok_and(|group| group == rustix::process::getpgrp()) {
            // `Now`, since a terminal whose output is stopped (Ctrl-S) would block `Drain`.
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.modes);
        }
    }
}

impl std::fmt::Debug for Modes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Modes").field("terminal", &self.terminal).finish_non_exhaustive()
    }
}

pub(super) fn write_console(_file: &File, _bytes: &[u8]) -> io::Result<bool> {
    Ok(false)
}
