//! The set and its public methods. `dispatch.rs` has the wait.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::child::ChildState;
use super::config::{ChildSetOptions, SpawnOptions};
use super::event::QueuedEvent;
use super::read_turns::ReadTurns;
use super::restart_policy::RestartState;
use super::slab::{Endpoint, Slab};
use super::stream::StreamIo;
use super::thread_times::ThreadTimeReads;
use super::timers::{DeferredRead, INTERVAL_MIN, TimerKind, Timers};
use crate::backend::Backend;
use crate::chunk::{MemoryBudget, MemoryQuota};
use crate::command::Command;
use crate::deadline::deadline_after;
use crate::event::{ChildId, Event, NextEvent, Stream};
use crate::guardian::Guardian;
use crate::poll::Waker;
use crate::sys::pipe::Writer;
use crate::sys::process_tree::{ProcessSnapshot, ProcessTree, TreeSignal, TreeTable};
use crate::sys::reactor::Reactor;
use crate::sys::reap::reap_orphans;
use crate::sys::signal::Signal;
use crate::sys::spawn::Spawner;
use crate::sys::wait::PollHandle;
use crate::termination::Termination;
use crate::termination::TerminationState;
use crate::{Error, ErrorKind, Operation, Result};

/// The least size of a read.
const READ_BUFFER_MIN: usize = 64;
/// The largest size of a read. No system has pipes of this size by default.
const READ_BUFFER_MAX: usize = 16 << 20;
/// The longest time for which `spawn` waits for a child that it had to kill.
const ABANDON_TIMEOUT: Duration = Duration::from_millis(20);
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
    pub(super) io: StreamIo,
    pub(super) spawner: Spawner,
    pub(super) children: Slab<ChildState>,
    pub(super) events: VecDeque<QueuedEvent>,
    pub(super) timers: Timers,
    /// Children that wait for memory or for their spill file: see `memory.rs`.
    pub(super) memory_waiters: Vec<ChildId>,
    /// `true` if the next poll retries them without a wake-up: a spill file refused bytes or was taken.
    pub(super) retry_due: bool,
    pub(super) deferred_reads: Vec<DeferredRead>,
    pub(super) read_turns: ReadTurns,
    /// Decides which thread times are read, if not all are.
    pub(super) thread_time_reads: Option<ThreadTimeReads>,
    /// The reports of a wait. Kept for its memory.
    pub(super) reports: Vec<crate::sys::wait::Report>,
    /// The processes of the machine after the last wait, if they were looked for.
    pub(super) snapshot: Option<ProcessSnapshot>,
    /// The trees of all children, while all are being signalled.
    tree_table: Option<TreeTable>,
    /// `true` if all trees were stopped, and get their signals now.
    stops_all: bool,
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
        let mut reactor = Reactor::open(config.backend)
            .map_err(|error| Error::new("open a wait backend", error).during(Operation::Watch))?;
        reactor.limit_descriptors(config.fault_capacity);
        let waker = reactor.waker();
        // A wake-up fails only if the counter of pending wake-ups is full.
        let on_room = move || drop(waker.wake());
        let budget =
            MemoryBudget::new(config.max_buffered_bytes, config.read_buffer_bytes, Box::new(on_room));
        let timers = Timers::new(config.stop_poll_interval);
        let read_turns = ReadTurns::new(config.backlog.clone(), config.min_readers);
        let rate = if config.thread_times { config.thread_times_per_second } else { None };
        let io = StreamIo {
            reactor,
            buffer: Vec::with_capacity(config.read_buffer_bytes),
            config,
            budget,
            spill_number: 0,
            splice_wait: None,
            poll_until: None,
        };
        Ok(Self {
            io,
            spawner,
            children: Slab::default(),
            events: VecDeque::new(),
            timers,
            memory_waiters: Vec::new(),
            retry_due: false,
            deferred_reads: Vec::new(),
            read_turns,
            thread_time_reads: rate.map(ThreadTimeReads::at_rate),
            reports: Vec::new(),
            snapshot: None,
            tree_table: None,
            stops_all: false,
            is_watched: false,
        })
    }

    /// Returns the wait backend.
    pub fn backend(&self) -> Backend {
        self.io.reactor.kind()
    }

    /// Returns how many children are not *done* yet.
    pub fn len(&self) -> usize {
        self.children.len()
    }

    /// Returns whether all children are done.
    pub fn is_empty(&self) -> bool {
        self.children.len() == 0
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
        if self.children.len() >= self.io.config.max_children {
            let reason = "as many children live as this set may have";
            let error = Error::of_kind(ErrorKind::Limit, "start", reason).during(Operation::Spawn);
            return Err(error.with_subject(command.get_program()));
        }
        let restart = (!options.restart.is_never())
            .then(|| Box::new(RestartState::new(command.clone(), options.restart)));
        let spawned =
            self.spawner.spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
        let quota = MemoryQuota::new(&self.io.budget, self.io.config.max_child_bytes);
        let mut child = ChildState::new(spawned, quota, options);
        child.restart = restart;
        let id = self.children.insert(child);
        if let Err(error) = self.watch_child(id) {
            self.abandon(id);
            return Err(Error::new("watch", error)
                .during(Operation::Watch)
                .with_subject(command.get_program())
                .with_kind(ErrorKind::Other, "the system watches no more"));
        }
        if options.deadline.is_some() {
            self.arm_deadline(id);
        }
        self.timers.child_started();
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
        let child = self.children.get(id).filter(|child| child.between_runs().is_none());
        Ok(child.ok_or_else(child_gone)?.process.pid())
    }

    /// Writes as many bytes to the child's standard input as there is room for, and returns how many.
    /// If that is not all, [`Event::Writable`](crate::Event::Writable) reports that there is room
    /// again. Never blocks.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("wc");
    /// command.arg("-c").stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// let bytes = vec![b'x'; 200_000]; // more than a pipe takes at once
    /// let mut written = set.write(child, &bytes)?;
    /// while written < bytes.len() {
    ///     if let Some(Event::Writable { .. }) = set.next_event(None)?.into_event() {
    ///         written += set.write(child, &bytes[written..])?;
    ///     }
    /// }
    /// set.close_stdin(child)?;
    /// let mut count = Vec::new();
    /// set.wait_all(None, |event| {
    ///     if let Event::Output { chunk, .. } = event {
    ///         count.extend_from_slice(&chunk);
    ///     }
    /// })?;
    /// assert_eq!(count.trim_ascii(), b"200000");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done or has no such pipe.
    /// - Any other kind: the child closed its input. [`io_error`](Error::io_error) is then
    ///   `BrokenPipe`, and `SIGPIPE` is not raised.
    pub fn write(&mut self, id: ChildId, bytes: &[u8]) -> Result<usize> {
        let key = self.children.key(id, Endpoint::Stdin);
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        let writer = child.stdin.as_mut().filter(|writer| !writer.is_ending()).ok_or_else(child_gone)?;
        match writer.write(&mut self.io.reactor, key, bytes) {
            Ok(written) => {
                if writer.is_unwatched() {
                    self.defer_read(id, INTERVAL_MIN);
                }
                Ok(written)
            }
            Err(error) => {
                let pid = child.process.pid();
                let writer = child.stdin.take();
                self.close_writer(writer)?;
                let error = Error::new("write to the input of", error).during(Operation::Write);
                Err(error.with_subject(pid.to_string()))
            }
        }
    }

    /// Closes the child's standard input. Without effect if it has none. A
    /// [terminal](crate::Group::Terminal) gets its end-of-file character, usually Ctrl-D: a program that
    /// reads lines takes it for the end, once. One that drops the input of its terminal does not get it.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn close_stdin(&mut self, id: ChildId) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        let reader = child.stream(Stream::Stdout).reader();
        if reader.is_some_and(|reader| reader.is_terminal()) {
            return self.end_terminal(id);
        }
        let writer = child.stdin.take();
        self.close_writer(writer)
    }

    /// Ends the input of a child's terminal, as far as there is room. A report that there is more continues
    /// it.
    pub(super) fn end_terminal(&mut self, id: ChildId) -> Result<()> {
        let key = self.children.key(id, Endpoint::Stdin);
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        let Some(writer) = &mut child.stdin else { return Ok(()) };
        if let Ok(false) = writer.end_terminal(&mut self.io.reactor, key) {
            if writer.is_unwatched() {
                self.defer_read(id, INTERVAL_MIN);
            }
            return Ok(());
        }
        // It is written, or no process has the terminal open any more.
        let writer = child.stdin.take();
        self.close_writer(writer)
    }

    fn close_writer(&mut self, writer: Option<Writer>) -> Result<()> {
        let Some(writer) = writer else { return Ok(()) };
        writer
            .close(&mut self.io.reactor)
            .map_err(|error| Error::new("close the input of a child", error).during(Operation::Write))
    }

    /// Kills a child and what it started, at once or after asking: see [`Termination`].
    ///
    /// The child's [`Event::Done`](crate::Event::Done) comes when its whole tree has exited. Without
    /// effect on a tree that has exited. A [suspended](Self::suspend) child is resumed, so that it can
    /// handle the signal. A child with a [`RestartPolicy`](crate::RestartPolicy) is not started again.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    pub fn kill(&mut self, id: ChildId, how: Termination) -> Result<()> {
        self.end_restarts(id);
        self.terminate(id, how)
    }

    /// Kills the present run of a child.
    pub(super) fn terminate(&mut self, id: ChildId, how: Termination) -> Result<()> {
        let now = Instant::now();
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        child.process.check();
        if !child.tree.can_signal(&child.process) {
            if self.stops_all {
                // Other code has reaped the child since its tree was stopped.
                let _ = child.tree.signal_all(&child.process, how.first());
            }
            return self.update_poll_handle();
        }
        // A stopped process handles no signal. The signal below is followed by SIGCONT.
        self.restart_deadline(id, now);
        self.begin_kill(id, how, now)
    }

    /// Sends the first signal of a kill. The tree can be signalled.
    pub(super) fn begin_kill(&mut self, id: ChildId, how: Termination, now: Instant) -> Result<()> {
        let key = self.children.key(id, Endpoint::Process);
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        child.killed |= child.is_alive();
        // A second kill replaces the first only if it comes to SIGKILL earlier.
        let termination = TerminationState::new(how, now);
        let replaces = match &child.termination {
            Some(current) => termination.escalates_at() < current.escalates_at(),
            None => true,
        };
        if replaces {
            child.termination = Some(Box::new(termination));
        }
        child.tree.watch(&self.io.reactor, key);
        // Its output is read from now on. Otherwise it could block in a write instead of exiting.
        let resumed = self.leave_turns(id);
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        let pid = child.process.pid();
        let signalled = child.tree.signal_all_by(&child.process, how.first(), self.tree_table.as_ref());
        self.arm(id, TimerKind::Termination, termination.check_at(now));
        self.update_poll_handle()?;
        signalled.map_err(|error| {
            Error::new("kill", error).during(Operation::Kill).with_subject(pid.to_string())
        })?;
        resumed
    }

    /// Kills all children: see [`kill`](Self::kill). Tries every child, and returns the first error.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// for _ in 0..3 {
    ///     set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// }
    /// set.kill_all(Termination::graceful(Duration::from_secs(5)))?;
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill).
    pub fn kill_all(&mut self, how: Termination) -> Result<()> {
        if self.children.len() >= TreeTable::TREES_MIN {
            let trees = self.children.values_mut().filter_map(|child| {
                child.process.check();
                let can_signal = child.tree.can_signal(&child.process);
                can_signal.then_some((&mut child.tree, &child.process))
            });
            self.tree_table = ProcessTree::stop_all(&mut trees.collect::<Vec<_>>(), how.first());
            self.stops_all = true;
        }
        let mut result = Ok(());
        for id in self.children.ids() {
            result = result.and(self.kill(id, how));
        }
        self.tree_table = None;
        self.stops_all = false;
        result
    }

    /// Sends one signal to the process group of a child, as [`Child::signal`](crate::Child::signal) does: for
    /// servers that read their settings again at `SIGHUP`. It does not count as a [`kill`](Self::kill): the
    /// child's restart policy stays in force, and [`Outcome::killed`](crate::Outcome::killed) stays `false`
    /// even if the child dies of it.
    ///
    /// - A child that has exited and is not done: what is left of its group gets the signal.
    /// - A child that waits to be [started again](SpawnOptions::restart): without effect. Its next run reads
    ///   its settings anyway.
    /// - A [suspended](Self::suspend) child that has stopped handles the signal when it is resumed, and
    ///   `SIGKILL` at once. [`resume`](Self::resume) continues it; the set does not notice a `SIGCONT`.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, Signal, SpawnOptions, Stdio};
    ///
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "trap 'echo reloaded; exit' HUP; echo ready; while :; do sleep 1; done"]);
    /// command.stdout(Stdio::piped());
    /// let mut set = ChildSet::new(ChildSetOptions::new())?;
    /// let server = set.spawn(&command, SpawnOptions::new().output_mode(OutputMode::Stream))?;
    /// let mut output = Vec::new();
    /// while let Some(event) = set.next_event(None)?.into_event() {
    ///     if let Event::Output { chunk, .. } = event {
    ///         output.extend_from_slice(&chunk);
    ///         if output == b"ready\n" {
    ///             set.signal(server, Signal::HUP)?;
    ///         }
    ///     }
    /// }
    /// assert_eq!(output, b"ready\nreloaded\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    /// - `InvalidInput`: the number is not a signal of this operating system.
    /// - `Unsupported`: on Windows.
    pub fn signal(&mut self, id: ChildId, signal: Signal) -> Result<()> {
        let child = self.children.get_mut(id).ok_or_else(child_gone)?;
        child.process.check();
        if !child.tree.can_signal(&child.process) {
            return Ok(());
        }
        child.tree.signal_group(&child.process, signal.as_raw()).map_err(|error| {
            let subject = child.process.pid().to_string();
            Error::new("signal", error).during(Operation::Kill).with_subject(subject)
        })
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

    /// With `while_starved`, waits although all children wait for chunks to be dropped.
    fn wait_for_event(&mut self, deadline: Option<Instant>, while_starved: bool) -> Result<NextEvent> {
        let mut is_last_poll = false;
        loop {
            if let Some(event) = self.pop_event()? {
                self.update_poll_handle()?;
                return Ok(NextEvent::Event(event));
            }
            let is_empty = self.is_empty();
            if is_last_poll || (deadline.is_none() && is_empty) {
                self.update_poll_handle()?;
                return Ok(if is_empty { NextEvent::Empty } else { NextEvent::TimedOut });
            }
            if !while_starved {
                self.check_starved()?;
            }
            // The clock is read before the last poll, so that an event from before the deadline is
            // always returned.
            is_last_poll = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let until = [deadline, self.timers.next_at()].into_iter().flatten().min();
            self.poll_once(until)?;
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
        let until = self.timers.next_at().map_or(until, |at| at.min(until));
        let result = self.poll_once(Some(until));
        // The caller is awake. Without this, its wake-ups would fill the queue.
        if matches!(self.events.back(), Some(QueuedEvent::Woken)) {
            self.events.pop_back();
        }
        result
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
        self.io
            .reactor
            .poll_handle(self.timers.next_at())
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
        Waker(self.io.reactor.waker())
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
        !self.events.is_empty()
    }

    /// Returns how many bytes of memory hold output, here and in the caller's chunks.
    pub fn buffered_bytes(&self) -> usize {
        self.io.budget.used()
    }

    /// Arms a timer of a child. If it is armed for an earlier time, that time stays; the handler then
    /// arms it again.
    pub(super) fn arm(&mut self, id: ChildId, kind: TimerKind, at: Instant) {
        let Some(child) = self.children.get_mut(id) else { return };
        self.timers.arm(&mut child.armed, id, kind, at);
        self.timers.prune(self.children.len(), |id| self.children.get(id).map(|child| &child.armed));
    }

    /// Registers the endpoints of a new child; with a `read_delay` its process alone at first.
    pub(super) fn watch_child(&mut self, id: ChildId) -> std::io::Result<()> {
        let key = self.children.key(id, Endpoint::Process);
        let Some(child) = self.children.get_mut(id) else { return Ok(()) };
        child.process.watch(&mut self.io.reactor, key)?;
        child.started_at = self.thread_time_reads.is_some().then(Instant::now);
        let delay = self.io.config.read_delay;
        if delay.is_zero() {
            return self.register_streams(id, INTERVAL_MIN);
        }
        self.defer_read(id, delay);
        Ok(())
    }

    /// Kills a child that could not be watched. If it does not exit within a bounded time, it is
    /// reaped later: it may be in an uninterruptible system call, and other children wait for this
    /// thread.
    fn abandon(&mut self, id: ChildId) {
        if let Some(child) = self.children.remove(id) {
            self.discard(child);
        }
    }

    /// Kills the process of a child that is no longer in the table: see [`abandon`](Self::abandon).
    pub(super) fn discard(&mut self, mut child: ChildState) {
        let _ = child.tree.signal_all(&child.process, TreeSignal::Kill);
        child.close(&mut self.io.reactor);
        // Its drop reaps it, or leaves that to later calls.
        let _ = child.process.wait(Some(Instant::now() + ABANDON_TIMEOUT));
    }

    /// Makes the descriptor of [`poll_handle`](Self::poll_handle) readable if events are queued, and
    /// sets its timer.
    pub(super) fn update_poll_handle(&self) -> Result<()> {
        if !self.is_watched {
            return Ok(());
        }
        let woken = if self.events.is_empty() { Ok(()) } else { self.io.reactor.waker().wake() };
        let updated = woken.and_then(|()| self.io.reactor.poll_handle(self.timers.next_at()).map(drop));
        updated.map_err(|error| Error::new("update the poll handle", error).during(Operation::Watch))
    }
}

/// The error for an id whose child is done, or that has no such stream.
pub(super) fn child_gone() -> Error {
    Error::of_kind(ErrorKind::Unknown, "reach a child", "it is done, or has no such stream")
        .during(Operation::Lookup)
}
