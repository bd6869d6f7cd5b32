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
use minder::exec::{Crew, Supply};
use minder_os::files::read_at;

use super::again::Again;
use super::ask::Ask;
use super::parts::Parts;
use super::pipe::{Part, Pipe};
use crate::input::{Arguments, Opened, Order, Ordered};
use crate::report::explain;

/// How many bytes are read ahead of the jobs at most.
const AHEAD_MAX: usize = 64 << 10;
/// A total that is not known.
const UNKNOWN: u64 = u64::MAX;

/// A job: its number, from 1, in the order of the input, and its arguments.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) number: u64,
    pub(super) item: Arguments,
    /// What it reads, until it is started.
    pub(super) part: Mutex<Option<Box<Part>>>,
}

impl Task {
    pub(super) fn new(number: u64, item: Arguments) -> Self {
        Self { number, item, part: Mutex::new(None) }
    }

    /// Takes what it reads, or puts it back.
    pub(super) fn part(&self) -> MutexGuard<'_, Option<Box<Part>>> {
        self.part.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Its arguments; none if they cannot be arguments.
    pub(super) fn columns(&self) -> &[OsString] {
        match &self.item {
            Arguments::Columns(columns) => columns,
            Arguments::Unfit(_) => &[],
        }
    }
}

/// Where jobs come from.
#[derive(Debug)]
pub(super) enum Source {
    /// As they are read.
    Lazy(Box<Opened>),
    /// From what is to be read to its end first, in this order.
    Unread(Box<Opened>, Order),
    /// From what was read to its end.
    Ordered(Box<Ordered>),
    /// Parts of the input.
    Parts(Box<Parts>),
}

impl Source {
    /// Reads what has to be read first. Returns how many jobs there are, if that is known by it.
    fn prepare(&mut self) -> Result<Option<u64>> {
        if let Self::Unread(opened, order) = self {
            let ordered = Ordered::read(opened, order)?;
            let total = ordered.total();
            *self = Self::Ordered(Box::new(ordered));
            return Ok(Some(total));
        }
        Ok(None)
    }

    fn next(&mut self, made: &mut u64) -> Result<Option<Task>> {
        match self {
            Self::Lazy(opened) => Ok(opened.next()?.map(|item| {
                *made += 1;
                Task::new(*made, item)
            })),
            Self::Parts(..) | Self::Unread(..) => Ok(None),
            Self::Ordered(ordered) => Ok(ordered.next()?.map(|(number, item)| Task::new(number, item))),
        }
    }
}

/// The jobs of a run.
#[derive(Debug)]
pub(super) struct Input {
    state: Mutex<State>,
    /// Told when room was made for the reader.
    room: Condvar,
    total: AtomicU64,
    /// How many there are, if that was known before anything was read.
    early: Option<u64>,
    /// Which jobs do not run.
    again: Arc<Again>,
    /// What a thread is to read, and a file whose records are to be counted.
    source: Mutex<Option<Source>>,
    countable: Mutex<Option<(File, u8)>>,
    /// What gives parts out.
    pipe: Option<Arc<Pipe>>,
    /// Who is asked before each job.
    ask: Mutex<Option<Ask>>,
}

#[derive(Debug)]
struct State {
    ready: VecDeque<Task>,
    /// Where jobs come from that are made when they are asked for.
    made_here: Option<Source>,
    made: u64,
    /// How many jobs were taken.
    taken: u64,
    /// Bytes in `ready`.
    bytes: usize,
    ended: bool,
    /// Whether somebody asked while there was nothing.
    asked: bool,
    /// What kept the input from being read on.
    error: Option<String>,
    /// Whether nothing more is taken, whatever is read.
    stopped: bool,
}

impl Input {
    /// Takes the jobs from where they come. `told`: how many there are, if somebody says so.
    pub(super) fn open(
        mut source: Source,
        again: Arc<Again>,
        told: Option<u64>,
        ask: Option<Ask>,
    ) -> Arc<Self> {
        let (total, blocks, countable) = match &mut source {
            Source::Lazy(opened) => (opened.total(), opened.blocks, opened.take_countable()),
            // A thread reads, so that signals are taken meanwhile.
            Source::Unread(opened, _) => (opened.total(), true, None),
            Source::Ordered(ordered) => (Some(ordered.total()), false, None),
            // With --tee each set of values is a job; otherwise each part is one.
            Source::Parts(parts) => (parts.values.total().filter(|_| parts.pipe.is_tee()), false, None),
        };
        let pipe = match &source {
            Source::Parts(parts) => Some(Arc::clone(&parts.pipe)),
            _ => None,
        };
        let total = told.or(total.map(|total| total - again.skipped(total)));
        let (here, there) = if blocks || ask.is_some() { (None, Some(source)) } else { (Some(source), None) };
        let state = State {
            ready: VecDeque::new(),
            made_here: here,
            made: 0,
            taken: 0,
            bytes: 0,
            ended: false,
            asked: false,
            error: None,
            stopped: false,
        };
        Arc::new(Self {
            state: Mutex::new(state),
            room: Condvar::new(),
            total: AtomicU64::new(total.unwrap_or(UNKNOWN)),
            early: total,
            again,
            source: Mutex::new(there),
            countable: Mutex::new(countable),
            pipe,
            ask: Mutex::new(ask),
        })
    }

