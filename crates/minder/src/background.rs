//! `BackgroundSet`: a set on a thread of its own, for programs that have a loop already.
//!
//! The thread alone touches the set. Handles and thread meet in one small state under one lock,
//! which nobody holds while he waits, writes or starts anything. Towards the thread go orders;
//! towards the host goes the *outbox*, whose bytes are charged to the same budget as those in the
//! set.

mod stdin_queue;
mod request;
mod event_queue;
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::event_queue::{EventQueue, QueueLimits};
use self::request::{Request, reply_channel};
use crate::child::Termination;
use crate::command::Command;
use crate::event::{Event, Token};
use crate::os::PollHandle;
use crate::poller::Waker;
use crate::set::{ChildSet, ChildSetConfig, SpawnOptions};
use crate::sys::wait;
use crate::{Error, ErrorKind, Result};

/// How long [`BackgroundSet::stop`] waits, beyond the grace, for trees to be gone.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// A [`ChildSet`] on a thread of its own, for a host that has its own loop: an editor, an
/// interpreter, a window.
///
/// The thread always listens, so that no child waits for a busy host until memory is full. The host
/// watches one descriptor, [`news`](Self::poll_handle), and calls [`take`](Self::drain_events) when
/// it is readable. Handles are cheap to clone, and may be used from any thread at once. No signal
/// of the process is delivered to the pump's thread.
///
/// # Order
/// For one child: `Output` and `Eof` in the order of the bytes; `Exited` after its last byte, with
/// `Done` right behind it; nothing after that. (With [`BackgroundSetConfig::eager_exit`], `Exited`
/// comes when the child exits.) `Writable` and `Stopped` stand where they happened; two of a kind
/// that wait are one. `Woken` never comes. Pieces of the same stream that follow one another are
/// handed over joined, up to [`ChildSetConfig::read_buffer_bytes`] each.
///
/// # Memory
/// What waits here counts against the [`ChildSetConfig`], and so do chunks in the host's hands. A
/// host that takes nothing makes children wait, spill or lose their oldest bytes, as each was
/// started; no event is lost. A child that is over stays counted in
/// [`ChildSetConfig::max_children`] until its `Done` was taken.
///
/// # Ends
/// [`stop`](Self::stop) kills all children. Dropping the last handle ends the thread and closes the
/// pipes, and kills nobody, as dropping a [`ChildSet`] does.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Event, Limits, Pump, SpawnOptions, Stdio};
/// let pump = Pump::start(Limits::default())?;
/// let mut command = Command::new("echo");
/// command.arg("hello").stdout(Stdio::Piped);
/// let child = pump.spawn(&command, SpawnOptions::default())?;
///
/// let poller = minder::Poller::new()?; // stands for the host's own loop
/// poller.add(&pump.news(), minder::Token(0), minder::Interest::READABLE)?;
/// let mut events = Vec::new();
/// while !matches!(events.last(), Some(Event::Done(..))) {
///     poller.wait(&mut minder::Events::new(), None)?;
///     pump.take(&mut events, usize::MAX);
/// }
/// let Event::Output(token, _, bytes) = &events[0] else { panic!("{events:?}") };
/// assert!(*token == child && **bytes == *b"hello\n");
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct BackgroundSet {
    handle: Arc<Handle>,
}

/// What a pump may take and how it works; [`BackgroundSet::with_options`] takes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackgroundSetConfig {
    /// The bounds of its set.
    pub set: ChildSetConfig,
    /// How long small pieces of output may be gathered before there is news of them. Default: zero.
    /// One millisecond saved 60 % of the host's and the pump's processor time with 300 children
    /// that each wrote 40 lines a second (measured, Linux 6.18, 2 processors). A child that
    /// writes much is not slowed down by it.
    pub coalesce_delay: Duration,
    /// The most bytes that wait to be read by one child. Default: 256 KiB.
    pub max_input_bytes: usize,
    /// How long a call waits for the pump's thread. Default: 30 s: a program may be on a slow file
    /// server.
    pub call_timeout: Duration,
    /// Whether `Exited` is told when a child exits, be it before its last bytes were read. Default:
    /// `false`.
    pub eager_exit: bool,
}

impl Default for BackgroundSetConfig {
    fn default() -> Self {
        Self {
            set: ChildSetConfig::default(),
            coalesce_delay: Duration::ZERO,
            max_input_bytes: 256 << 10,
            call_timeout: Duration::from_secs(30),
            eager_exit: false,
        }
    }
}

/// The last one dropped ends the thread.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What handles and thread share.
#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// Something changed for a sleeper: an order for the thread while it gathers, its end for
    /// whoever stops it.
    changed: Condvar,
    /// Readable exactly while the outbox has news. Rung and hushed under the lock.
    ready: wait::Waker,
    waker: Waker,
    options: BackgroundSetConfig,
}

