//! io_uring(7): hands changes to the kernel together with the wait, in one call. Polls are one-shot
//! and are armed again.
//!
//! Every source has at most one poll in the ring. A poll completes once. The next wait arms it
//! again, and a source that is still ready completes at once, within the same call. This makes the
//! backend level-triggered. (A multishot poll would not be: after a partial read it reports nothing
//! more. It implements [`Interest::edge`] here.)
//!
//! A completion that exists when a wait begins is only a hint, because its source may have been
//! served meanwhile. The wait polls that source once more and reports it if it is still ready.
//!
//! **Two kinds of ring.** While one thread waits, the ring belongs to that thread alone, and the
//! kernel does its part of the work within the wait (Linux 6.1; half the cost of the other kind,
//! measured on 6.18). Changes by other threads wait for that thread, which is woken. A shared ring
//! replaces it when several threads wait, when threads take turns, or when a foreign loop watches
//! the ring.
//!
//! In a shared ring a poll belongs to the thread that armed it:
//!
//! - The kernel interrupts that thread to complete the poll. A system call of the thread that a
//!   signal would interrupt may return `EINTR`.
//! - A completion is late while the thread is in a call that nothing interrupts, such as a vfork.
//! - When the thread exits, the kernel cancels its polls. The next waiting thread arms them again.
//!
//! Needs Linux 5.11 (time-outs in `io_uring_enter`, completions that are never dropped), and 5.13
//! for edge-triggered sources.

#![expect(unsafe_code, reason = "both sides of the rings, under a lock of our own, and io_uring_enter")]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, cqueue, opcode, squeue};
use minder_os::sync::Mutex;

use super::poll::poll_now;
use super::timer::Timer;
use super::{PollHandle, Ready, WAKE_TOKEN, WaitBackend, Waker};
use crate::backend::Backend;
use crate::interest::Interest;
use crate::sys::thread::here;

/// Entries of the submission ring: changes beyond that take another call.
const CHANGES_MAX: u32 = 256;
/// Entries of the completion ring. More wait in a list of the kernel.
const COMPLETIONS_MAX: u32 = 4096;
/// `due` may hold this many outdated keys, plus two for each slot, before they are removed.
const DUE_MIN: usize = 64;
/// The number of times that the ring may move to another thread. After that it is opened for all
/// threads.
const MOVES_MAX: u32 = 8;
/// The user data of requests that cancel others. Their completions are ignored.
const CANCEL: u64 = u64::MAX;
const TIMER: u64 = u64::MAX - 2;
const CHANGED: u64 = u64::MAX - 3;

/// Flags of io_uring_enter(2).
const ENTER_GETEVENTS: u32 = 1;
const ENTER_EXT_ARG: u32 = 8;

pub(crate) struct Uring {
    state: Mutex<State>,
    waker: Arc<Waker>,
    /// Wakes the waiting thread, or the foreign loop, when there are changes that only that thread
    /// can submit.
    changed: Waker,
    /// For the deadlines of a foreign loop.
    timer: OnceLock<Timer>,
    /// `true` if the kernel has multishot polls.
    multishot: bool,
}

struct State {
    ring: Arc<IoUring>,
    owner: Owner,
    /// The number of times that the ring was replaced.
    ring_replacements: u32,
    slots: Vec<Slot>,
    free: Vec<u32>,
    places: HashMap<RawFd, u32>,
    /// The slots that the next call arms, in this order. Keys of slots that have changed since are
    /// skipped.
    due: Vec<SlotKey>,
    /// The polls that the owner has to cancel, because their sources were deleted or changed.
    ends: Vec<SlotKey>,
    /// The slots whose completions may be older than the wait that found them: they are polled again.
    unconfirmed: Vec<SlotKey>,
    polled: Vec<libc::pollfd>,
    /// Counts the turns of waits.
    turn: u64,
    /// The number of threads in a wait.
    waiting: usize,
    /// A foreign loop watches the ring. Changes must then be submitted at once, because no wait may
    /// follow.
    watched: bool,
}

