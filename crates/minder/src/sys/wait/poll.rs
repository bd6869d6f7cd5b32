//! poll(2): a list of descriptors, handed to the kernel at every wait. The plainest backend, there
//! on every Unix.
//!
//! A wait costs about 0.1 us for each descriptor watched (measured, Linux 6.18), so this one is for
//! systems that have nothing better, and for comparison.

#![expect(unsafe_code, reason = "the poll system call over a list that outlives any one borrow")]

mod notifier;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use self::notifier::Notifier;
use super::{Backend, PollHandle, Ready, WAKE_TOKEN, Waker};
use crate::event::Interest;

#[derive(Debug)]
pub(crate) struct Poll {
    shared: Arc<Shared>,
    /// Looks in our place, for a foreign loop.
    notifier: OnceLock<Notifier>,
}

#[derive(Debug)]
struct Shared {
    sources: Mutex<Sources>,
    waker: Arc<Waker>,
    /// Rung when the list changes, so that a wait on another thread starts again with the new one.
    changed: Waker,
}

/// What is registered. The first two entries are the bells.
struct Sources {
    list: Vec<libc::pollfd>,
    /// A copy of it that no wait has.
    spare: Vec<libc::pollfd>,
    /// Of the same length as `list`. A source that was told once, as was asked for, has no
    /// descriptor in `list` until it is changed, but has it here.
    kept: Vec<Registration>,
    places: HashMap<RawFd, usize>,
    /// How many threads wait just now: only then the bell has to be rung.
    waiting: usize,
    /// How often the list changed, and how many still wait with a list from before that. The last
    /// of them silences the bell: a thread that did so earlier would leave the others asleep.
    generation: u64,
    stale: usize,
}

const WAKER_SLOTS: usize = 2;
const CHANGES_SLOT: usize = 1;
/// What poll(2) passes over.
const NOBODY: RawFd = -1;

#[derive(Clone, Copy, Debug)]
struct Registration {
    fd: RawFd,
    token: u64,
    once: bool,
    /// The generation of the first list that has it like this. What the kernel says of an older
    /// list is of another file, maybe, or of what was asked before.
    since: u64,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("len", &self.places.len()).finish_non_exhaustive()
    }
}

impl Poll {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self { shared: Arc::new(Shared::new()?), notifier: OnceLock::new() })
    }
}

