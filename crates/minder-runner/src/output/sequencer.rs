//! The order in which the output of jobs is written.
//!
//! At most one job is *live*: its output is written while it runs. In the order of the input, that
//! is the first job whose output is not complete yet. Otherwise it is a job that claimed it,
//! because it ran alone or because it is in the middle of a line. Jobs that finish meanwhile wait,
//! with their output in files, or in memory if the run has no record and little waits.
//!
//! # Locking
//!
//! `state` protects the standard streams and the waiting jobs. Everything that writes holds it.
//!
//! The atomics are read without the lock, by every worker thread, and all operations on them are
//! sequentially consistent:
//!
//! - `live_job` changes from 0 to a job, or from one job to the next, only under the lock. A job
//!   that is live stays live until its own worker thread submits or releases it. So if a worker
//!   thread reads the number of one of its jobs, that remains true until it acts itself. `release`
//!   runs without the lock: it can only change the caller's own job to 0. A thread that reads an
//!   old value waits once more, and `ShowResult::wake` wakes it.
//! - `last_started` only grows. It is read under the lock to decide whether the job that has become
//!   live was started, and its worker thread has to be woken. A job that starts later reads
//!   `live_job` in `start`, after the store, so one of the two sees the other.
//! - `backlogged` is written under the lock. An old value delays a start, until `ShowResult::wake`,
//!   or lets one more job start.
//! - `lines_waiting` is set under the lock by a job that could not write, and is taken under the
//!   lock by the thread that finds nothing live any more.
//! - `unsubmitted` is incremented without the lock, before the worker thread's job counts as
//!   finished, and is decremented under it when the batch is submitted. `forget_finished`
//!   decrements it without the lock, but only after the job was counted a second time. `try_claim`
//!   reads it under the lock: if it is 0 and nothing waits, no output of an earlier job is still to
//!   be written.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minder::{SpillFile, Stream};
use minder_os::files::read_at;

use crate::output::batch::OutputBatch;
use crate::output::decorate::LineDecorator;
use crate::output::decorate::LineStyle;
use crate::output::stdio::StdStreams;
use crate::output::stdio::StdioWriter;
use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::Segment;
use crate::resume::ResumeFilter;

/// The most finished jobs that wait. At this number, no further job starts until half are
/// written.
const WAITING_MAX: usize = 10_000;
/// From this length on, the kernel moves the bytes of a file without a copy.
const SENDFILE_MIN: u64 = 32 << 10;

/// The order in which the output of jobs is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShowOrder {
    /// As the jobs finish.
    Ended,
    /// As the jobs are in the input.
    Input,
}

/// Writes the output of all worker threads. See the module for its locking.
#[derive(Debug)]
pub(crate) struct OutputSequencer {
    pub(crate) stdio: StdioWriter,
    order: ShowOrder,
    state: Mutex<State>,
    /// The live job, or 0.
    live_job: AtomicU64,
    /// The largest number of a job that has started.
    last_started: AtomicU64,
    backlogged: AtomicBool,
    /// Whether no further job starts when many wait. In another order than that of the input, the
    /// job for which all others wait may be the last to start.
    bounded: bool,
    /// Which jobs get a line break before a decorated line if they left their last line open.
    line_breaks: LineBreaks,
    /// Whether a running job could not write lines since a job was last released.
    lines_waiting: AtomicBool,
    /// How many finished jobs are still in the batches of worker threads, or held back.
    unsubmitted: AtomicUsize,
}

#[derive(Debug)]
struct State {
    streams: StdStreams,
    /// By job number, or by order of arrival.
    waiting: BTreeMap<u64, FinishedJob>,
    /// Jobs whose output is written after the last job, by number.
    last: BTreeMap<u64, FinishedJob>,
    arrivals: u64,
    /// Jobs that are skipped in the order of the input, since they do not run in this attempt.
    resume: Arc<ResumeFilter>,
    /// Jobs with output from an earlier attempt that run again: that output is written first.
    repeated: Vec<FinishedJob>,
    /// How many jobs were written whose journal event for that is not appended yet.
    unrecorded: usize,
    decorated: Vec<u8>,
    /// Whether the last byte of a stream ended no line, as far as `line_breaks` needs it.
    open_lines: [bool; 2],
}

