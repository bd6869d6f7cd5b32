//! Reads journals, as far as they go: a damaged line costs itself and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::folder;
use super::line::{LINE_MAX, Why, decode};
use super::manifest::{Manifest, open_file};
use super::row::{Begun, Ended, Over, Piece, Row};

/// The last line of a journal is shorter than this.
const LAST_LINE: u64 = 8 << 10;

/// What was wrong with a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Damage {
    /// The last line was not whole, and was dropped: the runner was killed while it wrote, or the machine went down.
    pub(crate) torn_tail: bool,
    /// Other lines that were skipped.
    pub(crate) bad_lines: u64,
    /// The first of those, from 1.
    pub(crate) first_bad_line: Option<u64>,
}

impl Damage {
    /// Whether there was any.
    pub(crate) fn any(&self) -> bool {
        self.torn_tail || self.bad_lines > 0
    }

    pub(super) fn bad(&mut self, line: u64) {
        self.bad_lines += 1;
        self.first_bad_line.get_or_insert(line);
    }
}

/// For people.
impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = match (self.bad_lines, self.first_bad_line) {
            (0, _) | (_, None) => String::new(),
            (1, Some(line)) => format!("line {line} cannot be read"),
            (lines, Some(line)) => format!("{lines} lines cannot be read, the first is line {line}"),
        };
        let torn = if self.torn_tail { "its last line was torn" } else { "" };
        let between = if lines.is_empty() || torn.is_empty() { "" } else { "; " };
        write!(f, "{lines}{between}{torn}")
    }
}

/// An attempt, without its jobs.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) number: u32,
    pub(crate) begun: Option<Begun>,
    /// None: it runs still, or was killed.
    pub(crate) over: Option<Over>,
    pub(crate) damage: Damage,
    /// Why it could not be read to its end.
    pub(crate) error: Option<io::Error>,
}

/// All that is known of a run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) manifest: anyhow::Result<Manifest>,
    pub(crate) attempts: Vec<Attempt>,
    /// The last row of each job.
    pub(crate) jobs: BTreeMap<u64, Ended>,
    /// Output that was kept and not shown.
    pub(crate) unshown: BTreeMap<u64, Vec<Piece>>,
    /// Whether somebody works on it at this moment.
    pub(crate) alive: bool,
}

/// Reads a journal line by line. Rows of newer versions are left out.
///
/// # Errors
/// When it cannot be read; rows that came before were visited.
pub(crate) fn each(path: &Path, visit: impl FnMut(Row)) -> io::Result<Damage> {
    let mut reader = BufReader::with_capacity(64 << 10, open_file(path)?);
    let mut scan = Scan { visit, damage: Damage::default(), suspect: None };
    let rest = lines(&mut reader, LINE_MAX, |number, line, _| scan.line(number, line))?;
    // What was suspect is the last line, or was followed by part of a line only.
    scan.damage.torn_tail = rest > 0 || scan.suspect.is_some();
    if let Some(number) = scan.suspect.filter(|_| rest > 0) {
        scan.damage.bad(number);
    }
    Ok(scan.damage)
}

/// Reads what was added behind `offset`, which was 0 or came from the last call. Gives the offset for the next. A last line
/// that is not whole is left for later.
pub(crate) fn tail_from(path: &Path, offset: u64, visit: impl FnMut(Row)) -> io::Result<(u64, Damage)> {
    let mut file = open_file(path)?;
    // A journal gets shorter when a write to it failed and was taken back.
    let mut offset = offset.min(file.metadata()?.len());
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut scan = Scan { visit, damage: Damage::default(), suspect: None };
    lines(&mut reader, LINE_MAX, |number, line, len| {
        scan.line(number, line);
        offset += len;
    })?;
    if let Some(number) = scan.suspect {
        scan.damage.bad(number);
    }
    Ok((offset, scan.damage))
}

/// Decides what lines mean. A bad line is suspect first: only if it is not the last one it is a bad line, else a torn tail.
struct Scan<F> {
    visit: F,
    damage: Damage,
    suspect: Option<u64>,
}