impl Shared {
    fn new() -> io::Result<Self> {
        let (waker, changed) = (Arc::new(Waker::new()?), Waker::new()?);
        let bell =
            |bell: &Waker| libc::pollfd { fd: bell.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let list = vec![bell(&waker), bell(&changed)];
        let sources = Sources {
            kept: list
                .iter()
                .map(|bell| Registration { fd: bell.fd, token: WAKE_TOKEN, once: false, since: 0 })
                .collect(),
            list,
            spare: Vec::new(),
            places: HashMap::new(),
            waiting: 0,
            generation: 0,
            stale: 0,
        };
        Ok(Self { sources: Mutex::new(sources), waker, changed })
    }

    fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the waiters see a change.
    fn report_ready(&self, sources: &mut Sources) -> io::Result<()> {
        // Also while nobody waits: what a wait found may not be told yet.
        sources.generation += 1;
        if sources.waiting == 0 {
            return Ok(());
        }
        sources.stale = sources.waiting;
        self.changed.wake()
    }

    /// Takes note that a wait with the list of this generation is over.
    fn leave(&self, generation: u64) {
        let mut sources = self.lock();
        sources.waiting -= 1;
        if generation != sources.generation {
            sources.stale -= 1;
            if sources.stale == 0 {
                self.changed.reset();
            }
        }
    }

    /// Takes a copy of the list to wait with. From here on a change ends the call for which it was
    /// taken.
    fn enter(&self) -> (Vec<libc::pollfd>, u64) {
        let mut sources = self.lock();
        sources.waiting += 1;
        let mut copy = std::mem::take(&mut sources.spare);
        copy.clone_from(&sources.list);
        (copy, sources.generation)
    }

    /// One call. Whether the kernel filled in the list: it does not when a signal comes.
    fn look(&self, list: &mut [libc::pollfd], generation: u64, left: Option<Duration>) -> io::Result<bool> {
        let result = poll(list, left);
        self.leave(generation);
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Moves what the kernel said into `ready`, but for sources that were deleted or changed
    /// meanwhile.
    fn collect(&self, polled: Vec<libc::pollfd>, generation: u64, ready: &mut Vec<Ready>) {
        if polled[0].revents != 0 {
            self.waker.take_wakes(ready);
        }
        let mut sources = self.lock();
        for entry in polled.iter().skip(WAKER_SLOTS).filter(|entry| entry.revents != 0) {
            let Some(&place) = sources.places.get(&entry.fd) else { continue };
            let Registration { token, once, since, .. } = sources.kept[place];
            // Another wait may have told it.
            if since <= generation && sources.list[place].fd == entry.fd {
                ready.push(readiness(token, entry.revents));
                if once {
                    sources.list[place].fd = NOBODY;
                }
            }
        }
        // Its memory serves the next wait.
        sources.spare = polled;
    }
}

impl Backend for Poll {
    fn name(&self) -> &'static str {
        "poll"
    }

    fn add(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let place = sources.list.len();
        if sources.places.contains_key(&fd) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        sources.places.insert(fd, place);
        sources.list.push(libc::pollfd { fd, events: events(interest), revents: 0 });
        let since = sources.generation + 1;
        sources.kept.push(Registration { fd, token, once: interest.is_oneshot(), since });
        self.shared.report_ready(&mut sources)
    }

    fn modify(&self, source: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        refuse_edge(interest)?;
        rustix::io::fcntl_getfd(source)?;
        let fd = source.as_raw_fd();
        let mut sources = self.shared.lock();
        let place = *sources.places.get(&fd).ok_or(io::ErrorKind::NotFound)?;
        sources.list[place] = libc::pollfd { fd, events: events(interest), revents: 0 };
        let since = sources.generation + 1;
        sources.kept[place] = Registration { fd, token, once: interest.is_oneshot(), since };
        self.shared.report_ready(&mut sources)
    }

    fn delete(&self, source: BorrowedFd<'_>) -> io::Result<()> {
        let mut sources = self.shared.lock();
        let place = sources.places.remove(&source.as_raw_fd()).ok_or(io::ErrorKind::NotFound)?;
        sources.list.swap_remove(place);
        sources.kept.swap_remove(place);
        if let Some(moved) = sources.kept.get(place).map(|kept| kept.fd) {
            sources.places.insert(moved, place);
        }
        self.shared.report_ready(&mut sources)
    }

    fn wait(&self, ready: &mut Vec<Ready>, deadline: Option<Instant>) -> io::Result<()> {
        let before = ready.len();
        loop {
            let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
            let (mut polled, generation) = self.shared.enter();
            if !self.shared.look(&mut polled, generation, left)? {
                continue;
            }
            self.shared.collect(polled, generation, ready);
            // Without anything to tell we go on until a look *after* the deadline found nothing.
            if ready.len() > before || left == Some(Duration::ZERO) {
                return Ok(());
            }
        }
    }

    fn waker(&self) -> Arc<Waker> {
        Arc::clone(&self.shared.waker)
    }

    fn news(&self, deadline: Option<Instant>) -> io::Result<PollHandle<'_>> {
        let herald = match self.notifier.get() {
            Some(herald) => herald,
            None => {
                // Two threads may come here at once: the herald that is one too many ends when it is dropped.
                let herald = Notifier::start(Arc::clone(&self.shared))?;
                self.notifier.get_or_init(|| herald)
            }
        };
        herald.look_again(deadline)?;
        Ok(herald.news())
    }
}

/// Whether anything is ready but the bell that tells of changes.
fn has_news(polled: &[libc::pollfd]) -> bool {
    polled.iter().enumerate().any(|(at, entry)| at != CHANGES_SLOT && entry.revents != 0)
}

/// The list of what is ready tells nothing of what became ready.
fn refuse_edge(interest: Interest) -> io::Result<()> {
    if interest.is_edge() { Err(io::ErrorKind::Unsupported.into()) } else { Ok(()) }
}

/// Looks at `list` without waiting, by the plain call: a time-out that is handed over and written
/// back costs more.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn poll_now(list: &mut [libc::pollfd]) -> io::Result<()> {
    loop {
        // SAFETY: `list` is ours alone for the call.
        let result = unsafe { libc::poll(list.as_mut_ptr(), list.len() as libc::nfds_t, 0) };
        if result >= 0 {
            return Ok(());
        }
        match io::Error::last_os_error() {
            error if error.kind() == io::ErrorKind::Interrupted => (),
            error => return Err(error),
        }
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
    // SAFETY: `list` is ours alone for the call, `time` is null or points to a local that outlives it,
    // and no signal mask is given.
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
        expired: false,
    }
}
