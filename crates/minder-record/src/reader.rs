//! Reads journals, as far as they go: a damaged line costs itself and nothing else.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use super::codec::{DecodeError, LINE_MAX, decode};
use super::event::{AttemptFinished, AttemptStarted, JobFinished, JournalEvent, OutputSegment};
use super::manifest::{Manifest, open_file};
use super::store;

/// The last line of a journal is shorter than this.
const LAST_LINE: u64 = 8 << 10;

/// What was wrong with a journal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Corruption {
    /// The last line was not whole, and was dropped: the runner was killed while it wrote, or the
    /// machine went down.
    pub torn_tail: bool,
    /// Other lines that were skipped.
    pub bad_lines: u64,
    /// The first of those, from 1.
    pub first_bad_line: Option<u64>,
}

impl Corruption {
    /// Whether there was any.
    pub fn any(&self) -> bool {
        self.torn_tail || self.bad_lines > 0
    }

    pub(crate) fn bad(&mut self, line: u64) {
        self.bad_lines += 1;
        self.first_bad_line.get_or_insert(line);
    }
}

/// For people.
impl fmt::Display for Corruption {
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
pub struct Attempt {
    /// The number of the attempt, from 1.
    pub number: u32,
    /// The first line of its journal, if it is there.
    pub begun: Option<AttemptStarted>,
    /// None: it runs still, or was killed.
    pub over: Option<AttemptFinished>,
    /// What was wrong with its journal.
    pub damage: Corruption,
    /// Why the journal could not be read to its end.
    pub error: Option<io::Error>,
}

/// All that is known of a run.
#[derive(Debug)]
pub struct Run {
    /// The manifest, or why it cannot be read.
    pub manifest: anyhow::Result<Manifest>,
    /// The attempts, in order.
    pub attempts: Vec<Attempt>,
    /// The last row of each job.
    pub jobs: BTreeMap<u64, JobFinished>,
    /// Output that was kept and not shown.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// Whether a process works on the run at this moment.
    pub alive: bool,
}

/// Reads a journal line by line. Rows of newer versions are left out.
///
/// # Errors
/// When it cannot be read; rows that came before were visited.
pub fn each(path: &Path, visit: impl FnMut(JournalEvent)) -> io::Result<Corruption> {
    let mut reader = BufReader::with_capacity(64 << 10, open_file(path)?);
    let mut scan = Scan { visit, damage: Corruption::default(), suspect: None };
    let rest = lines(&mut reader, LINE_MAX, |number, line, _| scan.line(number, line))?;
    // What was suspect is the last line, or was followed by part of a line only.
    scan.damage.torn_tail = rest > 0 || scan.suspect.is_some();
    if let Some(number) = scan.suspect.filter(|_| rest > 0) {
        scan.damage.bad(number);
    }
    Ok(scan.damage)
}

/// Reads what was added behind `offset`, which was 0 or came from the last call. Gives the offset
/// for the next. A last line that is not whole is left for later.
pub fn tail_from(path: &Path, offset: u64, visit: impl FnMut(JournalEvent)) -> io::Result<(u64, Corruption)> {
    let mut file = open_file(path)?;
    // A journal gets shorter when a write to it failed and was taken back.
    let mut offset = offset.min(file.metadata()?.len());
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut scan = Scan { visit, damage: Corruption::default(), suspect: None };
    lines(&mut reader, LINE_MAX, |number, line, len| {
        scan.line(number, line);
        offset += len;
    })?;
    if let Some(number) = scan.suspect {
        scan.damage.bad(number);
    }
    Ok((offset, scan.damage))
}

/// Decides what lines mean. A bad line is suspect first: only if it is not the last one it is a bad
/// line, else a torn tail.
struct Scan<F> {
    visit: F,
    damage: Corruption,
    suspect: Option<u64>,
}

impl<F: FnMut(JournalEvent)> Scan<F> {
    fn line(&mut self, number: u64, line: Option<&[u8]>) {
        if let Some(earlier) = self.suspect.take() {
            self.damage.bad(earlier);
        }
        match line.ok_or(DecodeError::Damaged).and_then(decode) {
            Ok(row) => (self.visit)(row),
            Err(DecodeError::Unknown) => (),
            Err(DecodeError::Damaged | DecodeError::Malformed) => self.suspect = Some(number),
        }
    }
}

/// Gives each whole line with its number and its length with the newline; without the line where it
/// is longer than `max`. Returns the length of what follows the last newline.
pub(crate) fn lines(
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
pub fn read_run(folder: &Path) -> io::Result<Run> {
    // Looked at first: what ends while we read is seen by its last row.
    let alive = store::is_alive(folder);
    let manifest = Manifest::read(folder);
    let mut run =
        Run { manifest, attempts: Vec::new(), jobs: BTreeMap::new(), unshown: BTreeMap::new(), alive };
    for number in store::attempts(folder)? {
        let mut attempt =
            Attempt { number, begun: None, over: None, damage: Corruption::default(), error: None };
        let path = folder.join(store::attempt_name(number));
        let damage = each(&path, |row| match row {
            JournalEvent::AttemptStarted(begun) => attempt.begun = Some(begun),
            JournalEvent::OutputDir(_) => (),
            JournalEvent::AttemptFinished(over) => attempt.over = Some(over),
            JournalEvent::OutputLost(shown) | JournalEvent::OutputShown(shown) => {
                shown.jobs.iter().for_each(|job| drop(run.unshown.remove(job)))
            }
            JournalEvent::JobFinished(ended) => {
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
pub fn over(path: &Path) -> Option<AttemptFinished> {
    let last = || -> io::Result<Option<AttemptFinished>> {
        let len = std::fs::symlink_metadata(path)?.len();
        let mut over = None;
        let (end, _) = tail_from(path, len.saturating_sub(LAST_LINE), |row| {
            over = if let JournalEvent::AttemptFinished(row) = row { Some(row) } else { None };
        })?;
        Ok(over.filter(|_| end == len))
    };
    last().ok().flatten()
}

/// Remembers what a job kept; what an earlier try of it kept is replaced.
pub(crate) fn keep(unshown: &mut BTreeMap<u64, Vec<OutputSegment>>, ended: &JobFinished) {
    if ended.kept.is_empty() {
        unshown.remove(&ended.job);
    } else {
        unshown.insert(ended.job, ended.kept.clone());
    }
}

/// The process that began the last attempt, if its first line is there.
pub(crate) fn last_pid(folder: &Path) -> Option<u32> {
    let number = *store::attempts(folder).ok()?.last()?;
    let file = open_file(&folder.join(store::attempt_name(number))).ok()?;
    let mut line = Vec::new();
    io::Read::take(BufReader::new(file), 4096).read_until(b'\n', &mut line).ok()?;
    match decode(line.strip_suffix(b"\n")?) {
        Ok(JournalEvent::AttemptStarted(begun)) => Some(begun.pid),
        _ => None,
    }
}
