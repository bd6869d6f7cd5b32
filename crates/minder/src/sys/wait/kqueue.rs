//! kqueue(2) of macOS and the BSDs: one kernel queue for descriptors, processes and timers.
//!
//! This backend is compiled for these systems and has never run on them. It relies on kqueue(2) of
//! macOS, FreeBSD, NetBSD 10 and OpenBSD. Where the manual is silent it relies on the kernels'
//! sources and on bug reports, which are named where they matter.
//!
//! - `EV_ADD` for an existing note changes it silently and leaves some of its flags as they were
//!   (kern_event.c of OpenBSD). So a table records the notes, and a change deletes the notes and
//!   adds new ones.
//! - The waker is a pipe: older releases of OpenBSD and NetBSD have no `EVFILT_USER`.
//! - The deadline of a wait is the time-out of the call. It has nanosecond resolution everywhere;
//!   OpenBSD limits it to a day.
//! - A level-triggered note moves to the end of the kernel's queue when it is reported, so no
//!   source starves.

#![expect(unsafe_code, reason = "the kevent system call, whose structure differs from system to system")]

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;
use rustix::fs::FileType;

use super::kqueue_table::{Filter, Ident, KernelEvent, RegistrationTable};
use super::{PollHandle, Ready, WaitBackend, Waker};
use crate::backend::Backend;
use crate::exit_status::{ExitInfo, ExitStatus};
use crate::interest::Interest;
use crate::sys::pid;

/// The maximum number of events of one call. More stay in the kernel and come first in the next call.
const EVENTS_MAX: usize = 256;
/// The longest time-out. Some systems refuse one that is longer than 100,000,000 seconds.
const TIMEOUT_MAX: Duration = Duration::from_secs(86_400);
/// Delay before a process that cannot be reaped yet is checked again.
const RESCAN_DELAY: Duration = Duration::from_millis(1);

/// The timer for the deadline of a foreign event loop.
const DEADLINE_TIMER: usize = 0;
/// The timer for states that the kernel does not report.
const RESCAN_TIMER: usize = 1;

/// The flag for the unit of a timer, and the number of nanoseconds in this unit.
#[cfg(any(target_vendor = "apple", target_os = "freebsd"))]
const UNIT: (u32, u128) = (libc::NOTE_NSECONDS, 1);
/// Milliseconds: NetBSD before 10 (its kqueue(2)) and older OpenBSD have no other unit, and ignore
/// the flag.
#[cfg(not(any(target_vendor = "apple", target_os = "freebsd")))]
const UNIT: (u32, u128) = (0, 1_000_000);

#[derive(Debug)]
pub(crate) struct Kqueue {
    queue: OwnedFd,
    state: Mutex<State>,
    waker: Arc<Waker>,
}

#[derive(Debug, Default)]
struct State {
    table: RegistrationTable,
    /// The deadline that the timer for a foreign event loop is set to.
    armed: Option<Instant>,
}

/// The filter of a note.
#[derive(Clone, Copy)]
enum FilterKind {
    Read,
    Write,
    Exit,
    Timer,
}

impl Kqueue {
    pub(crate) fn new() -> io::Result<Self> {
        // A child made by fork does not inherit it (kqueue(2) of each operating system). A child made by
        // posix_spawn may.
        let queue = rustix::event::kqueue::kqueue()?;
        rustix::io::fcntl_setfd(&queue, rustix::io::FdFlags::CLOEXEC)?;
        let kqueue = Self { queue, state: Mutex::default(), waker: Arc::new(Waker::new()?) };
        let change = adding(kqueue.waker_fd(), FilterKind::Read, Interest::READABLE, 0);
        kqueue.apply([change]).map(|[refusal]| refusal)?.map_or(Ok(kqueue), |errno| Err(os_error(errno)))
    }

    fn waker_fd(&self) -> RawFd {
        self.waker.as_fd().as_raw_fd()
    }

