//! epoll(7): one set in the kernel, a wait whose cost does not grow with it. Deadlines by a timerfd
//! in the same set; of several threads that wait at the same time with deadlines, one has the
//! timer, and the others' are rounded up to the millisecond.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};

use super::timer::Timer;
use super::{PollHandle, Ready, WAKE_TOKEN, WaitBackend, Waker};
use crate::backend::Backend;
use crate::interest::Interest;
use crate::sys::time::timespec;

const TIMER: u64 = u64::MAX - 2;
/// The most events that one call takes. More events stay in the kernel and come first in the next
/// call, so no source starves.
const EVENTS_MAX: usize = 256;

/// The exclusive use of the timer by one wait, until this value is dropped.
struct TimerLease<'a>(&'a AtomicBool);

impl<'a> TimerLease<'a> {
    fn take(taken: &'a AtomicBool) -> Option<Self> {
        (!taken.swap(true, Ordering::AcqRel)).then(|| Self(taken))
    }
}

impl Drop for TimerLease<'_> {
    fn drop(&mut self) {
        // A thread that found the timer taken has stored its request before. This swap sees that
        // request, and this thread requests a poll in its place.
        self.0.swap(false, Ordering::AcqRel);
    }
}

#[derive(Debug)]
pub(crate) struct Epoll {
    epoll: OwnedFd,
    timer: Timer,
    /// `true` while a wait uses the timer for its deadline. Concurrent waits use the time-out of
    /// the call instead.
    taken: AtomicBool,
    waker: Arc<Waker>,
}

impl Epoll {
    pub(crate) fn new() -> io::Result<Self> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = Timer::new()?;
        let waker = Arc::new(Waker::new()?);
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        epoll::add(&epoll, &waker, EventData::new_u64(WAKE_TOKEN), EventFlags::IN)?;
        Ok(Self { epoll, timer, taken: AtomicBool::new(false), waker })
    }

    fn take(&self, event: &epoll::Event, own_timer: bool, ready: &mut Vec<Ready>) {
        match event.data.u64() {
            TIMER if own_timer => self.timer.clear(),
            // The timer belongs to another wait, which also receives the event, or to no wait any
            // longer.
            TIMER => {
                if let Some(_lease) = TimerLease::take(&self.taken) {
                    self.timer.clear();
                }
            }
            WAKE_TOKEN => self.waker.take_wakes(ready),
            token => ready.push(readiness(token, event.flags)),
        }
    }
}

impl WaitBackend for Epoll {
    fn kind(&self) -> Backend {
        Backend::Epoll
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token), flags(interest))?)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token), flags(interest))?)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.epoll, source)?)
    }

    /// The kernel reports a one-shot source no more, and forgets it when the last copy of its descriptor
    /// is closed (epoll(7)).
    fn delete_reported(&self, _source: BorrowedFd<'_>) -> io::Result<()> {
        Ok(())
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        let mut events = [MaybeUninit::<epoll::Event>::uninit(); EVENTS_MAX];
        let mut last = false;
        let mut lease = None;
        loop {
            let mut time = None;
            if let Some(deadline) = deadline {
                let now = Instant::now();
                if now >= deadline {
                    // The deadline has passed: poll once without waiting, so that no ready source is missed.
                    time = Some(timespec(Duration::ZERO));
                    last = true;
                } else {
                    lease = lease.or_else(|| TimerLease::take(&self.taken));
                    match lease {
                        Some(_) => self.timer.arm(deadline, now)?,
                        // Whole milliseconds: any other time needs epoll_pwait2 (Linux 5.11).
                        None => time = Some(timespec(ceil_to_millis(deadline - now))),
                    }
                }
            }
            match epoll::wait(&self.epoll, &mut events, time.as_ref()) {
                Err(rustix::io::Errno::INTR) => (),
                result => result?.0.iter().for_each(|event| self.take(event, lease.is_some(), ready)),
            }
            if ready.len() > before || last {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.waker)
    }

    fn poll_handle(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        // The wait that uses the timer is also bounded by this deadline, and gets here when it has
        // finished.
        if let Some(deadline) = deadline
            && let Some(_lease) = TimerLease::take(&self.taken)
        {
            self.timer.arm(deadline, Instant::now())?;
        }
        Ok(self.epoll.as_fd())
    }
}

fn ceil_to_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX))
}

fn flags(interest: Interest) -> EventFlags {
    let mut flags = EventFlags::empty();
    flags.set(EventFlags::IN, interest.is_readable());
    flags.set(EventFlags::OUT, interest.is_writable());
    flags.set(EventFlags::ONESHOT, interest.is_oneshot());
    flags.set(EventFlags::ET, interest.is_edge());
    flags
}

fn readiness(token: u64, flags: EventFlags) -> Ready {
    let closed = flags.intersects(EventFlags::HUP | EventFlags::ERR);
    Ready {
        token,
        readable: closed || flags.contains(EventFlags::IN),
        writable: closed || flags.contains(EventFlags::OUT),
        closed,
        expired: false,
    }
}
