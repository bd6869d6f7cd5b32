//! `ChildSet`: many children, one wait.
//!
//! Endpoints report progress to one port; what a report means for its child is decided in
//! `set/kid.rs`; what the caller is told waits in one queue of notices. A notice of output names a
//! stream and holds no bytes: those stay with their child until they are handed over, so that they
//! can be bounded, spilled or dropped child by child.

mod exit;
mod child;
mod termination;
mod config;
mod streaming;
mod output;
mod pace;
mod slab;
mod spill;
mod suspend;
mod timers;
mod read_turns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::child::ChildState;
pub use self::config::{ChildSetConfig, OutputMode, OverflowPolicy, SpawnOptions};
use self::read_turns::ReadTurns;
use self::slab::{Kind, Slab};
use self::termination::TerminationState;
use self::timers::{TimerKind, Timers};
use crate::child::Termination;
use crate::chunk::{Chunk, MemoryBudget, MemoryQuota};
use crate::command::Command;
use crate::event::{Event, Stream, Token};
use crate::os::PollHandle;
use crate::poller::Waker;
use crate::sys::process_tree::{ProcessSnapshot, TreeSignal};
use crate::sys::reactor::Reactor;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawner;
use crate::sys::wait::{Report, WAKE_TOKEN};
use crate::{Error, ErrorKind, Result};

/// The smallest buffer that is read into.
const BUFFER_MIN: usize = 64;
/// The shortest time that repeats itself.
const INTERVAL_MIN: Duration = Duration::from_millis(1);
/// How long a child that was killed, since it could not be watched, is waited for at once.
const ABANDONED_WAIT: Duration = Duration::from_millis(20);
/// How soon a spill file is tried again for which no descriptor was free.
const SAVE_AGAIN: Duration = Duration::from_millis(50);

/// Many children and one wait, on one thread.
///
/// A set starts children, hears what they write, takes their ends, and kills them with everything
/// that they started, all through [`next`](Self::next). The cost of a wait does not grow with the
/// number of children. It is `Send`: a set may move to another thread, but a child with
/// [`Command::die_with_parent`] dies with the thread that started it.
///
/// Memory is bounded: see [`ChildSetConfig`] and [`OverflowPolicy`]. Dropping a set closes its
/// pipes; children that still run go on, and stay zombies after their end until this process ends.
/// [`kill_all`](Self::kill_all) and a loop over `next` come first.
///
/// - Linux: pidfds, or where there are none a sweep over the children at intervals of 1 to 50 ms.
///   So are children for which the backend has no room (`fs.epoll.max_user_watches`), and their
///   outputs are looked at alike.
/// - macOS, FreeBSD, NetBSD, OpenBSD: `EVFILT_PROC` with the backend `kqueue`, the sweep with
///   `poll`. Windows: a registered wait for each process, one completion port.
#[derive(Debug)]
pub struct ChildSet {
    reactor: Reactor,
    spawner: Spawner,
    limits: ChildSetConfig,
    budget: Arc<MemoryBudget>,
    children: Slab<ChildState>,
    events: VecDeque<QueuedEvent>,
    timers: Timers,
    /// Children that wait for room: to read on, or to bring back what was spilled.
    memory_waiters: Vec<Token>,
    /// Whether a spill file refused bytes, which is to be tried again.
    unwritten: bool,
    /// Children whose outputs are not listened to yet, since they may end before it is worth it.
    deferred_reads: Vec<DeferredRead>,
    /// Killed children that could not be watched, and that have not ended yet.
    abandoned: Vec<Process>,
    /// Who is read on while much waits in files.
    read_turns: ReadTurns,
    /// How many named spill files were made.
    spill_count: u64,
    /// How long this turn may still wait for a file that takes nothing, and when it ends.
    patience: Option<Duration>,
    until: Option<Instant>,
    reports: Vec<Report>,
    buffer: Vec<u8>,
    /// Whether a foreign loop watches our descriptor.
    watched: bool,
}

/// A child whose outputs are looked at now and then, until they are worth listening to.
#[derive(Clone, Copy, Debug)]
struct DeferredRead {
    token: Token,
    due: Instant,
    /// The time between this look and the last.
    pause: Duration,
}