    /// Applies changes, and takes no events. Returns the error number of each change that the
    /// kernel refused.
    fn apply<const N: usize>(&self, mut changes: [libc::kevent; N]) -> io::Result<[Option<i32>; N]> {
        // With EV_RECEIPT the kernel returns a receipt for every change, and no events. The zero
        // time-out keeps a kernel that does not know this flag from waiting.
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let queue = self.queue.as_raw_fd();
        let list = changes.as_mut_ptr();
        // SAFETY: `list` has room for N receipts, and outlives the call, as does `now`. Changes and receipts
        // may share an array (kevent(2) of each operating system).
        let count = unsafe { libc::kevent(queue, list, N as _, list, N as _, &now) };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        let receipts = usize::try_from(count).unwrap_or(0);
        let mut refusals = [None; N];
        for (refusal, receipt) in refusals.iter_mut().zip(&changes[..receipts.min(N)]) {
            let is_refused = receipt.flags & libc::EV_ERROR != 0 && receipt.data != 0;
            *refusal = is_refused.then_some(receipt.data as i32);
        }
        Ok(refusals)
    }

    /// Adds the notes of a source that has none.
    fn add_notes(
        &self,
        state: &mut State,
        fd: RawFd,
        interest: Interest,
        generation: usize,
    ) -> io::Result<()> {
        let note = |filter| adding(fd, filter, interest, generation);
        let refusal = match (interest.is_readable(), interest.is_writable()) {
            (true, true) => {
                self.apply([note(FilterKind::Read), note(FilterKind::Write)])?.into_iter().flatten().next()
            }
            (_, writable) => {
                self.apply([note(if writable { FilterKind::Write } else { FilterKind::Read })])?[0]
            }
        };
        let Some(errno) = refusal else { return Ok(()) };
        self.delete_notes(fd)?;
        if errno != libc::EPIPE {
            return Err(os_error(errno));
        }
        // The other end of a pipe is closed already. The kernel makes no note for writing
        // (pipe_kqfilter of FreeBSD; mio and polling report the same of macOS). The table reports
        // it, and the next write returns the cause.
        state.table.mark_standing(Ident::Source(fd));
        self.arm(RESCAN_TIMER, Duration::ZERO)
    }

    /// Deletes the notes of a source, and ignores notes that do not exist.
    fn delete_notes(&self, fd: RawFd) -> io::Result<()> {
        self.apply([deleting(fd as usize, FilterKind::Read), deleting(fd as usize, FilterKind::Write)])
            .map(drop)
    }

    /// Sets a timer. A timer that is already set is deleted first: not every kernel restarts it
    /// (kern_event.c of older OpenBSD).
    fn arm(&self, timer: usize, left: Duration) -> io::Result<()> {
        let (flag, unit) = UNIT;
        let mut setting = deleting(timer, FilterKind::Timer);
        setting.flags = libc::EV_ADD | libc::EV_ONESHOT | libc::EV_RECEIPT;
        setting.fflags = flag;
        // Rounded up. The meaning of zero differs between kernels.
        setting.data = left.min(TIMEOUT_MAX).as_nanos().div_ceil(unit).max(1) as _;
        let [_, refusal] = self.apply([deleting(timer, FilterKind::Timer), setting])?;
        refusal.map_or(Ok(()), |errno| Err(os_error(errno)))
    }