/// Which jobs get a line break before the decorated line of another job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineBreaks {
    /// None, as in GNU parallel.
    Never,
    /// Jobs with a decoration.
    Decorated,
    /// All jobs: some have no decoration, and others have one.
    All,
}

/// The decoration of a stream's lines, and the state of the stream in its current line.
pub(crate) type LineDecoration<'a> = (&'a LineStyle, &'a mut LineDecorator);

/// What was written, and what the caller has to do for it without the lock.
#[derive(Debug, Default)]
pub(crate) struct ShowResult {
    /// Jobs whose saved output was written.
    pub(crate) jobs: Vec<u64>,
    /// Their files, to be removed after the journal event.
    pub(crate) files: Vec<JobFile>,
    /// Jobs of earlier attempts whose output could not be read.
    pub(crate) lost: Vec<LostOutput>,
    /// Whether other worker threads have to be woken: another job is live, or the backlog is gone.
    pub(crate) wake: bool,
    /// Whether more can be written, after the journal event for these jobs.
    pub(crate) more: bool,
}

/// A job of an earlier attempt whose saved output could not be read.
#[derive(Debug)]
pub(crate) struct LostOutput {
    pub(crate) job: u64,
    pub(crate) error: io::Error,
    /// Whether the job runs in this attempt in any case.
    pub(crate) runs: bool,
}

impl OutputSequencer {
    /// Creates a sequencer. `unshown` are jobs that an earlier attempt recorded and did not write.
    /// They wait for their turn.
    pub(crate) fn new(
        (stdio, streams): (StdioWriter, StdStreams),
        order: ShowOrder,
        resume: Arc<ResumeFilter>,
        unshown: Vec<FinishedJob>,
    ) -> Self {
        let waiting = BTreeMap::new();
        let mut state = State {
            streams,
            waiting,
            last: BTreeMap::new(),
            arrivals: 0,
            resume,
            repeated: Vec::new(),
            unrecorded: 0,
            decorated: Vec::new(),
            open_lines: [false; 2],
        };
        for finished in unshown {
            if state.resume.skips(finished.job) {
                state.add_waiting(order, finished);
            } else {
                state.repeated.push(finished);
            }
        }
        let first = if order == ShowOrder::Input { state.next_from(1) } else { 0 };
        Self {
            stdio,
            order,
            state: Mutex::new(state),
            live_job: AtomicU64::new(first),
            last_started: AtomicU64::new(0),
            backlogged: AtomicBool::new(false),
            bounded: true,
            line_breaks: LineBreaks::Never,
            lines_waiting: AtomicBool::new(false),
            unsubmitted: AtomicUsize::new(0),
        }
    }

    /// Lets any number of finished jobs wait.
    pub(crate) fn without_backlog_limit(mut self) -> Self {
        self.bounded = false;
        self
    }

    /// Sets which jobs get a line break before a decorated line.
    pub(crate) fn with_line_breaks(mut self, line_breaks: LineBreaks) -> Self {
        self.line_breaks = line_breaks;
        self
    }

    /// Records that a job starts. Returns `true` if it is live.
    pub(crate) fn start(&self, job: u64) -> bool {
        self.last_started.fetch_max(job, Ordering::SeqCst);
        self.is_live(job)
    }

    /// Returns `true` if the job is live.
    pub(crate) fn is_live(&self, job: u64) -> bool {
        self.live_job.load(Ordering::SeqCst) == job
    }

    /// Returns the live job, or 0.
    pub(crate) fn live_job(&self) -> u64 {
        self.live_job.load(Ordering::SeqCst)
    }

    /// Counts a finished job that its worker thread has not submitted yet. Called before the pool
    /// counts the job as finished.
    pub(crate) fn note_finished(&self) {
        self.unsubmitted.fetch_add(1, Ordering::SeqCst);
    }

    /// Reverts one [`note_finished`](Self::note_finished), for a job that was counted twice.
    pub(crate) fn forget_finished(&self) {
        self.unsubmitted.fetch_sub(1, Ordering::SeqCst);
    }

