//! The output of a job that the record has: all of it (`--keep-output`), what was not shown yet, or its
//! end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::files::{open_no_follow, read_at};
use minder_record::event::{JobFinished, OsBytes, OutputSegment};
use minder_record::reader::{Run, Start, starts};
use minder_record::writer::{has_stored_all, output_path, stored_path};

use super::request::absence;
use super::select::{read_run, run_id};
use crate::ui::{format_bytes, message, os_error_text};

/// The most bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// An output of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }

    /// Returns the number of the stream in the record.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Stdout => 1,
            Self::Stderr => 2,
        }
    }

    /// Returns how many bytes a job wrote, and the last of them if they were recorded.
    fn recorded(self, job: &JobFinished) -> (u64, Option<&OsBytes>) {
        match self {
            Self::Stdout => (job.out, job.out_tail.as_ref()),
            Self::Stderr => (job.err, job.tail.as_ref()),
        }
    }
}

/// Prints an output of a job as it is.
pub(super) fn print(
    out: &mut dyn Write,
    dir: &Path,
    number: u64,
    stream: Stream,
    attempt: Option<u32>,
) -> Result<()> {
    let run = read_run(dir)?;
    let starts = Starts::read(dir, &run, number)?;
    let index = match attempt {
        None => starts.shown,
        Some(attempt) => match usize::try_from(attempt).unwrap_or(usize::MAX).checked_sub(1) {
            Some(index) if index < starts.all.len() => index,
            _ => {
                bail!("job {number} has no attempt {attempt}: it was started {}", times(starts.all.len()))
            }
        },
    };
    let start = &starts.all[index];
    let job = &start.ended;
    let (written, tail) = stream.recorded(job);
    let stored = segments(&job.stored, stream);
    let waiting = if index == starts.shown { run.unshown.get(&number) } else { None };
    let waiting = waiting.map_or_else(Vec::new, |all| segments(all, stream));
    let name = stream.name();
    let len = |segments: &[&OutputSegment]| segments.iter().map(|segment| segment.len).sum::<u64>();
    if len(&stored) > 0 {
        copy(out, &stored, |file| stored_path(dir, file))?;
        if len(&stored) < written {
            let [has, all] = [len(&stored), written].map(format_bytes);
            message(&format!("only the first {has} of {all} are in the record: {LIMIT_REACHED}"));
        }
    } else if len(&waiting) == written && written > 0 {
        copy(out, &waiting, |file| output_path(dir, file))?;
    } else if let Some(tail) = tail {
        out.write_all(&tail.0)?;
        if (tail.0.len() as u64) < written {
            let [has, all] = [tail.0.len() as u64, written].map(format_bytes);
            let why = if has_stored_all(dir, start.attempt) {
                format!(": {LIMIT_REACHED}")
            } else {
                " (`minder run --keep-output` keeps all)".to_owned()
            };
            message(&format!("only the last {has} of {all} are in the record{why}"));
        }
    } else if written > 0 && has_stored_all(dir, start.attempt) {
        bail!("the {name} of job {number} is not in the record: {LIMIT_REACHED}");
    } else if written > 0 {
        bail!("the {name} of job {number} is not in the record: `minder run --keep-output` keeps it");
    }
    Ok(out.flush()?)
}

/// Why output is missing in a run with `--keep-output`.
pub(super) const LIMIT_REACHED: &str = "`--keep-output` had stored 512 MiB, the limit of a run";

/// The starts of a job that have ended, in all attempts at its run. Their numbers count from 1.
pub(super) struct Starts {
    /// Those that count; at least one.
    pub(super) all: Vec<Start>,
    /// Those that do not count: another agent had taken the job over.
    pub(super) superseded: Vec<Start>,
    /// The index of the one with the result: the last that no other one was to follow, or else the last.
    pub(super) shown: usize,
}

impl Starts {
    /// # Errors
    /// None has ended, or the record cannot be read.
    pub(super) fn read(dir: &Path, run: &Run, number: u64) -> Result<Self> {
        let all = starts(dir, number).with_context(|| format!("cannot read `{}`", dir.display()))?;
        let (all, superseded): (Vec<_>, Vec<_>) = all.into_iter().partition(|start| start.counts);
        let Some(last) = all.len().checked_sub(1) else { bail!(absence(run, &run_id(dir), number)) };
        let shown = all.iter().rposition(|start| !start.is_tried).unwrap_or(last);
        Ok(Self { all, superseded, shown })
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn segments(all: &[OutputSegment], stream: Stream) -> Vec<&OutputSegment> {
    all.iter().filter(|segment| segment.stream == stream.number()).collect()
}

/// Copies parts of files.
fn copy(
    out: &mut dyn Write,
    segments: &[&OutputSegment],
    path: impl Fn(&str) -> io::Result<PathBuf>,
) -> Result<()> {
    for segment in segments {
        let cannot = |error: io::Error| format!("cannot read `{}`: {}", segment.file, os_error_text(&error));
        let path = path(&segment.file).map_err(|error| anyhow::anyhow!(cannot(error)))?;
        let file = open_no_follow(&path).map_err(|error| anyhow::anyhow!(cannot(error)))?;
        let mut at = segment.at;
        let end = segment.at.saturating_add(segment.len);
        let mut buffer = vec![0; CHUNK.min(usize::try_from(segment.len).unwrap_or(CHUNK))];
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(CHUNK).min(buffer.len());
            let read =
                read_at(&file, &mut buffer[..most], at).map_err(|error| anyhow::anyhow!(cannot(error)))?;
            if read == 0 {
                bail!(cannot(io::ErrorKind::UnexpectedEof.into()));
            }
            out.write_all(&buffer[..read]).context("cannot write to standard output")?;
            at += read as u64;
        }
    }
    Ok(())
}

/// Returns the last bytes of a stored output, at most `most`; nothing if there are none.
pub(super) fn stored_tail(dir: &Path, job: &JobFinished, stream: Stream, most: usize) -> Option<OsBytes> {
    let segments = segments(&job.stored, stream);
    let last = segments.last()?;
    let len = most.min(usize::try_from(last.len).unwrap_or(most));
    let file = open_no_follow(&stored_path(dir, &last.file).ok()?).ok()?;
    let mut bytes = vec![0; len];
    let read = read_at(&file, &mut bytes, last.at + last.len - len as u64).ok()?;
    bytes.truncate(read);
    Some(OsBytes(bytes))
}