impl<F: FnMut(Row)> Scan<F> {
    fn line(&mut self, number: u64, line: Option<&[u8]>) {
        if let Some(earlier) = self.suspect.take() {
            self.damage.bad(earlier);
        }
        match line.ok_or(Why::Damaged).and_then(decode) {
            Ok(row) => (self.visit)(row),
            Err(Why::Unknown) => (),
            Err(Why::Damaged | Why::Malformed) => self.suspect = Some(number),
        }
    }
}

/// Gives each whole line with its number and its length with the newline; without the line where it is longer than `max`.
/// Returns the length of what follows the last newline.
pub(super) fn lines(
    reader: &mut impl BufRead,
    max: usize,
    mut each: impl FnMut(u64, Option<&[u8]>, u64),
) -> io::Result<u64> {
    let (mut line, mut len, mut number) = (Vec::new(), 0, 1);
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
            // All of it lies in the buffer, as nearly always.
            each(number, fits.then_some(part), len);
        } else {
            if fits {
                line.extend_from_slice(part);
            }
            if end.is_some() {
                each(number, fits.then_some(&line), len);
            }
        }
        if end.is_some() {
            line.clear();
            (len, number) = (0, number + 1);
        }
        reader.consume(used);
    }
}

/// Reads everything about a run, with the rows of all its jobs.
///
/// # Errors
/// When the folder cannot be read. What is wrong with single files is said where they would be.
pub(crate) fn read_run(folder: &Path) -> io::Result<Run> {
    // Looked at first: what ends while we read is seen by its last row.
    let alive = folder::is_alive(folder);
    let manifest = Manifest::read(folder);
    let mut run =
        Run { manifest, attempts: Vec::new(), jobs: BTreeMap::new(), unshown: BTreeMap::new(), alive };
    for number in folder::attempts(folder)? {
        let mut attempt = Attempt { number, begun: None, over: None, damage: Damage::default(), error: None };
        let path = folder.join(folder::attempt_name(number));
        let damage = each(&path, |row| match row {
            Row::Begun(begun) => attempt.begun = Some(begun),
            Row::Outputs(_) => (),
            Row::Over(over) => attempt.over = Some(over),
            Row::Lost(shown) | Row::Shown(shown) => {
                shown.jobs.iter().for_each(|job| drop(run.unshown.remove(job)))
            }
            Row::Ended(ended) => {
                keep(&mut run.unshown, &ended);
                run.jobs.insert(ended.job, ended);
            }
        });
        match damage {
            Ok(damage) => attempt.damage = damage,
            Err(error) => attempt.error = Some(error),
        }
        run.attempts.push(attempt);
    }
    Ok(run)
}

/// The last line of a journal, if it is whole and says how the attempt ended.
pub(crate) fn over(path: &Path) -> Option<Over> {
    let last = || -> io::Result<Option<Over>> {
        let len = std::fs::symlink_metadata(path)?.len();
        let mut over = None;
        let (end, _) = tail_from(path, len.saturating_sub(LAST_LINE), |row| {
            over = if let Row::Over(row) = row { Some(row) } else { None };
        })?;
        Ok(over.filter(|_| end == len))
    };
    last().ok().flatten()
}

/// Remembers what a job kept; what an earlier try of it kept is replaced.
pub(super) fn keep(unshown: &mut BTreeMap<u64, Vec<Piece>>, ended: &Ended) {
    if ended.kept.is_empty() {
        unshown.remove(&ended.job);
    } else {
        unshown.insert(ended.job, ended.kept.clone());
    }
}

/// The process that began the last attempt, if its first line is there.
pub(super) fn last_pid(folder: &Path) -> Option<u32> {
    let number = *folder::attempts(folder).ok()?.last()?;
    let file = open_file(&folder.join(folder::attempt_name(number))).ok()?;
    let mut line = Vec::new();
    io::Read::take(BufReader::new(file), 4096).read_until(b'\n', &mut line).ok()?;
    match decode(line.strip_suffix(b"\n")?) {
        Ok(Row::Begun(begun)) => Some(begun.pid),
        _ => None,
    }
}