    /// Polls once, for at most `left`. Returns the number of events, or zero if a signal
    /// interrupted the call.
    fn poll_once(&self, list: &mut [MaybeUninit<libc::kevent>], left: Option<Duration>) -> io::Result<usize> {
        let time = left
            .map(|left| left.min(TIMEOUT_MAX))
            .map(|left| libc::timespec { tv_sec: left.as_secs() as _, tv_nsec: left.subsec_nanos() as _ });
        let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let queue = self.queue.as_raw_fd();
        let capacity = list.len();
        // SAFETY: `list` has room for as many events, and `time` is null or points to a local that outlives
        // the call.
        let count = unsafe {
            libc::kevent(queue, std::ptr::null(), 0, list.as_mut_ptr().cast(), capacity as _, time)
        };
        usize::try_from(count).or_else(|_| match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            error => Err(error),
        })
    }

    /// Moves the events of one poll, and standing registrations, into `ready`.
    fn collect(&self, events: &[MaybeUninit<libc::kevent>], ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut state = self.state.lock();
        let State { table, armed } = &mut *state;
        let mut is_woken = false;
        let fired = events.iter().filter_map(|event| {
            // SAFETY: the kernel has filled in all of these.
            let event = unsafe { event.assume_init_ref() };
            let note = match event.filter {
                libc::EVFILT_READ => Filter::Read(event.ident as RawFd),
                libc::EVFILT_WRITE => Filter::Write(event.ident as RawFd),
                libc::EVFILT_PROC => Filter::Exit(event.ident as u32),
                _ => {
                    if event.ident == DEADLINE_TIMER {
                        *armed = None;
                    }
                    return None;
                }
            };
            is_woken |= note == Filter::Read(self.waker_fd());
            let ended = event.flags & libc::EV_EOF != 0;
            // "Returns the socket error (if any) in fflags" with EV_EOF.
            let failed = event.flags & libc::EV_ERROR != 0 || ended && event.fflags != 0;
            // A socket that is registered for one direction only: poll(2) may report the other.
            let failed =
                failed || ended && !matches!(note, Filter::Exit(_)) && is_hung_up(event.ident as RawFd);
            Some(KernelEvent { note, generation: event.udata as usize, ended, failed })
        });
        table.take(fired, ready);
        // NOTE_EXIT may come a moment before the process can be reaped (libuv's issue 3521:
        // FreeBSD, macOS, OpenBSD). A caller that receives a report reaps without waiting, so the
        // report is delayed.
        if table.resolve_exits(has_ended) {
            self.arm(RESCAN_TIMER, RESCAN_DELAY)?;
        }
        table.report(events.len(), events.len() == EVENTS_MAX, ready);
        drop(state);
        if is_woken {
            self.waker.take_wakes(ready);
        }
        Ok(())
    }
}

impl WaitBackend for Kqueue {
    fn kind(&self) -> Backend {
        Backend::Kqueue
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        // At its end a plain file is ready for poll(2), but not for kqueue. It is refused, as by epoll.
        let kind = kind(source)?;
        if kind == FileType::RegularFile {
            return Err(os_error(libc::EPERM));
        }
        let fd = source.as_raw_fd();
        let mut state = self.state.lock();
        let generation = state.table.insert(Ident::Source(fd), token, interest)?;
        if kind == FileType::Socket {
            state.table.mark_socket(fd);
        }
        let result = self.add_notes(&mut state, fd, interest, generation);
        if result.is_err() {
            state.table.remove(Ident::Source(fd))?;
        }
        result
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let kind = kind(source)?;
        let fd = source.as_raw_fd();
        let mut state = self.state.lock();
        let generation = state.table.renew(Ident::Source(fd), token, interest)?;
        if kind == FileType::Socket {
            state.table.mark_socket(fd);
        }
        self.delete_notes(fd)?;
        self.add_notes(&mut state, fd, interest, generation)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let fd = source.as_raw_fd();
        let mut state = self.state.lock();
        state.table.remove(Ident::Source(fd))?;
        self.delete_notes(fd)
    }

    fn add_process(&self, pid: u32, token: u64, interest: Interest) -> io::Result<()> {
        let ident = Ident::Process(pid);
        let mut state = self.state.lock();
        let generation = state.table.insert(ident, token, interest)?;
        let mut change = adding(0, FilterKind::Exit, Interest::READABLE, generation);
        (change.ident, change.fflags) = (pid as usize, libc::NOTE_EXIT);
        let refused = match self.apply([change])? {
            [None] => None,
            // "The specified process to attach to does not exist". Kernels also return this for a process
            // that has exited or is exiting (sources of xnu and OpenBSD, libuv's issue 3451).
            [Some(libc::ESRCH)] if is_unreaped(pid) => {
                state.table.end(pid);
                None
            }
            // OpenBSD refuses a process of another user, such as sudo: it has to be polled.
            [Some(libc::EACCES | libc::EPERM)] => Some(io::ErrorKind::Unsupported.into()),
            [Some(errno)] => Some(os_error(errno)),
        };
        if let Some(error) = refused {
            state.table.remove(ident)?;
            return Err(error);
        }
        // A note that is added after the exit may be added silently and never fire (reported for
        // macOS in bun's pull request 35414).
        if matches!(peek_exit(pid), Some(exit) if exit.status != ExitStatus::Unknown) {
            state.table.end(pid);
        }
        // The running wait reports it.
        if state.table.resolve_exits(has_ended) || state.table.has_standing() {
            self.arm(RESCAN_TIMER, Duration::ZERO)?;
        }
        Ok(())
    }