/// The completions that say that a source is ready now; the others are hints.
#[derive(Clone, Copy, PartialEq)]
enum HintPolicy {
    All,
    /// Those of polls that were armed in this turn.
    ArmedNow,
    None,
}

/// The threads that may use the ring.
#[derive(Clone, Copy, PartialEq)]
enum Owner {
    /// The first thread that uses it becomes its only user.
    Unowned,
    Thread(usize),
    All,
}

/// One version of a slot: its index, and how often it had been changed. Requests carry it as user
/// data.
#[derive(Clone, Copy, PartialEq)]
struct SlotKey {
    slot: u32,
    generation: u32,
}

struct Slot {
    fd: RawFd,
    token: u64,
    interest: Interest,
    generation: u32,
    phase: Phase,
    /// In which turn it was armed.
    turn: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    /// Unused.
    Free,
    /// In `due`.
    Due,
    /// The kernel holds a poll of it, or its completion is in the ring.
    Armed,
    /// One-shot, and already reported.
    Silent,
}

impl SlotKey {
    fn packed(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.slot)
    }

    fn unpacked(data: u64) -> Self {
        Self { slot: data as u32, generation: (data >> 32) as u32 }
    }
}

impl std::fmt::Debug for Uring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Uring").field("sources", &self.state.lock().places.len()).finish_non_exhaustive()
    }
}

impl Uring {
    pub(crate) fn new() -> io::Result<Self> {
        let (ring, owner) = open(true)?;
        let params = ring.params();
        if !(params.is_feature_ext_arg() && params.is_feature_nodrop()) {
            return Err(io::Error::new(io::ErrorKind::Unsupported, "before Linux 5.11"));
        }
        let multishot = params.is_feature_resource_tagging();
        let waker = Arc::new(Waker::new()?);
        let changed = Waker::new()?;
        let mut state = State::new(ring, owner);
        state.insert(waker.as_fd().as_raw_fd(), WAKE_TOKEN, Interest::READABLE);
        state.insert(changed.as_fd().as_raw_fd(), CHANGED, Interest::READABLE);
        Ok(Self { state: Mutex::new(state), waker, changed, timer: OnceLock::new(), multishot })
    }

    /// Replaces the ring by another one. What was armed in the old ring is due again.
    fn replace(&self, state: &mut State) -> io::Result<()> {
        state.ring_replacements += 1;
        let (ring, owner) = open(state.waiting == 0 && state.ring_replacements <= MOVES_MAX)?;
        // The last user of the old one closes it, which ends its polls.
        state.renew_all(ring, owner);
        // A thread that waits in the old ring has to return and use the new one.
        if state.waiting > 0 { self.changed.wake() } else { Ok(()) }
    }

    /// Writes a request into the submission ring. Submits the requests first if the ring is full.
    fn push(ring: &IoUring, state: &mut State, request: &squeue::Entry) -> io::Result<()> {
        for _ in 0..2 {
            let mut queue = requests(ring, state);
            // SAFETY: a poll, and the end of one, have no memory that must outlive this call.
            if unsafe { queue.push(request) }.is_ok() {
                return Ok(());
            }
            let count = queue.len();
            drop(queue);
            enter(ring, count, 0, None)?;
        }
        // Old kernels accept no request while completions wait that the ring has no room for.
        Err(io::Error::from_raw_os_error(libc::EBUSY))
    }

    /// Writes all due polls into the submission ring, which must belong to this thread.
    fn arm(ring: &IoUring, state: &mut State) -> io::Result<()> {
        while let Some(&key) = state.ends.last() {
            Self::push(ring, state, &opcode::PollRemove::new(key.packed()).build().user_data(CANCEL))?;
            state.ends.pop();
        }
        let turn = state.turn;
        let mut due = std::mem::take(&mut state.due);
        let result = due.iter().try_for_each(|&key| {
            let Some(slot) = state.slot(key).filter(|slot| slot.phase == Phase::Due) else { return Ok(()) };
            let poll = opcode::PollAdd::new(Fd(slot.fd), mask(slot.interest)).multi(slot.interest.is_edge());
            Self::push(ring, state, &poll.build().user_data(key.packed()))?;
            if let Some(slot) = state.slot(key) {
                slot.phase = Phase::Armed;
                slot.turn = turn;
            }
            Ok(())
        });
        // After an error the next wait continues here.
        if result.is_ok() {
            due.clear();
        }
        // The next call uses its allocation again.
        state.due = due;
        result
    }

