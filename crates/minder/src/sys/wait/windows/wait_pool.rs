//! The backend `wait_pool`: threads of this library, each of which waits for 63 handles and an
//! event, and posts to the port.
//!
//! `WaitForMultipleObjects` takes 64 handles. A thread with a small stack is started when the
//! existing ones have no free slot, and it stays. It is woken when its set of handles changes, and
//! never by a wait of the caller. So the cost of a wait does not grow with the number of threads.
//!
//! While one call suffices there is no thread: the waiting caller itself waits for the handles and
//! the event, and every sender sets that event. This mode ends for good with the 64th handle, with
//! the second thread that waits at the same time, and with the first pipe or socket, whose
//! completions the kernel queues without setting the event.

#![expect(unsafe_code, reason = "waiting for many handles, and events")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use minder_os::sync::{Condvar, Mutex};
use windows_sys::Win32::Foundation::{
    GetHandleInformation, HANDLE, WAIT_ABANDONED_0, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::SystemServices::MAXIMUM_WAIT_OBJECTS;
use windows_sys::Win32::System::Threading::{SetEvent, WaitForMultipleObjects};

use super::completion_port::completed;
use super::{CompletionPort, Operation, WaitBackend, Watched, millis};
use crate::backend::Backend;
use crate::sys::event::event;
use crate::sys::thread;
use crate::sys::wait::Ready;

/// Number of handles that a thread waits for, in addition to its own event.
const SLOTS_MAX: usize = MAXIMUM_WAIT_OBJECTS as usize - 1;
/// The time for which a thread sleeps after a wait has failed.
const ERROR_PAUSE: Duration = Duration::from_millis(10);

/// The backend: its threads.
#[derive(Debug, Default)]
pub(in crate::sys::wait) struct WaitPool {
    threads: Mutex<Vec<Arc<WaitThread>>>,
    /// Number of callers that wait for the port, or are about to, and serve no set.
    port_waiters: Arc<AtomicUsize>,
}

impl WaitBackend for WaitPool {
    fn kind(&self) -> Backend {
        Backend::WaitPool
    }

    fn watch(
        &self,
        port: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let mut threads = self.threads.lock();
        let slot = WaitSlot { port: Arc::clone(port), handle, packet, armed: false };
        // The newest thread is tried first: older ones are full, unless handles were removed.
        let mut slot = Some(slot);
        let free = threads.iter().rev().find_map(|thread| Some((thread, thread.slot(&mut slot)?)));
        let (thread, place) = match free {
            Some((thread, place)) => (Arc::clone(thread), place),
            None => {
                let thread = WaitThread::new(threads.len(), &self.port_waiters)?;
                // One call no longer suffices.
                for thread in threads.iter().chain((!threads.is_empty()).then_some(&thread)) {
                    thread.spawn_thread()?;
                }
                threads.push(Arc::clone(&thread));
                let place = thread.slot(&mut slot).unwrap_or_default();
                (thread, place)
            }
        };
        Ok(Box::new(SlotHandle { thread, place }))
    }

    fn wait(
        &self,
        port: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        // This thread writes `port_waiters` and then reads the list of threads. The thread that
        // adds one writes the list and then reads `port_waiters`. At least one of them sees the
        // other.
        let _waiter = Count::up(&self.port_waiters);
        let before = ready.len();
        while let Some(thread) = self.claim_inline(port)? {
            thread.wait_inline(port, ready, deadline)?;
            if ready.len() > before || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(());
            }
        }
        port.wait(ready, deadline)
    }
}

impl WaitPool {
    /// Returns the only set, for the caller to serve, if no thread serves it.
    fn claim_inline(&self, port: &CompletionPort) -> io::Result<Option<Arc<WaitThread>>> {
        let threads = self.threads.lock();
        let [thread] = &threads[..] else { return Ok(None) };
        let mut state = thread.state.lock();
        if state.has_worker {
            return Ok(None);
        }
        if state.is_served || port.is_associated() {
            drop(state);
            thread.spawn_thread()?;
            return Ok(None);
        }
        state.is_served = true;
        Ok(Some(Arc::clone(thread)))
    }
}

impl Drop for WaitPool {
    /// Asks the threads to exit, and does not wait for them. They hold nothing that belongs to a
    /// caller.
    fn drop(&mut self) {
        for thread in self.threads.lock().drain(..) {
            thread.state.lock().closed = true;
            thread.wake();
        }
    }
}

