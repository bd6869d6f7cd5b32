//! The handles of a background set, and its public methods.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};

use super::config::BackgroundSetOptions;
use super::event_queue::ChildQueue;
use super::request::{Request, reply_channel};
use super::shared::{STOP_TIMEOUT, Shared, State, StopReason};
use super::worker;
use crate::command::Command;
use crate::deadline::deadline_after;
use crate::event::{ChildId, Event};
use crate::group::Size;
use crate::set::{ChildSet, SpawnOptions};
use crate::sys::signal::Signal;
use crate::sys::wait::{self, PollHandle};
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

/// The number of bytes of output that [`BackgroundSet::wait_all`] takes at a time.
const WAIT_ALL_BYTES: usize = 64 << 10;
/// After how long without an event a wait without a limit asks for the first time whether chunks that the
/// host keeps stop all children. The next times are twice as long each.
const STARVED_AFTER: Duration = Duration::from_millis(100);
/// The longest single wait on the condition variable.
const WAIT_SLICE: Duration = Duration::from_secs(3600);

/// A [`ChildSet`] on a separate thread, for a host with its own event loop: an editor, an
/// interpreter, a window.
///
/// The worker thread reads output all the time, so no child waits for a busy host until memory is
/// full. The host watches one descriptor, [`poll_handle`](Self::poll_handle), and calls
/// [`drain_events`](Self::drain_events) when it is readable. Handles are cheap to clone, and may be
/// used from any thread at the same time. The worker thread blocks all signals, so no signal handler
/// of the process runs on it.
///
/// # Order
/// For one child: `Output` and `Eof` in the order of the bytes; `Exited` after the last byte, and
/// `Done` immediately after it. (With [`BackgroundSetOptions::eager_exit`], `Exited` comes when the
/// child exits.) `Writable` and `Stopped` come at their place in this order; at most one of each waits
/// for a child, and at most 64 restarts: if the host takes no events, the oldest of these are dropped,
/// and [`Event::Restarting`] counts on. `Woken` never comes. Adjacent chunks of the same stream are
/// joined, up to [`ChildSetOptions::read_buffer_bytes`].
///
/// # Memory
/// Queued output counts in the limits of the [`ChildSetOptions`], and so do the host's chunks. If the
/// host takes no events, children block, spill or lose their oldest bytes, according to the overflow
/// policy of each. No event is lost. A child counts in [`ChildSetOptions::max_children`] until the
/// host has taken its `Done`.
///
/// # Shutdown
/// [`stop`](Self::stop) kills all children. Dropping the last handle ends the thread, closes the
/// pipes and kills no child, as dropping a [`ChildSet`] does.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{BackgroundSet, ChildSetOptions, Command, Event, SpawnOptions, Stdio};
/// let set = BackgroundSet::new(ChildSetOptions::default())?;
/// let mut command = Command::new("echo");
/// command.arg("hello").stdout(Stdio::piped());
/// let child = set.spawn(&command, SpawnOptions::default())?;
///
/// let poller = minder::poll::Poller::new()?; // in place of the host's event loop
/// poller.add(&set.poll_handle(), minder::poll::Token(0), minder::poll::Interest::READABLE)?;
/// let mut events = Vec::new();
/// while !matches!(events.last(), Some(Event::Done { .. })) {
///     poller.wait(&mut minder::poll::Events::new(), None)?;
///     set.drain_events(&mut events, usize::MAX);
/// }
/// let Event::Output { child: id, chunk: bytes, .. } = &events[0] else { panic!("{events:?}") };
/// assert!(*id == child && **bytes == *b"hello\n");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
///
/// [`ChildSetOptions`]: crate::ChildSetOptions
/// [`ChildSetOptions::max_children`]: crate::ChildSetOptions::max_children
/// [`ChildSetOptions::read_buffer_bytes`]: crate::ChildSetOptions::read_buffer_bytes
#[derive(Clone, Debug)]
pub struct BackgroundSet {
    handle: Arc<Handle>,
}