    /// Ends the poll of a slot that is about to change, so that the kernel releases its file.
    fn disarm(&self, state: &mut State, place: u32) -> io::Result<()> {
        let slot = &state.slots[place as usize];
        if slot.phase != Phase::Armed {
            return Ok(());
        }
        state.ends.push(SlotKey { slot: place, generation: slot.generation });
        if state.is_ours()? {
            self.hand_over(state)
        } else if state.waiting > 0 {
            self.changed.wake()
        } else {
            // Its owner may be gone, or come back late.
            self.replace(state)
        }
    }

    /// Makes due changes visible to a running wait or to a foreign loop.
    fn publish_changes(&self, state: &mut State) -> io::Result<()> {
        if state.waiting == 0 && !state.watched {
            Ok(())
        } else if state.is_ours()? {
            self.hand_over(state)
        } else {
            self.changed.wake()
        }
    }

    /// Submits the polls of due sources and the removals of polls that must end.
    fn hand_over(&self, state: &mut State) -> io::Result<()> {
        let ring = Arc::clone(&state.ring);
        Self::arm(&ring, state)?;
        let count = requests(&ring, state).len();
        if count == 0 {
            return Ok(());
        }
        match enter(&ring, count, 0, None) {
            // We are a copy of its thread's process.
            Err(error) if is_foreign(&error) => self.replace(state),
            result => result,
        }
    }

    /// Takes all completions out of the ring: at most one for each source that is not
    /// edge-triggered. Completions that are not `fresh` are hints, and their sources are due.
    /// Returns the number of completions.
    fn take(&self, ring: &IoUring, state: &mut State, fresh: HintPolicy, ready: &mut Vec<Ready>) -> usize {
        let turn = state.turn;
        let mut taken = 0;
        // SAFETY: the lock that `state` is borrowed from keeps every other thread away from this side of
        // the ring.
        let queue = unsafe { ring.completion_shared() };
        for completion in queue {
            taken += 1;
            let key = SlotKey::unpacked(completion.user_data());
            let Some(slot) = state.slot(key).filter(|slot| slot.phase == Phase::Armed) else { continue };
            // The thread that armed it has exited.
            let cancelled = completion.result() == -libc::ECANCELED;
            let fresh = fresh == HintPolicy::All || fresh == HintPolicy::ArmedNow && slot.turn == turn;
            if !cqueue::more(completion.flags()) {
                slot.phase = Phase::Due;
            }
            if !cancelled && (fresh || slot.interest.is_edge()) {
                self.report(state, key, completion.result(), ready);
            } else if slot.phase == Phase::Due {
                state.unconfirmed.push(key);
            }
        }
        taken
    }

    /// Reports what is ready. The source is then due, or disabled.
    fn report(&self, state: &mut State, key: SlotKey, result: i32, ready: &mut Vec<Ready>) {
        let Some(slot) = state.slot(key) else { return };
        match slot.token {
            WAKE_TOKEN => self.waker.take_wakes(ready),
            CHANGED => self.changed.reset(),
            TIMER => {
                if let Some(timer) = self.timer.get() {
                    timer.clear();
                }
            }
            token => ready.push(readiness(token, result)),
        }
        if slot.phase == Phase::Due && slot.interest.is_oneshot() {
            slot.phase = Phase::Silent;
        } else if slot.phase == Phase::Due {
            state.due.push(key);
        }
    }

