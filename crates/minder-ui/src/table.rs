//! Tables for people: aligned columns, without control characters for the terminal.
//!
//! The widths are computed from the first thousand rows, so that a table of any length needs bounded
//! memory.

use std::io::{self, IsTerminal, Write, stdout};

use super::format::fill_lines;
pub use minder_os::escape;
use unicode_width::UnicodeWidthStr;

use crate::color::Palette;
use crate::symbols::Symbols;

/// The number of rows that are buffered to compute the widths.
const ROWS_MAX: usize = 1000;
/// The maximum width of a column that is not on a terminal. A truncated column with longer cells
/// comes last there, with its whole texts. A longer cell of another column shifts the rest of its
/// row.
const PADDED_MAX: usize = 100;
/// The minimum width to which a column is truncated.
const TRUNCATED_MIN: usize = 10;
const GAP: &str = "  ";
/// The text before a line below a row.
const INDENT: &str = "    ";

/// A column of a table.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    right: bool,
    truncate: bool,
    width_min: usize,
    narrow: Narrow,
}

/// The treatment of a column if the terminal is too narrow for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrow {
    /// It stays.
    Keep,
    /// It is left out.
    Drop,
    /// Its cells are lines below their rows.
    Below,
}

impl Column {
    /// A column of texts, aligned left.
    pub fn left(name: &str) -> Self {
        let name = escape(name.as_bytes());
        Self { name, right: false, truncate: false, width_min: 0, narrow: Narrow::Keep }
    }

    /// A column of numbers, aligned right.
    pub fn right(name: &str) -> Self {
        Self { right: true, ..Self::left(name) }
    }

    /// A column of long texts, truncated if the terminal is narrow. Elsewhere it comes last if a
    /// text is long.
    pub fn truncated(name: &str) -> Self {
        Self { truncate: true, ..Self::left(name) }
    }

    /// Makes the column one that is left out if the terminal is too narrow.
    pub fn optional(self) -> Self {
        Self { narrow: Narrow::Drop, ..self }
    }

    /// Makes each cell a line below its row if the terminal is too narrow.
    pub fn or_below(self) -> Self {
        Self { narrow: Narrow::Below, ..self }
    }

    /// Sets a minimum width, for a table that is shown before all rows are known.
    pub fn at_least(self, width_min: usize) -> Self {
        Self { width_min, ..self }
    }
}

/// Writes a table row by row.
pub struct Table<'a> {
    out: &'a mut dyn Write,
    columns: Vec<Column>,
    /// The maximum width, if there is one.
    width: Option<usize>,
    symbols: Symbols,
    palette: Palette,
    /// Rows that were not written yet.
    buffered: Vec<Row>,
    /// The layout of the columns, once the first row was written.
    layout: Option<Layout>,
}

/// A row, and the lines below it.
#[derive(Debug)]
struct Row {
    /// Its cells, one for each column.
    cells: Vec<String>,
    below: Vec<String>,
    /// `true` if it has the color of a failure.
    failed: bool,
}

/// The layout of the columns of a table.
#[derive(Debug)]
struct Layout {
    /// The width of each column.
    widths: Vec<usize>,
    /// The indices of the columns, from left to right.
    order: Vec<usize>,
    /// The indices of the columns whose cells are lines below their rows.
    below: Vec<usize>,
    /// The width of the terminal, to which truncated columns and lines below a row are fitted.
    width: Option<usize>,
    symbols: Symbols,
}

impl<'a> Table<'a> {
    /// Returns a table as wide as the terminal, or of any width if stdout is not a terminal.
    pub fn new(out: &'a mut dyn Write, columns: Vec<Column>) -> Self {
        let table = Self::with_width(out, columns, terminal_width());
        Self { symbols: Symbols::of_locale(), palette: Palette::stdout(), ..table }
    }

