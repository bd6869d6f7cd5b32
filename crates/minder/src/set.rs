//! `ChildSet`: many children, one wait.
//!
//! Endpoints report progress to one port; what a report means for its child is decided in
//! `set/kid.rs`; what the caller is told waits in one queue of notices. A notice of output names a
//! stream and holds no bytes: those stay with their child until they are handed over, so that they
//! can be bounded, spilled or dropped child by child.

mod ending;
mod kid;
mod killing;
mod limits;
mod live;
mod output;
mod pace;
mod slab;
mod spill;
mod suspend;
mod timers;
mod turns;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use self::kid::Kid;
use self::killing::Killing;
pub use self::limits::{Delivery, Limits, SpawnOptions, WhenFull};
use self::slab::{Kind, Slab};
use self::timers::{Due, Timers};
use self::turns::Turns;
use crate::child::Kill;
use crate::chunk::{Account, Budget, Chunk};
use crate::command::Command;
use crate::event::{Event, Stream, Token};
use crate::os::News;
use crate::sys::reap::Process;
use crate::sys::spawn::Spawner;
use crate::sys::tree::{Blow, Living};
use crate::sys::wait::{Port, Report, WAKE};
use crate::wait::Waker;
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
/// Memory is bounded: see [`Limits`] and [`WhenFull`]. Dropping a set closes its pipes; children
/// that still run go on, and stay zombies after their end until this process ends.
/// [`kill_all`](Self::kill_all) and a loop over `next` come first.
///
/// - Linux: pidfds, or where there are none a sweep over the children at intervals of 1 to 50 ms.
///   So are children for which the backend has no room (`fs.epoll.max_user_watches`), and their
///   outputs are looked at alike.
/// - macOS, FreeBSD, NetBSD, OpenBSD: `EVFILT_PROC` with the backend `kqueue`, the sweep with
///   `poll`. Windows: a registered wait for each process, one completion port.
#[derive(Debug)]
pub struct ChildSet {
    port: Port,
    spawner: Spawner,
    limits: Limits,
    budget: Arc<Budget>,
    kids: Slab<Kid>,
    notices: VecDeque<Notice>,
    timers: Timers,
    /// Children that wait for room: to read on, or to bring back what was spilled.
    starved: Vec<Token>,
    /// Whether a spill file refused bytes, which is to be tried again.
    unsaved: bool,
    /// Children whose outputs are not listened to yet, since they may end before it is worth it.
    fresh: Vec<Fresh>,
    /// Killed children that could not be watched, and that have not ended yet.
    abandoned: Vec<Process>,
    /// Who is read on while much waits in files.
    turns: Turns,
    /// How many named spill files were made.
    spills: u64,
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
struct Fresh {
    token: Token,
    due: Instant,
    /// The time between this look and the last.
    pause: Duration,
}

/// What the caller is to be told, without the bytes.
#[derive(Clone, Copy, Debug)]
enum Notice {
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
    pub fn new(limits: Limits) -> Result<Self> {
        let spawner = Spawner::for_many().map_err(|error| Error::new("prepare for children", error))?;
        let mut limits = limits;
        // A read into no room would look like the end of the file.
        limits.buffer_bytes = limits.buffer_bytes.max(BUFFER_MIN);
        // A time of zero would be due again at once, for ever.
        limits.leak_after = limits.leak_after.map(|after| after.max(INTERVAL_MIN));
        limits.notice_stops = limits.notice_stops.map(|every| every.max(INTERVAL_MIN));
        let mut port =
            Port::open(limits.backend).map_err(|error| Error::new("open a wait backend", error))?;
        port.fault_room(limits.fault_room);
        let bell = port.doorbell();
        // A ring that fails is one that the full counter already holds.
        let budget = Budget::new(limits.bytes_max, limits.buffer_bytes, Box::new(move || drop(bell.ring())));
        let timers = Timers::new(limits.notice_stops);
        let turns = Turns::new(limits.backlog.clone(), limits.readers_min);
        Ok(Self {
            port,
            spawner,
            buffer: Vec::with_capacity(limits.buffer_bytes),
            limits,
            budget,
            kids: Slab::default(),
            notices: VecDeque::new(),
            timers,
            starved: Vec::new(),
            unsaved: false,
            fresh: Vec::new(),
            abandoned: Vec::new(),
            turns,
            spills: 0,
            patience: None,
            until: None,
            reports: Vec::new(),
            watched: false,
        })
    }