/// One set of up to 63 handles, served by a thread or by the caller.
#[derive(Debug)]
struct WaitThread {
    number: usize,
    /// The first of its handles, which signals a change. It is an auto-reset event.
    event: Arc<OwnedHandle>,
    port_waiters: Arc<AtomicUsize>,
    state: Mutex<State>,
    /// Signals that the thread has seen the last change.
    observed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    slots: Vec<Option<WaitSlot>>,
    /// The number of changes, and how many of them the serving thread has seen.
    changes: u64,
    seen: u64,
    /// `true` if a thread runs, or is about to.
    has_worker: bool,
    /// `true` while a thread or a caller serves the set.
    is_served: bool,
    closed: bool,
}

/// A handle to wait for.
#[derive(Debug)]
struct WaitSlot {
    port: Arc<CompletionPort>,
    handle: Arc<OwnedHandle>,
    packet: Arc<Operation>,
    armed: bool,
}

impl WaitThread {
    fn new(number: usize, port_waiters: &Arc<AtomicUsize>) -> io::Result<Arc<Self>> {
        let event = Arc::new(event(false)?);
        Ok(Arc::new(Self {
            number,
            event,
            port_waiters: Arc::clone(port_waiters),
            state: Mutex::default(),
            observed: Condvar::new(),
        }))
    }

    /// Starts a thread that serves the set from now on.
    fn spawn_thread(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.has_worker {
            return Ok(());
        }
        let thread_self = Arc::clone(self);
        drop(thread::start_small(&format!("minder-wait-{}", self.number), move || thread_self.run())?);
        state.has_worker = true;
        drop(state);
        // The caller that serves the set returns.
        self.wake();
        Ok(())
    }

    /// Puts a handle into a free slot. Returns its index, or `None` if there is no room.
    fn slot(&self, slot: &mut Option<WaitSlot>) -> Option<usize> {
        let mut state = self.state.lock();
        let place = match state.slots.iter().position(Option::is_none) {
            Some(place) => place,
            None if state.slots.len() < SLOTS_MAX => {
                state.slots.push(None);
                state.slots.len() - 1
            }
            None => return None,
        };
        state.slots[place] = slot.take();
        Some(place)
    }

    fn run(&self) {
        let mut waits = Waits::default();
        let state = self.state.lock();
        self.observed.wait_while(state, |state| state.is_served && !state.closed).is_served = true;
        while self.refresh(&mut waits) {
            self.serve(&mut waits);
        }
    }

    /// Copies the armed handles to `waits`. Returns whether the set is still open.
    fn refresh(&self, waits: &mut Waits) -> bool {
        let mut state = self.state.lock();
        waits.handles.clear();
        waits.places.clear();
        waits.handles.push(self.event.as_raw_handle());
        for (place, slot) in state.slots.iter().enumerate() {
            if let Some(slot) = slot.as_ref().filter(|slot| slot.armed) {
                waits.handles.push(slot.handle.as_raw_handle());
                waits.places.push(place);
            }
        }
        state.seen = state.changes;
        let closed = state.closed;
        drop(state);
        self.observed.notify_all();
        !closed
    }

