//! The set: its children are started and waited for here. `control.rs` has what is done with them while
//! they run.

use std::time::{Duration, Instant};

use super::child::ChildState;
use super::config::{ChildSetOptions, SpawnOptions};
use super::event_loop::{EventLoop, child_gone};
use super::restart_policy::RestartState;
use super::shared::SharedState;
use super::timers::INTERVAL_MIN;
use crate::backend::Backend;
use crate::chunk::MemoryQuota;
use crate::command::Command;
use crate::deadline::deadline_after;
use crate::event::{ChildId, Event, NextEvent};
use crate::guardian::Guardian;
use crate::poll::Waker;
use crate::sys::reap::reap_orphans;
use crate::sys::spawn::Spawner;
use crate::sys::wait::PollHandle;
use crate::{Error, ErrorKind, Operation, Result};

/// The least size of a read.
const READ_BUFFER_MIN: usize = 64;
/// The largest size of a read. No system has pipes of this size by default.
const READ_BUFFER_MAX: usize = 16 << 20;
/// The longest interval of a timer: a year, which can be added to an `Instant`.
const INTERVAL_MAX: Duration = Duration::from_secs(365 * 86_400);

/// A set of child processes with one wait for all of them, on one thread.
///
/// A set starts children, reads what they write, reports their exits, and kills them with everything
/// that they started. [`next_event`](Self::next_event) returns the events. The cost of a wait does not
/// grow with the number of children. A set is `Send`, but a child with [`Command::die_with_parent`] is
/// killed when the thread that started it ends.
///
/// Memory is bounded: see [`ChildSetOptions`] and [`OverflowPolicy`](crate::OverflowPolicy).
///
/// Dropping a set closes its pipes and kills no child. A child that is still running then becomes a
/// zombie when it exits, until a later start or wait of this library reaps it. To wait for the end of all
/// children, call [`kill_all`](Self::kill_all) and then `next_event` until the set is empty.
///
/// - Linux: pidfds. Without pidfds, the set polls its children every 1 to 50 ms. It also polls the
///   children, and the outputs, for which the backend has no room (`fs.epoll.max_user_watches`).
/// - macOS, FreeBSD, NetBSD, OpenBSD: `EVFILT_PROC` with the backend `kqueue`; polling with `poll`.
/// - Windows: a registered wait for each process, and one completion port.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};
///
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// for text in ["one", "two"] {
///     let mut command = Command::new("echo");
///     command.arg(text).stdout(Stdio::piped());
///     set.spawn(&command, SpawnOptions::new())?;
/// }
/// assert!(set.len() == 2 && !set.is_empty());
/// println!("two children wait by {}", set.backend());
/// while let NextEvent::Event(event) = set.next_event(None)? {
///     match event {
///         Event::Output { child, chunk, .. } => println!("child {child} wrote {} bytes", chunk.len()),
///         Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
///         _ => (),
///     }
/// }
/// assert!(set.is_empty());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Debug)]
pub struct ChildSet {
    pub(super) event_loop: EventLoop,
    /// `true` if the caller watches the descriptor of [`poll_handle`](Self::poll_handle).
    is_watched: bool,
}

impl ChildSet {
    /// Creates an empty set.
    ///
    /// # Errors
    /// - `Unsupported`: the operating system does not have the backend.
    /// - `InvalidInput`: [`ChildSetOptions::read_buffer_bytes`] is more than 16 MiB.
    /// - `Exhausted`: no descriptor is free.
    pub fn new(limits: ChildSetOptions) -> Result<Self> {
        if limits.read_buffer_bytes > READ_BUFFER_MAX {
            let reason = "`read_buffer_bytes` is more than 16 MiB";
            let error = Error::of_kind(ErrorKind::InvalidInput, "allocate the read buffer", reason);
            return Err(error.during(Operation::Read));
        }
        // What later starts can use again costs more than it saves if there are none.
        let spawner = if limits.starts_one { Ok(Spawner::for_one()) } else { Spawner::for_many() };
        let spawner =
            spawner.map_err(|error| Error::new("prepare for children", error).during(Operation::Spawn))?;
        let spawner = spawner.guarded_by(limits.guardian.as_ref().map(Guardian::link));
        let mut config = limits;
        // A read into an empty buffer would look like the end of the file.
        config.read_buffer_bytes = config.read_buffer_bytes.max(READ_BUFFER_MIN);
        // An interval of zero would be due again at once, for ever.
        let bounded = |interval: Duration| interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        config.leak_timeout = config.leak_timeout.map(bounded);
        config.stop_poll_interval = config.stop_poll_interval.map(bounded);
        config.read_delay = config.read_delay.min(INTERVAL_MAX);
        let shared = SharedState::open(config, spawner)?;
        Ok(Self { event_loop: EventLoop::new(shared), is_watched: false })
    }