    /// The name of the wait backend.
    pub fn backend(&self) -> &'static str {
        self.port.name()
    }

    /// How many children are not *done* yet.
    pub fn len(&self) -> usize {
        self.kids.len()
    }

    /// Whether all children are done.
    pub fn is_empty(&self) -> bool {
        self.kids.len() == 0
    }

    /// Starts a child on the calling thread.
    ///
    /// # Errors
    /// As [`Command::spawn`]; `Limit` when [`Limits::children_max`] children live; `InvalidInput`
    /// for options that contradict each other. `Exhausted` leaves nothing behind: end a child,
    /// or wait for one, and try again. `Other` for a child that cannot be watched: its program
    /// had begun, and was killed.
    pub fn spawn(&mut self, command: &Command, options: SpawnOptions) -> Result<Token> {
        options.check()?;
        if self.kids.len() >= self.limits.children_max {
            let error = Error::own(ErrorKind::Limit, "start", "as many children live as this set may have");
            return Err(error.on(command.get_program()));
        }
        let spawned =
            self.spawner.spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
        let account = Account::new(&self.budget, self.limits.child_bytes_max);
        let token = self.kids.insert(Kid::new(spawned, account, options));
        if let Err(error) = self.listen(token) {
            self.abandon(token);
            return Err(Error::new("watch", error)
                .on(command.get_program())
                .because(ErrorKind::Other, "the system watches no more"));
        }
        if options.deadline.is_some() {
            self.arm_deadline(token);
        }
        self.timers.child_started();
        self.announce()?;
        Ok(token)
    }