/// What the caller is to be told, without the bytes.
#[derive(Clone, Copy, Debug)]
enum QueuedEvent {
    Output(Token, Stream),
    Spilled(Token, Stream),
    Forwarded(Token, Stream),
    Writable(Token),
    Eof(Token, Stream),
    Stopped(Token, i32),
    Exited(Token),
    /// Whatever is left of the child's output, then its end.
    Drain(Token),
    Woken,
}

impl ChildSet {
    /// Makes an empty set.
    ///
    /// # Errors
    /// `Unsupported` for a backend that this system does not have; `Exhausted` when no descriptor
    /// is free.
    pub fn new(limits: ChildSetConfig) -> Result<Self> {
        let spawner = Spawner::for_many().map_err(|error| Error::new("prepare for children", error))?;
        let mut limits = limits;
        // A read into no room would look like the end of the file.
        limits.read_buffer_bytes = limits.read_buffer_bytes.max(BUFFER_MIN);
        // A time of zero would be due again at once, for ever.
        limits.leak_timeout = limits.leak_timeout.map(|after| after.max(INTERVAL_MIN));
        limits.stop_poll_interval = limits.stop_poll_interval.map(|every| every.max(INTERVAL_MIN));
        let mut port =
            Reactor::open(limits.backend).map_err(|error| Error::new("open a wait backend", error))?;
        port.limit_descriptors(limits.fault_capacity);
        let bell = port.waker();
        // A ring that fails is one that the full counter already holds.
        let budget = MemoryBudget::new(
            limits.max_buffered_bytes,
            limits.read_buffer_bytes,
            Box::new(move || drop(bell.wake())),
        );
        let timers = Timers::new(limits.stop_poll_interval);
        let turns = ReadTurns::new(limits.backlog.clone(), limits.min_readers);
        Ok(Self {
            reactor: port,
            spawner,
            buffer: Vec::with_capacity(limits.read_buffer_bytes),
            limits,
            budget,
            children: Slab::default(),
            events: VecDeque::new(),
            timers,
            memory_waiters: Vec::new(),
            unwritten: false,
            deferred_reads: Vec::new(),
            abandoned: Vec::new(),
            read_turns: turns,
            spill_count: 0,
            patience: None,
            until: None,
            reports: Vec::new(),
            watched: false,
        })
    }

