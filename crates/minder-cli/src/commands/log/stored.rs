//! The output of a job that the record has: all of it (`--keep-output`), what was not shown yet, or its
//! end.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::files::{open_no_follow, read_at};
use minder_record::event::{JobFinished, OsBytes, OutputSegment};
use minder_record::reader::Run;
use minder_record::writer::{output_path, stored_path};

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
    let id = run_id(dir);
    let job = find(&run, &id, number, attempt)?;
    let (written, tail) = stream.recorded(job);
    let stored = segments(&job.stored, stream);
    let is_last = run.jobs.get(&number).is_some_and(|last| std::ptr::eq(last, job));
    let waiting = if is_last { run.unshown.get(&number) } else { None };
    let waiting = waiting.map_or_else(Vec::new, |all| segments(all, stream));
    let name = stream.name();
    let len = |segments: &[&OutputSegment]| segments.iter().map(|segment| segment.len).sum::<u64>();
    if len(&stored) > 0 {
        copy(out, &stored, |file| stored_path(dir, file))?;
        if len(&stored) < written {
            let [has, all] = [len(&stored), written].map(format_bytes);
            message(&format!("only the first {has} of {all} are in the record: the run stored too much"));
        }
    } else if len(&waiting) == written && written > 0 {
        copy(out, &waiting, |file| output_path(dir, file))?;
    } else if let Some(tail) = tail {
        out.write_all(&tail.0)?;
        if (tail.0.len() as u64) < written {
            let [has, all] = [tail.0.len() as u64, written].map(format_bytes);
            let hint = "`minder run --keep-output` keeps all";
            message(&format!("only the last {has} of {all} are in the record ({hint})"));
        }
    } else if written > 0 {
        bail!("the {name} of job {number} is not in the record: `minder run --keep-output` keeps it");
    }
    Ok(out.flush()?)
}

/// Returns the result of a job, or of one of its tries.
fn find<'r>(run: &'r Run, id: &str, number: u64, attempt: Option<u32>) -> Result<&'r JobFinished> {
    let last = run.jobs.get(&number);
    let tries = run.tries.get(&number).map_or(&[][..], Vec::as_slice);
    let Some(job) = last.or(tries.last()) else { bail!(absence(run, id, number)) };
    let Some(attempt) = attempt else { return Ok(job) };
    let of = |job: &&JobFinished| job.attempts.unwrap_or(1) == attempt;
    match last.filter(of).or_else(|| tries.iter().rfind(of)) {
        Some(job) => Ok(job),
        None => {
            let tries = tries.iter().chain(last).map(|job| job.attempts.unwrap_or(1)).max().unwrap_or(1);
            bail!("job {number} has no attempt {attempt}: it was started {}", times(tries))
        }
    }
}

fn times(count: u32) -> String {
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