    fn with_width(out: &'a mut dyn Write, columns: Vec<Column>, width: Option<usize>) -> Self {
        let symbols = Symbols::Unicode;
        Self { out, columns, width, symbols, palette: Palette::PLAIN, buffered: Vec::new(), layout: None }
    }

    /// Adds a row with one cell for each column.
    pub fn row(&mut self, cells: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.row_with(cells, Vec::new(), false)
    }

    /// Adds a row, and indented lines below it. A row about a failure is red on a terminal.
    pub fn row_with(
        &mut self,
        cells: &[impl AsRef<[u8]>],
        below: Vec<String>,
        failed: bool,
    ) -> io::Result<()> {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell.as_ref())).collect();
        let row = Row { cells, below, failed };
        match &self.layout {
            Some(layout) => write_row(self.out, &self.columns, layout, self.palette, &row),
            None => {
                self.buffered.push(row);
                if self.buffered.len() >= ROWS_MAX { self.write_buffered() } else { Ok(()) }
            }
        }
    }

    /// Writes all rows. The layout does not change from then on.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_buffered()?;
        self.out.flush()
    }

    /// Writes the remaining rows. A table without rows has only a header.
    pub fn finish(mut self) -> io::Result<()> {
        self.write_buffered()
    }

    fn write_buffered(&mut self) -> io::Result<()> {
        if self.layout.is_some() {
            return Ok(());
        }
        let layout = self.fitting_layout();
        let names = self.columns.iter().map(|column| column.name.clone()).collect();
        let header = Row { cells: names, below: Vec::new(), failed: false };
        for row in std::iter::once(header).chain(std::mem::take(&mut self.buffered)) {
            write_row(self.out, &self.columns, &layout, self.palette, &row)?;
        }
        self.layout = Some(layout);
        Ok(())
    }

    /// Returns a layout that fits the terminal if possible. Notes move below their rows before a text is
    /// truncated. Then texts are truncated, and optional columns are left out, the last one first.
    fn fitting_layout(&self) -> Layout {
        let (mut order, long): (Vec<_>, Vec<_>) =
            (0..self.columns.len()).partition(|index| !self.is_long(*index));
        order.extend(long);
        let mut below = Vec::new();
        loop {
            let full = self.full_widths();
            let widths = self.shrunk(full.clone(), &order);
            let fits = |widths: &[usize]| {
                let total = order.iter().map(|index| widths[*index] + GAP.len()).sum::<usize>();
                self.width.is_none_or(|width| total <= width + GAP.len())
            };
            let last = |narrow| order.iter().rposition(|index| self.columns[*index].narrow == narrow);
            let place = match (last(Narrow::Below), last(Narrow::Drop)) {
                (Some(note), _) if !fits(&full) => note,
                (_, Some(optional)) if !fits(&widths) => optional,
                _ => return Layout { widths, order, below, width: self.width, symbols: self.symbols },
            };
            let index = order.remove(place);
            if self.columns[index].narrow == Narrow::Below {
                below.insert(0, index);
            }
        }
    }

    /// Returns `true` if this column has cells that would be truncated, but there is no terminal.
    fn is_long(&self, index: usize) -> bool {
        let is_long = |row: &Row| row.cells.get(index).is_some_and(|cell| cell.width() > PADDED_MAX);
        self.width.is_none() && self.columns[index].truncate && self.buffered.iter().any(is_long)
    }

    /// Returns the widths of the columns with their whole texts, at most the width of the terminal.
    fn full_widths(&self) -> Vec<usize> {
        let width_max = self.width.unwrap_or(PADDED_MAX).max(TRUNCATED_MIN);
        let needed = |(index, column): (usize, &Column)| {
            let cells = self.buffered.iter().filter_map(|row| row.cells.get(index));
            let cells = cells.map(|cell| cell.width()).max().unwrap_or(0);
            cells.min(width_max).max(column.name.width()).max(column.width_min)
        };
        self.columns.iter().enumerate().map(needed).collect()
    }

    /// Returns the widths of the columns. If those in `shown` are too wide, the widest truncated ones
    /// shrink until they fit.
    fn shrunk(&self, mut widths: Vec<usize>, shown: &[usize]) -> Vec<usize> {
        let Some(width) = self.width else { return widths };
        let gaps = GAP.len() * shown.len().saturating_sub(1);
        while shown.iter().map(|index| widths[*index]).sum::<usize>() + gaps > width {
            let is_shrinkable =
                |index: &&usize| self.columns[**index].truncate && widths[**index] > TRUNCATED_MIN;
            match shown.iter().filter(is_shrinkable).max_by_key(|index| widths[**index]) {
                Some(index) => widths[*index] -= 1,
                None => break,
            }
        }
        widths
    }
}

