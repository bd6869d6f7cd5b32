//! poll(2): a list of descriptors, handed to the kernel at every wait. The plainest backend, there on every Unix.
//!
//! A wait costs about 0.1 us for each descriptor watched (measured, Linux 6.18), so this one is for systems that have
//! nothing better, and for comparison.

#![expect(unsafe_code, reason = "the poll system call over a list that outlives any one borrow")]

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Backend, Doorbell, Ready, WAKE};
use crate::event::Interest;

#[derive(Debug)]
pub(crate) struct Poll {
    sources: Mutex<Sources>,
    doorbell: Arc<Doorbell>,
    /// Rung when the list changes, so that a wait on another thread starts again with the new one.
    changed: Doorbell,
}

/// What is registered. The first two entries are the bells.
struct Sources {
    list: Vec<libc::pollfd>,
    tokens: Vec<u64>,
    places: HashMap<RawFd, usize>,
    /// How many threads wait just now: only then the bell has to be rung.
    waiting: usize,
    /// How often the list changed while somebody waited, and how many still wait with a list from before that. The last
    /// of them silences the bell: a thread that did so earlier would leave the others asleep.
    generation: u64,
    stale: usize,
}

const BELLS: usize = 2;

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("len", &self.places.len()).finish_non_exhaustive()
    }
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        let (doorbell, changed) = (Arc::new(Doorbell::new()?), Doorbell::new()?);
        let bell =
            |bell: &Doorbell| libc::pollfd { fd: bell.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let list = vec![bell(&doorbell), bell(&changed)];
        let sources = Sources {
            list,
            tokens: vec![WAKE, WAKE],
            places: HashMap::new(),
            waiting: 0,
            generation: 0,
            stale: 0,
        };
        Ok(Self { sources: Mutex::new(sources), doorbell, changed })
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the waiters see a change.
    fn tell(&self, sources: &mut Sources) -> io::Result<()> {
        if sources.waiting == 0 {
            return Ok(());
        }
        sources.generation += 1;
        sources.stale = sources.waiting;
        self.changed.ring()
    }

    /// Takes note that a wait with the list of this generation is over.
    fn leave(&self, generation: u64) {
        let mut sources = self.lock();
        sources.waiting -= 1;
        if generation != sources.generation {
            sources.stale -= 1;
            if sources.stale == 0 {
                self.changed.hush();
            }
        }
    }

    /// Moves what the kernel said into `ready`, but for sources that were deleted or replaced meanwhile.
    fn collect(&self, polled: &[libc::pollfd], tokens: &[u64], ready: &mut Vec<Ready>) {
        if polled[0].revents != 0 {
            self.doorbell.hush();
            ready.push(Ready { token: WAKE, readable: true, writable: false, closed: false });
        }
        let sources = self.lock();
        for (entry, &token) in polled.iter().zip(tokens).skip(BELLS).filter(|(entry, _)| entry.revents != 0) {
            let still = sources.places.get(&entry.fd).is_some_and(|&place| sources.tokens[place] == token);
            if still {
                ready.push(readiness(token, entry.revents));
            }
        }
    }
}

impl Backend for Poll {
    fn name(&self) -> &'static str {
        "poll"
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let fd = source.as_raw_fd();
        let mut sources = self.lock();
        let place = sources.list.len();
        if sources.places.contains_key(&fd) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        sources.places.insert(fd, place);
        sources.list.push(libc::pollfd { fd, events: events(interest), revents: 0 });
        sources.tokens.push(token);
        self.tell(&mut sources)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        let mut sources = self.lock();
        let place = *sources.places.get(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        sources.list[place].events = events(interest);
        sources.tokens[place] = token;
        self.tell(&mut sources)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let mut sources = self.lock();
        let place = sources.places.remove(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        sources.list.swap_remove(place);
        sources.tokens.swap_remove(place);
        if let Some(moved) = sources.list.get(place).map(|entry| entry.fd) {
            sources.places.insert(moved, place);
        }
        self.tell(&mut sources)
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let mut sources = self.lock();
            sources.waiting += 1;
            let generation = sources.generation;
            let (mut polled, tokens) = (sources.list.clone(), sources.tokens.clone());
            drop(sources);
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let result = poll(&mut polled, left);
            self.leave(generation);
            match result {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                result => result?,
            }
            self.collect(&polled, &tokens, ready);
            // Without anything to tell we go on until a look *after* the deadline found nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn doorbell(&self) -> Arc<Doorbell> {
        Arc::clone(&self.doorbell)
    }

    fn news(&self, _deadline: Option<Instant>) -> io::Result<Option<BorrowedFd<'_>>> {
        Ok(None)
    }
}

/// Waits for one of `list`, for at most `left`, rounded up to what the call takes.
#[cfg(not(target_vendor = "apple"))]
pub(crate) fn poll(list: &mut [libc::pollfd], left: Option<Duration>) -> io::Result<()> {
    let time = left.map(|left| libc::timespec {
        // The type's name differs; a year is as good as for ever.
        tv_sec: left.as_secs().min(365 * 86_400) as _,
        tv_nsec: left.subsec_nanos() as libc::c_long,
    });
    let time = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `list` is ours alone for the call, `time` is null or points to a local that outlives it, and no signal
    // mask is given.
    let result =
        unsafe { libc::ppoll(list.as_mut_ptr(), list.len() as libc::nfds_t, time, std::ptr::null()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits for one of `list`, for at most `left`, rounded up to the millisecond.
#[cfg(target_vendor = "apple")]
pub(crate) fn poll(list: &mut [libc::pollfd], left: Option<Duration>) -> io::Result<()> {
    let millis =
        left.map_or(-1, |left| i32::try_from(left.as_nanos().div_ceil(1_000_000)).unwrap_or(i32::MAX));
    // SAFETY: `list` is ours alone for the call.
    let result = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, millis) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn events(interest: Interest) -> i16 {
    let mut events = 0;
    if interest.is_readable() {
        events |= libc::POLLIN;
    }
    if interest.is_writable() {
        events |= libc::POLLOUT;
    }
    events
}

fn readiness(token: u64, revents: i16) -> Ready {
    let closed = revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
    Ready {
        token,
        readable: closed || revents & libc::POLLIN != 0,
        writable: closed || revents & libc::POLLOUT != 0,
        closed,
    }
}