#[derive(Debug, Default)]
struct State {
    requests: Vec<Request>,
    /// Children with something in their input queue, or an input to close.
    inputs: Vec<Token>,
    queue: EventQueue,
    /// Whether the thread waits for the outbox to become shorter.
    full: bool,
    /// The first failure that nobody asked for yet.
    error: Option<Error>,
    end: Option<StopReason>,
}

/// How the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StopReason {
    Stopped,
    /// Children were left that could not be killed in time.
    LeftSome,
    Panicked,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bounds(&self) -> QueueLimits {
        let ChildSetConfig { read_buffer_bytes: buffer_bytes, max_child_bytes: child_bytes_max, .. } =
            self.options.set;
        QueueLimits { piece: buffer_bytes, child_bytes_max, exit_at_once: self.options.eager_exit }
    }

    /// Makes the bell say whether there is news.
    fn announce(&self, state: &State) {
        if state.queue.has_events() {
            // It fails only when the descriptor is readable already.
            let _ = self.ready.wake();
        } else {
            self.ready.reset();
        }
    }

    /// Wakes the thread wherever it waits.
    fn wake(&self) {
        self.changed.notify_all();
        // As above.
        let _ = self.waker.wake();
    }

    /// Refuses calls from now on, and ends the waits of those that go on.
    fn close(&self, end: StopReason) {
        let mut state = self.lock();
        state.end = Some(end);
        let orders = std::mem::take(&mut state.requests);
        drop(state);
        // Their promises are broken now.
        drop(orders);
        self.changed.notify_all();
    }
}

impl State {
    fn check(&self, operation: &'static str) -> Result<()> {
        let why = match self.end {
            None => return Ok(()),
            Some(StopReason::Stopped | StopReason::LeftSome) => "the pump was stopped",
            Some(StopReason::Panicked) => "the pump's thread panicked",
        };
        Err(Error::of_kind(ErrorKind::Other, operation, why))
    }
}

impl BackgroundSet {
    /// Starts a pump within these limits.
    ///
    /// # Errors
    /// As [`ChildSet::new`]; `Exhausted` when no thread is free.
    pub fn start(limits: ChildSetConfig) -> Result<Self> {
        Self::with_options(BackgroundSetConfig { set: limits, ..BackgroundSetConfig::default() })
    }