    /// The child's process number.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn id(&self, token: Token) -> Result<u32> {
        Ok(self.kid(token)?.process.pid())
    }

    /// Writes to the child's standard input as much as there is room for, which may be nothing:
    /// then [`Event::Writable`] says when to go on. Never blocks.
    ///
    /// # Errors
    /// `Unknown` for a child that is done or has no such pipe; an error whose [`io`](Error::io) is
    /// `BrokenPipe` when the child reads no more. No signal is raised.
    pub fn write(&mut self, token: Token, bytes: &[u8]) -> Result<usize> {
        let port_token = self.kids.port_token(token, Kind::Stdin);
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        let writer = kid.stdin.as_mut().ok_or_else(gone)?;
        match writer.write(&mut self.port, port_token, bytes) {
            Ok(written) => Ok(written),
            Err(error) => {
                let id = kid.process.pid();
                self.close_stdin(token)?;
                Err(Error::new("write to the input of", error).on(id.to_string()))
            }
        }
    }

    /// Closes the child's standard input. Without effect where it has none.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn close_stdin(&mut self, token: Token) -> Result<()> {
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        match kid.stdin.take() {
            Some(writer) => {
                writer.close(&mut self.port).map_err(|error| Error::new("close the input of a child", error))
            }
            None => Ok(()),
        }
    }

    /// Kills a child and what it started, or asks first and insists later: see [`Kill`]. Its
    /// [`Event::Done`] comes when nobody of its tree is left. Without effect on a tree that is
    /// dead. A child that is [suspended](Self::suspend) goes on, so that it can end.
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `PermissionDenied` for one that became another user's.
    pub fn kill(&mut self, token: Token, how: Kill) -> Result<()> {
        let now = Instant::now();
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        kid.process.check();
        if kid.process.reaped() {
            return Ok(());
        }
        // Whoever is asked has to go on to hear it.
        self.clock_goes_on(token, now);
        let port_token = self.kids.port_token(token, Kind::Process);
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        kid.struck |= kid.runs();
        // A second, sharper order replaces the first; a softer one does not.
        let killing = Killing::new(how, now);
        if kid.killing.as_ref().is_none_or(|before| killing.insist_at() < before.insist_at()) {
            kid.killing = Some(Box::new(killing));
        }
        kid.tree.watch(&self.port, port_token);
        // What it still says is heard, or it could not end in its own way.
        let read = self.leave_turns(token);
        let kid = self.kids.get_mut(token).ok_or_else(gone)?;
        let id = kid.process.pid();
        let struck = kid.tree.strike(&kid.process, how.first());
        self.arm(token, Due::Killing, killing.look_at(now));
        self.announce()?;
        struck.map_err(|error| Error::new("kill", error).on(id.to_string()))?;
        read
    }

    /// Kills all children: see [`kill`](Self::kill). The first error is returned, after all were
    /// tried.
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn kill_all(&mut self, how: Kill) -> Result<()> {
        let mut result = Ok(());
        for token in self.kids.tokens() {
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
            if let Some(event) = self.pop()? {
                self.announce()?;
                return Ok(Some(event));
            }
            if last || (deadline.is_none() && self.kids.len() == 0) {
                self.announce()?;
                return Ok(None);
            }
            // The clock is read before the last look, so that what came before the deadline is never passed
            // over.
            last = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let until = [deadline, self.timers.next_at()].into_iter().flatten().min();
            self.turn(until)?;
        }
    }

    /// One wait without handing anything over, for a caller that has no room for events: what comes
    /// piles up here, child by child, each by its own rule for a full memory.
    pub(crate) fn pile(&mut self, until: Instant) -> Result<()> {
        let until = self.timers.next_at().map_or(until, |at| at.min(until));
        let result = self.turn(Some(until));
        // The caller is awake now, and many wakes must not make a queue.
        if matches!(self.notices.back(), Some(Notice::Woken)) {
            self.notices.pop_back();
        }
        result
    }

    /// A descriptor or handle for another loop: readable while [`next`](Self::next) with a deadline
    /// that has passed would have something to tell. Watch it level-triggered and, when it is
    /// readable, call `next` until it says `None`.
    ///
    /// # Errors
    /// `Unsupported` on Windows so far; a [`Pump`](crate::Pump) always has one. `Exhausted` when no
    /// descriptor is free: the backend `poll` needs some, and a thread, to watch in your place.
    pub fn news(&mut self) -> Result<News<'_>> {
        self.watched = true;
        self.announce()?;
        self.port.news(self.timers.next_at()).map_err(|error| Error::new("watch a set", error))
    }

    /// A handle that ends a wait from any thread; [`Event::Woken`] tells of it. That event may also
    /// come without a wake.
    pub fn waker(&self) -> Waker {
        Waker(self.port.doorbell())
    }

    /// Whether [`next`](Self::next) has something to tell without a look at the system.
    pub fn has_news(&self) -> bool {
        !self.notices.is_empty()
    }

    /// Bytes held for the caller, and by the caller's chunks.
    pub fn bytes_held(&self) -> usize {
        self.budget.used()
    }

    /// The next event, if there is one.
    fn pop(&mut self) -> Result<Option<Event>> {
        while let Some(notice) = self.notices.pop_front() {
            let event = match notice {
                Notice::Woken => Some(Event::Woken),
                Notice::Writable(token) => self.kids.get(token).map(|_| Event::Writable(token)),
                Notice::Eof(token, stream) => Some(Event::Eof(token, stream)),
                Notice::Stopped(token, signal) => Some(Event::Stopped(token, signal)),
                Notice::Output(token, stream) => {
                    // Without bytes they were dropped to make room.
                    let out = self.kids.get_mut(token).map(|kid| &mut kid.outs[stream as usize]);
                    let bytes = out.and_then(|out| {
                        out.noticed -= 1;
                        out.kept.pop_front()
                    });
                    bytes.map(|bytes| Event::Output(token, stream, bytes))
                }
                Notice::Spilled(token, stream) => self.hand_over(token, stream),
                Notice::Forwarded(token, stream) => self.tell_forwarded(token, stream),
                Notice::Exited(token) => {
                    let kid = self.kids.get_mut(token).filter(|kid| !kid.told);
                    kid.and_then(|kid| {
                        kid.told = true;
                        kid.exit.map(|exit| Event::Exited(token, exit))
                    })
                }
                Notice::Drain(token) if self.kids.get(token).is_some_and(|kid| kid.killing.is_some()) => {
                    // It was to be killed after this was queued: its end comes when nobody of its tree is
                    // left.
                    self.kids.get_mut(token).into_iter().for_each(|kid| kid.draining = false);
                    None
                }
                Notice::Drain(token) => {
                    // It stays first until the child is done.
                    self.notices.push_front(notice);
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
    fn arm(&mut self, token: Token, due: Due, at: Instant) {
        let Some(kid) = self.kids.get_mut(token) else { return };
        self.timers.arm(&mut kid.armed, token, due, at);
        self.timers.prune(self.kids.len(), |token| self.kids.get(token).map(|kid| &kid.armed));
    }

    fn kid(&self, token: Token) -> Result<&Kid> {
        self.kids.get(token).ok_or_else(gone)
    }

    /// Arms the endpoints of a new child, or (when the caller allows) its process alone for a
    /// while.
    fn listen(&mut self, token: Token) -> std::io::Result<()> {
        let process = self.kids.port_token(token, Kind::Process);
        let Some(kid) = self.kids.get_mut(token) else { return Ok(()) };
        kid.process.watch(&mut self.port, process)?;
        if self.limits.listen_after.is_zero() {
            return self.hear(token, INTERVAL_MIN);
        }
        self.look_later(token, self.limits.listen_after);
        Ok(())
    }

    /// Takes back a child that could not be watched. One that does not take its end at once is
    /// reaped later: it may be in a call that no signal ends, and others wait for this thread.
    fn abandon(&mut self, token: Token) {
        let Some(mut kid) = self.kids.remove(token) else { return };
        let _ = kid.tree.strike(&kid.process, Blow::Insist);
        kid.close(&mut self.port);
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
    fn turn(&mut self, until: Option<Instant>) -> Result<()> {
        // What a file did not take is tried again first. While it does not, the others go on without a
        // wait.
        let saved = if std::mem::take(&mut self.unsaved) { self.feed() } else { Ok(()) };
        let saved = saved.or_else(|error| self.forgive(error));
        let until = match (&saved, self.unsaved) {
            (Err(_), _) => Some(Instant::now()),
            (Ok(()), true) => {
                Some(until.map_or(Instant::now() + SAVE_AGAIN, |at| at.min(Instant::now() + SAVE_AGAIN)))
            }
            (Ok(()), false) => until,
        };
        (self.patience, self.until) = (Some(live::PATIENCE), until);
        self.reap_abandoned();
        let began = self.turns.is_waited_for().then(Instant::now);
        let mut reports = std::mem::take(&mut self.reports);
        let waited =
            self.port.wait(&mut reports, until).map_err(|error| Error::new("wait for children", error));
        let mut result = saved.and(waited);
        for report in reports.drain(..) {
            let taken = self.take(&report).or_else(|error| self.forgive(error));
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
    fn forgive(&self, error: Error) -> Result<()> {
        let ends = |token| {
            self.waits_for_turn(token)
                || self.kids.get(token).is_some_and(|kid| kid.outs.iter().all(|out| !out.held))
        };
        if error.kind() == ErrorKind::Exhausted && self.unsaved && self.kids.tokens().into_iter().any(ends) {
            return Ok(());
        }
        Err(error)
    }

    /// Gives a report to its endpoint. One for a child that is gone is dropped: its generation does
    /// not fit.
    fn take(&mut self, report: &Report) -> Result<()> {
        if report.token == WAKE {
            self.notices.push_back(Notice::Woken);
            return self.feed();
        }
        let Some((token, kind)) = self.kids.find(report.token) else { return Ok(()) };
        match kind {
            Kind::Process => self.exited(token, report),
            Kind::Stdin => self.writable(token, report),
            Kind::Stdout => self.readable(token, Stream::Stdout, Some(report)).map(drop),
            Kind::Stderr => self.readable(token, Stream::Stderr, Some(report)).map(drop),
        }
    }

    /// Makes the foreign loop's descriptor readable while there are notices, and when the next
    /// timer is due.
    fn announce(&self) -> Result<()> {
        if !self.watched {
            return Ok(());
        }
        let rung = if self.notices.is_empty() { Ok(()) } else { self.port.doorbell().ring() };
        let armed = rung.and_then(|()| self.port.news(self.timers.next_at()).map(drop));
        armed.map_err(|error| Error::new("announce news", error))
    }
}

fn gone() -> Error {
    Error::own(ErrorKind::Unknown, "reach a child", "it is done, or has no such stream")
}
