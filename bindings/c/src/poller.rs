//! Poller: waits for descriptors, processes and timers, by epoll, io_uring, kqueue, poll or a completion
//! port.
//!
//! It is level-triggered, unless a flag of the interest says otherwise: a source that stays ready is
//! reported by every wait. A change by another thread takes effect in a running wait. Delete a source
//! before it is closed.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::collections::VecDeque;
use std::ffi::c_char;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use minder::poll::{Events, Interest, Poller, Readiness, Source, Token};
use minder::{Backend, ErrorKind};

use crate::arg::{self, Opaque, handle, lock, required, store, text};
use crate::fork::Origin;
use crate::native::{self, minder_fd};
use crate::status::{Failure, call, minder_status, value};

/// A read would not block; a process has exited.
pub const MINDER_READABLE: u32 = 1;
/// A write would not block.
pub const MINDER_WRITABLE: u32 = 2;
/// In an interest: report the source once, until minder_poller_arm() or minder_poller_modify().
pub const MINDER_ONESHOT: u32 = 4;
/// In an interest: report each change once.
pub const MINDER_EDGE: u32 = 8;
/// In a report: the other side is closed, or the source has an error. A read or write returns which.
pub const MINDER_CLOSED: u32 = 16;
/// In a report: a timer has expired.
pub const MINDER_EXPIRED: u32 = 32;
/// In an interest: the descriptor is a SOCKET of Windows. Without effect elsewhere.
pub const MINDER_SOCKET: u32 = 64;

/// The highest token. The others are reserved.
pub const MINDER_TOKEN_MAX: u64 = u64::MAX - 16;

/// One source or timer that is ready. Its size does not change: the caller has an array of them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct minder_ready {
    /// The token that it was registered with.
    pub token: u64,
    /// MINDER_READABLE, MINDER_WRITABLE, MINDER_CLOSED, MINDER_EXPIRED.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// Waits for many sources. Freed by minder_poller_free().
#[derive(Debug)]
pub struct minder_poller(());

/// A poller, and what its waits share.
#[derive(Debug)]
pub(crate) struct Waits {
    poller: Poller,
    origin: Origin,
    /// Buffers for the waits of several threads.
    buffers: Mutex<Vec<Events>>,
    /// Reports for which the array of a caller had no room.
    left: Mutex<VecDeque<minder_ready>>,
}

impl Opaque for minder_poller {
    type Inner = Waits;
    const TAG: [u8; 8] = *b"mnd_pol\0";
}

impl Waits {
    fn new(backend: Option<Backend>) -> Result<Self, Failure> {
        let poller = match backend {
            Some(backend) => Poller::with_backend(backend)?,
            None => Poller::new()?,
        };
        let buffers = Mutex::default();
        Ok(Self { poller, origin: Origin::here(), buffers, left: Mutex::default() })
    }

    fn here(&self) -> Result<&Poller, Failure> {
        if !self.origin.is_left() {
            return Ok(&self.poller);
        }
        let reason = "the poller is that of the parent of this forked process; call minder_poller_renew()";
        Err(Failure::new(minder_status::MINDER_FORKED, reason))
    }

    /// Drops a poller. A forked process shares the kernel objects of its parent.
    fn discard(self) {
        // Closing an epoll descriptor changes nothing for the parent. Other backends have threads and
        // rings, which must be left alone.
        if self.origin.is_left() && self.poller.backend() != Backend::Epoll {
            std::mem::forget(self);
        }
    }
}

fn interest_of(flags: u32) -> Result<Interest, Failure> {
    const KNOWN: u32 = MINDER_READABLE | MINDER_WRITABLE | MINDER_ONESHOT | MINDER_EDGE | MINDER_SOCKET;
    let interest = match flags & (MINDER_READABLE | MINDER_WRITABLE) {
        MINDER_READABLE => Interest::READABLE,
        MINDER_WRITABLE => Interest::WRITABLE,
        0 => return Err(Failure::invalid("the interest has neither MINDER_READABLE nor MINDER_WRITABLE")),
        _ => Interest::READABLE | Interest::WRITABLE,
    };
    match flags & (MINDER_ONESHOT | MINDER_EDGE) {
        _ if flags & !KNOWN != 0 => Err(Failure::invalid("the interest has flags that are not known")),
        0 => Ok(interest),
        MINDER_ONESHOT => Ok(interest.oneshot()),
        MINDER_EDGE => Ok(interest.edge()),
        _ => Err(Failure::invalid("the interest has both MINDER_ONESHOT and MINDER_EDGE")),
    }
}

/// Returns why a registration cannot be changed. A descriptor that is not open has none.
fn registration_failed(failure: Failure) -> Failure {
    const EBADF: i32 = 9;
    let is_closed = cfg!(unix) && failure.os_error() == EBADF;
    if is_closed { failure.with_status(minder_status::MINDER_UNKNOWN) } else { failure }
}