    /// Takes all completions as hints, also those for which the ring had no room.
    fn recall(&self, ring: &IoUring, state: &mut State, ready: &mut Vec<Ready>) -> io::Result<()> {
        self.take(ring, state, HintPolicy::None, ready);
        while requests(ring, state).cq_overflow() {
            enter(ring, 0, 0, None)?;
            self.take(ring, state, HintPolicy::None, ready);
        }
        Ok(())
    }

    /// Polls the sources of all hints and reports the ready ones. The others are due.
    fn poll_hints(&self, state: &mut State, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut hints = std::mem::take(&mut state.unconfirmed);
        let mut polled = std::mem::take(&mut state.polled);
        polled.extend(hints.iter().map(|key| {
            let slot = &state.slots[key.slot as usize];
            libc::pollfd { fd: slot.fd, events: mask(slot.interest) as i16, revents: 0 }
        }));
        let result = poll_now(&mut polled);
        for (key, entry) in hints.drain(..).zip(polled.drain(..)) {
            if entry.revents != 0 {
                self.report(state, key, entry.revents.into(), ready);
            } else {
                state.due.push(key);
            }
        }
        // The next call uses their allocations again.
        state.unconfirmed = hints;
        state.polled = polled;
        result
    }

    /// Runs one turn of a wait. Returns whether it was the last: there is something to report, or
    /// the deadline had passed before the turn.
    ///
    /// `idle` is whether the kernel announced work in the previous turn and there was none. This
    /// happens when another thread submits work and this thread processes it before the other
    /// thread has announced it. The announcement then stays.
    fn submit_and_wait(
        &self,
        ready: &mut Vec<Ready>,
        before: usize,
        deadline: Option<Instant>,
        idle: &mut bool,
    ) -> io::Result<bool> {
        let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
        let last = left == Some(Duration::ZERO);
        let mut state = self.state.lock();
        if !state.is_ours()? {
            self.replace(&mut state)?;
            state.is_ours()?;
        }
        // 1. Sources that were ready while no thread waited are armed first, in the order of their
        //    completions. Then the sources that have been reported.
        state.turn += 1;
        let ring = Arc::clone(&state.ring);
        self.recall(&ring, &mut state, ready)?;
        let State { unconfirmed: hints, due, .. } = &mut *state;
        hints.append(due);
        std::mem::swap(hints, due);
        // Work that is pending in the kernel is older than this wait. Arming may complete it.
        let stale = !*idle && requests(&ring, &mut state).taskrun();
        Self::arm(&ring, &mut state)?;
        // 2. What is ready completes within this call.
        let count = requests(&ring, &mut state).len();
        let entered = if last || stale || ready.len() > before {
            // It does not sleep, and keeps the lock: another wait would take the completions of this one.
            enter(&ring, count, 0, None)
        } else {
            state.waiting += 1;
            drop(state);
            let entered = enter(&ring, count, 1, left);
            state = self.state.lock();
            state.waiting -= 1;
            if !Arc::ptr_eq(&ring, &state.ring) {
                return Ok(false);
            }
            entered
        };
        match entered {
            Err(error) if is_foreign(&error) => return self.replace(&mut state).map(|()| false),
            result => result?,
        }
        // 3. All completions that are in the ring now arrived after the wait had begun, except leftovers of
        //    earlier work.
        let fresh = if stale { HintPolicy::ArmedNow } else { HintPolicy::All };
        *idle = self.take(&ring, &mut state, fresh, ready) == 0 && stale;
        // The kernel does a part of its work at a time (20 polls on 6.18).
        while requests(&ring, &mut state).taskrun() && ready.len() - before < state.slots.len() {
            enter(&ring, 0, 0, None)?;
            if self.take(&ring, &mut state, fresh, ready) == 0 {
                break;
            }
            *idle = false;
        }
        if !state.unconfirmed.is_empty() {
            self.poll_hints(&mut state, ready)?;
        }
        // Other waits also report this. A poll of a deleted source is cancelled now, since no other
        // wait may follow.
        if state.waiting > 0 || state.watched || !state.ends.is_empty() {
            self.hand_over(&mut state)?;
        }
        Ok(ready.len() > before || last)
    }

