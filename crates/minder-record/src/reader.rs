//! Reads journals. A damaged line is skipped; the lines around it are still read.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use crate::codec::{DecodeError, LINE_MAX, decode};
use crate::error;
use crate::event::{AttemptFinished, AttemptHost, AttemptStarted, JobFinished, JournalEvent, OutputSegment};
use crate::manifest::{Manifest, open_file};
use crate::store;

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

/// An attempt at a run, without its jobs.
#[derive(Debug)]
pub struct Attempt {
    /// The number of the attempt, counted from 1.
    pub number: u32,
    /// The first event of its journal, if it is readable.
    pub started: Option<AttemptStarted>,
    /// The resources that it could use, unless the version is old.
    pub host: Option<AttemptHost>,
    /// The last event of its journal. `None` if the attempt still runs or was killed.
    pub finished: Option<AttemptFinished>,
    /// The damage of its journal.
    pub corruption: Corruption,
    /// The error that ended reading the journal early.
    pub error: Option<io::Error>,
}

/// The complete record of a run.
#[derive(Debug)]
pub struct Run {
    /// The manifest, or the reason why it cannot be read.
    pub manifest: error::Result<Manifest>,
    /// The attempts, in ascending order.
    pub attempts: Vec<Attempt>,
    /// The last event of each finished job, by job.
    pub jobs: BTreeMap<u64, JobFinished>,
    /// The failed tries of jobs that were started again, by job, in their order.
    pub tries: BTreeMap<u64, Vec<JobFinished>>,
    /// Output that was saved and not shown yet, by job.
    pub unshown: BTreeMap<u64, Vec<OutputSegment>>,
    /// `true` if a process works on the run.
    pub alive: bool,
}

/// Reads a journal and visits its events in order. Events of newer versions are skipped.
///
/// # Errors
///
/// If the file cannot be opened or read, is a link, or is not a regular file. The events before a
/// read error were visited.
pub fn read_journal(path: &Path, mut visit: impl FnMut(JournalEvent)) -> io::Result<Corruption> {
    read_events(path, |_| true, |_, event| visit(event))
}

/// Reads a journal, and visits the events whose lines are wanted, each with the offset behind its line. The
/// damage of other lines is not noticed.
pub(crate) fn read_events(
    path: &Path,
    is_wanted: impl Fn(&[u8]) -> bool,
    mut visit: impl FnMut(u64, JournalEvent),
) -> io::Result<Corruption> {
    let mut reader = BufReader::with_capacity(64 << 10, open_file(path)?);
    let end = Cell::new(0);
    let visit = |event| visit(end.get(), event);
    let mut scan = Scan { visit, corruption: Corruption::default(), suspect: None };
    let rest = lines(&mut reader, LINE_MAX, |number, line, len| {
        end.set(end.get() + len);
        if line.is_none_or(&is_wanted) {
            scan.line(number, line);
        }
    })?;
    // A suspect line was the last one, or only a part of a line followed it.
    scan.corruption.torn_tail = rest > 0 || scan.suspect.is_some();
    if let Some(number) = scan.suspect
        && rest > 0
    {
        scan.corruption.bad(number);
    }
    Ok(scan.corruption)
}

/// Reads the events that were appended after `offset`, which is 0 or the result of the previous
/// call. Returns the offset for the next call. An incomplete last line is left for that.
///
/// # Errors
///
/// If the file cannot be opened or read, is a link, or is not a regular file.
pub fn tail_from(path: &Path, offset: u64, visit: impl FnMut(JournalEvent)) -> io::Result<(u64, Corruption)> {
    let mut file = open_file(path)?;
    // A journal becomes shorter when a write to it failed and was undone.
    let mut offset = offset.min(file.metadata()?.len());
    file.seek(SeekFrom::Start(offset))?;
    let mut reader = BufReader::with_capacity(64 << 10, file);
    let mut scan = Scan { visit, corruption: Corruption::default(), suspect: None };
    lines(&mut reader, LINE_MAX, |number, line, len| {
        scan.line(number, line);
        offset += len;
    })?;
    if let Some(number) = scan.suspect {
        scan.corruption.bad(number);
    }
    Ok((offset, scan.corruption))
}

/// Reads the events in a part of a journal that begins and ends with a line. Damaged lines are skipped.
pub(crate) fn read_part(
    path: &Path,
    part: Range<u64>,
    mut visit: impl FnMut(JournalEvent),
) -> io::Result<()> {
    let mut file = open_file(path)?;
    file.seek(SeekFrom::Start(part.start))?;
    let len = part.end.saturating_sub(part.start);
    let mut reader = BufReader::with_capacity(64 << 10, io::Read::take(file, len));
    lines(&mut reader, LINE_MAX, |_, line, _| {
        if let Some(Ok(event)) = line.map(decode) {
            visit(event);
        }
    })?;
    Ok(())
}

/// Classifies lines. A line that cannot be decoded is suspect until the next line: then it is a bad
/// line. At the end of the file, it is a torn tail.
struct Scan<F> {
    visit: F,
    corruption: Corruption,
    suspect: Option<u64>,
}

