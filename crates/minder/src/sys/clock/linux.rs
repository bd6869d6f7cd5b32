//! The ways to sleep of Linux.

#![expect(unsafe_code, reason = "epoll_wait and epoll_pwait2 as they are, and a request of a ring")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

use io_uring::{IoUring, opcode, types};
use rustix::event::epoll;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};

use super::types::{SleepCall, ceil_millis};
use crate::sys::time::timespec;

const NO_EVENT: libc::epoll_event = libc::epoll_event { events: 0, u64: 0 };

/// Prepares epoll_wait(2), whose time is in milliseconds.
pub(super) fn epoll_millis() -> io::Result<SleepCall> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    Ok(Box::new(move |time| {
        let mut event = NO_EVENT;
        let millis = ceil_millis(time).try_into().unwrap_or(i32::MAX);
        // SAFETY: the descriptor is open, and there is memory for one event.
        checked(unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, millis) })
    }))
}

/// Prepares epoll_pwait2(2).
pub(super) fn epoll_nanos() -> io::Result<SleepCall> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    // An old kernel refuses it here, not at the first sleep.
    epoll_pwait2(&epoll, Duration::ZERO)?;
    Ok(Box::new(move |time| epoll_pwait2(&epoll, time)))
}

fn epoll_pwait2(epoll: &OwnedFd, time: Duration) -> io::Result<()> {
    let mut event = NO_EVENT;
    let time = timespec(time);
    let no_mask: *const libc::sigset_t = std::ptr::null();
    // SAFETY: the descriptor is open, there is memory for one event, the time outlives the call and has
    // the form of the kernel (two 64-bit numbers), and there is no mask.
    let answer = unsafe {
        libc::syscall(libc::SYS_epoll_pwait2, epoll.as_raw_fd(), &mut event, 1, &time, no_mask, 8usize)
    };
    checked(answer)
}

/// Prepares the read of a timer descriptor.
pub(super) fn timerfd() -> io::Result<SleepCall> {
    let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
    Ok(Box::new(move |time| {
        let zero = timespec(Duration::ZERO);
        // A time of zero would disarm it, and the read would never end.
        let setting = Itimerspec { it_interval: zero, it_value: timespec(time.max(Duration::from_nanos(1))) };
        timerfd_settime(&timer, TimerfdTimerFlags::empty(), &setting)?;
        rustix::io::read(&timer, &mut [0; 8])?;
        Ok(())
    }))
}

/// Prepares a time-out on a ring.
pub(super) fn io_uring() -> io::Result<SleepCall> {
    let mut ring = IoUring::new(2)?;
    // The ring may hold the address until the next call, so it never changes.
    let mut until = Box::new(types::Timespec::new());
    // A signal may leave a completion of an earlier sleep, which its number distinguishes.
    let mut number = 0;
    Ok(Box::new(move |time| {
        *until = types::Timespec::new().sec(time.as_secs()).nsec(time.subsec_nanos());
        number += 1;
        let request = opcode::Timeout::new(&raw const *until).build().user_data(number);
        // SAFETY: the time lives as long as the ring, at the same address.
        unsafe { ring.submission().push(&request) }
            .map_err(|_| io::Error::other("the ring still holds earlier requests"))?;
        loop {
            ring.submit_and_wait(1)?;
            if let Some(completion) = ring.completion().find(|it| it.user_data() == number) {
                return match completion.result() {
                    result if result == -libc::ETIME => Ok(()),
                    result => Err(io::Error::from_raw_os_error(-result)),
                };
            }
        }
    }))
}

fn checked(answer: impl Into<i64>) -> io::Result<()> {
    if answer.into() < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
