//! The size of a terminal.

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TerminalSize {
    /// The number of rows.
    pub rows: u16,
    /// The number of columns.
    pub columns: u16,
}
