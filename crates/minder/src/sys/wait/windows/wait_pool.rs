//! The backend `wait_pool`: threads of ours, each of which waits for 63 handles and an event, and
//! posts to the port.
//!
//! `WaitForMultipleObjects` takes 64 handles. A thread is started when those that there are have no
//! room, with a small stack, and stays. It is woken to wait for other handles than before, and
//! never by a wait of the caller's: what a wait costs does not grow with the number of threads.
//!
//! While one call suffices there is no thread at all: whoever waits does so for the handles and the
//! event, which is then set by everybody who posts. That ends for good with the 64th handle, with
//! the second thread that waits at the same time, and with the first pipe or socket, which the
//! kernel tells to the port alone.

#![expect(unsafe_code, reason = "waiting for many handles, and events")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use windows_sys::Win32::Foundation::{
    GetHandleInformation, HANDLE, WAIT_ABANDONED_0, WAIT_FAILED, WAIT_OBJECT_0, WAIT_TIMEOUT,
};
use windows_sys::Win32::System::SystemServices::MAXIMUM_WAIT_OBJECTS;
use windows_sys::Win32::System::Threading::{SetEvent, WaitForMultipleObjects};

use super::completion_port::completed;
use super::{Backend, CompletionPort, Operation, Watched, millis};
use crate::sys::event::event;
use crate::sys::thread;
use crate::sys::wait::Ready;

pub(in crate::sys::wait) const NAME: &str = "wait_pool";

/// How many handles a thread waits for, beside its own event.
const PLACES: usize = MAXIMUM_WAIT_OBJECTS as usize - 1;
/// How long a thread rests when the system could not let it wait.
const REST: Duration = Duration::from_millis(10);

/// The backend: its threads.
#[derive(Debug, Default)]
pub(in crate::sys::wait) struct WaitPool {
    stations: Mutex<Vec<Arc<WaitThread>>>,
    /// How many threads wait, or are about to, and take no station's place.
    elsewhere: Arc<AtomicUsize>,
}

impl Backend for WaitPool {
    fn name(&self) -> &'static str {
        NAME
    }

    fn watch(
        &self,
        queue: &Arc<CompletionPort>,
        handle: Arc<OwnedHandle>,
        packet: Arc<Operation>,
    ) -> io::Result<Box<dyn Watched>> {
        let mut stations = self.stations();
        let seat = WaitSlot { queue: Arc::clone(queue), handle, packet, armed: false };
        // The youngest are asked first: the older ones are full, but for what has gone.
        let mut seat = Some(seat);
        let free = stations.iter().rev().find_map(|station| Some((station, station.seat(&mut seat)?)));
        let (station, place) = match free {
            Some((station, place)) => (Arc::clone(station), place),
            None => {
                let station = WaitThread::new(stations.len(), &self.elsewhere)?;
                // One call no longer suffices.
                for station in stations.iter().chain((!stations.is_empty()).then_some(&station)) {
                    station.spawn_thread()?;
                }
                stations.push(Arc::clone(&station));
                let place = station.seat(&mut seat).unwrap_or_default();
                (station, place)
            }
        };
        Ok(Box::new(SlotHandle { station, place }))
    }

    fn wait(
        &self,
        queue: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        // Either we see a station, or whoever makes it sees us: both write first, and then read.
        let _here = Count::up(&self.elsewhere);
        let before = ready.len();
        while let Some(station) = self.borrow_caller(queue)? {
            station.wait_inline(queue, ready, deadline)?;
            if ready.len() > before || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(());
            }
        }
        queue.wait(ready, deadline)
    }
}

impl WaitPool {
    /// The one station whose place the caller takes, if it may.
    fn borrow_caller(&self, queue: &CompletionPort) -> io::Result<Option<Arc<WaitThread>>> {
        let stations = self.stations();
        let [station] = &stations[..] else { return Ok(None) };
        let mut state = station.lock();
        if state.hired {
            return Ok(None);
        }
        if state.attended || queue.is_associated() {
            drop(state);
            station.spawn_thread()?;
            return Ok(None);
        }
        state.attended = true;
        Ok(Some(Arc::clone(station)))
    }

