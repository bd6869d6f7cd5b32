//! Tables for people: columns that line up, and nothing in them that a terminal would obey.
//!
//! Widths are those of the first thousand rows, so that a table of any length takes bounded memory.

use std::io::{self, IsTerminal, Write, stdout};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How many rows are looked at before the first is written.
const ROWS_MAX: usize = 1000;
/// A column is not made wider than this for a few long cells, which then push the rest of their row
/// aside.
const PADDED_MAX: usize = 100;
/// A column is not cut below this.
const CUT_MIN: usize = 10;
const GAP: &str = "  ";

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    right: bool,
    cut: bool,
    least: usize,
}

impl Column {
    /// For words: on the left.
    pub(crate) fn left(name: &str) -> Self {
        Self { name: escape(name.as_bytes()), right: false, cut: false, least: 0 }
    }

    /// For numbers: on the right.
    pub(crate) fn right(name: &str) -> Self {
        Self { right: true, ..Self::left(name) }
    }

    /// For words of any length: cut where the terminal is narrow.
    pub(crate) fn cut(name: &str) -> Self {
        Self { cut: true, ..Self::left(name) }
    }

    /// At least so wide, for a table that is shown before its rows are known.
    pub(crate) fn at_least(self, least: usize) -> Self {
        Self { least, ..self }
    }
}

/// A table that is being written.
pub(crate) struct Table<'a> {
    out: &'a mut dyn Write,
    columns: Vec<Column>,
    /// How wide it may be.
    width: Option<usize>,
    /// Rows that were not written yet, each with what stands below it.
    waiting: Vec<(Vec<String>, Vec<String>)>,
    widths: Option<Vec<usize>>,
}

impl<'a> Table<'a> {
    /// A table as wide as the terminal; of any width where the output is none.
    pub(crate) fn new(out: &'a mut dyn Write, columns: Vec<Column>) -> Self {
        Self::with_width(out, columns, terminal_width())
    }

    fn with_width(out: &'a mut dyn Write, columns: Vec<Column>, width: Option<usize>) -> Self {
        Self { out, columns, width, waiting: Vec::new(), widths: None }
    }

    /// Adds a row, one cell a column.
    pub(crate) fn row(&mut self, cells: &[impl AsRef<[u8]>]) -> io::Result<()> {
        self.row_with(cells, Vec::new())
    }

    /// Adds a row and lines that stand below it, indented.
    pub(crate) fn row_with(&mut self, cells: &[impl AsRef<[u8]>], below: Vec<String>) -> io::Result<()> {
        let cells: Vec<String> = cells.iter().map(|cell| escape(cell.as_ref())).collect();
        match &self.widths {
            Some(widths) => write_row(self.out, &self.columns, widths, self.width.is_some(), &cells, &below),
            None => {
                self.waiting.push((cells, below));
                if self.waiting.len() >= ROWS_MAX { self.settle() } else { Ok(()) }
            }
        }
    }