    /// Returns the wait backend.
    pub fn backend(&self) -> Backend {
        self.event_loop.shared.io.reactor.kind()
    }

    /// Returns how many children are not *done* yet.
    pub fn len(&self) -> usize {
        self.event_loop.children.len()
    }

    /// Returns whether all children are done.
    pub fn is_empty(&self) -> bool {
        self.event_loop.children.len() == 0
    }

    /// Starts a child on the calling thread.
    ///
    /// # Errors
    /// As [`Command::spawn`], and:
    ///
    /// - `Limit`: [`ChildSetOptions::max_children`] children are not done yet.
    /// - `InvalidInput`: the options contradict each other.
    /// - `Exhausted`: no descriptor, process or memory is free. Nothing is left behind; try again
    ///   when a child is done.
    /// - `Other`: the child cannot be watched. Its program had started, and was killed.
    pub fn spawn(&mut self, command: &Command, options: SpawnOptions) -> Result<ChildId> {
        options.check()?;
        reap_orphans();
        if self.event_loop.children.len() >= self.event_loop.shared.io.config.max_children {
            let reason = "as many children live as this set may have";
            let error = Error::of_kind(ErrorKind::Limit, "start", reason).during(Operation::Spawn);
            return Err(error.with_subject(command.get_program()));
        }
        let restart = (!options.restart.is_never())
            .then(|| Box::new(RestartState::new(command.clone(), options.restart)));
        let EventLoop { children, shared, .. } = &mut self.event_loop;
        let spawned =
            shared.spawner.spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
        let quota = MemoryQuota::new(&shared.io.budget, shared.io.config.max_child_bytes);
        let mut child = ChildState::new(spawned, quota, options);
        child.restart = restart;
        let id = children.insert(child);
        let mut member = self.event_loop.find(id)?;
        if let Err(error) = member.watch() {
            self.event_loop.abandon(id);
            return Err(Error::new("watch", error)
                .during(Operation::Watch)
                .with_subject(command.get_program())
                .with_kind(ErrorKind::Other, "the system watches no more"));
        }
        member.arm_deadline();
        member.shared.timers.child_started();
        self.event_loop.prune_timers();
        self.update_poll_handle()?;
        Ok(id)
    }

    /// Returns the child's pid.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, ErrorKind, SpawnOptions};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&Command::new("true"), SpawnOptions::new())?;
    /// println!("started process {}", set.pid(child)?);
    /// set.wait_all(None, drop)?;
    /// assert_eq!(set.pid(child).unwrap_err().kind(), ErrorKind::Unknown);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done, or waits to be [started again](SpawnOptions::restart).
    pub fn pid(&self, id: ChildId) -> Result<u32> {
        let child = self.event_loop.children.get(id).filter(|child| child.between_runs().is_none());
        Ok(child.ok_or_else(child_gone)?.process.pid())
    }