    /// Makes a job live, if no other job is live and no output waits.
    pub(crate) fn try_claim(&self, job: u64) -> bool {
        let state = self.lock();
        self.order == ShowOrder::Ended
            && state.waiting.is_empty()
            && self.unsubmitted.load(Ordering::SeqCst) == 0
            && self.live_job.compare_exchange(0, job, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Returns `true` if jobs are written as they finish and no job is live.
    pub(crate) fn is_free(&self) -> bool {
        self.order == ShowOrder::Ended && self.is_live(0)
    }

    /// Returns `true` if jobs wait although none is live: they finished during a long line, whose
    /// job was released since.
    pub(crate) fn is_due(&self) -> bool {
        self.is_free() && !self.lock().waiting.is_empty()
    }

    /// Returns `true` if so much output waits that no further job should start.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged.load(Ordering::SeqCst)
    }

    /// Returns the file to which the kernel may forward the output of the live job.
    pub(crate) fn open_to_forward(&self) -> Option<Arc<File>> {
        let state = self.lock();
        self.stdio.may_forward(&state.streams).then(|| Arc::clone(state.streams.out()))
    }

    /// Writes bytes of a running job at once.
    pub(crate) fn show(&self, stream: Stream, bytes: &[u8], mut decoration: Option<LineDecoration<'_>>) {
        self.write(&mut self.lock(), stream, bytes, &mut decoration);
    }

    /// Writes bytes, decorated if there is a decoration.
    fn write(
        &self,
        state: &mut State,
        stream: Stream,
        bytes: &[u8],
        decoration: &mut Option<LineDecoration<'_>>,
    ) {
        let Some((style, decorator)) = decoration else {
            return self.stdio.write(&state.streams, stream, bytes);
        };
        let State { streams, decorated, open_lines, .. } = state;
        self.decorate(stream, bytes, (style, decorator), decorated, open_lines);
        self.stdio.write(streams, stream, decorated);
    }

    /// Puts the decorated bytes into `decorated`. If the line of another job is open, it is ended before.
    fn decorate(
        &self,
        stream: Stream,
        bytes: &[u8],
        (style, decorator): LineDecoration<'_>,
        decorated: &mut Vec<u8>,
        open_lines: &mut [bool; 2],
    ) {
        decorated.clear();
        let is_open = &mut open_lines[stream as usize];
        if *is_open && decorator.starts_line() && !bytes.is_empty() {
            decorated.push(b'\n');
        }
        decorator.push(style, bytes, decorated);
        self.note_open_line(decorated, is_open);
    }

    fn note_open_line(&self, written: &[u8], is_open: &mut bool) {
        if let Some(last) = written.last() {
            *is_open = self.line_breaks != LineBreaks::Never && *last != b'\n';
        }
    }

    /// Ends an open colored line of a finished job whose output was shown live.
    pub(crate) fn end_line(&self, stream: Stream, decoration: LineDecoration<'_>) {
        self.end_open_line(&mut self.lock(), stream, decoration);
    }

    fn end_open_line(&self, state: &mut State, stream: Stream, (style, decorator): LineDecoration<'_>) {
        if decorator.is_open() {
            state.decorated.clear();
            decorator.finish(style, &mut state.decorated);
            self.note_open_line(&state.decorated, &mut state.open_lines[stream as usize]);
            self.stdio.write(&state.streams, stream, &state.decorated);
        }
    }

    /// Writes lines of a running job. Returns `false` if another job is live. With
    /// `claim`, the job is live from here on.
    pub(crate) fn show_lines(
        &self,
        job: u64,
        stream: Stream,
        parts: [&[u8]; 2],
        mut decoration: Option<LineDecoration<'_>>,
        claim: bool,
    ) -> bool {
        let state = &mut *self.lock();
        if !self.may_show(job) {
            self.lines_waiting.store(true, Ordering::SeqCst);
            return false;
        }
        if claim {
            self.live_job.store(job, Ordering::SeqCst);
        }
        for bytes in parts {
            self.write(state, stream, bytes, &mut decoration);
        }
        true
    }

    /// Makes the job no longer live, if it is.
    pub(crate) fn release(&self, job: u64) {
        let _ = self.live_job.compare_exchange(job, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Writes a file with output of a running job at once.
    pub(crate) fn show_file(
        &self,
        stream: Stream,
        spilled: SpillFile,
        decoration: Option<LineDecoration<'_>>,
    ) {
        let state = &mut *self.lock();
        let SpillFile { file, start, len, .. } = &spilled;
        if let Err(error) = self.show_range(state, stream, (file, *start, start + len), decoration) {
            self.stdio.fail_reading(&error);
        }
        JobFile::from(spilled).remove();
    }

    /// Writes what may be written of a batch and of what waits. The rest of the batch waits from
    /// here on. At most `max_jobs` jobs that need a journal event are written at once: after a
    /// kill, no more than these are written twice.
    ///
    /// # Errors
    /// Output that has to wait could not be saved.
    pub(crate) fn submit(&self, batch: &mut OutputBatch, max_jobs: usize) -> io::Result<ShowResult> {
        let state = &mut *self.lock();
        let mut shown = ShowResult::default();
        let before = self.live_job.load(Ordering::SeqCst);
        let mut pending = PendingWrite::default();
        let jobs = batch.take_jobs();
        let submitted = jobs.len();
        for mut finished in jobs {
            let has_turn = self.may_show(finished.job);
            if !has_turn || finished.is_shown_last() {
                batch.keep(&mut finished)?;
            }
            if has_turn {
                self.take_turn(state, finished, batch.bytes(), &mut pending, &mut shown);
            } else {
                state.add_waiting(self.order, finished);
            }
        }
        self.write_pending(state, batch.bytes(), &mut pending);
        self.unsubmitted.fetch_sub(submitted, Ordering::SeqCst);
        self.show_waiting(state, &mut shown, max_jobs);
        self.update_after_show(state, &mut shown, before);
        batch.clear();
        Ok(shown)
    }

    /// Determines whether other threads have to be woken, and counts the jobs that need a journal
    /// event.
    fn update_after_show(&self, state: &mut State, shown: &mut ShowResult, before: u64) {
        self.update_backlog(state, shown);
        let now = self.live_job.load(Ordering::SeqCst);
        shown.wake |= now != before && now != 0 && now <= self.last_started.load(Ordering::SeqCst);
        // The live job ended a line: other jobs may write theirs.
        shown.wake |= now != before && now == 0 && self.lines_waiting.swap(false, Ordering::SeqCst);
        state.unrecorded += shown.jobs.len();
    }

    /// Records that the journal has the event for this many jobs. Returns `true` if no output waits
    /// in the file of any worker thread.
    pub(crate) fn mark_recorded(&self, jobs: usize) -> bool {
        let state = &mut *self.lock();
        state.unrecorded -= jobs;
        state.unrecorded == 0 && state.has_nothing_left()
    }

    /// Writes what waits, as far as its order allows, or all of it. `max_jobs` is as in
    /// [`submit`](Self::submit).
    pub(crate) fn show_more(&self, all: bool, max_jobs: usize) -> ShowResult {
        let state = &mut *self.lock();
        let mut shown = ShowResult::default();
        let before = self.live_job.load(Ordering::SeqCst);
        for mut finished in std::mem::take(&mut state.repeated) {
            self.show_finished(state, &mut finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        self.show_waiting(state, &mut shown, max_jobs);
        while all
            && shown.jobs.len() < max_jobs
            && let Some((_, finished)) = state.waiting.pop_first()
        {
            self.take_turn(state, finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        while all
            && shown.jobs.len() < max_jobs
            && let Some((_, mut finished)) = state.last.pop_first()
        {
            if let Some(end) = &finished.end {
                self.stdio.observer().final_output(end);
            }
            self.show_finished(state, &mut finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        shown.more |= all && !state.has_nothing_left();
        self.update_after_show(state, &mut shown, before);
        shown
    }

    /// Returns `true` if nothing waits and everything that was due could be written.
    pub(crate) fn is_done(&self) -> bool {
        self.lock().has_nothing_left() && !self.stdio.is_broken()
    }

    fn update_backlog(&self, state: &State, shown: &mut ShowResult) {
        if state.waiting.len() >= WAITING_MAX && self.bounded {
            self.backlogged.store(true, Ordering::SeqCst);
        } else if state.waiting.len() <= WAITING_MAX / 2 && self.backlogged.swap(false, Ordering::SeqCst) {
            shown.wake = true;
        }
    }

    fn may_show(&self, job: u64) -> bool {
        match (self.order, self.live_job.load(Ordering::SeqCst)) {
            (ShowOrder::Ended, 0) => true,
            (_, owner) => owner == job,
        }
    }

    /// Makes the next job live after this one was written.
    fn advance(&self, state: &State, job: u64) {
        let next = match self.order {
            ShowOrder::Ended if self.is_live(job) => 0,
            ShowOrder::Ended => return,
            ShowOrder::Input => state.next_from(job + 1),
        };
        self.live_job.store(next, Ordering::SeqCst);
    }

    fn show_waiting(&self, state: &mut State, shown: &mut ShowResult, max_jobs: usize) {
        while let Some(entry) = state.waiting.first_entry() {
            if !self.may_show(entry.get().job) {
                break;
            }
            if shown.jobs.len() >= max_jobs {
                shown.more = true;
                break;
            }
            let finished = entry.remove();
            self.take_turn(state, finished, &[], &mut PendingWrite::default(), shown);
        }
    }

    /// Writes the output of a job whose turn it is, now or after the last job, and gives the turn to the
    /// next job.
    fn take_turn(
        &self,
        state: &mut State,
        mut finished: FinishedJob,
        batch: &[u8],
        pending: &mut PendingWrite,
        shown: &mut ShowResult,
    ) {
        let job = finished.job;
        let is_shown_last = finished.is_shown_last();
        if !is_shown_last {
            self.show_finished(state, &mut finished, batch, pending, shown);
        } else if finished.time.is_immediate() {
            let written = self.write_job(state, &finished, batch, pending);
            self.note_written(state, &mut finished, written, shown);
            // The record does not distinguish the first time from the second.
            finished.needs_shown_event = false;
        }
        if let Some(end) = &finished.end {
            self.write_pending(state, batch, pending);
            self.stdio.observer().job_ended(end);
        }
        if is_shown_last {
            state.last.insert(job, finished);
        }
        self.advance(state, job);
    }

    /// Writes all output of a job, which then needs its files no more.
    fn show_finished(
        &self,
        state: &mut State,
        finished: &mut FinishedJob,
        batch: &[u8],
        pending: &mut PendingWrite,
        shown: &mut ShowResult,
    ) {
        let written = self.write_job(state, finished, batch, pending);
        self.note_written(state, finished, written, shown);
        shown.files.extend(finished.segments.drain(..).filter_map(|segment| match segment.location {
            Location::Own(own) => Some(own),
            _ => None,
        }));
    }

    /// Writes all output of a job. Adjacent ranges of the batch are collected in `pending` and written
    /// together later.
    fn write_job(
        &self,
        state: &mut State,
        finished: &FinishedJob,
        batch: &[u8],
        pending: &mut PendingWrite,
    ) -> io::Result<()> {
        let style = finished.style.as_ref();
        let mut decorators = [LineDecorator::new(style), LineDecorator::new(style)];
        let last = [Stream::Stdout, Stream::Stderr]
            .map(|stream| finished.segments.iter().rposition(|segment| segment.stream == stream));
        let mut read = Ok(());
        for (at, Segment { stream, location }) in finished.segments.iter().enumerate() {
            let stream = *stream;
            let mut decoration = style.map(|style| (style, &mut decorators[stream as usize]));
            match (location, &mut decoration) {
                (Location::Batch(range), None) => {
                    if !pending.extend(stream, range) {
                        self.write_pending(state, batch, pending);
                        *pending = PendingWrite { stream: Some(stream), range: range.clone() };
                    }
                }
                (Location::Batch(range), Some(_)) => {
                    self.write_pending(state, batch, pending);
                    self.write(state, stream, &batch[range.clone()], &mut decoration);
                }
                (Location::Held(held), _) => {
                    self.write_pending(state, batch, pending);
                    self.write(state, stream, held.as_slice(), &mut decoration);
                }
                (Location::Shared(file, range), _) => {
                    self.write_pending(state, batch, pending);
                    read =
                        read.and(self.show_range(state, stream, (file, range.start, range.end), decoration));
                }
                (Location::Own(own), _) => {
                    self.write_pending(state, batch, pending);
                    let shows = own.open().and_then(|file| {
                        self.show_range(state, stream, (&file, own.range.start, own.range.end), decoration)
                    });
                    read = read.and(shows);
                }
            }
            if last[stream as usize] == Some(at)
                && let Some(style) = style
            {
                self.end_open_line(state, stream, (style, &mut decorators[stream as usize]));
            }
            if last[stream as usize] == Some(at) && style.is_none() && self.line_breaks == LineBreaks::All {
                // What cannot be read was reported above.
                let byte = last_byte(location, batch).unwrap_or(b'\n');
                state.open_lines[stream as usize] = byte != b'\n';
            }
        }
        read
    }

    /// Notes that the output of a job was written, or why it could not be read.
    fn note_written(
        &self,
        state: &State,
        finished: &mut FinishedJob,
        written: io::Result<()>,
        shown: &mut ShowResult,
    ) {
        match written {
            Err(error) if finished.from_earlier_attempt => {
                let runs = !state.resume.skips(finished.job);
                shown.lost.push(LostOutput { job: finished.job, error, runs });
            }
            Err(error) => self.stdio.fail_reading(&error),
            Ok(()) if finished.needs_shown_event => shown.jobs.push(finished.job),
            Ok(()) => (),
        }
    }

    fn write_pending(&self, state: &State, batch: &[u8], pending: &mut PendingWrite) {
        let PendingWrite { stream, range } = std::mem::take(pending);
        if let Some(stream) = stream {
            self.stdio.write(&state.streams, stream, &batch[range]);
        }
    }

    fn show_range(
        &self,
        state: &mut State,
        stream: Stream,
        (file, at, end): (&File, u64, u64),
        decoration: Option<LineDecoration<'_>>,
    ) -> io::Result<()> {
        let State { streams, decorated, open_lines, .. } = state;
        match decoration {
            None if end - at >= SENDFILE_MIN => self.stdio.copy(streams, stream, file, at, end - at),
            None => self.stdio.for_each_chunk(streams, file, at, end, |writer, streams, bytes| {
                writer.write(streams, stream, bytes);
            }),
            Some((style, decorator)) => {
                self.stdio.for_each_chunk(streams, file, at, end, |writer, streams, bytes| {
                    self.decorate(stream, bytes, (style, decorator), decorated, open_lines);
                    writer.write(streams, stream, decorated);
                })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the last byte of a segment, if it has one that can be read.
fn last_byte(location: &Location, batch: &[u8]) -> Option<u8> {
    let last_of = |file: &File, end: u64| {
        let mut byte = [0];
        let read = read_at(file, &mut byte, end.checked_sub(1)?).ok()?;
        (read == 1).then_some(byte[0])
    };
    match location {
        Location::Batch(range) => batch[range.clone()].last().copied(),
        Location::Held(held) => held.as_slice().last().copied(),
        Location::Shared(file, range) => last_of(file, range.end),
        Location::Own(own) => last_of(&own.open().ok()?, own.range.end),
    }
}

/// Adjacent bytes of a batch, for one stream.
#[derive(Debug, Default)]
struct PendingWrite {
    stream: Option<Stream>,
    range: Range<usize>,
}

impl PendingWrite {
    /// Adds a range if it is adjacent. Returns `true` if it is.
    fn extend(&mut self, stream: Stream, range: &Range<usize>) -> bool {
        let follows = self.stream == Some(stream) && self.range.end == range.start;
        if follows {
            self.range.end = range.end;
        }
        follows
    }
}

impl State {
    fn add_waiting(&mut self, order: ShowOrder, finished: FinishedJob) {
        self.arrivals += 1;
        let key = if order == ShowOrder::Input { finished.job } else { self.arrivals };
        self.waiting.insert(key, finished);
    }

    /// Returns `true` if no output is left to be written.
    fn has_nothing_left(&self) -> bool {
        self.waiting.is_empty() && self.last.is_empty()
    }

    /// Returns the first job, from this number on, that is not skipped.
    fn next_from(&self, job: u64) -> u64 {
        let last = self.resume.last();
        let mut job = job;
        while job <= last && self.resume.skips(job) && !self.waiting.contains_key(&job) {
            job += 1;
        }
        job
    }
}
