//! The finished jobs whose output waits to be written. Data only; the sequencer decides.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

use minder::Stream;
use minder_os::files::{open_no_follow, read_at};

use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::NamedFiles;
use crate::resume::ResumeFilter;

/// The order in which the output of jobs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShowOrder {
    /// As the jobs finish.
    Ended,
    /// As the jobs are in the input.
    Input,
}

#[derive(Debug)]
pub(super) struct State {
    /// By job number, or by order of arrival.
    pub(super) waiting: BTreeMap<u64, FinishedJob>,
    /// Jobs whose output is written after the last job, by number.
    pub(super) last: BTreeMap<u64, FinishedJob>,
    pub(super) arrivals: u64,
    /// The number of bytes of output that the waiting jobs have.
    pub(super) waiting_bytes: u64,
    /// Jobs whose output is in the queues of the streams, oldest first.
    pub(super) unwritten: VecDeque<Unwritten>,
    /// Running jobs that have output in the queues of the streams, and how much of these has to be written
    /// for it.
    pub(super) queued_of: BTreeMap<u64, [u64; 2]>,
    /// For reading files; kept to save allocations.
    pub(super) buffer: Vec<u8>,
    /// Jobs that are skipped in the order of the input, since they do not run in this attempt.
    pub(super) resume: Arc<ResumeFilter>,
    /// Jobs with output from an earlier attempt that run again: that output is written first.
    pub(super) repeated: VecDeque<FinishedJob>,
    /// The number of jobs that were written whose journal event for that is not appended yet.
    pub(super) unrecorded: usize,
    pub(super) decorated: Vec<u8>,
    /// Files with output of other processes.
    pub(super) named_files: NamedFiles,
    /// `true` for each stream whose last byte ended no line, as far as `line_breaks` needs it.
    pub(super) open_lines: [bool; 2],
}

/// Jobs that were handed to the streams, which the readers have not taken yet.
#[derive(Debug)]
pub(super) struct Unwritten {
    /// The position in each queue up to which items have to be written for them.
    pub(super) queued: [u64; 2],
    pub(super) jobs: Vec<u64>,
    pub(super) files: Vec<JobFile>,
}

/// Returns the last byte of a segment, if it has one that can be read.
pub(super) fn last_byte(location: &Location, batch: &[u8]) -> Option<u8> {
    let last_of = |file: &File, end: u64| {
        let mut byte = [0];
        let read = read_at(file, &mut byte, end.checked_sub(1)?).ok()?;
        (read == 1).then_some(byte[0])
    };
    match location {
        Location::Batch(range) => batch[range.clone()].last().copied(),
        Location::Held(held) => held.as_slice().last().copied(),
        Location::Shared(file, range) => last_of(file, range.end),
        Location::Named(path, range) => last_of(&open_no_follow(path).ok()?, range.end),
        Location::Own(own) => last_of(&own.open().ok()?, own.range.end),
    }
}

/// Adjacent bytes of a batch, for one stream.
#[derive(Debug, Default)]
pub(super) struct PendingWrite {
    pub(super) stream: Option<Stream>,
    pub(super) range: Range<usize>,
}

impl PendingWrite {
    /// Adds a range if it is adjacent. Returns `true` if it is.
    pub(super) fn extend(&mut self, stream: Stream, range: &Range<usize>) -> bool {
        let follows = self.stream == Some(stream) && self.range.end == range.start;
        if follows {
            self.range.end = range.end;
        }
        follows
    }
}

impl State {
    pub(super) fn add_waiting(&mut self, order: ShowOrder, finished: FinishedJob) {
        self.arrivals += 1;
        self.waiting_bytes += finished.bytes();
        let key = if order == ShowOrder::Input { finished.job } else { self.arrivals };
        self.waiting.insert(key, finished);
    }

    /// Returns `true` if no output is left to be written.
    pub(super) fn has_nothing_left(&self) -> bool {
        self.waiting.is_empty()
            && self.last.is_empty()
            && self.repeated.is_empty()
            && self.unwritten.is_empty()
    }

    /// Returns the first job, from this number on, that is not skipped.
    pub(super) fn next_from(&self, job: u64) -> u64 {
        let last = self.resume.last();
        let mut job = job;
        while job <= last && self.resume.skips(job) && !self.waiting.contains_key(&job) {
            job += 1;
        }
        job
    }
}
