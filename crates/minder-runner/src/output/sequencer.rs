//! The order in which the output of jobs is written.
//!
//! At most one job is *live*: its output is written while it runs. In the order of the input, that
//! is the first job whose output is not complete yet. Otherwise it is a job that claimed it,
//! because it ran alone or because it is in the middle of a line. Jobs that finish meanwhile wait,
//! with their output in files, or in memory if the run has no record and little waits.
//!
//! # Locking
//!
//! `state` protects the waiting jobs and the order of what is written. Everything that writes holds it.
//! No write waits for a reader: what the reader does not take goes to the queue of a stream
//! ([`super::stream`]). As long as something is there, no further job is written, as if another job were
//! live; the live job itself adds to the queue, in the memory that it is granted. When the queue is
//! empty, the worker threads are woken, and [`OutputSequencer::is_due`] says that they have to continue.
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
//! - `was_stalled` is set under the lock when something is put off because a stream is stalled, and is
//!   cleared under it by the thread that continues. A stream wakes the worker threads after it has
//!   stopped being stalled, so one of them reads both.
//! - `unsubmitted` is incremented without the lock, before the worker thread's job counts as
//!   finished, and is decremented under it when the batch is submitted. `forget_finished`
//!   decrements it without the lock, but only after the job was counted a second time. `try_claim`
//!   reads it under the lock: if it is 0 and nothing waits, no output of an earlier job is still to
//!   be written.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::output::batch::OutputBatch;
use crate::output::decorate::LineDecorator;
use crate::output::decorate::LineStyle;
use crate::output::stdio::StdioWriter;
use crate::output::stdio::for_each_chunk;
use crate::output::store::FinishedJob;
use crate::output::store::JobFile;
use crate::output::store::Location;
use crate::output::store::NamedFiles;
use crate::output::store::Segment;
use crate::output::stream::Done;
use crate::output::waiting::{PendingWrite, ShowOrder, State, Unwritten, last_byte};
use crate::resume::ResumeFilter;
use minder::{Chunk, SpillFile, Stream};
use minder_os::sync::Mutex;

/// The most finished jobs that wait. At this number, no further job starts until half are
/// written.
const WAITING_MAX: usize = 10_000;
/// The most bytes of finished jobs that wait for a slow reader. At this number, no further job starts
/// until half are written. In the order of the input, jobs also wait for other jobs, and while the readers
/// take what there is, only the number of jobs counts.
const WAITING_BYTES_MAX: u64 = 256 << 20;

/// Writes the output of all worker threads. See the module for its locking.
#[derive(Debug)]
pub(crate) struct OutputSequencer {
    pub(crate) stdio: StdioWriter,
    order: ShowOrder,
    state: Mutex<State>,
    /// `true` if something was put off because a reader takes nothing.
    was_stalled: AtomicBool,
    /// The live job, or 0.
    live_job: AtomicU64,
    /// The largest number of a job that has started.
    last_started: AtomicU64,
    backlogged: AtomicBool,
    /// `true` if no further job starts when many wait. In another order than that of the input, the
    /// job for which all others wait may be the last to start.
    bounded: bool,
    /// `false` if the output is only saved, and another process shows it.
    shows: bool,
    /// The jobs that get a line break before a decorated line if they left their last line open.
    line_breaks: LineBreaks,
    /// `true` if a running job could not write lines since a job was last released.
    lines_waiting: AtomicBool,
    /// The number of finished jobs that are still in the batches of worker threads, or held back.
    unsubmitted: AtomicUsize,
}

/// The jobs that get a line break before the decorated line of another job.
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