    /// Starts a pump.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn with_options(options: BackgroundSetConfig) -> Result<Self> {
        let set = ChildSet::new(options.set.clone())?;
        let ready = wait::Waker::new().map_err(|error| Error::new("make a descriptor for news", error))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            ready,
            waker: set.waker(),
            options,
        });
        let thread = worker::start(Arc::clone(&shared), set)?;
        Ok(Self { handle: Arc::new(Handle { shared, thread: Mutex::new(Some(thread)) }) })
    }

    /// Starts a child on the pump's thread, which lives as long as the pump, and waits for that.
    ///
    /// # Errors
    /// As [`ChildSet::spawn`]. `Other` when the pump is over or does not answer in time; a child
    /// that starts after that is killed at once.
    pub fn spawn(&self, command: &Command, options: SpawnOptions) -> Result<Token> {
        let (promise, answer) = reply_channel();
        self.send_request("start a child", Request::Spawn(Box::new(command.clone()), options, promise))?;
        answer.wait("start a child", self.shared().options.call_timeout)
    }

    /// Queues bytes for the child's standard input: as many as there is room for, which may be
    /// none. Then [`Event::Writable`] says when to go on. Never blocks.
    ///
    /// # Errors
    /// `Unknown` for a child that is done or has no such pipe; an error whose
    /// [`io`](Error::io_error) is `BrokenPipe` when the child reads no more, which shows after
    /// the bytes that it did not read were queued.
    pub fn write(&self, token: Token, bytes: &[u8]) -> Result<usize> {
        self.input(token, |kid| kid.input.accept(bytes, self.shared().options.max_input_bytes))
    }

    /// Closes the child's standard input, after all that was queued is written. Without effect
    /// where it has none.
    ///
    /// # Errors
    /// `Unknown` for a child that is done.
    pub fn close_stdin(&self, token: Token) -> Result<()> {
        self.input(token, |kid| {
            kid.input.close();
            Ok(())
        })
    }

    /// Kills a child and what it started, or asks first and insists later: see [`ChildSet::kill`].
    ///
    /// # Errors
    /// `Unknown` for a child that is done; `PermissionDenied` for one that became another user's;
    /// `Other` when the pump is over or does not answer in time.
    pub fn kill(&self, token: Token, how: Termination) -> Result<()> {
        let (promise, answer) = reply_channel();
        self.send_request("kill a child", Request::Kill(token, how, promise))?;
        answer.wait("kill a child", self.shared().options.call_timeout)
    }

    /// The child's process number. It may be another process's once the child is over, be its
    /// `Done` taken or not.
    ///
    /// # Errors
    /// `Unknown` for a child whose `Done` was taken.
    pub fn id(&self, token: Token) -> Result<u32> {
        self.shared().lock().queue.get(token).map(|kid| kid.id).ok_or_else(gone)
    }

    /// Moves events to the end of `into`, child by child, the one with the oldest news first, and
    /// returns how many. It stops before the bytes moved exceed `max_bytes`, but moves at least
    /// one event if there is one. Never blocks.
    ///
    /// A child with more than that goes behind the others, so that a loud one keeps none of them
    /// waiting.
    pub fn drain_events(&self, into: &mut Vec<Event>, max_bytes: usize) -> usize {
        let shared = self.shared();
        let mut state = shared.lock();
        let count = state.queue.take(into, max_bytes);
        if count > 0 {
            shared.announce(&state);
        }
        let wake = state.full && state.queue.bytes() < shared.options.set.max_buffered_bytes;
        state.full &= !wake;
        drop(state);
        if wake {
            shared.wake();
        }
        count
    }

    /// A descriptor or handle for the host's loop: readable exactly while
    /// [`take`](Self::drain_events) would move something, with every wait backend. Watch it
    /// level-triggered; do not read from it.
    pub fn poll_handle(&self) -> PollHandle<'_> {
        self.shared().ready.poll_handle()
    }

    /// Bytes of output that wait to be taken.
    pub fn queued_bytes(&self) -> usize {
        self.shared().lock().queue.bytes()
    }

    /// Children that were started and whose `Done` was not taken yet.
    pub fn children(&self) -> usize {
        self.shared().lock().queue.children()
    }

    /// Takes the first failure since the last call that has no caller: a spill file that cannot be
    /// written (its child is held meanwhile), a system call that should not fail. The pump goes
    /// on.
    pub fn take_error(&self) -> Option<Error> {
        self.shared().lock().error.take()
    }

    /// Kills all children and what they started: asks, and insists after `grace`; at once if that
    /// is zero. Ends the thread, and waits for that. What was not taken is gone; other handles
    /// get errors.
    ///
    /// # Errors
    /// `Other` when some tree is not gone 6 s after its grace (an uninterruptible call, another
    /// user's process, chunks in the host's hands that leave no room for its last bytes), or
    /// when the thread panicked before.
    pub fn stop(self, grace: Duration) -> Result<()> {
        let shared = self.shared();
        // When it is over already, the look below says how.
        let _ = self.send_request("stop a pump", Request::Stop(grace));
        let deadline = Instant::now().checked_add(grace.saturating_add(2 * STOP_PATIENCE));
        let mut state = shared.lock();
        while state.end.is_none() {
            let left =
                deadline.map_or(STOP_PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Error::of_kind(
                    ErrorKind::Other,
                    "stop a pump",
                    "its thread did not answer in time",
                ));
            }
            state = shared.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        let end = state.end;
        drop(state);
        // The thread has nothing left to do but to return.
        let thread = self.handle.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
        match end {
            Some(StopReason::Panicked) => {
                Err(Error::of_kind(ErrorKind::Other, "stop a pump", "the pump's thread panicked"))
            }
            Some(StopReason::LeftSome) => {
                Err(Error::of_kind(ErrorKind::Other, "stop a pump", "some children were not gone in time"))
            }
            _ => Ok(()),
        }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn send_request(&self, operation: &'static str, order: Request) -> Result<()> {
        let shared = self.shared();
        let mut state = shared.lock();
        state.check(operation)?;
        state.requests.push(order);
        drop(state);
        shared.wake();
        Ok(())
    }

    /// Changes a child's input queue, and lets the thread see it.
    fn input<T>(
        &self,
        token: Token,
        change: impl FnOnce(&mut event_queue::ChildQueue) -> Result<T>,
    ) -> Result<T> {
        let shared = self.shared();
        let mut state = shared.lock();
        state.check("write to the input of a child")?;
        let result = change(state.queue.get(token).ok_or_else(gone)?)?;
        state.inputs.push(token);
        let first = state.inputs.len() == 1;
        drop(state);
        // Whoever came first has woken the thread.
        if first {
            shared.wake();
        }
        Ok(result)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.requests.push(Request::Quit);
        drop(state);
        self.shared.wake();
    }
}

fn gone() -> Error {
    Error::of_kind(ErrorKind::Unknown, "reach a child", "it is done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_an_error_of_later_calls() {
        let pump = BackgroundSet::start(ChildSetConfig::default()).unwrap();
        let other = pump.clone();
        pump.send_request("test", Request::Panic).unwrap();
        let error = pump.spawn(&Command::new("true"), SpawnOptions::default()).unwrap_err();
        assert!(error.to_string().contains("thread"), "{error}");
        let error = pump.stop(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "failed to stop a pump: the pump's thread panicked");
        assert!(other.write(Token(0), b"x").unwrap_err().to_string().ends_with("the pump's thread panicked"));
        assert_eq!(other.drain_events(&mut Vec::new(), 1), 0);
    }
}
