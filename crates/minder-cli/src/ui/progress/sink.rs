//! The target of the display: standard error, as far as it is a terminal.

use std::fmt;
use std::io::{IsTerminal, stderr};

use minder_os::terminal::is_in_foreground;

use minder_ui::color::can_draw;
use minder_ui::stderr_is_writable;
use minder_ui::write_stderr;

/// The assumed size of a terminal that does not report its size.
const SIZE: (usize, usize) = (80, 24);

/// The target of the display.
pub(super) trait Sink: fmt::Debug + Send {
    /// Returns the columns and rows of a terminal whose cursor can be moved. Elsewhere the display consists
    /// of plain lines.
    fn size(&self) -> Option<(usize, usize)>;
    /// Returns `true` if what jobs write to a terminal precedes what is written here.
    fn is_terminal(&self) -> bool;
    /// Returns `true` if a write would not block.
    fn is_ready(&self) -> bool;
    /// Returns `true` unless the shell has the terminal, because it runs this process in the background.
    fn is_in_foreground(&self) -> bool;
    /// Writes the text. Errors are ignored.
    fn write(&mut self, text: &str);
}

/// Standard error.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stderr {
    draws: bool,
}

impl Stderr {
    /// Returns standard error. `may_draw` is `false` if jobs write to the terminal directly.
    pub(super) fn new(may_draw: bool) -> Self {
        Self { draws: may_draw && can_draw() }
    }
}

impl Sink for Stderr {
    fn size(&self) -> Option<(usize, usize)> {
        if !self.draws {
            return None;
        }
        let size = terminal_size::terminal_size_of(stderr());
        Some(size.map_or(SIZE, |(width, height)| (width.0.into(), height.0.into())))
    }

    fn is_terminal(&self) -> bool {
        stderr().is_terminal()
    }

    fn is_ready(&self) -> bool {
        stderr_is_writable().unwrap_or(true)
    }

    fn is_in_foreground(&self) -> bool {
        is_in_foreground()
    }

    fn write(&mut self, text: &str) {
        write_stderr(text.as_bytes());
    }
}
