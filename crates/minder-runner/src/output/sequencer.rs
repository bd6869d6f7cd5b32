//! Who is shown now: jobs that are over, in their order, and the one whose output is shown as it
//! comes.
//!
//! One job at a time has the stage: in the order of the input the first that is not shown yet; else
//! whichever claimed it, since it ran alone. What is over meanwhile waits, in files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use minder::{SpillFile, Stream};

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

/// How many finished jobs wait at most. When so many do, no further job starts.
const WAITING_MAX: usize = 10_000;
/// From this length on, bytes of a file are moved without a copy.
const SENT_FROM: u64 = 32 << 10;

/// In which order jobs are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShowOrder {
    /// As they end.
    Ended,
    /// As they stand in the input.
    Input,
}

/// The place where all loops show what they have.
#[derive(Debug)]
pub(crate) struct OutputSequencer {
    pub(crate) stdio: StdioWriter,
    order: ShowOrder,
    state: Mutex<State>,
    /// The job that has the stage. 0: nobody.
    live_job: AtomicU64,
    /// The last job that was started.
    last_started: AtomicU64,
    backlogged: AtomicBool,
    /// Whether no further job starts when many wait. Where jobs run in another order than that of
    /// the input the one that all wait for may be the last to start.
    bounded: bool,
    /// Whether lines of a running job had to wait since the stage was last given back.
    lines_waiting: AtomicBool,
    /// How many jobs are over that their loops still have.
    unsubmitted: AtomicUsize,
}

#[derive(Debug)]
struct State {
    streams: StdStreams,
    /// By number, or by order of arrival.
    waiting: BTreeMap<u64, FinishedJob>,
    arrivals: u64,
    /// Jobs that are passed over in the order of the input, since they do not run this time.
    resume: Arc<ResumeFilter>,
    /// Jobs that an earlier attempt did not show, and that run once more: what they wrote then
    /// comes first.
    repeated: Vec<FinishedJob>,
    /// How many jobs were shown of which the record does not say so yet.
    unrecorded: usize,
    decorated: Vec<u8>,
}

/// What stands around each line of a stream, and where in its line the stream is.
pub(crate) type LineDecoration<'a> = (&'a LineStyle, &'a mut LineDecorator);

/// What came of showing.
#[derive(Debug, Default)]
pub(crate) struct ShowResult {
    /// Jobs whose output had waited, and is on the screen now.
    pub(crate) jobs: Vec<u64>,
    /// Their files, which are to be removed once the record says so.
    pub(crate) files: Vec<JobFile>,
    /// Jobs of earlier attempts whose output could not be read.
    pub(crate) lost: Vec<LostOutput>,
    /// Whether other loops have something to do: the stage is another's, or no longer crowded.
    pub(crate) wake: bool,
    /// Whether more may be shown, once the record says that these were.
    pub(crate) more: bool,
}

/// A job of an earlier attempt whose output could not be read when it was to be shown.
#[derive(Debug)]
pub(crate) struct LostOutput {
    pub(crate) job: u64,
    pub(crate) error: io::Error,
    /// Whether the job runs in this attempt in any case.
    pub(crate) runs: bool,
}