impl std::fmt::Debug for Table<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("columns", &self.columns).finish_non_exhaustive()
    }
}

fn write_row(
    out: &mut dyn Write,
    columns: &[Column],
    layout: &Layout,
    palette: Palette,
    row: &Row,
) -> io::Result<()> {
    let Row { cells, below, failed } = row;
    let mut line = String::new();
    for (place, index) in layout.order.iter().copied().enumerate() {
        if place > 0 {
            line += GAP;
        }
        let column = &columns[index];
        let width = layout.widths[index];
        let cell = &cells[index];
        let cell = if layout.width.is_some() && column.truncate {
            layout.symbols.shorten(cell, width)
        } else {
            cell.clone()
        };
        let padding = " ".repeat(width.saturating_sub(cell.width()));
        let (left, right) = if column.right { (&padding, &cell) } else { (&cell, &padding) };
        line.extend([left.as_str(), right.as_str()]);
    }
    let line = line.trim_end();
    writeln!(out, "{}", if *failed { palette.failed(line) } else { line.to_owned() })?;
    for cell in layout.below.iter().map(|index| &cells[*index]).filter(|cell| !cell.is_empty()) {
        let width = layout.width.unwrap_or(usize::MAX).saturating_sub(INDENT.len());
        let words: Vec<&str> = cell.split(' ').collect();
        fill_lines(&words, " ", width).iter().try_for_each(|line| writeln!(out, "{INDENT}{line}"))?;
    }
    below.iter().try_for_each(|text| writeln!(out, "{INDENT}{}", escape(text.as_bytes())))
}