    /// Writes what is there; the widths are settled from then on.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.settle()?;
        self.out.flush()
    }

    /// Writes the rest; of a table without rows, its head.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.settle()
    }

    fn settle(&mut self) -> io::Result<()> {
        if self.widths.is_some() {
            return Ok(());
        }
        let widths = self.fit();
        let head: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        write_row(self.out, &self.columns, &widths, false, &head, &[])?;
        for (cells, below) in std::mem::take(&mut self.waiting) {
            write_row(self.out, &self.columns, &widths, self.width.is_some(), &cells, &below)?;
        }
        self.widths = Some(widths);
        Ok(())
    }

    /// The widths of the columns. The widest of those that may be cut give way, by as much as is
    /// needed.
    fn fit(&self) -> Vec<usize> {
        let most = self.width.unwrap_or(PADDED_MAX).max(CUT_MIN);
        let widest = |(place, column): (usize, &Column)| {
            let cells = self.waiting.iter().filter_map(|(cells, _)| cells.get(place));
            let cells = cells.map(|cell| cell.width()).max().unwrap_or(0);
            cells.min(most).max(column.name.width()).max(column.least)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(widest).collect();
        let Some(width) = self.width else { return widths };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        while widths.iter().sum::<usize>() + gaps > width {
            let columns = widths.iter_mut().zip(&self.columns);
            let able = columns.filter(|(width, column)| column.cut && **width > CUT_MIN);
            match able.max_by_key(|(width, _)| **width) {
                Some((width, _)) => *width -= 1,
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
    widths: &[usize],
    narrow: bool,
    cells: &[String],
    below: &[String],
) -> io::Result<()> {
    let mut line = String::new();
    for (place, ((column, width), cell)) in columns.iter().zip(widths).zip(cells).enumerate() {
        if place > 0 {
            line += GAP;
        }
        let cell = if narrow && column.cut { shorten(cell, *width) } else { cell.clone() };
        let blanks = " ".repeat(width.saturating_sub(cell.width()));
        let (left, right) = if column.right { (&blanks, &cell) } else { (&cell, &blanks) };
        line.extend([left.as_str(), right.as_str()]);
    }
    writeln!(out, "{}", line.trim_end())?;
    below.iter().try_for_each(|text| writeln!(out, "    {}", escape(text.as_bytes())))
}

/// How wide the terminal is; nothing where standard output is none.
fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size().filter(|_| stdout().is_terminal())?;
    Some(usize::from(width.0))
}

/// Cuts a text to this width, with `…` for what is not there.
pub(crate) fn shorten(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut left = width.saturating_sub(1);
    let fits = |c: &char| {
        let wide = c.width().unwrap_or(0);
        let fits = wide <= left;
        left = left.saturating_sub(wide);
        fits
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

/// What a terminal shows as it is: control characters, and those that turn the direction of text,
/// become `\n`, `\x1b`, `\u{202e}`; bytes that are no UTF-8 become `\xff`.
pub(crate) fn escape(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' | '\r' | '\t' => text.extend(c.escape_default()),
                '\0'..' ' | '\x7f' => text += &format!("\\x{:02x}", u32::from(c)),
                c if c.is_control() || turns(c) => text.extend(c.escape_unicode()),
                c => text.push(c),
            }
        }
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

/// Characters without a shape of their own that change how others are shown, and line ends beyond
/// `\n`.
fn turns(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns() -> Vec<Column> {
        vec![Column::right("job"), Column::cut("command"), Column::left("exit")]
    }

    fn drawn(width: Option<usize>, rows: &[[&str; 3]]) -> String {
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), width);
        rows.iter().for_each(|row| table.row(row).expect("memory"));
        table.finish().expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn columns_line_up() {
        let text = drawn(None, &[["1", "gzip a", "0"], ["12", "日本", "KILL"]]);
        assert_eq!(text, "job  command  exit\n  1  gzip a   0\n 12  日本     KILL\n");
        assert_eq!(drawn(None, &[]), "job  command  exit\n");
    }

    #[test]
    fn what_is_long_is_cut_on_a_terminal_only() {
        let long = "0123456789".repeat(20);
        let text = drawn(Some(40), &[["1", &long, "0"], ["2", "b", "1"]]);
        assert!(text.lines().all(|line| line.width() <= 40), "{text}");
        assert!(text.contains("0123456789012345678901234567…"), "{text}");
        let text = drawn(None, &[["1", &long, "0"], ["2", "b", "1"]]);
        assert!(text.contains(&long), "{text}");
        assert!(text.lines().nth(2).is_some_and(|line| line.width() < 120), "{text}");
        assert_eq!(shorten("日本語", 4), "日…");
        // Too narrow for the rest: nothing is lost but the form.
        assert!(drawn(Some(3), &[["1", "b", "0"]]).contains("  1  b        0"));
    }

    #[test]
    fn a_terminal_gets_no_control_characters() {
        assert_eq!(escape(b"a\x1b[2J\n\t\x07\x7f\xc2\x9b\xff"), r"a\x1b[2J\n\t\x07\x7f\u{9b}\xff");
        assert_eq!(escape("\u{202e}abc \u{2028}é…".as_bytes()), r"\u{202e}abc \u{2028}é…");
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), None);
        table.row_with(&["1", "\x1bc", "1"], vec!["\x1b]0;x".to_owned()]).expect("memory");
        table.flush().expect("memory");
        table.row(&["2", "\r", "0"]).expect("memory");
        let all: Vec<u8> = out.into_iter().filter(|byte| *byte < b' ' && *byte != b'\n').collect();
        assert_eq!(all, b"");
    }

    #[test]
    fn a_long_table_is_written_as_it_comes() {
        let mut out = Vec::new();
        let mut table = Table::with_width(&mut out, columns(), None);
        (0..ROWS_MAX + 5).for_each(|_| table.row(&["1", "a", "0"]).expect("memory"));
        assert_eq!(table.waiting.len(), 0);
        table.finish().expect("memory");
        assert_eq!(out.iter().filter(|byte| **byte == b'\n').count(), ROWS_MAX + 6);
    }
}
