//! Reads journals. A damaged line is skipped; the lines around it are still read.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::codec::{DecodeError, LINE_MAX, decode};
use crate::event::{AttemptFinished, JournalEvent};
use crate::manifest::open_file;

/// The last line of a journal is shorter than this number of bytes.
const LAST_LINE_MAX: u64 = 8 << 10;

/// The damage of a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corruption {
    /// The last line was incomplete and was skipped: the runner was killed while it wrote, or the
    /// machine lost power.
    pub torn_tail: bool,
    /// The number of other lines that were skipped.
    pub bad_lines: u64,
    /// The number of the first of those, counted from 1.
    pub first_bad_line: Option<u64>,
}

impl Corruption {
    /// Returns whether any line was skipped.
    pub fn any(&self) -> bool {
        self.torn_tail || self.bad_lines > 0
    }

    pub(crate) fn bad(&mut self, line: u64) {
        self.bad_lines += 1;
        self.first_bad_line.get_or_insert(line);
    }
}

/// The text for messages, such as `line 3 cannot be read`.
impl fmt::Display for Corruption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match (self.bad_lines, self.first_bad_line) {
            (0, _) | (_, None) => String::new(),
            (1, Some(line)) => format!("line {line} cannot be read"),
            (lines, Some(line)) => format!("{lines} lines cannot be read, the first is line {line}"),
        };
        let torn = if self.torn_tail { "its last line is incomplete" } else { "" };
        let between = if lines.is_empty() || torn.is_empty() { "" } else { "; " };
        write!(f, "{lines}{between}{torn}")
    }
}

/// Reads a journal and visits its events in order. Events of newer versions are skipped.
///
/// # Errors
///
/// If the file cannot be opened or read, is a link, or is not a regular file. The events before a
/// read error were visited.
pub fn read_journal(path: &Path, mut visit: impl FnMut(JournalEvent)) -> io::Result<Corruption> {
    read_events(path, &|_| true, &mut |_, event| visit(event))
}

/// Takes events, each with the offset behind its line. Not a type parameter: decoding an event is much code,
/// and there is one copy of it for each.
type Visit<'a> = &'a mut dyn FnMut(u64, JournalEvent);

/// Reads a journal, and visits the events whose lines are wanted, each with the offset behind its line. The
/// damage of other lines is not noticed.
fn read_events(path: &Path, is_wanted: &dyn Fn(&[u8]) -> bool, visit: Visit<'_>) -> io::Result<Corruption> {
    let mut position = Position::default();
    let rest = position.read(path, u64::MAX, is_wanted, visit)?;
    Ok(position.corruption(rest > 0))
}

/// Reads the events that were appended after `offset`, which is 0 or the result of the previous
/// call. Returns the offset for the next call. An incomplete last line is left for that.
///
/// # Errors
///
/// If the file cannot be opened or read, is a link, or is not a regular file.
pub fn tail_from(
    path: &Path,
    offset: u64,
    mut visit: impl FnMut(JournalEvent),
) -> io::Result<(u64, Corruption)> {
    let mut position = Position { end: offset, ..Position::default() };
    position.read(path, u64::MAX, &|_| true, &mut |_, event| visit(event))?;
    let Position { end, mut corruption, suspect, .. } = position;
    if let Some(number) = suspect {
        corruption.bad(number);
    }
    Ok((end, corruption))
}

/// Reads the events in a part of a journal that begins and ends with a line. Damaged lines are skipped.
pub(crate) fn read_part(path: &Path, part: Range<u64>, visit: Visit<'_>) -> io::Result<()> {
    Position { end: part.start, ..Position::default() }.read(path, part.end, &|_| true, visit).map(drop)
}

/// How far a journal was read. A line that cannot be decoded is suspect until the next line: then it is a bad
/// line. At the end of the file, it is a torn tail.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Position {
    /// The offset behind the last complete line.
    pub(crate) end: u64,
    lines: u64,
    corruption: Corruption,
    suspect: Option<u64>,
}

impl Position {
    /// Visits the events of the wanted lines from here on, which end at `until` or before. Returns the number
    /// of bytes after the last newline.
    pub(crate) fn read(
        &mut self,
        path: &Path,
        until: u64,
        is_wanted: &dyn Fn(&[u8]) -> bool,
        visit: Visit<'_>,
    ) -> io::Result<u64> {
        let mut file = open_file(path)?;
        // A journal becomes shorter when a write to it failed and was undone.
        self.end = self.end.min(file.metadata()?.len());
        file.seek(SeekFrom::Start(self.end))?;
        let part: &mut dyn Read = &mut file.take(until.saturating_sub(self.end));
        lines(&mut BufReader::with_capacity(64 << 10, part), LINE_MAX, |_, line, len| {
            self.end += len;
            self.lines += 1;
            if line.is_none_or(is_wanted) {
                self.line(line, visit);
            }
        })
    }

    fn line(&mut self, line: Option<&[u8]>, visit: Visit<'_>) {
        if let Some(earlier) = self.suspect.take() {
            self.corruption.bad(earlier);
        }
        match line.ok_or(DecodeError::Damaged).and_then(decode) {
            Ok(event) => visit(self.end, event),
            Err(DecodeError::Unknown) => (),
            Err(DecodeError::Damaged | DecodeError::Malformed) => self.suspect = Some(self.lines),
        }
    }

    /// Returns the damage until here, if the journal ends here. `has_rest` states that a part of a line
    /// follows.
    pub(crate) fn corruption(&self, has_rest: bool) -> Corruption {
        let mut corruption = self.corruption;
        // A suspect line was the last one, or only a part of a line followed it.
        corruption.torn_tail = has_rest || self.suspect.is_some();
        if let Some(number) = self.suspect
            && has_rest
        {
            corruption.bad(number);
        }
        corruption
    }
}

/// Visits each complete line with its number and its length including the newline. A line longer
/// than `max` is visited as `None`. Returns the number of bytes after the last newline.
pub(crate) fn lines(
    reader: &mut impl BufRead,
    max: usize,
    mut visit: impl FnMut(u64, Option<&[u8]>, u64),
) -> io::Result<u64> {
    let mut line = Vec::new();
    let mut len = 0;
    let mut number = 1;
    loop {
        let bytes = match reader.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        if bytes.is_empty() {
            return Ok(len);
        }
        let end = memchr::memchr(b'\n', bytes);
        let part = &bytes[..end.unwrap_or(bytes.len())];
        let used = part.len() + usize::from(end.is_some());
        len += used as u64;
        let fits = len <= max as u64;
        if end.is_some() && len == used as u64 {
            // The whole line is in the buffer. This is the usual case.
            visit(number, if fits { Some(part) } else { None }, len);
        } else {
            if fits {
                line.extend_from_slice(part);
            }
            if end.is_some() {
                visit(number, if fits { Some(&line) } else { None }, len);
            }
        }
        if end.is_some() {
            line.clear();
            len = 0;
            number += 1;
        }
        reader.consume(used);
    }
}

/// Returns the last event of a journal, if it is complete and the attempt finished.
pub fn attempt_finished(path: &Path) -> Option<AttemptFinished> {
    let len = std::fs::symlink_metadata(path).ok()?.len();
    let mut finished = None;
    let visit = |event| {
        finished = match event {
            JournalEvent::AttemptFinished(finished) => Some(finished),
            _ => None,
        };
    };
    let (end, _) = tail_from(path, len.saturating_sub(LAST_LINE_MAX), visit).ok()?;
    if end == len { finished } else { None }
}