/// Returns the width of the terminal, or `None` if stdout is not a terminal.
pub fn terminal_width() -> Option<usize> {
    if !stdout().is_terminal() {
        return None;
    }
    let (width, _) = terminal_size::terminal_size()?;
    Some(usize::from(width.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![Column::right("job"), Column::truncated("command"), Column::left("exit")]
    }

    fn rendered(width: Option<usize>, rows: &[[&str; 3]]) -> String {
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), width);
        rows.iter().for_each(|row| table.row(row).expect("write to memory"));
        table.finish().expect("write to memory");
        String::from_utf8(out).expect("table is UTF-8")
    }

    #[test]
    fn table_aligns_columns() {
        let text = rendered(None, &[["1", "gzip a", "0"], ["12", "日本", "KILL"]]);
        assert_eq!(text, "job  command  exit\n  1  gzip a   0\n 12  日本     KILL\n");
        assert_eq!(rendered(None, &[]), "job  command  exit\n");
    }

    #[test]
    fn table_truncates_only_on_a_terminal() {
        let long = "0123456789".repeat(20);
        let text = rendered(Some(40), &[["1", &long, "0"], ["2", "b", "1"]]);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(text.contains("0123456789012345678901234567…"), "{text}");
        let text = rendered(None, &[["1", &long, "0"], ["2", "b", "1"]]);
        // The long column comes last, and shifts no other one.
        assert_eq!(text, format!("job  exit  command\n  1  0     {long}\n  2  1     b\n"));
        // Too narrow for the other columns: they are not truncated.
        assert!(rendered(Some(3), &[["1", "b", "0"]]).contains("  1  b        0"));
    }

    #[test]
    fn narrow_table_moves_notes_below_and_drops_optional_columns() {
        let rendered = |width| {
            let columns = vec![
                Column::left("run"),
                Column::left("when").optional(),
                Column::truncated("command"),
                Column::right("elapsed").optional(),
                Column::left("").or_below(),
            ];
            let mut out = Vec::new();
            let mut table = Table::with_width(&mut out, columns, Some(width));
            let row = ["61c0aa00", "today 14:02", "./test.sh linux", "1.2 s", "(killed: minder resume 61c0)"];
            table.row(&row).expect("write to memory");
            table.row(&["7f3a0000", "today 14:00", "true", "3 ms", ""]).expect("write to memory");
            table.finish().expect("write to memory");
            String::from_utf8(out).expect("table is UTF-8")
        };
        assert_eq!(rendered(100).lines().count(), 3);
        assert!(rendered(100).contains("1.2 s  (killed: minder resume 61c0)\n"), "{}", rendered(100));
        assert_eq!(
            rendered(50),
            "run       when         command          elapsed\n\
             61c0aa00  today 14:02  ./test.sh linux    1.2 s\n    (killed: minder resume 61c0)\n\
             7f3a0000  today 14:00  true                3 ms\n"
        );
        assert_eq!(
            rendered(35),
            "run       when         command\n\
             61c0aa00  today 14:02  ./test.sh l…\n    (killed: minder resume 61c0)\n\
             7f3a0000  today 14:00  true\n"
        );
        assert!(rendered(22).starts_with("run       command\n61c0aa00  ./test.sh l…\n"), "{}", rendered(22));
    }

    #[test]
    fn note_moves_below_before_a_text_is_truncated() {
        let columns = vec![Column::truncated("command"), Column::left("").or_below()];
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns, Some(40));
        table.row(&["./test.sh linux mac windows", "killed · 2 left"]).expect("write to memory");
        table.finish().expect("write to memory");
        let text = String::from_utf8(out).expect("table is UTF-8");
        assert_eq!(text, "command\n./test.sh linux mac windows\n    killed · 2 left\n");
    }

    #[test]
    fn failed_row_is_red() {
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), None);
        table.palette = Palette::COLORED;
        table.row(&["1", "a", "0"]).expect("write to memory");
        table.row_with(&["2", "b", "1"], vec!["why".to_owned()], true).expect("write to memory");
        table.finish().expect("write to memory");
        let text = String::from_utf8(out).expect("table is UTF-8");
        let red = "\x1b[31m  2  b        1\x1b[0m\n    why\n";
        assert_eq!(text, format!("job  command  exit\n  1  a        0\n{red}"));
    }

    #[test]
    fn table_escapes_control_characters() {
        assert_eq!(escape(b"a\x1b[2J\n\t\x07\x7f\xc2\x9b\xff"), r"a\x1b[2J\n\t\x07\x7f\u{9b}\xff");
        assert_eq!(escape("\u{202e}abc \u{2028}é…".as_bytes()), r"\u{202e}abc \u{2028}é…");
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), None);
        table.row_with(&["1", "\x1bc", "1"], vec!["\x1b]0;x".to_owned()], false).expect("write to memory");
        table.flush().expect("write to memory");
        table.row(&["2", "\r", "0"]).expect("write to memory");
        let all: Vec<u8> = out.into_iter().filter(|byte| *byte < b' ' && *byte != b'\n').collect();
        assert_eq!(all, b"");
    }

    #[test]
    fn table_buffers_a_bounded_number_of_rows() {
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), None);
        (0..ROWS_MAX + 5).for_each(|_| table.row(&["1", "a", "0"]).expect("write to memory"));
        assert_eq!(table.buffered.len(), 0);
        table.finish().expect("write to memory");
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), ROWS_MAX + 6);
    }
}
