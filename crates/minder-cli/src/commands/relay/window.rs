//! The size of the terminal of minder itself.

use std::io;

use minder::Size;

/// Returns the size of the terminal that our input or output is, if one of them is.
pub(super) fn own_terminal_size() -> Option<Size> {
    let of_input = terminal_size::terminal_size_of(io::stdin());
    let (columns, rows) = of_input.or_else(|| terminal_size::terminal_size_of(io::stdout()))?;
    Some(Size::new(rows.0, columns.0))
}