/// Dropping it, with the last `BackgroundSet`, ends the thread.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    /// `None` after `stop` has joined the thread.
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl BackgroundSet {
    /// Starts the worker thread. Takes a [`ChildSetOptions`](crate::ChildSetOptions),
    /// too, for default options of the thread.
    ///
    /// # Errors
    /// As [`ChildSet::new`], and:
    ///
    /// - `Exhausted`: no thread can be started.
    pub fn new(config: impl Into<BackgroundSetOptions>) -> Result<Self> {
        let options = config.into();
        let set = ChildSet::new(options.set.clone())?;
        let ready = wait::Waker::new()
            .map_err(|error| Error::new("make a descriptor for events", error).during(Operation::Watch))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            published: Condvar::new(),
            ready,
            waker: set.waker(),
            options,
        });
        let thread = worker::start(Arc::clone(&shared), set)?;
        Ok(Self { handle: Arc::new(Handle { shared, thread: Mutex::new(Some(thread)) }) })
    }

    /// Starts a child on the worker thread, which lives as long as the set, and waits until it was
    /// started.
    ///
    /// # Errors
    /// As [`ChildSet::spawn`], and:
    ///
    /// - `Other`: the set was stopped, or the worker does not reply in time. A child that starts
    ///   after that is killed at once.
    pub fn spawn(&self, command: &Command, options: SpawnOptions) -> Result<ChildId> {
        self.spawn_with_user(command, options, 0)
    }

    /// Starts a child with a value of the host, such as the address or the index of its object:
    /// [`drain_events_with_user`](Self::drain_events_with_user) returns it with every event of the
    /// child, also after a restart.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, SpawnOptions, Stdio};
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let mut outputs = vec![Vec::new(), Vec::new()];
    /// for (index, word) in ["one", "two"].into_iter().enumerate() {
    ///     let mut command = Command::new("echo");
    ///     let child = command.arg(word).stdout(Stdio::piped());
    ///     set.spawn_with_user(child, SpawnOptions::new(), index as u64)?;
    /// }
    /// let mut events = Vec::new();
    /// while !set.is_empty() {
    ///     set.wait(None)?;
    ///     set.drain_events_with_user(&mut events, usize::MAX);
    ///     for (event, index) in events.drain(..) {
    ///         if let Event::Output { chunk, .. } = event {
    ///             outputs[index as usize].extend_from_slice(&chunk);
    ///         }
    ///     }
    /// }
    /// assert_eq!(outputs, [b"one\n", b"two\n"]);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`spawn`](Self::spawn).
    pub fn spawn_with_user(&self, command: &Command, options: SpawnOptions, user: u64) -> Result<ChildId> {
        let (sender, receiver) = reply_channel();
        let request = Request::Spawn(Box::new(command.clone()), options, user, sender);
        self.send_request("start a child", Operation::Spawn, request)?;
        receiver.wait("start a child", Operation::Spawn, self.shared().options.call_timeout)
    }

    /// Queues as many bytes for the child's standard input as there is room for, and returns how
    /// many. If that is not all, [`Event::Writable`] reports that there is room again. Never blocks.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, SpawnOptions, Stdio};
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let mut command = Command::new("cat");
    /// command.stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// println!("started process {}", set.pid(child)?);
    /// assert_eq!(set.write(child, b"text")?, 4);
    /// set.close_stdin(child)?;
    /// let mut bytes = Vec::new();
    /// set.wait_all(None, |event| {
    ///     if let Event::Output { chunk, .. } = event {
    ///         bytes.extend_from_slice(&chunk);
    ///     }
    /// })?;
    /// assert!(bytes == b"text" && set.is_empty() && set.len() == 0 && set.buffered_bytes() == 0);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done or has no such pipe.
    /// - Any other kind: the child closed its input. [`io_error`](Error::io_error) is then
    ///   `BrokenPipe`. A write before may have succeeded, because it only queued the bytes.
    pub fn write(&self, id: ChildId, bytes: &[u8]) -> Result<usize> {
        let max = self.shared().options.max_input_bytes;
        self.change_input(id, |child| child.stdin.accept(bytes, max))
    }

    /// Closes the child's standard input after the queued bytes were written. Without effect if it
    /// has none.
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    pub fn close_stdin(&self, id: ChildId) -> Result<()> {
        self.change_input(id, |child| {
            child.stdin.close();
            Ok(())
        })
    }

    /// Kills a child and what it started, at once or after asking: see [`ChildSet::kill`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let child = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// set.kill(child, Termination::graceful(Duration::from_secs(5)))?; // returns at once
    /// assert!(set.wait_all(None, drop)?);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child is done.
    /// - `PermissionDenied`: the child runs as another user.
    /// - `Other`: the set was stopped, or the worker does not reply in time.
    pub fn kill(&self, id: ChildId, how: Termination) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("kill a child", Operation::Kill, Request::Kill(id, how, sender))?;
        receiver.wait("kill a child", Operation::Kill, self.shared().options.call_timeout)
    }

    /// Sends one signal to the process group of a child: see [`ChildSet::signal`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, Signal, SpawnOptions};
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let child = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// set.signal(child, Signal::HUP)?;
    /// set.wait_all(None, |event| {
    ///     if let Event::Done { outcome, .. } = event {
    ///         assert!(outcome.exit.status.signal() == Some(1) && !outcome.killed);
    ///     }
    /// })?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ChildSet::signal`], and:
    ///
    /// - `Other`: the set was stopped, or the worker does not reply in time.
    pub fn signal(&self, id: ChildId, signal: Signal) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("signal a child", Operation::Kill, Request::Signal(id, signal, sender))?;
        receiver.wait("signal a child", Operation::Kill, self.shared().options.call_timeout)
    }

    /// Kills a child with everything that it started, and starts it again: see
    /// [`ChildSet::restart`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, Restart, SpawnOptions, Termination};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let options = SpawnOptions::new().restart(Restart::OnFailure);
    /// let server = set.spawn(Command::new("sleep").arg("60"), options)?;
    /// set.restart(server, Termination::IMMEDIATE)?;
    /// let mut events = Vec::new();
    /// while !events.iter().any(|event| matches!(event, Event::Restarted { .. })) {
    ///     set.wait(None)?;
    ///     set.drain_events(&mut events, usize::MAX);
    /// }
    /// set.stop(Duration::ZERO)?; // kills it for good
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`kill`](Self::kill), and:
    ///
    /// - `InvalidInput`: the child was started without a [`RestartPolicy`](crate::RestartPolicy).
    pub fn restart(&self, id: ChildId, how: Termination) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("restart a child", Operation::Spawn, Request::Restart(id, how, sender))?;
        receiver.wait("restart a child", Operation::Spawn, self.shared().options.call_timeout)
    }

    /// Sets the size of the child's terminal: see [`ChildSet::resize_terminal`].
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, Group, Size, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let mut command = Command::new("cat");
    /// command.group(Group::Terminal(Size::default()));
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.resize_terminal(child, Size::new(50, 132))?;
    /// set.stop(Duration::ZERO)?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ChildSet::resize_terminal`], and:
    ///
    /// - `Other`: the set was stopped, or the worker does not reply in time.
    pub fn resize_terminal(&self, id: ChildId, size: Size) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("resize a terminal", Operation::Resize, Request::Resize(id, size, sender))?;
        receiver.wait("resize a terminal", Operation::Resize, self.shared().options.call_timeout)
    }

    /// Suspends a child with everything that it started: see [`ChildSet::suspend`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let child = set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// set.suspend(child)?;
    /// assert!(!set.wait(Some(Duration::from_millis(10)))?, "it is not done");
    /// set.resume(child)?;
    /// set.stop(Duration::ZERO)?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ChildSet::suspend`], and:
    ///
    /// - `Other`: the set was stopped, or the worker does not reply in time.
    pub fn suspend(&self, id: ChildId) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("suspend a child", Operation::Suspend, Request::Suspend(id, sender))?;
        receiver.wait("suspend a child", Operation::Suspend, self.shared().options.call_timeout)
    }

    /// Resumes a suspended child: see [`ChildSet::resume`].
    ///
    /// # Errors
    /// As [`ChildSet::resume`], and:
    ///
    /// - `Other`: the set was stopped, or the worker does not reply in time.
    pub fn resume(&self, id: ChildId) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("resume a child", Operation::Resume, Request::Resume(id, sender))?;
        receiver.wait("resume a child", Operation::Resume, self.shared().options.call_timeout)
    }

    /// Keeps the child's events in the queue: [`drain_events`](Self::drain_events) skips the child, and
    /// the poll handle is not readable because of it, until [`resume_events`](Self::resume_events).
    ///
    /// Its output is read on until the queue holds as much as the limits of the set allow. Then the
    /// overflow policy decides, as if the host took no events. The queued bytes count in
    /// [`max_buffered_bytes`](crate::ChildSetOptions::max_buffered_bytes), so enough paused children stop
    /// the output of all.
    /// The child's exit is an event, too, and [`wait_all`](Self::wait_all) waits for it.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, SpawnOptions, Stdio};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let mut command = Command::new("cat");
    /// command.stdin(Stdio::piped()).stdout(Stdio::piped());
    /// let child = set.spawn(&command, SpawnOptions::new())?;
    /// set.pause_events(child)?;
    /// set.write(child, b"text")?;
    /// assert!(!set.wait(Some(Duration::from_millis(50)))?);
    /// set.resume_events(child)?;
    /// assert!(set.wait(Some(Duration::from_secs(10)))?);
    /// set.stop(Duration::ZERO)?;
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child's `Done` was taken.
    pub fn pause_events(&self, id: ChildId) -> Result<()> {
        self.set_paused(id, true)
    }

    /// Lets the child's events come after [`pause_events`](Self::pause_events).
    ///
    /// # Errors
    /// As [`pause_events`](Self::pause_events).
    pub fn resume_events(&self, id: ChildId) -> Result<()> {
        self.set_paused(id, false)
    }

    fn set_paused(&self, id: ChildId, is_paused: bool) -> Result<()> {
        let shared = self.shared();
        let mut state = shared.state.lock();
        if !state.queue.set_paused(id, is_paused) {
            return Err(child_gone());
        }
        shared.update_poll_handle(&state);
        Ok(())
    }

    /// Returns the child's pid. Once the child is done, the pid may belong to another process, even
    /// if the `Done` was not taken.
    ///
    /// # Errors
    /// - `Unknown`: the child's `Done` was taken.
    pub fn pid(&self, id: ChildId) -> Result<u32> {
        let mut state = self.shared().state.lock();
        let child = state.queue.get(id).ok_or_else(child_gone)?;
        Ok(child.pid)
    }

    /// Returns the value of the host that a child has; 0 if none was given.
    ///
    /// # Errors
    /// - `Unknown`: the child's `Done` was taken.
    pub fn user(&self, id: ChildId) -> Result<u64> {
        let mut state = self.shared().state.lock();
        let child = state.queue.get(id).ok_or_else(child_gone)?;
        Ok(child.user)
    }

    /// Replaces the value of the host that a child has. Events that are taken later have the new
    /// one.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, ErrorKind, SpawnOptions};
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// let child = set.spawn_with_user(&Command::new("true"), SpawnOptions::new(), 1)?;
    /// set.set_user(child, 2)?;
    /// assert_eq!(set.user(child)?, 2);
    /// set.wait_all(None, drop)?;
    /// assert_eq!(set.set_user(child, 3).unwrap_err().kind(), ErrorKind::Unknown);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Unknown`: the child's `Done` was taken.
    pub fn set_user(&self, id: ChildId, user: u64) -> Result<()> {
        let mut state = self.shared().state.lock();
        state.queue.get(id).ok_or_else(child_gone)?.user = user;
        Ok(())
    }

    /// Moves events to the end of `into` and returns how many. Never blocks.
    ///
    /// The events come child by child, starting with the child whose oldest event is oldest. The call
    /// stops before the moved bytes exceed `max_bytes`, but moves at least one event if there is one.
    /// A child with more events than that is moved behind the others, so that it does not delay them.
    pub fn drain_events(&self, into: &mut Vec<Event>, max_bytes: usize) -> usize {
        self.drain(into, max_bytes, |event, _| event)
    }

    /// Moves events as [`drain_events`](Self::drain_events), each with the value of the host that
    /// its child was started with ([`spawn_with_user`](Self::spawn_with_user)), or 0.
    pub fn drain_events_with_user(&self, into: &mut Vec<(Event, u64)>, max_bytes: usize) -> usize {
        self.drain(into, max_bytes, |event, user| (event, user))
    }

    fn drain<T>(&self, into: &mut Vec<T>, max_bytes: usize, item: impl Fn(Event, u64) -> T) -> usize {
        let shared = self.shared();
        let mut state = shared.state.lock();
        let count = state.queue.drain(into, max_bytes, item);
        if count > 0 {
            shared.update_poll_handle(&state);
            shared.notify_if_empty(&state);
        }
        let has_room = state.is_full && state.queue.bytes() < shared.max_queued_bytes();
        if has_room {
            state.is_full = false;
        }
        drop(state);
        if has_room {
            shared.wake_worker();
        }
        count
    }

    /// Returns a descriptor or handle for the host's event loop. With every wait backend it is
    /// readable exactly while [`drain_events`](Self::drain_events) would move an event.
    ///
    /// Watch it level-triggered, and do not read from it.
    pub fn poll_handle(&self) -> PollHandle<'_> {
        self.shared().ready.poll_handle()
    }

    /// Waits until [`drain_events`](Self::drain_events) would move an event, for at most `timeout`, or
    /// without a limit if there is none. Returns whether it would. For threads without an event loop.
    ///
    /// If several threads wait, all of them return for the same event.
    ///
    /// # Errors
    /// - `Limit`: there is no timeout, and no output of any child is read, because chunks that the host
    ///   keeps fill the memory of each: see [`Chunk`](crate::Chunk). It comes 0.1 s after the last event or
    ///   later. No byte is lost: drop some, and call this again. A host whose other threads drop chunks
    ///   waits with a timeout.
    /// - `Other`: the set was stopped.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        let deadline = deadline_after(timeout);
        self.wait_until(deadline, |_| false)
    }

    /// Hands every event to `handle` until all children are done, for at most `timeout`, or without a
    /// limit if there is none. Returns whether all are done.
    ///
    /// # Errors
    /// As [`wait`](Self::wait).
    pub fn wait_all(&self, timeout: Option<Duration>, mut handle: impl FnMut(Event)) -> Result<bool> {
        let deadline = deadline_after(timeout);
        let mut events = Vec::new();
        while !self.is_empty() {
            // Another thread may take the last event.
            if !self.wait_until(deadline, |state| state.queue.children() == 0)? {
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(self.is_empty());
                }
                continue;
            }
            self.drain_events(&mut events, WAIT_ALL_BYTES);
            events.drain(..).for_each(&mut handle);
        }
        Ok(true)
    }

    /// Waits for an event, until `deadline` at the latest or until `ended` holds. Returns whether there
    /// is one.
    fn wait_until(&self, deadline: Option<Instant>, ended: impl Fn(&State) -> bool) -> Result<bool> {
        let shared = self.shared();
        let mut state = shared.state.lock();
        state.waiting_hosts += 1;
        let mut slice = STARVED_AFTER;
        let mut check_at = deadline_after(Some(slice));
        let result = loop {
            if state.queue.has_events() {
                break Ok(true);
            }
            if let Err(error) = state.check_running("wait for children", Operation::Wait) {
                break Err(error);
            }
            let until = deadline.or(check_at);
            let left = until.map_or(WAIT_SLICE, |at| at.saturating_duration_since(Instant::now()));
            if ended(&state) || (left.is_zero() && deadline.is_some()) {
                break Ok(false);
            }
            if left.is_zero() {
                drop(state);
                let checked = self.check_starved();
                state = shared.state.lock();
                if checked.is_err() && !state.queue.has_events() {
                    break checked.map(|()| false);
                }
                slice = (slice * 2).min(WAIT_SLICE);
                check_at = deadline_after(Some(slice));
                continue;
            }
            state = shared.published.wait_timeout(state, left);
        };
        state.waiting_hosts -= 1;
        result
    }

    /// Fails if all children wait for chunks that the host keeps. What the thread does not answer in time
    /// is asked again.
    fn check_starved(&self) -> Result<()> {
        let (sender, receiver) = reply_channel();
        self.send_request("wait for children", Operation::Wait, Request::CheckStarved(sender))?;
        let checked = receiver.wait("wait for", Operation::Wait, self.shared().options.call_timeout);
        checked.or_else(|error| if error.kind() == ErrorKind::Limit { Err(error) } else { Ok(()) })
    }

    /// Returns how many bytes of output are queued.
    pub fn buffered_bytes(&self) -> usize {
        self.shared().state.lock().queue.bytes()
    }

    /// Returns how many children were started whose `Done` was not taken yet.
    pub fn len(&self) -> usize {
        self.shared().state.lock().queue.children()
    }

    /// Returns whether the `Done` of every child was taken.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the first error since the last call that belongs to no other call: a spill file cannot
    /// be written (its child is paused meanwhile), or a system call fails that should not. The worker
    /// continues after such an error.
    ///
    /// ```
    /// use minder::{BackgroundSet, BackgroundSetOptions};
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// if let Some(error) = set.take_error() {
    ///     println!("{error}");
    /// }
    /// assert!(set.take_error().is_none());
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn take_error(&self) -> Option<Error> {
        self.shared().state.lock().error.take()
    }

    /// Kills all children and what they started, ends the thread, and waits for that.
    ///
    /// The children are asked to exit and killed after `grace`; they are killed at once if that is
    /// zero. Events that were not taken are dropped. The other handles return errors from now on.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{BackgroundSet, BackgroundSetOptions, Command, ErrorKind, SpawnOptions};
    /// use std::time::Duration;
    ///
    /// let set = BackgroundSet::new(BackgroundSetOptions::new())?;
    /// set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
    /// let other = set.clone();
    /// set.stop(Duration::from_secs(5))?;
    /// let error = other.spawn(&Command::new("true"), SpawnOptions::new()).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::Other);
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    ///
    /// # Errors
    /// - `Other`: a process tree still exists 6 s after the grace period. It may be in an
    ///   uninterruptible system call, it may run as another user, or the host's chunks leave no room
    ///   for its last bytes.
    /// - `Other`: the thread panicked before.
    pub fn stop(self, grace: Duration) -> Result<()> {
        let failed = |reason| {
            Err(Error::of_kind(ErrorKind::Other, "stop a background set", reason).during(Operation::Stop))
        };
        let shared = self.shared();
        // If the thread has ended already, the reason is read below.
        let _ = self.send_request("stop a background set", Operation::Stop, Request::Stop(grace));
        let deadline = Instant::now().checked_add(grace.saturating_add(2 * STOP_TIMEOUT));
        let mut state = shared.state.lock();
        let reason = loop {
            if let Some(reason) = state.stopped {
                break reason;
            }
            let left =
                deadline.map_or(STOP_TIMEOUT, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return failed("its thread did not answer in time");
            }
            state = shared.changed.wait_timeout(state, left);
        };
        drop(state);
        // The thread has only to return, so the join is short.
        if let Some(thread) = self.handle.thread.lock().take() {
            let _ = thread.join();
        }
        match reason {
            StopReason::Stopped => Ok(()),
            StopReason::LeftSome => failed("some children were not gone in time"),
            StopReason::Panicked => failed("the set's thread panicked"),
        }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn send_request(&self, phrase: &'static str, operation: Operation, request: Request) -> Result<()> {
        let shared = self.shared();
        let mut state = shared.state.lock();
        state.check_running(phrase, operation)?;
        state.requests.push(request);
        drop(state);
        shared.wake_worker();
        Ok(())
    }

    /// Changes a child's input queue, and wakes the worker for it.
    fn change_input<T>(&self, id: ChildId, change: impl FnOnce(&mut ChildQueue) -> Result<T>) -> Result<T> {
        let shared = self.shared();
        let mut state = shared.state.lock();
        state.check_running("write to the input of a child", Operation::Write)?;
        let result = change(state.queue.get(id).ok_or_else(child_gone)?)?;
        state.inputs.push(id);
        let is_first = state.inputs.len() == 1;
        drop(state);
        // Only the first change wakes the worker: it takes all of `inputs` under the lock.
        if is_first {
            shared.wake_worker();
        }
        Ok(result)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.state.lock().requests.push(Request::Quit);
        self.shared.wake_worker();
    }
}

fn child_gone() -> Error {
    Error::of_kind(ErrorKind::Unknown, "reach a child", "it is done").during(Operation::Lookup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ChildSetOptions;

    #[test]
    fn calls_fail_after_the_worker_panicked() {
        let set = BackgroundSet::new(ChildSetOptions::default()).unwrap();
        let other = set.clone();
        set.send_request("test", Operation::Other, Request::Panic).unwrap();
        let error = set.spawn(&Command::new("true"), SpawnOptions::default()).unwrap_err();
        assert!(error.to_string().contains("thread"), "{error}");
        let error = set.stop(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "failed to stop a background set: the set's thread panicked");
        assert!(
            other
                .write(ChildId::from_u64(0), b"x")
                .unwrap_err()
                .to_string()
                .ends_with("the set's thread panicked")
        );
        assert_eq!(other.drain_events(&mut Vec::new(), 1), 0);
    }
}