    /// Waits for the next event, for at most `timeout`, or without a limit if there is none.
    ///
    /// Never returns [`TimedOut`](NextEvent::TimedOut) before that time. Without a timeout it returns
    /// [`Empty`](NextEvent::Empty) when all children are done. With one it waits for that time even if
    /// there is no child: another thread may use a [`Waker`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::default())?;
    /// let sleeper = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::default())?;
    /// assert!(matches!(set.next_event(Some(Duration::from_millis(5)))?, NextEvent::TimedOut));
    /// set.kill(sleeper, minder::Termination::IMMEDIATE)?;
    /// while let NextEvent::Event(event) = set.next_event(None)? {
    ///     if let Event::Done { child, outcome, .. } = event {
    ///         assert!(child == sleeper && outcome.killed);
    ///     }
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Limit`: there is no timeout, and no output of any child is read, because chunks that the caller
    ///   keeps fill the memory of each: see [`Chunk`](crate::Chunk). No byte is lost: drop some, and call
    ///   this again.
    /// - A spill file cannot be written ([`Operation::Spill`]). Its child is paused, no byte is lost,
    ///   and the next call tries again.
    /// - A system call fails that should not.
    pub fn next_event(&mut self, timeout: Option<Duration>) -> Result<NextEvent> {
        self.wait_for_event(deadline_after(timeout), timeout.is_some())
    }

    /// Waits for the next event, until `deadline` at the latest: see [`next_event`](Self::next_event). Also
    /// waits for other threads that drop chunks: never fails with `Limit`.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, NextEvent, SpawnOptions};
    /// use std::time::{Duration, Instant};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// set.spawn(&Command::new("true"), SpawnOptions::new())?;
    /// let deadline = Instant::now() + Duration::from_secs(60); // of all waits together
    /// while let NextEvent::Event(event) = set.next_event_deadline(Some(deadline))? {
    ///     println!("{event:?}");
    ///     if set.is_empty() {
    ///         break;
    ///     }
    /// }
    /// assert!(set.is_empty());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event).
    pub fn next_event_deadline(&mut self, deadline: Option<Instant>) -> Result<NextEvent> {
        self.wait_for_event(deadline, true)
    }

    fn wait_for_event(&mut self, deadline: Option<Instant>, while_starved: bool) -> Result<NextEvent> {
        let event = self.wait_until(deadline, while_starved);
        // Also after an error: the loop that watches the descriptor calls again.
        let updated = self.update_poll_handle();
        match event {
            Ok(NextEvent::TimedOut | NextEvent::Empty) => updated.and(event),
            // The next call updates the handle again.
            Ok(NextEvent::Event(_)) | Err(_) => event,
        }
    }

    /// With `while_starved`, waits although all children wait for chunks to be dropped.
    fn wait_until(&mut self, deadline: Option<Instant>, while_starved: bool) -> Result<NextEvent> {
        let mut is_last_poll = false;
        loop {
            if let Some(event) = self.event_loop.pop_event()? {
                return Ok(NextEvent::Event(event));
            }
            let is_empty = self.is_empty();
            if is_last_poll || (deadline.is_none() && is_empty) {
                return Ok(if is_empty { NextEvent::Empty } else { NextEvent::TimedOut });
            }
            if !while_starved {
                self.check_starved()?;
            }
            // The clock is read before the last poll, so that an event from before the deadline is
            // always returned.
            is_last_poll = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let until = [deadline, self.event_loop.next_timer_at()].into_iter().flatten().min();
            self.event_loop.poll_once(until)?;
        }
    }

    /// Hands every event to `handle` until all children are done, for at most `timeout`, or without a
    /// limit if there is none. Returns whether all are done.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// for program in ["true", "false"] {
    ///     set.spawn(&Command::new(program), SpawnOptions::new())?;
    /// }
    /// let mut failures = 0;
    /// let all_done = set.wait_all(Some(Duration::from_secs(60)), |event| {
    ///     if let Event::Done { outcome, .. } = event {
    ///         failures += usize::from(!outcome.exit.status.success());
    ///     }
    /// })?;
    /// assert!(all_done && failures == 1);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`next_event`](Self::next_event). Events that were not handed over stay in the set.
    pub fn wait_all(&mut self, timeout: Option<Duration>, mut handle: impl FnMut(Event)) -> Result<bool> {
        let deadline = deadline_after(timeout);
        while !self.is_empty() {
            match self.wait_for_event(deadline, timeout.is_some())? {
                NextEvent::Event(event) => handle(event),
                NextEvent::TimedOut => return Ok(false),
                NextEvent::Empty => break,
            }
        }
        Ok(true)
    }

    /// Waits once and hands no event over, for a caller that has no room for events. Output
    /// accumulates here, according to the overflow policy of each child.
    pub(crate) fn poll_without_events(&mut self, until: Instant) -> Result<()> {
        let until = self.event_loop.next_timer_at().map_or(until, |at| at.min(until));
        let result = self.event_loop.poll_once(Some(until));
        // The caller is awake. Without this, its wake-ups would fill the queue.
        self.event_loop.shared.events.remove_last_wakeup();
        result
    }

    /// Fails if all children wait for memory that chunks of the caller hold.
    pub(crate) fn check_starved(&self) -> Result<()> {
        self.event_loop.check_starved()
    }

    /// Returns a descriptor or handle for another event loop: it is readable while
    /// [`next_event`](Self::next_event) with a deadline in the past would return an event or has work to do.
    ///
    /// When it is readable, call `next_event` with a timeout of zero until it returns no event; then
    /// edge-triggered loops find the next event, too. Event loops that own what they watch take a copy,
    /// by `try_clone_to_owned`: the examples `in_tokio` and `in_mio` show that.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, NextEvent, SpawnOptions};
    /// use minder::poll::{Interest, Token};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// set.spawn(&Command::new("true"), SpawnOptions::new())?;
    /// let poller = minder::poll::Poller::new()?; // in place of another event loop
    /// let handle = set.poll_handle()?.try_clone_to_owned()?;
    /// let _registration = poller.register(&handle, Token(0), Interest::READABLE)?;
    /// while !set.is_empty() {
    ///     poller.wait(&mut minder::poll::Events::new(), None)?;
    ///     while let NextEvent::Event(event) = set.next_event(Some(Duration::ZERO))? {
    ///         println!("{event:?}");
    ///     }
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// - `Unsupported`: on Windows, so far. A [`BackgroundSet`](crate::BackgroundSet) has a handle on
    ///   every system.
    /// - `Exhausted`: no descriptor is free. The backend `poll` needs descriptors and a thread for
    ///   this.
    pub fn poll_handle(&mut self) -> Result<PollHandle<'_>> {
        self.is_watched = true;
        self.update_poll_handle()?;
        self.event_loop
            .shared
            .io
            .reactor
            .poll_handle(self.event_loop.next_wait_at())
            .map_err(|error| Error::new("watch a set", error).during(Operation::Watch))
    }

    /// Returns a handle that ends a wait from any thread; the wait returns
    /// [`Event::Woken`](crate::Event::Woken). That event may also come without a call of
    /// [`Waker::wake`].
    ///
    /// ```
    /// use minder::{ChildSet, ChildSetOptions, Event};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let waker = set.waker();
    /// std::thread::spawn(move || waker.wake());
    /// let event = set.next_event(Some(Duration::from_secs(60)))?.into_event();
    /// assert!(matches!(event, Some(Event::Woken)));
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn waker(&self) -> Waker {
        Waker(self.event_loop.shared.io.reactor.waker())
    }