    fn check(&self, interest: Interest) -> io::Result<()> {
        if interest.is_edge() && !self.multishot { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
    }
}

impl State {
    fn new(ring: IoUring, owner: Owner) -> Self {
        Self {
            ring: Arc::new(ring),
            owner,
            ring_replacements: 0,
            slots: Vec::new(),
            free: Vec::new(),
            places: HashMap::new(),
            due: Vec::new(),
            ends: Vec::new(),
            unconfirmed: Vec::new(),
            polled: Vec::new(),
            turn: 0,
            waiting: 0,
            watched: false,
        }
    }

    /// Returns whether the calling thread may use the ring. The first caller becomes the owner.
    fn is_ours(&mut self) -> io::Result<bool> {
        if self.owner == Owner::Unowned {
            self.ring.submitter().register_enable_rings()?;
            self.owner = Owner::Thread(here());
        }
        Ok(self.owner == Owner::All || self.owner == Owner::Thread(here()))
    }

    /// Makes a slot that is due.
    fn insert(&mut self, fd: RawFd, token: u64, interest: Interest) {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { fd, token, interest, generation: 0, phase: Phase::Free, turn: 0 });
            self.slots.len() as u32 - 1
        });
        self.places.insert(fd, place);
        self.renew(place, |slot| (slot.fd, slot.token, slot.interest) = (fd, token, interest));
    }

    /// Changes a slot, whose poll was ended, and makes it due. Completions of the ended poll carry
    /// an outdated key, and are ignored.
    fn renew(&mut self, place: u32, change: impl FnOnce(&mut Slot)) {
        let slot = &mut self.slots[place as usize];
        slot.generation = slot.generation.wrapping_add(1);
        slot.phase = Phase::Due;
        change(slot);
        self.due.push(SlotKey { slot: place, generation: slot.generation });
        // Sources that are added and deleted without a wait leave outdated keys behind.
        if self.due.len() > 2 * self.slots.len() + DUE_MIN {
            let slots = &self.slots;
            self.due.retain(|key| slots[key.slot as usize].generation == key.generation);
        }
    }

    fn renew_all(&mut self, ring: IoUring, owner: Owner) {
        (self.ring, self.owner) = (Arc::new(ring), owner);
        self.ends.clear();
        for place in 0..self.slots.len() {
            if self.slots[place].phase == Phase::Armed {
                self.renew(place as u32, |_| ());
            }
        }
    }

    /// Returns the slot, unless it has changed since.
    fn slot(&mut self, key: SlotKey) -> Option<&mut Slot> {
        self.slots.get_mut(key.slot as usize).filter(|slot| slot.generation == key.generation)
    }
}

