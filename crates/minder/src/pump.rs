//! `Pump`: a set on a thread of its own, for programs that have a loop already.
//!
//! The thread alone touches the set. Handles and thread meet in one small state under one lock,
//! which nobody holds while he waits, writes or starts anything. Towards the thread go orders;
//! towards the host goes the *outbox*, whose bytes are charged to the same budget as those in the
//! set.

mod input;
mod order;
mod outbox;
mod worker;

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use self::order::{Order, promise};
use self::outbox::{Bounds, Outbox};
use crate::child::Kill;
use crate::command::Command;
use crate::event::{Event, Token};
use crate::os::News;
use crate::set::{ChildSet, Limits, SpawnOptions};
use crate::sys::wait::Doorbell;
use crate::wait::Waker;
use crate::{Error, ErrorKind, Result};

/// How long [`Pump::stop`] waits, beyond the grace, for trees to be gone.
const STOP_PATIENCE: Duration = Duration::from_secs(6);

/// A [`ChildSet`] on a thread of its own, for a host that has its own loop: an editor, an
/// interpreter, a window.
///
/// The thread always listens, so that no child waits for a busy host until memory is full. The host
/// watches one descriptor, [`news`](Self::news), and calls [`take`](Self::take) when it is
/// readable. Handles are cheap to clone, and may be used from any thread at once. No signal of the
/// process is delivered to the pump's thread.
///
/// # Order
/// For one child: `Output` and `Eof` in the order of the bytes; `Exited` after its last byte, with
/// `Done` right behind it; nothing after that. (With [`PumpOptions::exit_at_once`], `Exited` comes
/// when the child exits.) `Writable` and `Stopped` stand where they happened; two of a kind that
/// wait are one. `Woken` never comes. Pieces of the same stream that follow one another are handed
/// over joined, up to [`Limits::buffer_bytes`] each.
///
/// # Memory
/// What waits here counts against the [`Limits`], and so do chunks in the host's hands. A host that
/// takes nothing makes children wait, spill or lose their oldest bytes, as each was started; no
/// event is lost. A child that is over stays counted in [`Limits::children_max`] until its `Done`
/// was taken.
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
pub struct Pump {
    handle: Arc<Handle>,
}

/// What a pump may take and how it works; [`Pump::with_options`] takes it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PumpOptions {
    /// The bounds of its set.
    pub limits: Limits,
    /// How long small pieces of output may be gathered before there is news of them. Default: zero.
    /// One millisecond saved 60 % of the host's and the pump's processor time with 300 children
    /// that each wrote 40 lines a second (measured, Linux 6.18, 2 processors). A child that
    /// writes much is not slowed down by it.
    pub gather: Duration,
    /// The most bytes that wait to be read by one child. Default: 256 KiB.
    pub input_bytes_max: usize,
    /// How long a call waits for the pump's thread. Default: 30 s: a program may be on a slow file
    /// server.
    pub answer_max: Duration,
    /// Whether `Exited` is told when a child exits, be it before its last bytes were read. Default:
    /// `false`.
    pub exit_at_once: bool,
}

impl Default for PumpOptions {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            gather: Duration::ZERO,
            input_bytes_max: 256 << 10,
            answer_max: Duration::from_secs(30),
            exit_at_once: false,
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
    bell: Doorbell,
    waker: Waker,
    options: PumpOptions,
}

#[derive(Debug, Default)]
struct State {
    orders: Vec<Order>,
    /// Children with something in their input queue, or an input to close.
    inputs: Vec<Token>,
    outbox: Outbox,
    /// Whether the thread waits for the outbox to become shorter.
    full: bool,
    /// The first failure that nobody asked for yet.
    trouble: Option<Error>,
    end: Option<End>,
}

/// How the thread ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stopped,
    /// Children were left that could not be killed in time.
    LeftSome,
    Panicked,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn bounds(&self) -> Bounds {
        let Limits { buffer_bytes, child_bytes_max, .. } = self.options.limits;
        Bounds { piece: buffer_bytes, child_bytes_max, exit_at_once: self.options.exit_at_once }
    }

    /// Makes the bell say whether there is news.
    fn announce(&self, state: &State) {
        if state.outbox.has_news() {
            // It fails only when the descriptor is readable already.
            let _ = self.bell.ring();
        } else {
            self.bell.hush();
        }
    }

    /// Wakes the thread wherever it waits.
    fn wake(&self) {
        self.changed.notify_all();
        // As above.
        let _ = self.waker.wake();
    }

    /// Refuses calls from now on, and ends the waits of those that go on.
    fn close(&self, end: End) {
        let mut state = self.lock();
        state.end = Some(end);
        let orders = std::mem::take(&mut state.orders);
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
            Some(End::Stopped | End::LeftSome) => "the pump was stopped",
            Some(End::Panicked) => "the pump's thread panicked",
        };
        Err(Error::own(ErrorKind::Other, operation, why))
    }
}

impl Pump {
    /// Starts a pump within these limits.
    ///
    /// # Errors
    /// As [`ChildSet::new`]; `Exhausted` when no thread is free.
    pub fn start(limits: Limits) -> Result<Self> {
        Self::with_options(PumpOptions { limits, ..PumpOptions::default() })
    }

