//! The list of descriptors that all waits of one poll(2) backend share.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use minder_os::sync::{Mutex, MutexGuard};

use super::syscall::poll;
use crate::sys::wait::types::{Ready, WAKE_TOKEN};
use crate::sys::wait::waker::Waker;

#[derive(Debug)]
pub(super) struct Shared {
    sources: Mutex<Sources>,
    pub(super) waker: Arc<Waker>,
    /// Signalled when the list changes, so that a wait on another thread restarts with the new
    /// list.
    changed: Waker,
}

/// The registered sources. The first two entries of the list are the two wakers. The lock of
/// [`Shared`] protects all of it.
pub(super) struct Sources {
    pub(super) list: Vec<libc::pollfd>,
    /// A copy of `list` that no wait uses. The next wait reuses its memory.
    spare: Vec<libc::pollfd>,
    /// One entry for each entry of `list`. A one-shot source that has been reported has no
    /// descriptor in `list` until it is modified, but keeps it here.
    pub(super) registrations: Vec<Registration>,
    pub(super) indexes: HashMap<RawFd, usize>,
    /// The number of threads inside poll(2). `changed` is signalled only if this is not zero.
    active_waits: usize,
    /// The number of changes of the list. `stale_waits` counts the waits that still use an older
    /// list. The last of them resets `changed`: if an earlier one did so, the others would stay
    /// asleep.
    pub(super) generation: u64,
    stale_waits: usize,
}

const WAKER_SLOTS: usize = 2;
const CHANGES_SLOT: usize = 1;
/// A descriptor that poll(2) ignores.
const IGNORED_FD: RawFd = -1;

#[derive(Clone, Copy, Debug)]
pub(super) struct Registration {
    pub(super) fd: RawFd,
    pub(super) token: u64,
    pub(super) once: bool,
    /// The generation of the first list that contains this registration. The result of an older
    /// list may be that of another file, or of another interest.
    pub(super) since: u64,
}

impl std::fmt::Debug for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sources").field("len", &self.indexes.len()).finish_non_exhaustive()
    }
}

impl Shared {
    pub(super) fn new() -> io::Result<Self> {
        let waker = Arc::new(Waker::new()?);
        let changed = Waker::new()?;
        let entry =
            |waker: &Waker| libc::pollfd { fd: waker.as_fd().as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let list = vec![entry(&waker), entry(&changed)];
        let sources = Sources {
            registrations: list
                .iter()
                .map(|entry| Registration { fd: entry.fd, token: WAKE_TOKEN, once: false, since: 0 })
                .collect(),
            list,
            spare: Vec::new(),
            indexes: HashMap::new(),
            active_waits: 0,
            generation: 0,
            stale_waits: 0,
        };
        Ok(Self { sources: Mutex::new(sources), waker, changed })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Sources> {
        self.sources.lock()
    }

    /// Records a change of the list. Calls that wait with an older list return.
    pub(super) fn list_changed(&self, sources: &mut Sources) -> io::Result<()> {
        // The generation grows even if no thread waits: a wait may have returned from poll(2) and
        // not yet collected its results.
        sources.generation += 1;
        if sources.active_waits == 0 {
            return Ok(());
        }
        sources.stale_waits = sources.active_waits;
        self.changed.wake()
    }

    /// Records that a wait with the list of this generation has finished.
    pub(super) fn leave(&self, generation: u64) {
        let mut sources = self.lock();
        sources.active_waits -= 1;
        if generation != sources.generation {
            sources.stale_waits -= 1;
            if sources.stale_waits == 0 {
                self.changed.reset();
            }
        }
    }

    /// Returns a copy of the list, and its generation, for one call of poll(2). From here on, a
    /// change of the list ends that call.
    pub(super) fn enter(&self) -> (Vec<libc::pollfd>, u64) {
        let mut sources = self.lock();
        sources.active_waits += 1;
        let mut copy = std::mem::take(&mut sources.spare);
        copy.clone_from(&sources.list);
        (copy, sources.generation)
    }

    /// Calls poll(2) once. Returns whether the kernel filled in the list; it does not if a signal
    /// arrives.
    pub(super) fn poll_once(
        &self,
        list: &mut [libc::pollfd],
        generation: u64,
        left: Option<Duration>,
    ) -> io::Result<bool> {
        let result = poll(list, left);
        self.leave(generation);
        match result {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(false),
            result => result.map(|()| true),
        }
    }

    /// Appends the ready sources of `polled` to `ready`, except sources that were deleted or changed
    /// meanwhile.
    pub(super) fn collect(&self, polled: Vec<libc::pollfd>, generation: u64, ready: &mut Vec<Ready>) {
        if polled[0].revents != 0 {
            self.waker.take_wakes(ready);
        }
        let mut sources = self.lock();
        for entry in polled.iter().skip(WAKER_SLOTS).filter(|entry| entry.revents != 0) {
            let Some(&index) = sources.indexes.get(&entry.fd) else { continue };
            let Registration { token, once, since, .. } = sources.registrations[index];
            // Another wait may have reported a one-shot source already.
            if since <= generation && sources.list[index].fd == entry.fd {
                ready.push(readiness(token, entry.revents));
                if once {
                    sources.list[index].fd = IGNORED_FD;
                }
            }
        }
        // Its memory serves the next wait.
        sources.spare = polled;
    }
}

/// Returns whether any entry is ready, except the waker for changes of the list.
pub(super) fn has_ready_source(polled: &[libc::pollfd]) -> bool {
    polled.iter().enumerate().any(|(at, entry)| at != CHANGES_SLOT && entry.revents != 0)
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
