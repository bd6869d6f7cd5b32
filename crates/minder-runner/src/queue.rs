//! The jobs of a run, in the order of the input. Jobs are numbered here. Those that do not run in
//! this attempt are counted and skipped.
//!
//! Where a read may block, a separate thread reads, so that no worker thread waits for it. It stops
//! when `AHEAD_MAX` bytes wait, and continues when half of them are taken.
//!
//! # Locking
//!
//! `state` protects everything that changes while jobs are taken. `room` belongs to it: the reader
//! waits there. A worker thread that finds no job sets `is_starved` under the lock. The reader clears it
//! under the same lock when it adds a job, and then wakes the pool, so no wake-up is lost. The pool
//! is woken after the lock is released, since its worker threads take the lock at once.
//!
//! `total` is read without the lock. It changes once, from [`UNKNOWN`] to a number, by the
//! thread that counts the jobs first. No other memory is published with it, so relaxed ordering is
//! enough.
//!
//! The other mutexes are only locked to take their content, before any job runs, and never
//! together.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};
use minder::jobs::{JobPool, NextJob};
use minder_os::files::read_at;
use minder_os::sync::{Condvar, Mutex, MutexGuard};

use crate::block_source::BlockSource;
use crate::claimed_jobs::ClaimedJobs;
use crate::confirm::ConfirmPrompt;
use crate::input::ArgumentReader;
use crate::input::JobArgs;
use crate::input::Order;
use crate::input::Ordered;
use crate::remote_results::{OnAgents, RemoteResult, RemoteResults};
use crate::resume::ResumeFilter;
use crate::served::Served;
use crate::splitter::InputBlock;
use crate::splitter::InputQueue;
use crate::splitter::InputReader;
use crate::splitter::JobInput;
use crate::text::format_error;

/// The most bytes of jobs that are read ahead.
const AHEAD_MAX: usize = 64 << 10;
/// The value of `total` while it is not known.
const UNKNOWN: u64 = u64::MAX;

/// A job: its number, from 1, in the order of the input, and its arguments.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) number: u64,
    pub(crate) item: JobArgs,
    /// The block of the input that it reads, if it reads one.
    pub(crate) input_block: Option<InputBlock>,
    /// Its block of input, until it is started. A mutex, because a job is shared with the pool;
    /// only the worker thread that runs the job locks it.
    pub(crate) block: Mutex<Option<Box<JobInput>>>,
    /// Its result, if an agent has run it.
    pub(crate) remote: Option<Box<RemoteResult>>,
    /// Why it cannot run, if that is known before its command is made.
    pub(crate) refusal: Option<Box<str>>,
}

impl Task {
    pub(crate) fn new(number: u64, item: JobArgs) -> Self {
        Self { number, item, input_block: None, block: Mutex::new(None), remote: None, refusal: None }
    }

    /// Creates a job that reads a part of the input.
    fn with_block(number: u64, item: JobArgs, block: JobInput) -> Self {
        let input_block = block.block.clone();
        Self { input_block, block: Mutex::new(Some(Box::new(block))), ..Self::new(number, item) }
    }

    /// Locks the block, to take it or to put it back.
    pub(crate) fn block(&self) -> MutexGuard<'_, Option<Box<JobInput>>> {
        self.block.lock()
    }

    /// Returns its arguments, or none if it cannot be run.
    pub(crate) fn columns(&self) -> &[OsString] {
        match &self.item {
            JobArgs::Columns(columns) => columns,
            JobArgs::Unfit(_) => &[],
        }
    }
}

/// The source of jobs.
#[derive(Debug)]
pub(crate) enum JobSource {
    /// Arguments, read when they are needed.
    Lazy(Box<ArgumentReader>),
    /// Arguments that have to be read completely first, to run in this order.
    Unread(Box<ArgumentReader>, Order),
    /// Arguments that were read completely.
    Ordered(Box<Ordered>),
    /// Blocks of the input.
    Blocks(Box<BlockSource>),
    /// Ranges of a run that several agents work on.
    Claimed(Box<ClaimedJobs>),
    /// Jobs that a link sends.
    Served(Arc<Served>),
    /// Results of agents.
    Remote(Box<RemoteResults>),
}

impl JobSource {
    /// Reads what has to be read first. Returns the number of jobs, if that reveals it.
    fn prepare(&mut self) -> Result<Option<u64>> {
        if let Self::Unread(reader, order) = self {
            let ordered = Ordered::read(reader, order)?;
            let total = ordered.total();
            *self = Self::Ordered(Box::new(ordered));
            return Ok(Some(total));
        }
        if let Self::Remote(remote) = self
            && remote.needs_total
        {
            return Ok(Some(remote.wait_for_total()?));
        }
        Ok(None)
    }