    fn stations(&self) -> MutexGuard<'_, Vec<Arc<WaitThread>>> {
        self.stations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WaitPool {
    /// Lets the threads go. They end by themselves, and hold nothing of a caller's.
    fn drop(&mut self) {
        let stations = self.stations.get_mut().unwrap_or_else(PoisonError::into_inner);
        for station in stations.drain(..) {
            station.lock().closed = true;
            station.wake();
        }
    }
}

/// Whoever waits for some handles: a thread, or the caller.
#[derive(Debug)]
struct WaitThread {
    number: usize,
    /// The first of its handles: something has changed. It resets itself.
    event: Arc<OwnedHandle>,
    elsewhere: Arc<AtomicUsize>,
    state: Mutex<State>,
    /// The thread has taken note of the last change.
    noted: Condvar,
}

#[derive(Debug, Default)]
struct State {
    seats: Vec<Option<WaitSlot>>,
    /// Counts the changes, and which of them whoever waits knows.
    changes: u64,
    known: u64,
    /// Whether there is, or is about to be, a thread.
    hired: bool,
    /// Whether somebody waits: the thread, or the caller in its place.
    attended: bool,
    closed: bool,
}

/// A handle to wait for.
#[derive(Debug)]
struct WaitSlot {
    queue: Arc<CompletionPort>,
    handle: Arc<OwnedHandle>,
    packet: Arc<Operation>,
    armed: bool,
}

impl WaitThread {
    fn new(number: usize, elsewhere: &Arc<AtomicUsize>) -> io::Result<Arc<Self>> {
        let event = Arc::new(event(false)?);
        let (state, elsewhere) = (Mutex::default(), Arc::clone(elsewhere));
        Ok(Arc::new(Self { number, event, elsewhere, state, noted: Condvar::new() }))
    }

    /// Has a thread of its own from now on.
    fn spawn_thread(self: &Arc<Self>) -> io::Result<()> {
        let mut state = self.lock();
        if state.hired {
            return Ok(());
        }
        let theirs = Arc::clone(self);
        drop(thread::start_small(&format!("minder-wait-{}", self.number), move || theirs.run())?);
        state.hired = true;
        drop(state);
        // The caller who waits here goes.
        self.wake();
        Ok(())
    }

    /// Gives a handle a place, if there is room.
    fn seat(&self, seat: &mut Option<WaitSlot>) -> Option<usize> {
        let mut state = self.lock();
        let place = match state.seats.iter().position(Option::is_none) {
            Some(place) => place,
            None if state.seats.len() < PLACES => {
                state.seats.push(None);
                state.seats.len() - 1
            }
            None => return None,
        };
        state.seats[place] = seat.take();
        Some(place)
    }

    fn run(&self) {
        let mut waits = Waits::default();
        let state = self.lock();
        let here = self.noted.wait_while(state, |state| state.attended && !state.closed);
        here.unwrap_or_else(PoisonError::into_inner).attended = true;
        while self.note(&mut waits) {
            self.attend(&mut waits);
        }
    }

    /// Takes note of what is to be waited for; says whether there is anybody who wants it.
    fn note(&self, waits: &mut Waits) -> bool {
        let mut state = self.lock();
        waits.handles.clear();
        waits.places.clear();
        waits.handles.push(self.event.as_raw_handle());
        for (place, seat) in state.seats.iter().enumerate() {
            if let Some(seat) = seat.as_ref().filter(|seat| seat.armed) {
                waits.handles.push(seat.handle.as_raw_handle());
                waits.places.push(place);
            }
        }
        state.known = state.changes;
        let closed = state.closed;
        drop(state);
        self.noted.notify_all();
        !closed
    }