fn ready_of(report: Readiness) -> minder_ready {
    let flag = |is_set: bool, flag: u32| if is_set { flag } else { 0 };
    let flags = flag(report.readable, MINDER_READABLE)
        | flag(report.writable, MINDER_WRITABLE)
        | flag(report.closed, MINDER_CLOSED)
        | flag(report.expired, MINDER_EXPIRED);
    minder_ready { token: report.token.0, flags, reserved: 0 }
}

/// Opens a wait backend by its name, such as "epoll" or "io_uring", or the best one for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_new(
    backend: *const c_char,
    poller: *mut *mut minder_poller,
) -> minder_status {
    call(|| {
        required!(poller);
        store!(poller, std::ptr::null_mut());
        let backend =
            if backend.is_null() { None } else { Some(text!(backend).to_string_lossy().parse::<Backend>()?) };
        store!(poller, arg::new_handle(Waits::new(backend)?));
        Ok(minder_status::MINDER_OK)
    })
}

/// Frees a poller. Its sources stay open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_free(poller: *mut minder_poller) {
    value((), || {
        // SAFETY: the caller uses the handle no more.
        if let Some(waits) = unsafe { arg::take_handle(poller) }? {
            waits.discard();
        }
        Ok(())
    });
}

/// Replaces a poller by an empty one with the same backend: in a process that was made by fork(2), or to
/// drop all registrations. Frees the old handle, even if the new one cannot be made and is NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_renew(poller: *mut *mut minder_poller) -> minder_status {
    call(|| {
        required!(poller);
        // SAFETY: the caller passes room for a handle, which has one.
        let old = unsafe { poller.replace(std::ptr::null_mut()) };
        // SAFETY: the caller uses the old handle no more.
        let Some(waits) = unsafe { arg::take_handle(old) }? else { return Err(arg::null("*poller")) };
        let backend = waits.poller.backend();
        waits.discard();
        store!(poller, arg::new_handle(Waits::new(Some(backend))?));
        Ok(minder_status::MINDER_OK)
    })
}

/// Returns the name of the backend; "" for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_backend(poller: *const minder_poller) -> *const c_char {
    let name = value(c"", || {
        Ok(match handle!(poller).poller.backend() {
            Backend::Epoll => c"epoll",
            Backend::IoUring => c"io_uring",
            Backend::Kqueue => c"kqueue",
            Backend::Poll => c"poll",
            Backend::Iocp => c"iocp",
            Backend::WaitPool => c"wait_pool",
            Backend::ThreadPool => c"thread_pool",
            _ => c"other",
        })
    });
    name.as_ptr()
}

