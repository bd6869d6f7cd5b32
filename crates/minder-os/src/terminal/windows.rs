//! Windows: the console.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;

use super::console;
use super::types::TerminalSize;

pub(super) fn has_controlling_terminal() -> bool {
    false
}

pub(super) fn open_terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("CONIN$")
}

pub(super) fn terminal_name() -> Option<OsString> {
    None
}

pub(super) fn terminal_size() -> Option<TerminalSize> {
    None
}

pub(super) fn is_in_foreground() -> bool {
    true
}

#[derive(Debug)]
pub(super) struct Modes;

impl Modes {
    pub(super) fn save() -> Option<Self> {
        None
    }

    pub(super) fn restore(&self) {}
}

pub(super) fn write_console(file: &File, bytes: &[u8]) -> io::Result<bool> {
    console::write(file, bytes)
}
