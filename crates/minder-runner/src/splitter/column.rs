//! The value of a line: one of its columns.

use std::ops::Range;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::splitter::regexp::compile;

/// The column that the user names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Column {
    /// Its number, from 1.
    Number(usize),
    /// Its name in the header.
    Name(String),
}

/// Finds the value of a line.
#[derive(Debug)]
pub(super) struct Key {
    column: Column,
    /// From 0; known once the header is.
    index: usize,
    between: ColumnSeparator,
}

/// The separator between columns.
#[derive(Debug)]
enum ColumnSeparator {
    Byte(u8),
    Text(Box<Finder<'static>>),
    Pattern(Regex),
}

impl Key {
    /// Creates a key. `colsep` is a regular expression; by default a tab separates columns.
    pub(super) fn new(column: Column, colsep: Option<&str>) -> Result<Self, String> {
        let text = colsep.unwrap_or("\t");
        let is_plain = regex::escape(text) == text;
        let between = match text.as_bytes() {
            [] => return Err("`--colsep ''` separates no columns".to_owned()),
            [byte] if is_plain => ColumnSeparator::Byte(*byte),
            bytes if is_plain => ColumnSeparator::Text(Box::new(Finder::new(bytes).into_owned())),
            _ => ColumnSeparator::Pattern(compile("--colsep", text.as_bytes())?),
        };
        let index = match &column {
            Column::Number(0) => return Err("there is no column 0: the first is 1".to_owned()),
            Column::Number(number) => number - 1,
            Column::Name(_) => 0,
        };
        Ok(Self { column, index, between })
    }

    /// Finds the number of a named column.
    pub(super) fn resolve(&mut self, header: &[u8]) -> Result<(), String> {
        let Column::Name(name) = &self.column else { return Ok(()) };
        let line = header.split(|&byte| byte == b'\n').next().unwrap_or_default();
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let mut rest = Some(0);
        let mut index = 0;
        while let Some(at) = rest {
            let (column, next) = self.cut(line, at);
            if line[column] == *name.as_bytes() {
                self.index = index;
                return Ok(());
            }
            rest = next;
            index += 1;
        }
        let shown = String::from_utf8_lossy(line);
        Err(format!("no column is named `{name}`: the header is `{}`", shown.escape_default()))
    }

    /// Returns the value of a line without its line break. It is empty if the line has fewer
    /// columns.
    pub(super) fn of<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let mut at = 0;
        for _ in 0..self.index {
            match self.cut(line, at) {
                (_, Some(next)) => at = next,
                (_, None) => return &[],
            }
        }
        &line[self.cut(line, at).0]
    }

    /// Returns the column that starts at `at`, and where the next one starts.
    fn cut(&self, line: &[u8], at: usize) -> (Range<usize>, Option<usize>) {
        let found = match &self.between {
            ColumnSeparator::Byte(byte) => memchr::memchr(*byte, &line[at..]).map(|i| (at + i, at + i + 1)),
            ColumnSeparator::Text(finder) => {
                finder.find(&line[at..]).map(|i| (at + i, at + i + finder.needle().len()))
            }
            ColumnSeparator::Pattern(regex) => regex
                .find_at(line, at)
                // An empty match separates no columns.
                .filter(|found| !found.is_empty())
                .map(|found| (found.start(), found.end())),
        };
        match found {
            Some((end, next)) => (at..end, Some(next)),
            None => (at..line.len(), None),
        }
    }
}