    /// Waits for the handles in the place of a thread, and for the port, until there is something
    /// to tell, the deadline has come, or a thread takes over.
    fn wait_inline(
        &self,
        queue: &CompletionPort,
        ready: &mut Vec<Ready>,
        deadline: Option<Instant>,
    ) -> io::Result<()> {
        let _beside = CallerWait::new(self, queue);
        let (before, mut waits) = (ready.len(), Waits::default());
        while self.note(&mut waits) && !queue.is_associated() && !self.lock().hired {
            queue.take_posted(ready)?;
            let left = match deadline {
                _ if ready.len() > before => Some(Duration::ZERO),
                deadline => deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())),
            };
            if let (Some(deadline), Some(left)) = (deadline, left)
                && !left.is_zero()
            {
                queue.strike_at(deadline, left);
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

    /// Waits for these until something changes.
    fn attend(&self, waits: &mut Waits) {
        loop {
            match waits.next(None) {
                Ok(WaitResult::Handle(index)) => {
                    if let Some((queue, packet)) = self.take(waits.remove(index)) {
                        queue.post_soon(&packet);
                    }
                }
                Ok(_) => return,
                Err(_) => return std::thread::park_timeout(REST),
            }
        }
    }

    /// A handle was signalled: it is waited for once only.
    fn take(&self, place: usize) -> Option<(Arc<CompletionPort>, Arc<Operation>)> {
        let mut state = self.lock();
        let seat = state.seats[place].as_mut().filter(|seat| seat.armed)?;
        seat.armed = false;
        Some((Arc::clone(&seat.queue), Arc::clone(&seat.packet)))
    }

    /// Changes what is waited for. With `noted` it returns when the thread knows.
    fn change(&self, noted: bool, change: impl FnOnce(&mut State)) {
        let mut state = self.lock();
        change(&mut state);
        state.changes += 1;
        let (number, attended) = (state.changes, state.attended);
        drop(state);
        // Whoever comes later takes note first.
        if attended {
            self.wake();
        }
        if noted {
            let state = self.lock();
            let unknown = |state: &mut State| state.known < number && state.attended && !state.closed;
            drop(self.noted.wait_while(state, unknown));
        }
    }

    fn wake(&self) {
        // SAFETY: the event is open.
        unsafe { SetEvent(self.event.as_raw_handle()) };
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What one call waits for: the event, then the handles, each beside its place.
#[derive(Debug, Default)]
struct Waits {
    handles: Vec<HANDLE>,
    places: Vec<usize>,
}

/// How a call ended.
enum WaitResult {
    /// By the handle with this index.
    Handle(usize),
    /// By the event.
    Change,
    Nothing,
}

impl Waits {
    fn next(&self, left: Option<Duration>) -> io::Result<WaitResult> {
        let (handles, count) = (self.handles.as_ptr(), self.handles.len() as u32);
        // SAFETY: the event is open, and so are the handles: whoever takes one away waits until it is known
        // here.
        let answer = unsafe { WaitForMultipleObjects(count, handles, 0, millis(left)) };
        let index = match answer {
            WAIT_TIMEOUT => return Ok(WaitResult::Nothing),
            WAIT_FAILED => {
                let error = io::Error::last_os_error();
                // It is told, so that the wait for it says why.
                self.handles.iter().position(|&handle| !is_open(handle)).ok_or(error)?
            }
            // The owner of a mutex died: that is a signal, too.
            answer if answer >= WAIT_ABANDONED_0 => (answer - WAIT_ABANDONED_0) as usize,
            answer => (answer - WAIT_OBJECT_0) as usize,
        };
        Ok(if index == 0 { WaitResult::Change } else { WaitResult::Handle(index) })
    }

    /// Takes a handle out, so that what stands behind it has its turn; says its place.
    fn remove(&mut self, index: usize) -> usize {
        self.handles.swap_remove(index);
        self.places.swap_remove(index - 1)
    }
}

/// A number that is one higher while this lives.
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

/// A caller who waits beside the port.
struct CallerWait<'a> {
    station: &'a WaitThread,
    queue: &'a CompletionPort,
}

impl<'a> CallerWait<'a> {
    fn new(station: &'a WaitThread, queue: &'a CompletionPort) -> Self {
        queue.wait_beside(&station.event);
        Self { station, queue }
    }
}

impl Drop for CallerWait<'_> {
    fn drop(&mut self) {
        self.queue.wait_here();
        self.station.lock().attended = false;
        self.station.noted.notify_all();
    }
}

/// Whether it is a handle at all: somebody may have closed what was not his.
fn is_open(handle: HANDLE) -> bool {
    let mut flags = 0;
    // SAFETY: any number may be asked about; `flags` outlives the call.
    unsafe { GetHandleInformation(handle, &mut flags) != 0 }
}

/// A place at a thread.
#[derive(Debug)]
struct SlotHandle {
    station: Arc<WaitThread>,
    place: usize,
}

impl Watched for SlotHandle {
    fn arm(&mut self) -> io::Result<()> {
        let place = self.place;
        self.station.change(false, |state| {
            if let Some(seat) = &mut state.seats[place] {
                seat.armed = true;
            }
        });
        // Somebody waits for the port alone, since there was no handle when he began.
        if self.station.elsewhere.load(Ordering::SeqCst) > 0 && !self.station.lock().attended {
            self.station.spawn_thread()?;
        }
        Ok(())
    }
}

impl Drop for SlotHandle {
    fn drop(&mut self) {
        let mut state = self.station.lock();
        let seat = state.seats[self.place].as_mut();
        let was_armed = seat.is_some_and(|seat| std::mem::replace(&mut seat.armed, false));
        drop(state);
        // Its handle may be closed, and its place be another's, when the thread does not wait for it any
        // longer: a signal that it is just about to tell would be told of whoever sits there.
        if was_armed {
            self.station.change(true, |_| ());
        }
        let seat = self.station.lock().seats[self.place].take();
        drop(seat);
    }
}