    /// Starts a pump.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub fn with_options(options: PumpOptions) -> Result<Self> {
        let set = ChildSet::new(options.limits.clone())?;
        let bell = Doorbell::new().map_err(|error| Error::new("make a descriptor for news", error))?;
        let shared = Arc::new(Shared {
            state: Mutex::new(State::default()),
            changed: Condvar::new(),
            bell,
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
        let (promise, answer) = promise();
        self.order("start a child", Order::Spawn(Box::new(command.clone()), options, promise))?;
        answer.wait("start a child", self.shared().options.answer_max)
    }

    /// Queues bytes for the child's standard input: as many as there is room for, which may be
    /// none. Then [`Event::Writable`] says when to go on. Never blocks.
    ///
    /// # Errors
    /// `Unknown` for a child that is done or has no such pipe; an error whose [`io`](Error::io) is
    /// `BrokenPipe` when the child reads no more, which shows after the bytes that it did not
    /// read were queued.
    pub fn write(&self, token: Token, bytes: &[u8]) -> Result<usize> {
        self.input(token, |kid| kid.input.accept(bytes, self.shared().options.input_bytes_max))
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
    pub fn kill(&self, token: Token, how: Kill) -> Result<()> {
        let (promise, answer) = promise();
        self.order("kill a child", Order::Kill(token, how, promise))?;
        answer.wait("kill a child", self.shared().options.answer_max)
    }

    /// The child's process number. It may be another process's once the child is over, be its
    /// `Done` taken or not.
    ///
    /// # Errors
    /// `Unknown` for a child whose `Done` was taken.
    pub fn id(&self, token: Token) -> Result<u32> {
        self.shared().lock().outbox.get(token).map(|kid| kid.id).ok_or_else(gone)
    }

    /// Moves events to the end of `into`, child by child, the one with the oldest news first, and
    /// returns how many. It stops before the bytes moved exceed `max_bytes`, but moves at least
    /// one event if there is one. Never blocks.
    ///
    /// A child with more than that goes behind the others, so that a loud one keeps none of them
    /// waiting.
    pub fn take(&self, into: &mut Vec<Event>, max_bytes: usize) -> usize {
        let shared = self.shared();
        let mut state = shared.lock();
        let count = state.outbox.take(into, max_bytes);
        if count > 0 {
            shared.announce(&state);
        }
        let wake = state.full && state.outbox.bytes() < shared.options.limits.bytes_max;
        state.full &= !wake;
        drop(state);
        if wake {
            shared.wake();
        }
        count
    }

    /// A descriptor or handle for the host's loop: readable exactly while [`take`](Self::take)
    /// would move something, with every wait backend. Watch it level-triggered; do not read
    /// from it.
    pub fn news(&self) -> News<'_> {
        self.shared().bell.news()
    }

    /// Bytes of output that wait to be taken.
    pub fn bytes_waiting(&self) -> usize {
        self.shared().lock().outbox.bytes()
    }

    /// Children that were started and whose `Done` was not taken yet.
    pub fn children(&self) -> usize {
        self.shared().lock().outbox.children()
    }

    /// Takes the first failure since the last call that has no caller: a spill file that cannot be
    /// written (its child is held meanwhile), a system call that should not fail. The pump goes
    /// on.
    pub fn trouble(&self) -> Option<Error> {
        self.shared().lock().trouble.take()
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
        let _ = self.order("stop a pump", Order::Stop(grace));
        let deadline = Instant::now().checked_add(grace.saturating_add(2 * STOP_PATIENCE));
        let mut state = shared.lock();
        while state.end.is_none() {
            let left =
                deadline.map_or(STOP_PATIENCE, |deadline| deadline.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Err(Error::own(ErrorKind::Other, "stop a pump", "its thread did not answer in time"));
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
            Some(End::Panicked) => {
                Err(Error::own(ErrorKind::Other, "stop a pump", "the pump's thread panicked"))
            }
            Some(End::LeftSome) => {
                Err(Error::own(ErrorKind::Other, "stop a pump", "some children were not gone in time"))
            }
            _ => Ok(()),
        }
    }

    fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    fn order(&self, operation: &'static str, order: Order) -> Result<()> {
        let shared = self.shared();
        let mut state = shared.lock();
        state.check(operation)?;
        state.orders.push(order);
        drop(state);
        shared.wake();
        Ok(())
    }

    /// Changes a child's input queue, and lets the thread see it.
    fn input<T>(&self, token: Token, change: impl FnOnce(&mut outbox::Kid) -> Result<T>) -> Result<T> {
        let shared = self.shared();
        let mut state = shared.lock();
        state.check("write to the input of a child")?;
        let result = change(state.outbox.get(token).ok_or_else(gone)?)?;
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
        state.orders.push(Order::Quit);
        drop(state);
        self.shared.wake();
    }
}

fn gone() -> Error {
    Error::own(ErrorKind::Unknown, "reach a child", "it is done")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_the_thread_is_an_error_of_later_calls() {
        let pump = Pump::start(Limits::default()).unwrap();
        let other = pump.clone();
        pump.order("test", Order::Panic).unwrap();
        let error = pump.spawn(&Command::new("true"), SpawnOptions::default()).unwrap_err();
        assert!(error.to_string().contains("thread"), "{error}");
        let error = pump.stop(Duration::ZERO).unwrap_err();
        assert_eq!(error.to_string(), "failed to stop a pump: the pump's thread panicked");
        assert!(other.write(Token(0), b"x").unwrap_err().to_string().ends_with("the pump's thread panicked"));
        assert_eq!(other.take(&mut Vec::new(), 1), 0);
    }
}