    /// Returns whether [`next_event`](Self::next_event) would return an event without a system call.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions};
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// set.spawn(&Command::new("true"), SpawnOptions::new())?;
    /// assert!(!set.has_pending_events(), "no wait has happened");
    /// set.wait_all(None, drop)?;
    /// assert!(!set.has_pending_events() && set.buffered_bytes() == 0);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn has_pending_events(&self) -> bool {
        !self.event_loop.shared.events.is_empty()
    }

    /// Returns how many bytes of memory hold output, here and in the caller's chunks.
    pub fn buffered_bytes(&self) -> usize {
        self.event_loop.shared.io.budget.used()
    }

    /// Makes the descriptor of [`poll_handle`](Self::poll_handle) readable if events are queued, and
    /// sets its timer.
    pub(super) fn update_poll_handle(&self) -> Result<()> {
        if !self.is_watched {
            return Ok(());
        }
        let woken = if self.event_loop.shared.events.is_empty() {
            Ok(())
        } else {
            self.event_loop.shared.io.reactor.waker().wake()
        };
        let updated = woken.and_then(|()| {
            self.event_loop.shared.io.reactor.poll_handle(self.event_loop.next_wait_at()).map(drop)
        });
        updated.map_err(|error| Error::new("update the poll handle", error).during(Operation::Watch))
    }
}