/// The result of writing output, and what the caller has to do for it without the lock.
#[derive(Debug, Default)]
pub(crate) struct ShowResult {
    /// Jobs whose saved output was written.
    pub(crate) jobs: Vec<u64>,
    /// Their files, to be removed after the journal event.
    pub(crate) files: Vec<JobFile>,
    /// Jobs of earlier attempts whose output could not be read.
    pub(crate) lost: Vec<LostOutput>,
    /// `true` if other worker threads have to be woken: another job is live, or the backlog is gone.
    pub(crate) wake: bool,
    /// `true` if more can be written, after the journal event for these jobs.
    pub(crate) more: bool,
}

/// A job of an earlier attempt whose saved output could not be read.
#[derive(Debug)]
pub(crate) struct LostOutput {
    pub(crate) job: u64,
    pub(crate) error: io::Error,
    /// `true` if the job runs in this attempt in any case.
    pub(crate) runs: bool,
}

impl OutputSequencer {
    /// Creates a sequencer. `unshown` are jobs that an earlier attempt recorded and did not write.
    /// They wait for their turn.
    pub(crate) fn new(
        stdio: StdioWriter,
        order: ShowOrder,
        resume: Arc<ResumeFilter>,
        unshown: Vec<FinishedJob>,
    ) -> Self {
        let waiting = BTreeMap::new();
        let mut state = State {
            waiting,
            last: BTreeMap::new(),
            arrivals: 0,
            waiting_bytes: 0,
            unwritten: VecDeque::new(),
            queued_of: BTreeMap::new(),
            buffer: Vec::new(),
            resume,
            repeated: VecDeque::new(),
            unrecorded: 0,
            decorated: Vec::new(),
            named_files: NamedFiles::default(),
            open_lines: [false; 2],
        };
        for finished in unshown {
            if state.resume.skips(finished.job) {
                state.add_waiting(order, finished);
            } else {
                state.repeated.push_back(finished);
            }
        }
        let first = if order == ShowOrder::Input { state.next_from(1) } else { 0 };
        Self {
            stdio,
            order,
            state: Mutex::new(state),
            was_stalled: AtomicBool::new(false),
            live_job: AtomicU64::new(first),
            last_started: AtomicU64::new(0),
            backlogged: AtomicBool::new(false),
            bounded: true,
            shows: true,
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

    /// Makes no job live: the output is only saved.
    pub(crate) fn without_output(mut self) -> Self {
        self.shows = false;
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
        let state = self.state.lock();
        self.order == ShowOrder::Ended
            && self.shows
            && !self.stdio.is_stalled()
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
        self.is_free() && !self.state.lock().waiting.is_empty()
    }

    /// Returns `true` if the readers take something again, and what was put off has to be written or
    /// recorded.
    pub(crate) fn can_continue(&self) -> bool {
        self.was_stalled.load(Ordering::SeqCst) && !self.stdio.is_stalled()
    }

    /// Returns `true` if bytes wait for a reader.
    pub(crate) fn is_stalled(&self) -> bool {
        self.stdio.is_stalled()
    }

    /// Returns what has to be written before the output of a job that was shown while it ran is complete,
    /// if that waits for a reader.
    pub(crate) fn take_queued(&self, job: u64) -> Option<[u64; 2]> {
        if !self.stdio.is_stalled() {
            return None;
        }
        self.state.lock().queued_of.remove(&job).filter(|queued| !self.stdio.has_written(*queued))
    }

    /// Notes that a running job has output in the queues, if it has.
    fn note_queued(&self, state: &mut State, job: u64) {
        if self.stdio.is_stalled() {
            state.queued_of.insert(job, self.stdio.queued());
        }
    }

    /// Returns `true` if the readers have taken everything up to there, or never will.
    pub(crate) fn has_written(&self, queued: [u64; 2]) -> bool {
        self.stdio.has_written(queued) || self.stdio.is_broken()
    }

    /// Returns `true` if so much output waits that no further job should start.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged.load(Ordering::SeqCst)
    }

    /// Returns the file to which the kernel may forward the output of the live job.
    pub(crate) fn open_to_forward(&self) -> Option<Arc<File>> {
        self.stdio.open_to_forward()
    }

    /// Writes bytes before the output of a running job.
    pub(crate) fn show(&self, stream: Stream, bytes: &[u8], mut decoration: Option<LineDecoration<'_>>) {
        self.write(&mut self.state.lock(), stream, bytes, &mut decoration, None);
    }

    /// Writes bytes of a running job. Those that wait for a reader count in the memory of the job.
    pub(crate) fn show_chunk(
        &self,
        job: u64,
        stream: Stream,
        chunk: Chunk,
        mut decoration: Option<LineDecoration<'_>>,
    ) {
        let state = &mut *self.state.lock();
        let chunk = Arc::new(chunk);
        self.write(state, stream, &chunk, &mut decoration, Some(Arc::clone(&chunk)));
        self.note_queued(state, job);
    }

    /// Writes bytes, decorated if there is a decoration.
    fn write(
        &self,
        state: &mut State,
        stream: Stream,
        bytes: &[u8],
        decoration: &mut Option<LineDecoration<'_>>,
        charge: Option<Arc<Chunk>>,
    ) {
        let Some((style, decorator)) = decoration else {
            return self.stdio.write(stream, bytes, charge);
        };
        let State { decorated, open_lines, .. } = state;
        self.decorate(stream, bytes, (style, decorator), decorated, open_lines);
        self.stdio.write(stream, decorated, charge);
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
        self.end_open_line(&mut self.state.lock(), stream, decoration);
    }

    fn end_open_line(&self, state: &mut State, stream: Stream, (style, decorator): LineDecoration<'_>) {
        if decorator.is_open() {
            state.decorated.clear();
            decorator.finish(style, &mut state.decorated);
            self.note_open_line(&state.decorated, &mut state.open_lines[stream as usize]);
            self.stdio.write(stream, &state.decorated, None);
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
        let state = &mut *self.state.lock();
        if !self.may_show(job) {
            self.lines_waiting.store(true, Ordering::SeqCst);
            return false;
        }
        if claim {
            self.live_job.store(job, Ordering::SeqCst);
        }
        for bytes in parts {
            self.write(state, stream, bytes, &mut decoration, None);
        }
        self.note_queued(state, job);
        true
    }

    /// Ends a line of which a running job has written a part. Returns `false` if another job is live.
    pub(crate) fn close_line(
        &self,
        job: u64,
        stream: Stream,
        mut decoration: Option<LineDecoration<'_>>,
    ) -> bool {
        let state = &mut *self.state.lock();
        let has_turn = self.has_turn(job);
        if has_turn {
            self.write(state, stream, b"\n", &mut decoration, None);
        }
        has_turn
    }

    /// Makes the job no longer live, if it is.
    pub(crate) fn release(&self, job: u64) {
        let _ = self.live_job.compare_exchange(job, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Writes a file with output of a running job at once.
    pub(crate) fn show_file(
        &self,
        job: u64,
        stream: Stream,
        spilled: SpillFile,
        decoration: Option<LineDecoration<'_>>,
    ) {
        let state = &mut *self.state.lock();
        let JobFile { file, path, range, charge } = JobFile::from(spilled);
        let Some(file) = file.map(Arc::new) else { return };
        let place = (&file, range.start, range.end);
        let kept = JobFile { file: None, path, range, charge };
        let done = Done(Box::new(|| kept.remove()));
        if let Err(error) = self.show_range(state, stream, place, decoration, Some(done)) {
            self.stdio.fail_reading(&error);
        }
        self.note_queued(state, job);
    }

    /// Writes what may be written of a batch and of what waits. The rest of the batch waits from
    /// here on. At most `max_jobs` jobs that need a journal event are written at once: after a
    /// kill, no more than these are written twice.
    ///
    /// # Errors
    /// Output that has to wait could not be saved.
    pub(crate) fn submit(&self, batch: &mut OutputBatch, max_jobs: usize) -> io::Result<ShowResult> {
        let state = &mut *self.state.lock();
        let mut shown = ShowResult::default();
        let before = self.live_job.load(Ordering::SeqCst);
        self.take_written(state, &mut shown);
        // What waited for a reader comes before what finished later.
        self.show_waiting(state, &mut shown, max_jobs);
        let mut pending = PendingWrite::default();
        let jobs = batch.take_jobs();
        let submitted = jobs.len();
        for mut finished in jobs {
            // Without a live job, what waited for a reader comes first.
            let is_next = !self.is_free() || state.waiting.is_empty();
            let has_turn = is_next && self.may_show(finished.job);
            if !has_turn || finished.is_shown_last() {
                batch.keep(&mut finished)?;
            }
            if has_turn {
                self.take_turn(state, finished, batch.bytes(), &mut pending, &mut shown);
            } else {
                state.add_waiting(self.order, finished);
            }
        }
        self.write_pending(batch.bytes(), &mut pending);
        self.unsubmitted.fetch_sub(submitted, Ordering::SeqCst);
        self.show_waiting(state, &mut shown, max_jobs);
        self.update_after_show(state, &mut shown, before);
        batch.clear();
        Ok(shown)
    }

    /// Drops the jobs of a batch, whose output is saved and shown by another process. Returns their number.
    pub(crate) fn drop_saved(&self, batch: &mut OutputBatch) -> u64 {
        let jobs = batch.take_jobs().len();
        self.unsubmitted.fetch_sub(jobs, Ordering::SeqCst);
        batch.clear();
        jobs as u64
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
        if self.stdio.is_stalled() && !(shown.jobs.is_empty() && shown.files.is_empty()) {
            // They are recorded once the readers have taken them.
            self.was_stalled.store(true, Ordering::SeqCst);
            state.unwritten.push_back(Unwritten {
                queued: self.stdio.queued(),
                jobs: std::mem::take(&mut shown.jobs),
                files: std::mem::take(&mut shown.files),
            });
        }
    }

    /// Takes the jobs that the readers have taken meanwhile, and whose journal event is due.
    fn take_written(&self, state: &mut State, shown: &mut ShowResult) {
        if self.was_stalled.load(Ordering::SeqCst) && !self.stdio.is_stalled() {
            self.was_stalled.store(false, Ordering::SeqCst);
            state.queued_of.clear();
        }
        while state.unwritten.front().is_some_and(|first| self.stdio.has_written(first.queued))
            && let Some(first) = state.unwritten.pop_front()
        {
            // `update_after_show` counts them once more.
            state.unrecorded -= first.jobs.len();
            shown.jobs.extend(first.jobs);
            shown.files.extend(first.files);
        }
    }

    /// Records that the journal has the event for this many jobs. Returns `true` if no output waits
    /// in the file of any worker thread.
    pub(crate) fn mark_recorded(&self, jobs: usize) -> bool {
        let state = &mut *self.state.lock();
        state.unrecorded -= jobs;
        state.unrecorded == 0 && state.has_nothing_left() && !self.stdio.is_stalled()
    }

    /// Writes what waits, as far as its order allows, or all of it. `max_jobs` is as in
    /// [`submit`](Self::submit).
    pub(crate) fn show_more(&self, all: bool, max_jobs: usize) -> ShowResult {
        let state = &mut *self.state.lock();
        let mut shown = ShowResult::default();
        let before = self.live_job.load(Ordering::SeqCst);
        self.take_written(state, &mut shown);
        while !self.is_held_up()
            && let Some(mut finished) = state.repeated.pop_front()
        {
            self.show_finished(state, &mut finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        self.show_waiting(state, &mut shown, max_jobs);
        while all
            && shown.jobs.len() < max_jobs
            && !self.is_held_up()
            && let Some((_, finished)) = state.waiting.pop_first()
        {
            state.waiting_bytes -= finished.bytes();
            self.take_turn(state, finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        while all
            && shown.jobs.len() < max_jobs
            && !self.is_held_up()
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
        self.state.lock().has_nothing_left() && !self.stdio.is_stalled() && !self.stdio.is_broken()
    }

    fn update_backlog(&self, state: &State, shown: &mut ShowResult) {
        // Without a bound, the job for which all others wait has to start.
        let bounded = self.bounded || self.order == ShowOrder::Ended;
        let waits_for_reader = self.order == ShowOrder::Ended || self.stdio.is_stalled();
        let bytes = if waits_for_reader { state.waiting_bytes } else { 0 };
        if bounded && (state.waiting.len() >= WAITING_MAX || bytes >= WAITING_BYTES_MAX) {
            self.backlogged.store(true, Ordering::SeqCst);
        } else if state.waiting.len() <= WAITING_MAX / 2
            && bytes <= WAITING_BYTES_MAX / 2
            && self.backlogged.swap(false, Ordering::SeqCst)
        {
            shown.wake = true;
        }
    }

    /// Returns `true` if it is the job's turn, and the readers take something.
    fn may_show(&self, job: u64) -> bool {
        self.has_turn(job) && !self.is_held_up()
    }

    /// Returns `true` if the readers take nothing, and notes that something is put off for that.
    fn is_held_up(&self) -> bool {
        let is_stalled = self.stdio.is_stalled();
        if is_stalled {
            self.was_stalled.store(true, Ordering::SeqCst);
        }
        is_stalled
    }

    fn has_turn(&self, job: u64) -> bool {
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
            state.waiting_bytes -= finished.bytes();
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
            self.write_pending(batch, pending);
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
                        self.write_pending(batch, pending);
                        *pending = PendingWrite { stream: Some(stream), range: range.clone() };
                    }
                }
                (Location::Batch(range), Some(_)) => {
                    self.write_pending(batch, pending);
                    self.write(state, stream, &batch[range.clone()], &mut decoration, None);
                }
                (Location::Held(held), _) => {
                    self.write_pending(batch, pending);
                    self.write(state, stream, held.as_slice(), &mut decoration, None);
                }
                (Location::Shared(file, range), _) => {
                    self.write_pending(batch, pending);
                    let range = (file, range.start, range.end);
                    read = read.and(self.show_range(state, stream, range, decoration, None));
                }
                (Location::Named(path, range), _) => {
                    self.write_pending(batch, pending);
                    let shows = state.named_files.open(path).and_then(|file| {
                        let range = (&file, range.start, range.end);
                        self.show_range(state, stream, range, decoration, None)
                    });
                    read = read.and(shows);
                }
                (Location::Own(own), _) => {
                    self.write_pending(batch, pending);
                    let shows = own.open().map(Arc::new).and_then(|file| {
                        let range = (&file, own.range.start, own.range.end);
                        self.show_range(state, stream, range, decoration, None)
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

    fn write_pending(&self, batch: &[u8], pending: &mut PendingWrite) {
        let PendingWrite { stream, range } = std::mem::take(pending);
        if let Some(stream) = stream {
            self.stdio.write(stream, &batch[range], None);
        }
    }

    fn show_range(
        &self,
        state: &mut State,
        stream: Stream,
        (file, at, end): (&Arc<File>, u64, u64),
        decoration: Option<LineDecoration<'_>>,
        done: Option<Done>,
    ) -> io::Result<()> {
        let State { buffer, decorated, open_lines, .. } = state;
        let Some((style, decorator)) = decoration else {
            return self.stdio.copy(buffer, stream, (file, at, end), done);
        };
        let shown = for_each_chunk(buffer, file, at, end, |_, bytes| {
            self.decorate(stream, bytes, (style, decorator), decorated, open_lines);
            self.stdio.write(stream, decorated, None);
            !self.stdio.is_broken()
        });
        if let Some(done) = done {
            (done.0)();
        }
        shown
    }
}