impl OutputSequencer {
    /// `unshown` are jobs that an earlier attempt recorded and did not show. They wait for their
    /// turn.
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
            arrivals: 0,
            resume,
            repeated: Vec::new(),
            unrecorded: 0,
            decorated: Vec::new(),
        };
        for finished in unshown {
            match state.resume.skips(finished.job) {
                true => state.wait(order, finished),
                false => state.repeated.push(finished),
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
            lines_waiting: AtomicBool::new(false),
            unsubmitted: AtomicUsize::new(0),
        }
    }

    /// Lets any number of finished jobs wait.
    pub(crate) fn without_backlog_limit(mut self) -> Self {
        self.bounded = false;
        self
    }

    /// Notes that a job starts; says whether it has the stage.
    pub(crate) fn start(&self, job: u64) -> bool {
        self.last_started.fetch_max(job, Ordering::SeqCst);
        self.is_live(job)
    }

    /// Whether the job has the stage.
    pub(crate) fn is_live(&self, job: u64) -> bool {
        self.live_job.load(Ordering::SeqCst) == job
    }

    /// The job that has the stage; 0 where none has.
    pub(crate) fn live_job(&self) -> u64 {
        self.live_job.load(Ordering::SeqCst)
    }

    /// Notes that a loop has a job that is over, before it is counted.
    pub(crate) fn note_finished(&self) {
        self.unsubmitted.fetch_add(1, Ordering::SeqCst);
    }

    /// Notes that the job that was gathered last had been gathered before.
    pub(crate) fn forget_finished(&self) {
        self.unsubmitted.fetch_sub(1, Ordering::SeqCst);
    }

    /// Gives the stage to a job, if nobody has it and nobody waits.
    pub(crate) fn try_claim(&self, job: u64) -> bool {
        let state = self.lock();
        self.order == ShowOrder::Ended
            && state.waiting.is_empty()
            && self.unsubmitted.load(Ordering::SeqCst) == 0
            && self.live_job.compare_exchange(0, job, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether jobs are shown as they end, and nobody has the stage.
    pub(crate) fn is_free(&self) -> bool {
        self.order == ShowOrder::Ended && self.is_live(0)
    }

    /// Whether jobs wait that ended while another's long line had the stage, which was given back
    /// since.
    pub(crate) fn is_due(&self) -> bool {
        self.is_free() && !self.lock().waiting.is_empty()
    }

    /// Whether so many finished jobs wait that no more should start.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.backlogged.load(Ordering::SeqCst)
    }

    /// Where the bytes of the job that has the stage may go without us.
    pub(crate) fn open_to_forward(&self) -> Option<Arc<File>> {
        let state = self.lock();
        self.stdio.may_forward(&state.streams).then(|| Arc::clone(state.streams.out()))
    }

    /// Shows bytes of a running job at once.
    pub(crate) fn show(&self, stream: Stream, bytes: &[u8], mut decoration: Option<LineDecoration<'_>>) {
        self.write(&mut self.lock(), stream, bytes, &mut decoration);
    }

    /// Writes bytes, with the marks around their lines if there are any.
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
        state.decorated.clear();
        decorator.push(style, bytes, &mut state.decorated);
        self.stdio.write(&state.streams, stream, &state.decorated);
    }

    /// Ends a coloured line of a job that was shown as it came and is over.
    pub(crate) fn end_line(&self, stream: Stream, decoration: LineDecoration<'_>) {
        self.finish(&mut self.lock(), stream, decoration);
    }

    fn finish(&self, state: &mut State, stream: Stream, (style, decorator): LineDecoration<'_>) {
        if decorator.is_open() {
            state.decorated.clear();
            decorator.finish(style, &mut state.decorated);
            self.stdio.write(&state.streams, stream, &state.decorated);
        }
    }

    /// Shows lines of a running job; says whether it may: another may have the stage. With `keep`
    /// it has the stage from here on.
    pub(crate) fn show_lines(
        &self,
        job: u64,
        stream: Stream,
        parts: [&[u8]; 2],
        mut decoration: Option<LineDecoration<'_>>,
        keep: bool,
    ) -> bool {
        let state = &mut *self.lock();
        if !self.may_show(job) {
            self.lines_waiting.store(true, Ordering::SeqCst);
            return false;
        }
        if keep {
            self.live_job.store(job, Ordering::SeqCst);
        }
        for bytes in parts {
            self.write(state, stream, bytes, &mut decoration);
        }
        true
    }

    /// Gives the stage back.
    pub(crate) fn release(&self, job: u64) {
        let _ = self.live_job.compare_exchange(job, 0, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Shows a file of a running job at once.
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

    /// Shows what may be shown of a loop's batch and of what waits; the rest of the batch waits
    /// from here on. Of what the record has to note it shows `most` at once: after a kill no
    /// more than these are shown again.
    ///
    /// # Errors
    /// The batch had to be written to its file, which failed.
    pub(crate) fn submit(&self, batch: &mut OutputBatch, max_jobs: usize) -> io::Result<ShowResult> {
        let state = &mut *self.lock();
        let mut shown = ShowResult::default();
        let before = self.live_job.load(Ordering::SeqCst);
        let mut run = PendingWrite::default();
        let jobs = batch.take_jobs();
        let submitted = jobs.len();
        for mut finished in jobs {
            if self.may_show(finished.job) {
                self.show_finished(state, &mut finished, batch.bytes(), &mut run, &mut shown);
                self.advance(state, finished.job);
            } else {
                batch.keep(&mut finished)?;
                state.wait(self.order, finished);
            }
        }
        self.write_pending(state, batch.bytes(), &mut run);
        self.unsubmitted.fetch_sub(submitted, Ordering::SeqCst);
        self.show_waiting(state, &mut shown, max_jobs);
        self.update_after_show(state, &mut shown, before);
        batch.clear();
        Ok(shown)
    }

    /// Notes who has the stage now, and what the record does not say yet.
    fn update_after_show(&self, state: &mut State, shown: &mut ShowResult, before: u64) {
        self.update_backlog(state, shown);
        let now = self.live_job.load(Ordering::SeqCst);
        shown.wake |= now != before && now != 0 && now <= self.last_started.load(Ordering::SeqCst);
        // Its job ended within a line: others' lines may go on.
        shown.wake |= now != before && now == 0 && self.lines_waiting.swap(false, Ordering::SeqCst);
        state.unrecorded += shown.jobs.len();
    }

    /// The record says now that so many jobs were shown. Says whether no output waits in any loop's
    /// file.
    pub(crate) fn mark_recorded(&self, jobs: usize) -> bool {
        let state = &mut *self.lock();
        state.unrecorded -= jobs;
        state.unrecorded == 0 && state.waiting.is_empty()
    }

    /// Shows what waits, as far as it may be shown, or all of it; `most` as in
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
            && let Some((_, mut finished)) = state.waiting.pop_first()
        {
            self.show_finished(state, &mut finished, &[], &mut PendingWrite::default(), &mut shown);
        }
        shown.more |= all && !state.waiting.is_empty();
        self.update_after_show(state, &mut shown, before);
        shown
    }

    /// Whether nothing waits, and all that was shown could be.
    pub(crate) fn is_done(&self) -> bool {
        self.lock().waiting.is_empty() && !self.stdio.is_broken()
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

    /// The job was shown: the stage is the next one's.
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
            let mut finished = entry.remove();
            self.show_finished(state, &mut finished, &[], &mut PendingWrite::default(), shown);
            self.advance(state, finished.job);
        }
    }

    /// Shows all that a job wrote. What lies side by side in the batch is written at once, later.
    fn show_finished(
        &self,
        state: &mut State,
        finished: &mut FinishedJob,
        batch: &[u8],
        run: &mut PendingWrite,
        shown: &mut ShowResult,
    ) {
        let style = finished.style.as_ref();
        let mut decorators = [LineDecorator::new(style), LineDecorator::new(style)];
        let last = [Stream::Stdout, Stream::Stderr]
            .map(|of| finished.segments.iter().rposition(|it| it.stream == of));
        let mut read = Ok(());
        for (at, Segment { stream, location }) in finished.segments.drain(..).enumerate() {
            let mut decoration = style.map(|style| (style, &mut decorators[stream as usize]));
            match (location, &mut decoration) {
                (Location::Batch(range), None) => {
                    if !run.extend(stream, &range) {
                        self.write_pending(state, batch, run);
                        *run = PendingWrite { stream: Some(stream), range };
                    }
                }
                (Location::Batch(range), Some(_)) => {
                    self.write_pending(state, batch, run);
                    self.write(state, stream, &batch[range], &mut decoration);
                }
                (Location::Shared(file, range), _) => {
                    self.write_pending(state, batch, run);
                    read =
                        read.and(self.show_range(state, stream, (&file, range.start, range.end), decoration));
                }
                (Location::Own(own), _) => {
                    self.write_pending(state, batch, run);
                    let shows = own.open().and_then(|file| {
                        self.show_range(state, stream, (&file, own.range.start, own.range.end), decoration)
                    });
                    read = read.and(shows);
                    shown.files.push(own);
                }
            }
            if let Some(style) = style.filter(|_| last[stream as usize] == Some(at)) {
                self.finish(state, stream, (style, &mut decorators[stream as usize]));
            }
        }
        match read {
            Err(error) if finished.from_earlier_attempt => {
                let runs = !state.resume.skips(finished.job);
                shown.lost.push(LostOutput { job: finished.job, error, runs });
            }
            Err(error) => self.stdio.fail_reading(&error),
            Ok(()) if finished.needs_shown_event => shown.jobs.push(finished.job),
            Ok(()) => (),
        }
    }

    fn write_pending(&self, state: &State, batch: &[u8], run: &mut PendingWrite) {
        let PendingWrite { stream, range } = std::mem::take(run);
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
        let State { streams, decorated, .. } = state;
        match decoration {
            None if end - at >= SENT_FROM => self.stdio.copy(streams, stream, file, at, end - at),
            None => self.stdio.each_part(streams, file, at, end, |writer, streams, bytes| {
                writer.write(streams, stream, bytes);
            }),
            Some((style, decorator)) => {
                self.stdio.each_part(streams, file, at, end, |writer, streams, bytes| {
                    decorated.clear();
                    decorator.push(style, bytes, decorated);
                    writer.write(streams, stream, decorated);
                })
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a batch that lie side by side, for one stream.
#[derive(Debug, Default)]
struct PendingWrite {
    stream: Option<Stream>,
    range: Range<usize>,
}

impl PendingWrite {
    /// Takes what follows; says whether it does.
    fn extend(&mut self, stream: Stream, range: &Range<usize>) -> bool {
        let follows = self.stream == Some(stream) && self.range.end == range.start;
        if follows {
            self.range.end = range.end;
        }
        follows
    }
}

impl State {
    fn wait(&mut self, order: ShowOrder, finished: FinishedJob) {
        self.arrivals += 1;
        let key = if order == ShowOrder::Input { finished.job } else { self.arrivals };
        self.waiting.insert(key, finished);
    }

    /// The first job from this number on that is not passed over.
    fn next_from(&self, job: u64) -> u64 {
        let (last, mut job) = (self.resume.last(), job);
        while job <= last && self.resume.skips(job) && !self.waiting.contains_key(&job) {
            job += 1;
        }
        job
    }
}