    fn next(&mut self, created: &mut u64) -> Result<Option<Task>> {
        match self {
            Self::Lazy(reader) => Ok(reader.next_arguments()?.map(|item| {
                *created += 1;
                Task::new(*created, item)
            })),
            Self::Blocks(..) | Self::Unread(..) => Ok(None),
            Self::Ordered(ordered) => Ok(ordered.next()?.map(|(number, item)| Task::new(number, item))),
            Self::Claimed(claimed) => Ok(claimed.next()?.map(|(number, item)| {
                *created += 1;
                Task::new(number, item)
            })),
            Self::Served(served) => Ok(served.next().map(|(number, item, refusal)| {
                *created += 1;
                Task { refusal, ..Task::new(number, item) }
            })),
            Self::Remote(remote) => Ok(remote.next()?.map(|(number, item, result)| {
                *created += 1;
                Task { remote: Some(result), ..Task::new(number, item) }
            })),
        }
    }

    /// Returns whether the next job is to be taken only when a worker thread has nothing else to do.
    fn is_taken_late(&self) -> bool {
        matches!(self, Self::Claimed(claimed) if claimed.must_claim())
    }
}

/// The queue of a run's jobs. See the module for its locking.
#[derive(Debug)]
pub(crate) struct JobQueue {
    state: Mutex<State>,
    /// Notified when there is room for the reader.
    room: Condvar,
    total: AtomicU64,
    /// The number of jobs, if it was known before anything was read.
    early_total: Option<u64>,
    /// How many jobs run on agents, or wait there. Then the source has only the jobs of this attempt.
    pub(crate) on_agents: Option<Arc<OnAgents>>,
    /// Set once agents have all of the input.
    is_spooled: Option<Arc<AtomicBool>>,
    /// Decides which jobs are skipped.
    resume: Arc<ResumeFilter>,
    /// The source for the reader thread, and a file whose records are to be counted. Each is taken
    /// once.
    source: Mutex<Option<JobSource>>,
    countable: Mutex<Option<(File, u8)>>,
    /// The blocks of the input, if jobs read blocks, and what reads them: it is taken once.
    input_queue: Option<Arc<InputQueue>>,
    input_reader: Mutex<Option<InputReader>>,
    /// Confirms each job; the reader thread takes it.
    confirm: Mutex<Option<ConfirmPrompt>>,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Task>,
    /// The source, if jobs are created when they are taken.
    inline_source: Option<JobSource>,
    created: u64,
    /// The number of jobs that were taken.
    taken: u64,
    /// The size of the jobs in `ready`.
    bytes: usize,
    ended: bool,
    /// `true` if a worker thread found no job since the last one was added.
    is_starved: bool,
    /// Why the input could not be read to its end.
    error: Option<String>,
    /// `true` if no more jobs are given out, whatever is read.
    stopped: bool,
}