    fn delete_process(&self, pid: u32) -> io::Result<()> {
        let mut state = self.state.lock();
        state.table.remove(Ident::Process(pid))?;
        self.apply([deleting(pid as usize, FilterKind::Exit)]).map(drop)
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        let mut list = [const { MaybeUninit::uninit() }; EVENTS_MAX];
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let has_standing = self.state.lock().table.has_standing();
            let count = self.poll_once(&mut list, if has_standing { Some(Duration::ZERO) } else { left })?;
            self.collect(&list[..count], ready)?;
            // With nothing to report, the wait continues until a poll *after* the deadline finds
            // nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let mut state = self.state.lock();
        if state.table.has_standing() {
            self.arm(RESCAN_TIMER, Duration::ZERO)?;
        }
        if let Some(at) = deadline
            && state.armed != deadline
        {
            self.arm(DEADLINE_TIMER, at.saturating_duration_since(Instant::now()))?;
            state.armed = deadline;
        }
        Ok(self.queue.as_fd())
    }
}

/// Returns whether both directions have ended, as far as the kernel reports it.
fn is_hung_up(fd: RawFd) -> bool {
    let mut list = [libc::pollfd { fd, events: 0, revents: 0 }];
    let polled = super::poll::poll(&mut list, Some(Duration::ZERO));
    polled.is_ok() && list[0].revents & (libc::POLLHUP | libc::POLLERR) != 0
}

/// Returns the type of the open file.
fn kind(source: BorrowedFd<'_>) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(rustix::fs::fstat(source)?.st_mode as _))
}

/// Returns the change that adds a note.
fn adding(fd: RawFd, filter: FilterKind, interest: Interest, generation: usize) -> libc::kevent {
    let mut change = deleting(fd as usize, filter);
    change.flags = libc::EV_ADD | libc::EV_RECEIPT;
    if interest.is_oneshot() {
        // Not EV_ONESHOT: the kernel reports such a note without checking whether it is still ready
        // (kqueue_scan of OpenBSD and FreeBSD).
        change.flags |= libc::EV_DISPATCH;
    }
    if interest.is_edge() {
        change.flags |= libc::EV_CLEAR;
    }
    change.udata = generation as _;
    change
}

/// Returns the change that deletes a note. The kernel refuses it if the note does not exist.
fn deleting(ident: usize, filter: FilterKind) -> libc::kevent {
    // SAFETY: kevent is plain numbers and a pointer that is never followed.
    let mut change: libc::kevent = unsafe { std::mem::zeroed() };
    change.ident = ident;
    change.filter = match filter {
        FilterKind::Read => libc::EVFILT_READ,
        FilterKind::Write => libc::EVFILT_WRITE,
        FilterKind::Exit => libc::EVFILT_PROC,
        FilterKind::Timer => libc::EVFILT_TIMER,
    };
    change.flags = libc::EV_DELETE | libc::EV_RECEIPT;
    change
}

/// Returns how a process exited; `Unknown` if it is not a child of ours.
fn peek_exit(pid: u32) -> Option<ExitInfo> {
    let pid = libc::pid_t::try_from(pid).ok()?;
    pid::wait_for_exit(pid, None, libc::WNOHANG | libc::WNOWAIT).ok()?
}

/// Returns whether the exit can be reported: a child can be reaped now. For other processes the
/// kernel's report is enough.
fn has_ended(pid: u32) -> bool {
    peek_exit(pid).is_some()
}

/// Returns whether the process has not been reaped.
fn is_unreaped(pid: u32) -> bool {
    let is_child = !matches!(peek_exit(pid), Some(exit) if exit.status == ExitStatus::Unknown);
    is_child || libc::pid_t::try_from(pid).is_ok_and(pid::exists)
}

fn os_error(errno: i32) -> io::Error {
    io::Error::from_raw_os_error(errno)
}