impl WaitBackend for Uring {
    fn kind(&self) -> Backend {
        Backend::IoUring
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.check(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let mut state = self.state.lock();
        if state.places.contains_key(&source.as_raw_fd()) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        state.insert(source.as_raw_fd(), token, interest);
        self.publish_changes(&mut state)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        self.check(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let mut state = self.state.lock();
        let place = *state.places.get(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        self.disarm(&mut state, place)?;
        state.renew(place, |slot| (slot.token, slot.interest) = (token, interest));
        self.publish_changes(&mut state)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let mut state = self.state.lock();
        let place = state.places.remove(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        let disarmed = self.disarm(&mut state, place);
        let slot = &mut state.slots[place as usize];
        (slot.phase, slot.generation) = (Phase::Free, slot.generation.wrapping_add(1));
        state.free.push(place);
        disarmed
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        let mut idle = false;
        while !self.submit_and_wait(ready, before, deadline, &mut idle)? {}
        Ok(())
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let mut state = self.state.lock();
        // A ring for one thread may be replaced, and the result borrows the ring's descriptor.
        if state.owner != Owner::All {
            state.ring_replacements = MOVES_MAX;
            self.replace(&mut state)?;
        }
        state.watched = true;
        // Opened before it is needed: later no descriptor may be free.
        let timer = match self.timer.get() {
            Some(timer) => timer,
            None => {
                let timer = Timer::new()?;
                state.insert(timer.as_fd().as_raw_fd(), TIMER, Interest::READABLE);
                // The lock keeps other threads from adding a second one.
                self.timer.get_or_init(|| timer)
            }
        };
        if let Some(deadline) = deadline {
            timer.arm(deadline, Instant::now())?;
        }
        self.publish_changes(&mut state)?;
        // SAFETY: a shared ring is never replaced, so it is open as long as `self` is, which the
        // result borrows.
        Ok(unsafe { BorrowedFd::borrow_raw(state.ring.as_raw_fd()) })
    }
}

/// Opens a ring: for one thread if `alone` is set and the kernel supports it, else a shared one.
fn open(alone: bool) -> io::Result<(IoUring, Owner)> {
    let mut builder = IoUring::builder();
    builder.setup_clamp().setup_cqsize(COMPLETIONS_MAX);
    let mut newer = builder.clone();
    // Since Linux 5.18 a refused request does not delay those behind it.
    newer.setup_submit_all();
    let all = newer.clone();
    newer.setup_single_issuer().setup_defer_taskrun().setup_taskrun_flag().setup_r_disabled();
    let kinds = [(newer, Owner::Unowned), (all, Owner::All), (builder, Owner::All)];
    let mut result = Err(io::ErrorKind::Unsupported.into());
    for (kind, owner) in kinds.into_iter().skip(usize::from(!alone)) {
        result = kind.build(CHANGES_MAX).map(|ring| (ring, owner));
        match &result {
            // The kernel does not know one of the flags.
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => (),
            _ => break,
        }
    }
    result
}

/// Returns the side of the ring where requests are written.
fn requests<'a>(ring: &'a IoUring, _state: &mut State) -> squeue::SubmissionQueue<'a> {
    // SAFETY: the lock that `_state` is borrowed from keeps every other thread away from this side
    // of the ring. Callers hold that lock as long as they use the queue.
    unsafe { ring.submission_shared() }
}

/// Makes one system call: submits `count` requests and waits for `wanted` completions, at most for
/// `left`. The result carries no information: the caller reads the ring and the clock.
fn enter(ring: &IoUring, count: usize, wanted: u32, left: Option<Duration>) -> io::Result<()> {
    let time = left.map(Timespec::from);
    let args = time.as_ref().map(|time| SubmitArgs::new().timespec(time));
    let flags = ENTER_GETEVENTS | if args.is_some() { ENTER_EXT_ARG } else { 0 };
    // SAFETY: the requests in the ring use no memory of ours, and `args` and the time that it points to
    // outlive the call.
    let result = unsafe { ring.submitter().enter(count as u32, wanted, flags, args.as_ref()) };
    match result.as_ref().map_err(io::Error::raw_os_error) {
        // The time-out has passed; a signal came; completions must be taken before more requests
        // are accepted.
        Ok(_) | Err(Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
        Err(_) => result.map(drop),
    }
}

/// Returns whether the kernel reports that the ring belongs to another thread.
fn is_foreign(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EEXIST)
}

fn mask(interest: Interest) -> u32 {
    let mut mask = 0;
    if interest.is_readable() {
        mask |= libc::POLLIN as u32;
    }
    if interest.is_writable() {
        mask |= libc::POLLOUT as u32;
    }
    mask
}

/// Converts a completion. An error, such as a closed descriptor, is reported as ready: the next
/// read returns the cause.
fn readiness(token: u64, result: i32) -> Ready {
    let has = |mask: i16| result < 0 || result & i32::from(mask) != 0;
    let closed = has(libc::POLLHUP | libc::POLLERR | libc::POLLNVAL);
    Ready {
        readable: closed || has(libc::POLLIN),
        writable: closed || has(libc::POLLOUT),
        closed,
        ..Ready::none(token)
    }
}