    /// The name of the wait backend.
    pub fn backend(&self) -> &'static str {
        self.reactor.name()
    }

    /// How many children are not *done* yet.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Whether all children are done.
    pub fn is_empty(&self) -> bool {
        self.children.len() == 0
    }

    /// Starts a child on the calling thread.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `Limit` when [`ChildSetConfig::max_children`] children live;
    /// `InvalidInput` for options that contradict each other. `Exhausted` leaves nothing
    /// behind: end a child, or wait for one, and try again. `Other` for a child that cannot be
    /// watched: its program had begun, and was killed.
    pub fn spawn(&mut self, command: &Command, options: SpawnOptions) -> Result<Token> {
        options.check()?;
        if self.children.len() >= self.limits.max_children {
            let error =
                Error::of_kind(ErrorKind::Limit, "start", "as many children live as this set may have");
            return Err(error.with_subject(command.get_program()));
        }
        let spawned =
            self.spawner.spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
        let account = MemoryQuota::new(&self.budget, self.limits.max_child_bytes);
        let token = self.children.insert(ChildState::new(spawned, account, options));
        if let Err(error) = self.register_outputs(token) {
            self.abandon(token);
            return Err(Error::new("watch", error)
                .with_subject(command.get_program())
                .with_kind(ErrorKind::Other, "the system watches no more"));
        }
        if options.deadline.is_some() {
            self.arm_deadline(token);
        }
        self.timers.child_started();
        self.update_poll_handle()?;
        Ok(token)
    }

    /// The child's process number.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn id(&self, token: Token) -> Result<u32> {
        Ok(self.child_mut(token)?.process.pid())
    }

    /// Writes to the child's standard input as much as there is room for, which may be nothing:
    /// then [`Event::Writable`] says when to go on. Never blocks.
    ///
    /// # Errors
    /// `Unknown` for a child that is done or has no such pipe; an error whose
    /// [`io`](Error::io_error) is `BrokenPipe` when the child reads no more. No signal is
    /// raised.
    pub fn write(&mut self, token: Token, bytes: &[u8]) -> Result<usize> {
        let port_token = self.children.port_token(token, Kind::Stdin);
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        let writer = kid.stdin.as_mut().ok_or_else(gone)?;
        match writer.write(&mut self.reactor, port_token, bytes) {
            Ok(written) => Ok(written),
            Err(error) => {
                let id = kid.process.pid();
                self.close_stdin(token)?;
                Err(Error::new("write to the input of", error).with_subject(id.to_string()))
            }
        }
    }

    /// Closes the child's standard input. Without effect where it has none.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn close_stdin(&mut self, token: Token) -> Result<()> {
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        match kid.stdin.take() {
            Some(writer) => writer
                .close(&mut self.reactor)
                .map_err(|error| Error::new("close the input of a child", error)),
            None => Ok(()),
        }
    }

    /// Kills a child and what it started, or asks first and insists later: see [`Termination`]. Its
    /// [`Event::Done`] comes when nobody of its tree is left. Without effect on a tree that is
    /// dead. A child that is [suspended](Self::suspend) goes on, so that it can end.
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `PermissionDenied` for one that became another user's.
    pub fn kill(&mut self, token: Token, how: Termination) -> Result<()> {
        let now = Instant::now();
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        kid.process.check();
        if kid.process.reaped() {
            return Ok(());
        }
        // Whoever is asked has to go on to hear it.
        self.restart_deadline(token, now);
        let port_token = self.children.port_token(token, Kind::Process);
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        kid.deadline_passed |= kid.runs();
        // A second, sharper order replaces the first; a softer one does not.
        let killing = TerminationState::new(how, now);
        if kid.termination.as_ref().is_none_or(|before| killing.escalate_at() < before.escalate_at()) {
            kid.termination = Some(Box::new(killing));
        }
        kid.tree.watch(&self.reactor, port_token);
        // What it still says is heard, or it could not end in its own way.
        let read = self.leave_turns(token);
        let kid = self.children.get_mut(token).ok_or_else(gone)?;
        let id = kid.process.pid();
        let struck = kid.tree.signal_all(&kid.process, how.first());
        self.arm(token, TimerKind::Killing, killing.check_at(now));
        self.update_poll_handle()?;
        struck.map_err(|error| Error::new("kill", error).with_subject(id.to_string()))?;
        read
    }

    /// Kills all children: see [`kill`](Self::kill). The first error is returned, after all were
    /// tried.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn kill_all(&mut self, how: Termination) -> Result<()> {
        let mut result = Ok(());
        for token in self.children.tokens() {
            result = result.and(self.kill(token, how));
        }
        result
    }

    /// Waits for news: until there is some, or `deadline` has come, or (without a deadline) until
    /// no child is left. Never ends early without one of these.
    ///
    /// `Ok(None)` says that the deadline came, or that no child is left and none was given.
    ///
    /// # Errors
    /// A spill file that cannot be written: its child is held then, no byte is lost, and the next
    /// call tries again. Otherwise only those of a system call that should not fail.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Option<Event>> {
        let mut last = false;
        loop {
            if let Some(event) = self.pop_event()? {
                self.update_poll_handle()?;
                return Ok(Some(event));
            }
            if last || (deadline.is_none() && self.children.len() == 0) {
                self.update_poll_handle()?;
                return Ok(None);
            }
            // The clock is read before the last look, so that what came before the deadline is never passed
            // over.
            last = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let until = [deadline, self.timers.next_at()].into_iter().flatten().min();
            self.poll_once(until)?;
        }
    }

    /// One wait without handing anything over, for a caller that has no room for events: what comes
    /// piles up here, child by child, each by its own rule for a full memory.
    pub(crate) fn poll_without_events(&mut self, until: Instant) -> Result<()> {
        let until = self.timers.next_at().map_or(until, |at| at.min(until));
        let result = self.poll_once(Some(until));
        // The caller is awake now, and many wakes must not make a queue.
        if matches!(self.events.back(), Some(QueuedEvent::Woken)) {
            self.events.pop_back();
        }
        result
    }

    /// A descriptor or handle for another loop: readable while [`next`](Self::next) with a deadline
    /// that has passed would have something to tell. Watch it level-triggered and, when it is
    /// readable, call `next` until it says `None`.
    ///
    /// # Errors
    /// `Unsupported` on Windows so far; a [`Pump`](crate::BackgroundSet) always has one.
    /// `Exhausted` when no descriptor is free: the backend `poll` needs some, and a thread, to
    /// watch in your place.
    pub fn poll_handle(&mut self) -> Result<PollHandle<'_>> {
        self.watched = true;
        self.update_poll_handle()?;
        self.reactor.poll_handle(self.timers.next_at()).map_err(|error| Error::new("watch a set", error))
    }

    /// A handle that ends a wait from any thread; [`Event::Woken`] tells of it. That event may also
    /// come without a wake.
    pub fn waker(&self) -> Waker {
        Waker(self.reactor.waker())
    }

    /// Whether [`next`](Self::next) has something to tell without a look at the system.
    pub fn has_pending_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// Bytes held for the caller, and by the caller's chunks.
    pub fn buffered_bytes(&self) -> usize {
        self.budget.used()
    }

    /// The next event, if there is one.
    fn pop_event(&mut self) -> Result<Option<Event>> {
        while let Some(notice) = self.events.pop_front() {
            let event = match notice {
                QueuedEvent::Woken => Some(Event::Woken),
                QueuedEvent::Writable(token) => self.children.get(token).map(|_| Event::Writable(token)),
                QueuedEvent::Eof(token, stream) => Some(Event::Eof(token, stream)),
                QueuedEvent::Stopped(token, signal) => Some(Event::Stopped(token, signal)),
                QueuedEvent::Output(token, stream) => {
                    // Without bytes they were dropped to make room.
                    let out = self.children.get_mut(token).map(|kid| &mut kid.streams[stream as usize]);
                    let bytes = out.and_then(|out| {
                        out.queued_events -= 1;
                        out.buffered.pop_front()
                    });
                    bytes.map(|bytes| Event::Output(token, stream, bytes))
                }
                QueuedEvent::Spilled(token, stream) => self.take_spill_file(token, stream),
                QueuedEvent::Forwarded(token, stream) => self.queue_forwarded(token, stream),
                QueuedEvent::Exited(token) => {
                    let kid = self.children.get_mut(token).filter(|kid| !kid.exit_reported);
                    kid.and_then(|kid| {
                        kid.exit_reported = true;
                        kid.exit.map(|exit| Event::Exited(token, exit))
                    })
                }
                QueuedEvent::Drain(token)
                    if self.children.get(token).is_some_and(|kid| kid.termination.is_some()) =>
                {
                    // It was to be killed after this was queued: its end comes when nobody of its tree is
                    // left.
                    self.children.get_mut(token).into_iter().for_each(|kid| kid.done_queued = false);
                    None
                }
                QueuedEvent::Drain(token) => {
                    // It stays first until the child is done.
                    self.events.push_front(notice);
                    return self.drain(token);
                }
            };
            if event.is_some() {
                return Ok(event);
            }
        }
        Ok(None)
    }

    /// Makes sure that a timer of this kind comes for this child at that time or before. One that
    /// comes too early finds out.
    fn arm(&mut self, token: Token, due: TimerKind, at: Instant) {
        let Some(kid) = self.children.get_mut(token) else { return };
        self.timers.arm(&mut kid.armed, token, due, at);
        self.timers.prune(self.children.len(), |token| self.children.get(token).map(|kid| &kid.armed));
    }

    fn child_mut(&self, token: Token) -> Result<&ChildState> {
        self.children.get(token).ok_or_else(gone)
    }

    /// Arms the endpoints of a new child, or (when the caller allows) its process alone for a
    /// while.
    fn register_outputs(&mut self, token: Token) -> std::io::Result<()> {
        let process = self.children.port_token(token, Kind::Process);
        let Some(kid) = self.children.get_mut(token) else { return Ok(()) };
        kid.process.watch(&mut self.reactor, process)?;
        if self.limits.read_delay.is_zero() {
            return self.register_reader(token, INTERVAL_MIN);
        }
        self.defer_read(token, self.limits.read_delay);
        Ok(())
    }

    /// Takes back a child that could not be watched. One that does not take its end at once is
    /// reaped later: it may be in a call that no signal ends, and others wait for this thread.
    fn abandon(&mut self, token: Token) {
        let Some(mut kid) = self.children.remove(token) else { return };
        let _ = kid.tree.signal_all(&kid.process, TreeSignal::Kill);
        kid.close(&mut self.reactor);
        if let Ok(None) = kid.process.wait(Some(Instant::now() + ABANDONED_WAIT)) {
            self.abandoned.push(kid.process);
            return;
        }
        kid.process.reap();
    }

    /// Reaps the abandoned that have ended by now.
    fn reap_abandoned(&mut self) {
        self.abandoned.retain_mut(|process| {
            let lives = matches!(process.peek(), Ok(None));
            if !lives {
                process.reap();
            }
            lives
        });
    }

    /// One wait, and everything that follows from it.
    fn poll_once(&mut self, until: Option<Instant>) -> Result<()> {
        // What a file did not take is tried again first. While it does not, the others go on without a
        // wait.
        let saved = if std::mem::take(&mut self.unwritten) { self.retry_paused() } else { Ok(()) };
        let saved = saved.or_else(|error| self.ignore_transient(error));
        let until = match (&saved, self.unwritten) {
            (Err(_), _) => Some(Instant::now()),
            (Ok(()), true) => {
                Some(until.map_or(Instant::now() + SAVE_AGAIN, |at| at.min(Instant::now() + SAVE_AGAIN)))
            }
            (Ok(()), false) => until,
        };
        (self.patience, self.until) = (Some(streaming::PATIENCE), until);
        self.reap_abandoned();
        let began = self.read_turns.is_waited_for().then(Instant::now);
        let mut reports = std::mem::take(&mut self.reports);
        let waited =
            self.reactor.wait(&mut reports, until).map_err(|error| Error::new("wait for children", error));
        let mut result = saved.and(waited);
        for report in reports.drain(..) {
            let taken = self.dispatch(&report).or_else(|error| self.ignore_transient(error));
            result = result.and(taken);
        }
        self.reports = reports;
        if let Some(began) = began {
            self.pass_turn(began.elapsed());
            result = result.and(self.hand_out_turns());
        }
        if self.timers.next_at().is_some() {
            self.expire(Instant::now())?;
        }
        result
    }

    /// Passes over that no descriptor is free for a spill file, while a child may still end and
    /// free some. The bytes wait, their child is held, and the next turns try again.
    fn ignore_transient(&self, error: Error) -> Result<()> {
        let ends = |token| {
            self.waits_for_turn(token)
                || self.children.get(token).is_some_and(|kid| kid.streams.iter().all(|out| !out.paused))
        };
        if error.kind() == ErrorKind::Exhausted
            && self.unwritten
            && self.children.tokens().into_iter().any(ends)
        {
            return Ok(());
        }
        Err(error)
    }

    /// Gives a report to its endpoint. One for a child that is gone is dropped: its generation does
    /// not fit.
    fn dispatch(&mut self, report: &Report) -> Result<()> {
        if report.token == WAKE_TOKEN {
            self.events.push_back(QueuedEvent::Woken);
            return self.retry_paused();
        }
        let Some((token, kind)) = self.children.find(report.token) else { return Ok(()) };
        match kind {
            Kind::Process => self.exited(token, report),
            Kind::Stdin => self.writable(token, report),
            Kind::Stdout => self.readable(token, Stream::Stdout, Some(report)).map(drop),
            Kind::Stderr => self.readable(token, Stream::Stderr, Some(report)).map(drop),
        }
    }

    /// Makes the foreign loop's descriptor readable while there are notices, and when the next
    /// timer is due.
    fn update_poll_handle(&self) -> Result<()> {
        if !self.watched {
            return Ok(());
        }
        let rung = if self.events.is_empty() { Ok(()) } else { self.reactor.waker().wake() };
        let armed = rung.and_then(|()| self.reactor.poll_handle(self.timers.next_at()).map(drop));
        armed.map_err(|error| Error::new("announce news", error))
    }
}

fn gone() -> Error {
    Error::of_kind(ErrorKind::Unknown, "reach a child", "it is done, or has no such stream")
}