    /// How many jobs there are to run, where that is known.
    pub(super) fn total(&self) -> Option<u64> {
        Some(self.total.load(Ordering::Relaxed)).filter(|total| *total != UNKNOWN)
    }

    /// So many jobs are in the input, those too that do not run this time.
    fn know_total(&self, total: Option<u64>) {
        if let Some(total) = total {
            let total = total - self.again.skipped(total);
            let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// How many jobs there are to run, where that was known before anything was read.
    pub(super) fn early_total(&self) -> Option<u64> {
        self.early
    }

    /// Starts to read, if the input is read by a thread. The thread is left to itself: it may block
    /// for ever, and ends with the process.
    pub(super) fn read_on(self: &Arc<Self>, crew: &Arc<Crew<Task>>) -> Result<()> {
        if let Some(pipe) = &self.pipe {
            let (pipe, crew) = (Arc::clone(pipe), Arc::clone(crew));
            detach("minder-input", move || pipe.read(move || crew.wake()))?;
        }
        self.read_values_on(crew)?;
        let Some(mut source) = self.source.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return Ok(());
        };
        let (input, crew) = (Arc::clone(self), Arc::clone(crew));
        detach("minder-input", move || input.read(&mut source, &crew))
    }

    /// The same for the values beside parts.
    fn read_values_on(self: &Arc<Self>, crew: &Arc<Crew<Task>>) -> Result<()> {
        let ahead = match &mut self.lock().made_here {
            Some(Source::Parts(parts)) => parts.values.read_ahead(),
            _ => None,
        };
        let Some((mut opened, sender)) = ahead else { return Ok(()) };
        let (input, crew) = (Arc::clone(self), Arc::clone(crew));
        let wake = move || {
            if std::mem::take(&mut input.lock().asked) {
                crew.wake();
            }
        };
        detach("minder-values", move || {
            while let Some(next) = opened.next().transpose() {
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
    pub(super) fn count_on(self: &Arc<Self>) {
        let countable = self.countable.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some((file, end)) = countable.filter(|_| self.total().is_none()) else { return };
        let input = Arc::clone(self);
        // Without it the bar has no total before the end of the input.
        let _ = detach("minder-count", move || {
            if let Some(total) = count(&file, end) {
                let total = total - input.again.skipped(total);
                let _ = input.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
            }
        });
    }

    /// Whether nothing more is read.
    pub(super) fn has_ended(&self) -> bool {
        self.lock().ended
    }

    /// Whether all was taken, and nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        let mut state = self.lock();
        if state.ready.is_empty() && !state.stopped {
            state.make();
        }
        state.ended && state.ready.is_empty()
    }

    /// Takes all jobs that are to run, one after the other.
    pub(super) fn each(&self, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        if let Some(mut source) = self.source.lock().unwrap_or_else(PoisonError::into_inner).take() {
            self.know_total(source.prepare()?);
            self.lock().made_here = Some(source);
        }
        if let Some(pipe) = &self.pipe {
            return self.each_part(pipe, take);
        }
        while let Supply::Job(task) = self.supply() {
            take(task)?;
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// The same for parts of the input, which are read meanwhile.
    fn each_part(&self, pipe: &Arc<Pipe>, mut take: impl FnMut(Task) -> Result<()>) -> Result<()> {
        let (news, woken) = std::sync::mpsc::sync_channel(1);
        let its = Arc::clone(pipe);
        // Left to itself, as in a run: when nothing more is taken it may wait for room, or for input, for
        // ever.
        detach("minder-input", move || {
            its.read(move || {
                // A ring that finds one before it says the same.
                let _ = news.try_send(());
            });
        })?;
        loop {
            match self.supply() {
                Supply::Job(task) => {
                    if let Some(part) = task.part().as_mut() {
                        pipe.give_up(part);
                    }
                    take(task)?;
                }
                Supply::Later => {
                    // It fails when the reader is gone, which has read all then.
                    let _ = woken.recv();
                }
                Supply::End => break,
            }
        }
        self.error().map_or(Ok(()), |error| Err(anyhow::anyhow!(error)))
    }

    /// The next job, if one is there. Never blocks, but where it reads itself.
    pub(super) fn supply(&self) -> Supply<Task> {
        let mut state = self.lock();
        loop {
            if state.stopped {
                return Supply::End;
            }
            if state.ready.is_empty() {
                state.make();
            }
            let Some(task) = state.ready.pop_front() else {
                state.asked = true;
                self.room.notify_one();
                let (had, least) = (state.taken, self.again.last());
                if state.ended && had < least && state.error.is_none() {
                    let why = format!(
                        "the input is not what it was: it has {}, and had {least} at least",
                        crate::report::count(had, "line")
                    );
                    (state.error, state.stopped) = (Some(why), true);
                }
                return if state.ended { Supply::End } else { Supply::Later };
            };
            state.taken += 1;
            self.make_room(&mut state, &task);
            if !self.again.skips(task.number) {
                return Supply::Job(task);
            }
            if let Arguments::Columns(columns) = &task.item
                && self.again.differs(task.number, columns)
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
    pub(super) fn error(&self) -> Option<String> {
        let error = self.lock().error.take();
        error.or_else(|| self.pipe.as_ref().and_then(|pipe| pipe.error()))
    }

    /// What gives parts of the input out.
    pub(super) fn pipe(&self) -> Option<&Arc<Pipe>> {
        self.pipe.as_ref()
    }

    fn read(&self, source: &mut Source, crew: &Crew<Task>) {
        match source.prepare() {
            Ok(total) => {
                self.know_total(total);
                crew.set_total(self.total());
            }
            Err(error) => {
                let mut state = self.lock();
                (state.error, state.ended) = (Some(explain(&error)), true);
                drop(state);
                return crew.wake();
            }
        }
        let mut made = 0;
        let mut ask = self.ask.lock().unwrap_or_else(PoisonError::into_inner).take();
        loop {
            match source.next(&mut made) {
                Ok(Some(task)) => {
                    if let Some(ask) = &mut ask {
                        self.wait_until_asked();
                        if !self.again.skips(task.number) && !ask.ask(&task) {
                            // It is part of the input all the same.
                            self.lock().taken += 1;
                            continue;
                        }
                    }
                    self.add(task, crew);
                }
                Ok(None) => {
                    let total = made - self.again.skipped(made);
                    let _ = self.total.compare_exchange(UNKNOWN, total, Ordering::Relaxed, Ordering::Relaxed);
                    break;
                }
                // A line that the error cut is no argument.
                Err(error) => {
                    self.lock().error = Some(explain(&error));
                    break;
                }
            }
        }
        self.lock().ended = true;
        crew.wake();
    }

    /// Waits until a loop has nothing to start: nobody is asked for more than one job ahead.
    fn wait_until_asked(&self) {
        let mut state = self.lock();
        while !(state.asked && state.ready.is_empty()) {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Adds one job, when there is room.
    fn add(&self, task: Task, crew: &Crew<Task>) {
        let mut state = self.lock();
        while state.bytes + len(&task) > AHEAD_MAX && !state.ready.is_empty() {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.bytes += len(&task);
        state.ready.push_back(task);
        let asked = std::mem::take(&mut state.asked);
        drop(state);
        if asked {
            crew.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Makes the next job, if jobs are made here.
    fn make(&mut self) {
        let Some(source) = self.made_here.as_mut().filter(|_| !self.ended) else { return };
        if let Source::Parts(parts) = source {
            return match parts.next(self.made + 1) {
                Ok(Supply::Job((part, arguments))) => {
                    self.made += 1;
                    let task = Task::new(self.made, arguments);
                    *task.part() = Some(Box::new(part));
                    self.ready.push_back(task);
                }
                Ok(Supply::Later) => (),
                Ok(Supply::End) => self.ended = true,
                Err(error) => (self.error, self.ended) = (Some(explain(&error)), true),
            };
        }
        match source.next(&mut self.made) {
            Ok(Some(task)) => self.ready.push_back(task),
            Ok(None) => self.ended = true,
            Err(error) => {
                self.error = Some(explain(&error));
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
    let (mut buffer, mut at, mut records, mut open) = (vec![0; AHEAD_MAX], 0, 0, false);
    loop {
        let read = read_at(file, &mut buffer, at).ok()?;
        let bytes = &buffer[..read];
        let Some(last) = bytes.last() else { return Some(records + u64::from(open)) };
        records += memchr::memchr_iter(end, bytes).count() as u64;
        open = *last != end;
        at += read as u64;
    }
}