impl<F: FnMut(JournalEvent)> Scan<F> {
    fn line(&mut self, number: u64, line: Option<&[u8]>) {
        if let Some(earlier) = self.suspect.take() {
            self.corruption.bad(earlier);
        }
        match line.ok_or(DecodeError::Damaged).and_then(decode) {
            Ok(event) => (self.visit)(event),
            Err(DecodeError::Unknown) => (),
            Err(DecodeError::Damaged | DecodeError::Malformed) => self.suspect = Some(number),
        }
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

/// Reads the complete record of a run, with the events of all its jobs.
///
/// # Errors
///
/// If the directory cannot be read. Errors of single files are in [`Run::manifest`] and
/// [`Attempt::error`].
pub fn read_run(dir: &Path) -> io::Result<Run> {
    // Checked first: if the attempt finishes while this function reads, its last event shows that.
    let alive = store::is_alive(dir);
    let manifest = Manifest::read(dir);
    let mut run = Run {
        manifest,
        attempts: Vec::new(),
        jobs: BTreeMap::new(),
        tries: BTreeMap::new(),
        unshown: BTreeMap::new(),
        alive,
    };
    for number in store::attempts(dir)? {
        let mut attempt = Attempt {
            number,
            started: None,
            host: None,
            finished: None,
            corruption: Corruption::default(),
            error: None,
        };
        let path = dir.join(store::attempt_name(number));
        let corruption = read_journal(&path, |event| match event {
            JournalEvent::AttemptStarted(started) => attempt.started = Some(started),
            JournalEvent::Host(host) => attempt.host = Some(host),
            JournalEvent::OutputDir(_) | JournalEvent::Claimed(_) | JournalEvent::Sealed(_) => (),
            JournalEvent::AttemptFinished(finished) => attempt.finished = Some(finished),
            JournalEvent::OutputLost(shown) | JournalEvent::OutputShown(shown) => {
                for job in &shown.jobs {
                    run.unshown.remove(job);
                }
            }
            JournalEvent::JobTried(tried) => run.tries.entry(tried.job).or_default().push(tried),
            JournalEvent::JobFinished(ended) => {
                update_unshown(&mut run.unshown, &ended);
                run.jobs.insert(ended.job, ended);
            }
        });
        match corruption {
            Ok(corruption) => attempt.corruption = corruption,
            Err(error) => attempt.error = Some(error),
        }
        run.attempts.push(attempt);
    }
    Ok(run)
}

/// A start of a job that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Start {
    /// The attempt at the run, counted from 1.
    pub attempt: u32,
    /// `true` if the job failed and was to be started again.
    pub is_tried: bool,
    /// How it ended.
    pub ended: JobFinished,
}

/// Returns the starts of a job that have ended, in their order, of all attempts at the run. A journal that
/// cannot be read is left out: [`read_run`] reports it.
///
/// ```
/// let dir = std::path::Path::new("no/such/run");
/// assert!(minder_record::reader::starts(dir, 1).is_err());
/// ```
///
/// # Errors
///
/// If the directory cannot be read.
pub fn starts(dir: &Path, job: u64) -> io::Result<Vec<Start>> {
    let mut starts = Vec::new();
    for attempt in store::attempts(dir)? {
        let visit = |event| {
            let (is_tried, ended) = match event {
                JournalEvent::JobTried(ended) => (true, ended),
                JournalEvent::JobFinished(ended) => (false, ended),
                _ => return,
            };
            if ended.job == job {
                starts.push(Start { attempt, is_tried, ended });
            }
        };
        let _ = read_journal(&dir.join(store::attempt_name(attempt)), visit);
    }
    Ok(starts)
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

/// Returns the jobs whose events are in the first bytes of a journal.
///
/// # Errors
///
/// As [`read_journal`].
pub fn first_jobs(path: &Path, bytes_max: u64) -> io::Result<Vec<JobFinished>> {
    let mut reader = BufReader::new(io::Read::take(open_file(path)?, bytes_max));
    let mut jobs = Vec::new();
    lines(&mut reader, LINE_MAX, |_, line, _| {
        if let Some(Ok(JournalEvent::JobFinished(job))) = line.map(decode) {
            jobs.push(job);
        }
    })?;
    Ok(jobs)
}

/// Replaces the saved output of a job by that of its latest execution.
pub(crate) fn update_unshown(unshown: &mut BTreeMap<u64, Vec<OutputSegment>>, ended: &JobFinished) {
    if ended.kept.is_empty() {
        unshown.remove(&ended.job);
    } else {
        unshown.insert(ended.job, ended.kept.clone());
    }
}

/// Returns the first event of the last attempt, if it is readable.
///
/// ```
/// let dir = std::path::Path::new("no/such/run");
/// assert_eq!(minder_record::reader::last_started(dir), None);
/// ```
pub fn last_started(dir: &Path) -> Option<AttemptStarted> {
    let number = *store::attempts(dir).ok()?.last()?;
    let file = open_file(&dir.join(store::attempt_name(number))).ok()?;
    let mut line = Vec::new();
    io::Read::take(BufReader::new(file), 4096).read_until(b'\n', &mut line).ok()?;
    match decode(line.strip_suffix(b"\n")?) {
        Ok(JournalEvent::AttemptStarted(started)) => Some(started),
        _ => None,
    }
}