/// Registers a descriptor. MINDER_INVALID if it is registered already.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_add(
    poller: *const minder_poller,
    fd: minder_fd,
    interest: u32,
    token: u64,
) -> minder_status {
    call(|| {
        let poller = handle!(poller).here()?;
        let wanted = interest_of(interest)?;
        native::with_source(fd, interest & MINDER_SOCKET != 0, |source| {
            poller.add(source, Token(token), wanted)
        })?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Changes the interest and the token of a descriptor, and enables it again if it is MINDER_ONESHOT.
/// MINDER_UNKNOWN if it is not registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_modify(
    poller: *const minder_poller,
    fd: minder_fd,
    interest: u32,
    token: u64,
) -> minder_status {
    call(|| {
        let poller = handle!(poller).here()?;
        let wanted = interest_of(interest)?;
        let is_socket = interest & MINDER_SOCKET != 0;
        native::with_source(fd, is_socket, |source| poller.modify(source, Token(token), wanted))
            .map_err(registration_failed)?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Registers a descriptor, or changes its interest and token if it is registered. For a scheduler that does
/// not learn whether the descriptor was closed and its number used again since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_arm(
    poller: *const minder_poller,
    fd: minder_fd,
    interest: u32,
    token: u64,
) -> minder_status {
    call(|| {
        let poller = handle!(poller).here()?;
        let wanted = interest_of(interest)?;
        let is_socket = interest & MINDER_SOCKET != 0;
        let is_known =
            native::with_source(fd, is_socket, |source| match poller.modify(source, Token(token), wanted) {
                Ok(()) => Ok(true),
                Err(error) if error.kind() == ErrorKind::Unknown => Ok(false),
                Err(error) => Err(error),
            })?;
        if !is_known {
            native::with_source(fd, is_socket, |source| poller.add(source, Token(token), wanted))?;
        }
        Ok(minder_status::MINDER_OK)
    })
}

/// Deletes a descriptor. Waits that begin after this call do not report it. MINDER_UNKNOWN if it is not
/// registered.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_delete(poller: *const minder_poller, fd: minder_fd) -> minder_status {
    call(|| {
        let poller = handle!(poller).here()?;
        let deleted = native::with_source(fd, false, |source| poller.delete(source));
        if deleted.is_err() && cfg!(windows) {
            native::with_source(fd, true, |source| poller.delete(source))?;
        } else {
            deleted.map_err(registration_failed)?;
        }
        Ok(minder_status::MINDER_OK)
    })
}

/// Registers the exit of a process, a child or not: MINDER_READABLE is reported from its exit until it is
/// deleted. MINDER_UNKNOWN if there is no such process (any more).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_add_process(
    poller: *const minder_poller,
    pid: u32,
    token: u64,
) -> minder_status {
    call(|| {
        handle!(poller).here()?.add(Source::process(pid), Token(token), Interest::READABLE)?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Deletes a process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_delete_process(
    poller: *const minder_poller,
    pid: u32,
) -> minder_status {
    call(|| {
        handle!(poller).here()?.delete(Source::process(pid))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Adds a timer, which is reported once, after `delay` and within `tolerance` of it. Timers share wake-ups
/// where their tolerances allow it. MINDER_INVALID for a token that has a timer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_add_timer(
    poller: *const minder_poller,
    token: u64,
    delay: i64,
    tolerance: i64,
) -> minder_status {
    call(|| {
        let poller = handle!(poller).here()?;
        let delay = arg::timeout(delay).ok_or_else(|| Failure::invalid("argument `delay` is negative"))?;
        let tolerance = arg::timeout(tolerance).unwrap_or(Duration::ZERO);
        poller.add_timer(Token(token), Instant::now() + delay, tolerance)?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Deletes a timer. MINDER_UNKNOWN if the token has none, or it was reported.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_delete_timer(
    poller: *const minder_poller,
    token: u64,
) -> minder_status {
    call(|| {
        handle!(poller).here()?.delete_timer(Token(token))?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Waits until a source is ready, a timer has expired or minder_poller_notify() is called, for at most
/// `timeout`. Fills the array of the caller, and stores how many elements it filled.
///
/// Returns MINDER_TIMED_OUT with none, and MINDER_WOKEN after a notification, maybe with some. If the
/// array is too small, the next wait reports the rest, even if its sources were deleted meanwhile: some
/// hundred elements are enough for all sources. A signal does not end the wait.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_wait(
    poller: *const minder_poller,
    timeout: i64,
    ready: *mut minder_ready,
    capacity: usize,
    count: *mut usize,
) -> minder_status {
    call(|| {
        required!(ready);
        required!(count);
        store!(count, 0);
        if capacity == 0 {
            return Err(Failure::invalid("argument `capacity` is 0"));
        }
        let waits = handle!(poller);
        let mut filled = 0;
        let mut put = |report: minder_ready| {
            // SAFETY: the array of the caller has `capacity` elements, and `filled` is less.
            let element = unsafe { ready.add(filled) };
            // SAFETY: the element is in the array, which the caller lets us write.
            unsafe { element.write(report) };
            filled += 1;
        };
        let status = waits.wait(arg::timeout(timeout), capacity, &mut put)?;
        store!(count, filled);
        Ok(status)
    })
}

impl Waits {
    /// Waits, and calls `put` at most `capacity` times.
    fn wait(
        &self,
        timeout: Option<Duration>,
        capacity: usize,
        put: &mut dyn FnMut(minder_ready),
    ) -> Result<minder_status, Failure> {
        let poller = self.here()?;
        let mut left = lock(&self.left);
        if !left.is_empty() {
            let count = left.len().min(capacity);
            left.drain(..count).for_each(put);
            return Ok(minder_status::MINDER_OK);
        }
        drop(left);
        let mut events = lock(&self.buffers).pop().unwrap_or_default();
        let waited = poller.wait(&mut events, timeout);
        let mut count = 0;
        if waited.is_ok() {
            for report in &events {
                if count < capacity {
                    put(ready_of(report));
                } else {
                    lock(&self.left).push_back(ready_of(report));
                }
                count += 1;
            }
        }
        let is_woken = events.woken();
        lock(&self.buffers).push(events);
        waited?;
        Ok(match count {
            _ if is_woken => minder_status::MINDER_WOKEN,
            0 => minder_status::MINDER_TIMED_OUT,
            _ => minder_status::MINDER_OK,
        })
    }
}

/// Ends the running wait, or else the next one. May be called from any thread.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_notify(poller: *const minder_poller) -> minder_status {
    call(|| {
        handle!(poller).here()?.notify()?;
        Ok(minder_status::MINDER_OK)
    })
}

/// Returns a descriptor for another loop: readable while minder_poller_wait() would return at once.
/// MINDER_NO_FD on Windows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn minder_poller_fd(poller: *const minder_poller) -> minder_fd {
    value(native::NO_FD, || Ok(native::fd_of(&handle!(poller).here()?.poll_handle()?)))
}
