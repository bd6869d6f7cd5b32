//! The terminal of this process: opening it, its name and size, and text for a Windows console.

#[cfg(windows)]
mod console;
mod types;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

pub use types::TerminalSize;

use std::ffi::OsString;
use std::fs::File;
use std::io;

/// Returns whether this process has a controlling terminal. Without one, a child that reads from
/// the terminal gets an error and is not stopped.
///
/// - Windows: always false.
#[must_use]
pub fn has_controlling_terminal() -> bool {
    system::has_controlling_terminal()
}

/// Opens the controlling terminal for reading and writing, whatever the standard streams are.
///
/// - Windows: opens the input of the console.
///
/// # Errors
/// The error of the operating system if this process has no controlling terminal (Unix: `ENXIO`) or
/// no console.
pub fn open_terminal() -> io::Result<File> {
    system::open_terminal()
}

/// Returns the name of the terminal that standard input, output or error is connected to, in this
/// order.
///
/// - Windows: always `None`; consoles have no names.
#[must_use]
pub fn terminal_name() -> Option<OsString> {
    system::terminal_name()
}

/// Returns the size of the terminal that standard error or standard output is connected to, in this
/// order.
///
/// - Windows: always `None`.
#[must_use]
pub fn terminal_size() -> Option<TerminalSize> {
    system::terminal_size()
}

/// Returns whether this process may draw on the terminal that standard error is connected to: it is in
/// the foreground process group of that terminal, or the terminal has none for this process.
///
/// - Windows: always true.
#[must_use]
pub fn is_in_foreground() -> bool {
    system::is_in_foreground()
}

/// The modes of the controlling terminal at one moment: echo, line editing and others (termios(3)).
///
/// - Windows: nothing is saved or restored.
#[derive(Debug)]
pub struct TerminalModes(system::Modes);

impl TerminalModes {
    /// Returns the present modes, or `None` if there is no controlling terminal.
    #[must_use]
    pub fn save() -> Option<Self> {
        system::Modes::save().map(Self)
    }

    /// Gives the terminal these modes again, unless this process is in the background: the system would
    /// stop it. Errors are ignored.
    pub fn restore(&self) {
        self.0.restore();
    }
}

/// Writes UTF-8 text to a console that expects another encoding. Returns false if nothing was
/// written; the caller then writes the bytes as they are.
///
/// - Unix: always returns false, since terminals take bytes.
/// - Windows: writes UTF-8 text to a console as UTF-16. Other bytes are left to the code page of
///   the console (`chcp`), in which many programs write.
///
/// # Errors
/// The error of the console.
pub fn write_console(file: &File, bytes: &[u8]) -> io::Result<bool> {
    system::write_console(file, bytes)
}