impl JobQueue {
    /// Creates the queue. `known_total` is the number of jobs, if the user states it.
    pub(crate) fn open(
        mut source: JobSource,
        resume: Arc<ResumeFilter>,
        known_total: Option<u64>,
        confirm: Option<ConfirmPrompt>,
    ) -> Arc<Self> {
        let (total, may_block, countable) = match &mut source {
            JobSource::Lazy(reader) => (reader.total(), reader.may_block, reader.take_countable()),
            // A separate thread reads, so that signals are handled meanwhile.
            JobSource::Unread(reader, _) => (reader.total(), true, None),
            JobSource::Ordered(ordered) => (Some(ordered.total()), false, None),
            // It waits for other machines.
            JobSource::Claimed(_) | JobSource::Served(_) => (None, true, None),
            JobSource::Remote(remote) => (remote.total, true, None),
            // With `--tee`, each set of values is a job. Otherwise each block is one.
            JobSource::Blocks(blocks) => {
                let total = if blocks.queue.is_tee() { blocks.values.total() } else { None };
                (total, false, None)
            }
        };
        let (input_queue, input_reader) = match &mut source {
            JobSource::Blocks(blocks) => (Some(Arc::clone(&blocks.queue)), blocks.reader.take()),
            _ => (None, None),
        };
        let (on_agents, is_spooled) = match &source {
            JobSource::Remote(remote) => {
                (Some(Arc::clone(&remote.on_agents)), Some(Arc::clone(&remote.is_spooled)))
            }
            _ => (None, None),
        };
        let skipped = |total| if on_agents.is_none() { resume.skipped(total) } else { 0 };
        let total = known_total.or(total.map(|total| total - skipped(total)));
        let (inline_source, thread_source) =
            if may_block || confirm.is_some() { (None, Some(source)) } else { (Some(source), None) };
        let state = State {
            ready: VecDeque::new(),
            inline_source,
            created: 0,
            taken: 0,
            bytes: 0,
            ended: false,
            is_starved: false,
            error: None,
            stopped: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            room: Condvar::new(),
            total: AtomicU64::new(total.unwrap_or(UNKNOWN)),
            early_total: total,
            on_agents,
            is_spooled,
            resume,
            source: Mutex::new(thread_source),
            countable: Mutex::new(countable),
            input_queue,
            input_reader: Mutex::new(input_reader),
            confirm: Mutex::new(confirm),
        })
    }

    /// Returns how many jobs there are to run, if that is known.
    pub(crate) fn total(&self) -> Option<u64> {
        Some(self.total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN)
    }

    /// Returns how many of the first `total` jobs of the source do not run in this attempt.
    fn skipped(&self, total: u64) -> u64 {
        if self.on_agents.is_none() { self.resume.skipped(total) } else { 0 }
    }

    /// Returns how many jobs run on agents, or wait there.
    pub(crate) fn on_agents(&self) -> u64 {
        self.on_agents.as_ref().map_or(0, |jobs| jobs.open.load(Ordering::Relaxed))
    }

    /// Returns whether agents run the jobs, and have all of the input.
    pub(crate) fn is_spooled(&self) -> bool {
        self.is_spooled.as_ref().is_some_and(|is_spooled| is_spooled.load(Ordering::Relaxed))
    }

    /// Returns how many jobs there were to run, if the input was read to its end.
    pub(crate) fn final_total(&self) -> Option<u64> {
        let state = self.state.lock();
        let is_read = state.inline_source.is_some() && state.ended && state.error.is_none();
        self.total().or(is_read.then_some(state.created))
    }

    /// Sets the number of jobs from the number in the input, which includes skipped jobs.
    fn set_total(&self, total: Option<u64>) {
        if let Some(total) = total {
            let total = total - self.skipped(total);
            let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Returns how many jobs there are to run, if that was known before anything was read.
    pub(crate) fn early_total(&self) -> Option<u64> {
        self.early_total
    }

    /// Starts the reader threads that the input needs. They are never joined: a read may block for
    /// ever, and the threads end with the process.
    pub(crate) fn start_reading(self: &Arc<Self>, pool: &Arc<JobPool<Task>>) -> Result<()> {
        let input_reader = self.input_reader.lock().take();
        if let Some(reader) = input_reader {
            let pool = Arc::clone(pool);
            detach("minder-input", move || reader.read(move || pool.wake()))?;
        }
        self.start_reading_values(pool)?;
        let Some(mut source) = self.source.lock().take() else {
            return Ok(());
        };
        let queue = Arc::clone(self);
        let pool = Arc::clone(pool);
        detach("minder-input", move || queue.read(&mut source, &pool))
    }

    /// Starts a reader thread for the values that jobs have in addition to their blocks.
    fn start_reading_values(self: &Arc<Self>, pool: &Arc<JobPool<Task>>) -> Result<()> {
        let read_ahead = match &mut self.state.lock().inline_source {
            Some(JobSource::Blocks(blocks)) => blocks.values.read_ahead(),
            _ => None,
        };
        let Some((mut reader, sender)) = read_ahead else { return Ok(()) };
        let queue = Arc::clone(self);
        let pool = Arc::clone(pool);
        let wake = move || {
            if std::mem::take(&mut queue.state.lock().is_starved) {
                pool.wake();
            }
        };
        detach("minder-values", move || {
            while let Some(next) = reader.next_arguments().transpose() {
                let failed = next.is_err();
                if sender.send(next).is_err() || failed {
                    break;
                }
                wake();
            }
            drop(sender);
            wake();
        })
    }

    /// Starts a thread that counts the jobs of a regular file, for the progress display.
    pub(crate) fn start_counting(self: &Arc<Self>) {
        let countable = self.countable.lock().take();
        if self.total().is_some() {
            return;
        }
        let Some((file, end)) = countable else { return };
        let queue = Arc::clone(self);
        // If it cannot be started, the progress display has no total before the end of the input.
        let _ = detach("minder-count", move || {
            if let Some(total) = count(&file, end) {
                let total = total - queue.resume.skipped(total);
                let _ = queue.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
    }

    /// Returns `true` if the input was read to its end.
    pub(crate) fn has_ended(&self) -> bool {
        self.state.lock().ended
    }

    /// Returns `true` if all jobs were taken and no more will come.
    pub(crate) fn is_drained(&self) -> bool {
        let mut state = self.state.lock();
        if state.ready.is_empty() && !state.stopped {
            state.fill();
        }
        state.ended && state.ready.is_empty()
    }

    /// Passes all jobs that are to run to `take`.
    ///
    /// # Errors
    /// The input cannot be read, or `take` fails.
    pub(crate) fn for_each_job(&self, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        if let Some(mut source) = self.source.lock().take() {
            self.set_total(source.prepare()?);
            self.state.lock().inline_source = Some(source);
        }
        let input_reader = self.input_reader.lock().take();
        if let Some(reader) = input_reader {
            return self.for_each_block(reader, take);
        }
        while let NextJob::Ready(task) = self.next_job() {
            take(task)?;
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// Does the same for blocks of the input, which a separate thread reads meanwhile.
    fn for_each_block(&self, reader: InputReader, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        let (wake_sender, wakeups) = std::sync::mpsc::sync_channel(1);
        let queue = Arc::clone(reader.queue());
        // Never joined, as in a run: when no more is taken, the thread may wait for room or for
        // input for ever.
        detach("minder-input", move || {
            reader.read(move || {
                // A full channel holds a wake-up already.
                let _ = wake_sender.try_send(());
            });
        })?;
        loop {
            match self.next_job() {
                NextJob::Ready(task) => {
                    if let Some(block) = task.block().as_mut() {
                        queue.give_up(block);
                    }
                    take(task)?;
                }
                NextJob::Pending => {
                    // It fails when the reader is gone, and then everything was read.
                    let _ = wakeups.recv();
                }
                NextJob::Exhausted => break,
            }
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// Returns the next job, if one is ready. It never blocks, except on a read that cannot block
    /// for long.
    pub(crate) fn next_job(&self) -> NextJob<Task> {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return NextJob::Exhausted;
            }
            if state.ready.is_empty() {
                state.fill();
            }
            let Some(task) = state.ready.pop_front() else {
                state.is_starved = true;
                self.room.notify_one();
                let taken = state.taken;
                let expected = self.resume.last();
                // The input of a complete run need not be repeated.
                let is_needed = self.on_agents.is_none() && (taken > 0 || !self.resume.has_nothing_left());
                if state.ended && taken < expected && is_needed && state.error.is_none() {
                    let unit = if self.input_queue.is_some() { "block" } else { "line" };
                    let hint = if taken == 0 { " (give it again on standard input)" } else { "" };
                    let why = format!(
                        "the input has changed: it has {}, and had at least {expected}{hint}",
                        crate::text::count(taken, unit)
                    );
                    state.error = Some(why);
                    state.stopped = true;
                }
                return if state.ended { NextJob::Exhausted } else { NextJob::Pending };
            };
            state.taken += 1;
            self.make_room(&mut state, &task);
            if let Some(block) = &task.input_block
                && let Some(why) = self.resume.block_mismatch(task.number, block)
            {
                state.error = Some(why);
                state.stopped = true;
                continue;
            }
            if !self.resume.skips(task.number) {
                return NextJob::Ready(task);
            }
            if let JobArgs::Columns(columns) = &task.item
                && self.resume.differs(task.number, columns)
            {
                state.error = Some(format!("job {} of the input has changed: nothing is run", task.number));
                state.stopped = true;
            }
        }
    }

    fn make_room(&self, state: &mut State, task: &Task) {
        let before = state.bytes;
        state.bytes = before.saturating_sub(len(task));
        // A long line may need all of the room, so the reader is also notified when the queue is
        // empty.
        if state.ready.is_empty() || (before > AHEAD_MAX / 2 && state.bytes <= AHEAD_MAX / 2) {
            self.room.notify_one();
        }
    }

    /// Returns whether the input could not be read to its end.
    pub(crate) fn has_error(&self) -> bool {
        self.state.lock().error.is_some()
    }

    /// Returns why the input could not be read to its end, once.
    pub(crate) fn error(&self) -> Option<String> {
        let error = self.state.lock().error.take();
        error.or_else(|| self.input_queue.as_ref().and_then(|queue| queue.error()))
    }

    /// Returns the queue of what the splitter made of the input, if jobs read blocks.
    pub(crate) fn splitter(&self) -> Option<&Arc<InputQueue>> {
        self.input_queue.as_ref()
    }

    fn read(&self, source: &mut JobSource, pool: &JobPool<Task>) {
        match source.prepare() {
            Ok(total) => {
                self.set_total(total);
                pool.set_total(self.total());
            }
            Err(error) => {
                let mut state = self.state.lock();
                state.error = Some(format_error(&error));
                state.ended = true;
                drop(state);
                return pool.wake();
            }
        }
        let mut created = 0;
        let mut confirm = self.confirm.lock().take();
        loop {
            if source.is_taken_late() {
                self.wait_until_starved();
            }
            match source.next(&mut created) {
                Ok(Some(task)) => {
                    if let Some(confirm) = &mut confirm {
                        self.wait_until_starved();
                        let is_confirmed = self.resume.skips(task.number)
                            || confirm.confirm(task.number, task.columns(), &|| pool.is_cancelled());
                        if pool.is_cancelled() {
                            return;
                        }
                        if !is_confirmed {
                            // It counts as part of the input.
                            self.state.lock().taken += 1;
                            continue;
                        }
                    }
                    self.add(task, pool);
                }
                Ok(None) => {
                    let total = created - self.skipped(created);
                    let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
                    break;
                }
                // A line that a read error cut off is not an argument.
                Err(error) => {
                    self.state.lock().error = Some(format_error(&error));
                    break;
                }
            }
        }
        self.state.lock().ended = true;
        pool.wake();
    }

    /// Waits until a worker thread has no job to start: the user is asked for one job at a time, and an agent
    /// claims no range before it needs one.
    fn wait_until_starved(&self) {
        let mut state = self.state.lock();
        while !(state.is_starved && state.ready.is_empty()) {
            state = self.room.wait(state);
        }
    }

    /// Adds a job when there is room, and wakes the pool if it waits for one.
    fn add(&self, task: Task, pool: &JobPool<Task>) {
        let mut state = self.state.lock();
        while state.bytes + len(&task) > AHEAD_MAX && !state.ready.is_empty() {
            state = self.room.wait(state);
        }
        state.bytes += len(&task);
        state.ready.push_back(task);
        let was_starved = std::mem::take(&mut state.is_starved);
        drop(state);
        if was_starved {
            pool.wake();
        }
    }
}

impl State {
    /// Creates the next job, if jobs are created when they are taken.
    fn fill(&mut self) {
        if self.ended {
            return;
        }
        let Some(source) = &mut self.inline_source else { return };
        if let JobSource::Blocks(blocks) = source {
            return match blocks.next(self.created + 1) {
                Ok(NextJob::Ready((block, arguments))) => {
                    self.created += 1;
                    self.ready.push_back(Task::with_block(self.created, arguments, block));
                }
                Ok(NextJob::Pending) => (),
                Ok(NextJob::Exhausted) => self.ended = true,
                Err(error) => {
                    self.error = Some(format_error(&error));
                    self.ended = true;
                }
            };
        }
        match source.next(&mut self.created) {
            Ok(Some(task)) => self.ready.push_back(task),
            Ok(None) => self.ended = true,
            Err(error) => {
                self.error = Some(format_error(&error));
                self.ended = true;
            }
        }
    }
}

/// Starts a thread that is never joined: it may block for ever, and ends with the process.
fn detach(name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
    let thread = thread::Builder::new().name(name.to_owned()).stack_size(256 << 10);
    thread.spawn(work).map(drop).context("cannot start a thread for the input")
}

/// Returns the memory that a waiting job takes: its bytes, and an estimate of the rest.
fn len(task: &Task) -> usize {
    const AROUND: usize = 64;
    AROUND + task.columns().iter().map(|column| column.len() + 1).sum::<usize>()
}

/// Returns how many records a file has from its current offset on. The last one may lack its
/// separator.
fn count(file: &File, end: u8) -> Option<u64> {
    let mut buffer = vec![0; AHEAD_MAX];
    let mut at = 0;
    let mut records = 0;
    let mut open = false;
    loop {
        let read = read_at(file, &mut buffer, at).ok()?;
        let bytes = &buffer[..read];
        let Some(last) = bytes.last() else { return Some(records + u64::from(open)) };
        records += memchr::memchr_iter(end, bytes).count() as u64;
        open = *last != end;
        at += read as u64;
    }
}
