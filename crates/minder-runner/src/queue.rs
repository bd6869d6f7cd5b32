//! The jobs of a run, as the input yields them. They are numbered here; those that do not run this
//! time are counted and passed over.
//!
//! Where a read may block, a thread of its own reads, since no loop must wait for it. It stops when
//! `AHEAD_MAX` bytes wait, and goes on when half of them are taken.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use anyhow::{Context, Result};
use minder::jobs::{JobPool, NextJob};
use minder_os::files::read_at;

use crate::block_source::BlockSource;
use crate::confirm::ConfirmPrompt;
use crate::input::ArgumentReader;
use crate::input::JobArgs;
use crate::input::Order;
use crate::input::Ordered;
use crate::resume::ResumeFilter;
use crate::splitter::InputSplitter;
use crate::splitter::JobInput;
use crate::text::format_error;

/// How many bytes are read ahead of the jobs at most.
const AHEAD_MAX: usize = 64 << 10;
/// A total that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A job: its number, from 1, in the order of the input, and its arguments.
#[derive(Debug)]
pub(crate) struct Task {
    pub(crate) number: u64,
    pub(crate) item: JobArgs,
    /// What it reads, until it is started.
    pub(crate) block: Mutex<Option<Box<JobInput>>>,
}

impl Task {
    pub(crate) fn new(number: u64, item: JobArgs) -> Self {
        Self { number, item, block: Mutex::new(None) }
    }

    /// Takes what it reads, or puts it back.
    pub(crate) fn block(&self) -> MutexGuard<'_, Option<Box<JobInput>>> {
        self.block.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its arguments; none if they cannot be arguments.
    pub(crate) fn columns(&self) -> &[OsString] {
        match &self.item {
            JobArgs::Columns(columns) => columns,
            JobArgs::Unfit(_) => &[],
        }
    }
}

/// Where jobs come from.
#[derive(Debug)]
pub(crate) enum JobSource {
    /// As they are read.
    Lazy(Box<ArgumentReader>),
    /// From what is to be read to its end first, in this order.
    Unread(Box<ArgumentReader>, Order),
    /// From what was read to its end.
    Ordered(Box<Ordered>),
    /// Parts of the input.
    Parts(Box<BlockSource>),
}

impl JobSource {
    /// Reads what has to be read first. Returns how many jobs there are, if that is known by it.
    fn prepare(&mut self) -> Result<Option<u64>> {
        if let Self::Unread(reader, order) = self {
            let ordered = Ordered::read(reader, order)?;
            let total = ordered.total();
            *self = Self::Ordered(Box::new(ordered));
            return Ok(Some(total));
        }
        Ok(None)
    }

    fn next(&mut self, created: &mut u64) -> Result<Option<Task>> {
        match self {
            Self::Lazy(reader) => Ok(reader.next()?.map(|item| {
                *created += 1;
                Task::new(*created, item)
            })),
            Self::Parts(..) | Self::Unread(..) => Ok(None),
            Self::Ordered(ordered) => Ok(ordered.next()?.map(|(number, item)| Task::new(number, item))),
        }
    }
}

/// The jobs of a run.
#[derive(Debug)]
pub(crate) struct JobQueue {
    state: Mutex<State>,
    /// Told when room was made for the reader.
    room: Condvar,
    total: AtomicU64,
    /// How many there are, if that was known before anything was read.
    early_total: Option<u64>,
    /// Which jobs do not run.
    resume: Arc<ResumeFilter>,
    /// What a thread is to read, and a file whose records are to be counted.
    source: Mutex<Option<JobSource>>,
    countable: Mutex<Option<(File, u8)>>,
    /// What gives parts out.
    splitter: Option<Arc<InputSplitter>>,
    /// Who is asked before each job.
    confirm: Mutex<Option<ConfirmPrompt>>,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Task>,
    /// Where jobs come from that are made when they are asked for.
    inline_source: Option<JobSource>,
    created: u64,
    /// How many jobs were taken.
    taken: u64,
    /// Bytes in `ready`.
    bytes: usize,
    ended: bool,
    /// Whether somebody asked while there was nothing.
    is_starved: bool,
    /// What kept the input from being read on.
    error: Option<String>,
    /// Whether nothing more is taken, whatever is read.
    stopped: bool,
}