    /// Serves the set in place of a pool thread, and waits for the port. Returns when there is
    /// something to report, the deadline has passed, or a thread takes over.
    fn wait_inline(
        &self,
        port: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let _caller_wait = CallerWait::new(self, port);
        let before = ready.len();
        let mut waits = Waits::default();
        while self.refresh(&mut waits) && !port.is_associated() && !self.state.lock().has_worker {
            port.take_posted(ready)?;
            let left = match deadline {
                _ if ready.len() > before => Some(Duration::ZERO),
                deadline => deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            };
            if let (Some(deadline), Some(left)) = (deadline, left)
                && !left.is_zero()
            {
                port.set_timer(deadline, left);
            }
            match waits.next(left)? {
                WaitResult::Handle(index) => {
                    let token = self.take(waits.remove(index)).and_then(|(_, packet)| packet.token());
                    ready.extend(token.map(completed));
                }
                WaitResult::Change => continue,
                WaitResult::Nothing => (),
            }
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits for these handles until the set changes.
    fn serve(&self, waits: &mut Waits) {
        loop {
            match waits.next(None) {
                Ok(WaitResult::Handle(index)) => {
                    if let Some((port, packet)) = self.take(waits.remove(index)) {
                        port.post_soon(&packet);
                    }
                }
                Ok(_) => return,
                Err(_) => return std::thread::park_timeout(ERROR_PAUSE),
            }
        }
    }

    /// Disarms a handle that was signalled, and returns its packet.
    fn take(&self, place: usize) -> Option<(Arc<CompletionPort>, Arc<Operation>)> {
        let mut state = self.state.lock();
        let slot = state.slots[place].as_mut().filter(|slot| slot.armed)?;
        slot.armed = false;
        Some((Arc::clone(&slot.port), Arc::clone(&slot.packet)))
    }

    /// Changes the set. With `observed` it returns when the thread that serves the set has seen the
    /// change.
    fn change(&self, observed: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.state.lock();
        change(&mut state);
        state.changes += 1;
        let number = state.changes;
        let is_served = state.is_served;
        drop(state);
        // A thread that serves the set later calls `refresh` first.
        if is_served {
            self.wake();
        }
        if observed {
            let state = self.state.lock();
            let is_unseen = |state: &mut State| state.seen < number && state.is_served && !state.closed;
            drop(self.observed.wait_while(state, is_unseen));
        }
    }

    fn wake(&self) {
        // SAFETY: the event is open.
        unsafe { SetEvent(self.event.as_raw_handle()) };
    }
}

/// The handles of one call: the event, then the armed handles with their slots.
#[derive(Debug, Default)]
struct Waits {
    handles: Vec<HANDLE>,
    places: Vec<usize>,
}

/// The result of a call.
enum WaitResult {
    /// The handle with this index was signalled.
    Handle(usize),
    /// The event was signalled.
    Change,
    Nothing,
}

impl Waits {
    fn next(&self, left: Option<Duration>) -> io::Result<WaitResult> {
        let handles = self.handles.as_ptr();
        let count = self.handles.len() as u32;
        // SAFETY: the event is open, and so are the handles: code that removes a handle waits until
        // this thread has seen the change.
        let answer = unsafe { WaitForMultipleObjects(count, handles, 0, millis(left)) };
        let index = match answer {
            WAIT_TIMEOUT => return Ok(WaitResult::Nothing),
            WAIT_FAILED => {
                let error = io::Error::last_os_error();
                // The invalid handle is reported, so that the wait for it returns the cause.
                self.handles.iter().position(|&handle| !is_open(handle)).ok_or(error)?
            }
            // The thread that owned a mutex has died, which signals the handle, too.
            answer if answer >= WAIT_ABANDONED_0 => (answer - WAIT_ABANDONED_0) as usize,
            answer => (answer - WAIT_OBJECT_0) as usize,
        };
        Ok(if index == 0 { WaitResult::Change } else { WaitResult::Handle(index) })
    }

    /// Removes a handle, so that the handles after it are checked next. Returns its slot.
    fn remove(&mut self, index: usize) -> usize {
        self.handles.swap_remove(index);
        self.places.swap_remove(index - 1)
    }
}

/// Increments a counter, and decrements it when it is dropped.
struct Count<'a>(&'a AtomicUsize);

impl<'a> Count<'a> {
    fn up(number: &'a AtomicUsize) -> Self {
        number.fetch_add(1, Ordering::SeqCst);
        Self(number)
    }
}

impl Drop for Count<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A caller that waits for its own event in addition to the port.
struct CallerWait<'a> {
    thread: &'a WaitThread,
    port: &'a CompletionPort,
}

impl<'a> CallerWait<'a> {
    fn new(thread: &'a WaitThread, port: &'a CompletionPort) -> Self {
        port.set_event_waiter(&thread.event);
        Self { thread, port }
    }
}

impl Drop for CallerWait<'_> {
    fn drop(&mut self) {
        self.port.clear_event_waiter();
        self.thread.state.lock().is_served = false;
        self.thread.observed.notify_all();
    }
}

/// Returns whether the value is an open handle. Other code may have closed a handle that it did not
/// own.
fn is_open(handle: HANDLE) -> bool {
    let mut flags = 0;
    // SAFETY: any number may be asked about; `flags` outlives the call.
    unsafe { GetHandleInformation(handle, &mut flags) != 0 }
}

/// A slot of a thread.
#[derive(Debug)]
struct SlotHandle {
    thread: Arc<WaitThread>,
    place: usize,
}

impl Watched for SlotHandle {
    fn arm(&mut self) -> io::Result<()> {
        let place = self.place;
        self.thread.change(false, |state| {
            if let Some(slot) = &mut state.slots[place] {
                slot.armed = true;
            }
        });
        // A caller waits for the port alone, because there was no handle when it began.
        if self.thread.port_waiters.load(Ordering::SeqCst) > 0 && !self.thread.state.lock().is_served {
            self.thread.spawn_thread()?;
        }
        Ok(())
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        let mut state = self.thread.state.lock();
        let slot = state.slots[self.place].as_mut();
        let was_armed = slot.is_some_and(|slot| std::mem::replace(&mut slot.armed, false));
        drop(state);
        // The handle may be closed, and the slot reused, once the thread no longer waits for it.
        // Otherwise a signal that the thread is about to report would be reported for the slot's
        // next user.
        if was_armed {
            self.thread.change(true, |_| ());
        }
        let slot = self.thread.state.lock().slots[self.place].take();
        drop(slot);
    }
}