impl JobQueue {
    /// Takes the jobs from where they come. `told`: how many there are, if somebody says so.
    pub(crate) fn open(
        mut source: JobSource,
        resume: Arc<ResumeFilter>,
        known_total: Option<u64>,
        confirm: Option<ConfirmPrompt>,
    ) -> Arc<Self> {
        let (total, blocks, countable) = match &mut source {
            JobSource::Lazy(reader) => (reader.total(), reader.blocks, reader.take_countable()),
            // A thread reads, so that signals are taken meanwhile.
            JobSource::Unread(reader, _) => (reader.total(), true, None),
            JobSource::Ordered(ordered) => (Some(ordered.total()), false, None),
            // With --tee each set of values is a job; otherwise each part is one.
            JobSource::Parts(parts) => {
                (parts.values.total().filter(|_| parts.splitter.is_tee()), false, None)
            }
        };
        let splitter = match &source {
            JobSource::Parts(parts) => Some(Arc::clone(&parts.splitter)),
            _ => None,
        };
        let total = known_total.or(total.map(|total| total - resume.skipped(total)));
        let (inline_source, thread_source) =
            if blocks || confirm.is_some() { (None, Some(source)) } else { (Some(source), None) };
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
            resume,
            source: Mutex::new(thread_source),
            countable: Mutex::new(countable),
            splitter,
            confirm: Mutex::new(confirm),
        })
    }

    /// How many jobs there are to run, where that is known.
    pub(crate) fn total(&self) -> Option<u64> {
        Some(self.total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN)
    }

    /// So many jobs are in the input, those too that do not run this time.
    fn set_total(&self, total: Option<u64>) {
        if let Some(total) = total {
            let total = total - self.resume.skipped(total);
            let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How many jobs there are to run, where that was known before anything was read.
    pub(crate) fn early_total(&self) -> Option<u64> {
        self.early_total
    }

    /// Starts to read, if the input is read by a thread. The thread is left to itself: it may block
    /// for ever, and ends with the process.
    pub(crate) fn start_reading(self: &Arc<Self>, pool: &Arc<JobPool<Task>>) -> Result<()> {
        if let Some(splitter) = &self.splitter {
            let splitter = Arc::clone(splitter);
            let pool = Arc::clone(pool);
            detach("minder-input", move || splitter.read(move || pool.wake()))?;
        }
        self.start_reading_values(pool)?;
        let Some(mut source) = self.source.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let input = Arc::clone(self);
        let pool = Arc::clone(pool);
        detach("minder-input", move || input.read(&mut source, &pool))
    }

    /// The same for the values beside parts.
    fn start_reading_values(self: &Arc<Self>, pool: &Arc<JobPool<Task>>) -> Result<()> {
        let ahead = match &mut self.lock().inline_source {
            Some(JobSource::Parts(parts)) => parts.values.read_ahead(),
            _ => None,
        };
        let Some((mut reader, sender)) = ahead else { return Ok(()) };
        let input = Arc::clone(self);
        let pool = Arc::clone(pool);
        let wake = move || {
            if std::mem::take(&mut input.lock().is_starved) {
                pool.wake();
            }
        };
        detach("minder-values", move || {
            while let Some(next) = reader.next().transpose() {
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

    /// Counts the jobs of a regular file beforehand, on a thread of its own: for the bar.
    pub(crate) fn start_counting(self: &Arc<Self>) {
        let countable = self.countable.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((file, end)) = countable.filter(|_| self.total().is_none()) else { return };
        let input = Arc::clone(self);
        // Without it the bar has no total before the end of the input.
        let _ = detach("minder-count", move || {
            if let Some(total) = count(&file, end) {
                let total = total - input.resume.skipped(total);
                let _ = input.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
    }

    /// Whether nothing more is read.
    pub(crate) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether all was taken, and nothing more comes.
    pub(crate) fn is_drained(&self) -> bool {
        let mut state = self.lock();
        if state.ready.is_empty() && !state.stopped {
            state.fill();
        }
        state.ended && state.ready.is_empty()
    }

    /// Takes all jobs that are to run, one after the other.
    pub(crate) fn for_each_job(&self, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        if let Some(mut source) = self.source.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.set_total(source.prepare()?);
            self.lock().inline_source = Some(source);
        }
        if let Some(splitter) = &self.splitter {
            return self.for_each_block(splitter, take);
        }
        while let NextJob::Ready(task) = self.next_job() {
            take(task)?;
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// The same for parts of the input, which are read meanwhile.
    fn for_each_block(
        &self,
        splitter: &Arc<InputSplitter>,
        mut take: impl FnMut(Task) -> Result<()>,
    ) -> Result<()> {
        let (news, woken) = std::sync::mpsc::sync_channel(1);
        let its = Arc::clone(splitter);
        // Left to itself, as in a run: when nothing more is taken it may wait for room, or for input, for
        // ever.
        detach("minder-input", move || {
            its.read(move || {
                // A ring that finds one before it says the same.
                let _ = news.try_send(());
            });
        })?;
        loop {
            match self.next_job() {
                NextJob::Ready(task) => {
                    if let Some(part) = task.block().as_mut() {
                        splitter.give_up(part);
                    }
                    take(task)?;
                }
                NextJob::Pending => {
                    // It fails when the reader is gone, which has read all then.
                    let _ = woken.recv();
                }
                NextJob::Exhausted => break,
            }
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// The next job, if one is there. Never blocks, but where it reads itself.
    pub(crate) fn next_job(&self) -> NextJob<Task> {
        let mut state = self.lock();
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
                let had = state.taken;
                let least = self.resume.last();
                if state.ended && had < least && state.error.is_none() {
                    let why = format!(
                        "the input is not what it was: it has {}, and had {least} at least",
                        crate::text::count(had, "line")
                    );
                    (state.error, state.stopped) = (Some(why), true);
                }
                return if state.ended { NextJob::Exhausted } else { NextJob::Pending };
            };
            state.taken += 1;
            self.make_room(&mut state, &task);
            if !self.resume.skips(task.number) {
                return NextJob::Ready(task);
            }
            if let JobArgs::Columns(columns) = &task.item
                && self.resume.differs(task.number, columns)
            {
                state.error =
                    Some(format!("job {} of the input is not what it was: nothing is run", task.number));
                state.stopped = true;
            }
        }
    }

    fn make_room(&self, state: &mut State, task: &Task) {
        let before = state.bytes;
        state.bytes = before.saturating_sub(len(task));
        // A long line may need all of the room, so an empty queue is told, too.
        if state.ready.is_empty() || (before > AHEAD_MAX / 2 && state.bytes <= AHEAD_MAX / 2) {
            self.room.notify_one();
        }
    }

    /// What kept the input from being read to its end.
    pub(crate) fn error(&self) -> Option<String> {
        let error = self.lock().error.take();
        error.or_else(|| self.splitter.as_ref().and_then(|splitter| splitter.error()))
    }

    /// What gives parts of the input out.
    pub(crate) fn splitter(&self) -> Option<&Arc<InputSplitter>> {
        self.splitter.as_ref()
    }

    fn read(&self, source: &mut JobSource, pool: &JobPool<Task>) {
        match source.prepare() {
            Ok(total) => {
                self.set_total(total);
                pool.set_total(self.total());
            }
            Err(error) => {
                let mut state = self.lock();
                (state.error, state.ended) = (Some(format_error(&error)), true);
                drop(state);
                return pool.wake();
            }
        }
        let mut created = 0;
        let mut confirm = self.confirm.lock().unwrap_or_else(PoisonError::into_inner).take();
        loop {
            match source.next(&mut created) {
                Ok(Some(task)) => {
                    if let Some(confirm) = &mut confirm {
                        self.wait_until_starved();
                        if !self.resume.skips(task.number) && !confirm.confirm(task.number, task.columns()) {
                            // It is part of the input all the same.
                            self.lock().taken += 1;
                            continue;
                        }
                    }
                    self.add(task, pool);
                }
                Ok(None) => {
                    let total = created - self.resume.skipped(created);
                    let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
                    break;
                }
                // A line that the error cut is no argument.
                Err(error) => {
                    self.lock().error = Some(format_error(&error));
                    break;
                }
            }
        }
        self.lock().ended = true;
        pool.wake();
    }

    /// Waits until a loop has nothing to start: nobody is asked for more than one job ahead.
    fn wait_until_starved(&self) {
        let mut state = self.lock();
        while !(state.is_starved && state.ready.is_empty()) {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds one job, when there is room.
    fn add(&self, task: Task, pool: &JobPool<Task>) {
        let mut state = self.lock();
        while state.bytes + len(&task) > AHEAD_MAX && !state.ready.is_empty() {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += len(&task);
        state.ready.push_back(task);
        let is_starved = std::mem::take(&mut state.is_starved);
        drop(state);
        if is_starved {
            pool.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes the next job, if jobs are made here.
    fn fill(&mut self) {
        let Some(source) = self.inline_source.as_mut().filter(|_| !self.ended) else { return };
        if let JobSource::Parts(parts) = source {
            return match parts.next(self.created + 1) {
                Ok(NextJob::Ready((part, arguments))) => {
                    self.created += 1;
                    let task = Task::new(self.created, arguments);
                    *task.block() = Some(Box::new(part));
                    self.ready.push_back(task);
                }
                Ok(NextJob::Pending) => (),
                Ok(NextJob::Exhausted) => self.ended = true,
                Err(error) => (self.error, self.ended) = (Some(format_error(&error)), true),
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

/// What a job takes while it waits: its bytes, and what stands around them in memory.
fn len(task: &Task) -> usize {
    const AROUND: usize = 64;
    AROUND + task.columns().iter().map(|column| column.len() + 1).sum::<usize>()
}

/// How many records a file has from its present place on. The last one may lack its end.
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
