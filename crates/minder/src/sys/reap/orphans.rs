//! Children that were dropped while they ran. The next starts and waits of any thread reap those that have
//! exited by then, so that they do not stay zombies.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use minder_os::sync::Mutex;

use crate::sys::guardian::{Registration, WeakRegistration};
use crate::sys::pid::wait_for_exit;

/// The number of orphans that one call looks at, so that many that live long cost little.
const LOOKED_AT_MAX: usize = 16;

static ORPHANS: Mutex<VecDeque<Orphan>> = Mutex::new(VecDeque::new());

/// The number of orphans. A call that finds 0 does nothing else.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// A child that is known by its pid alone: a daemon must not occupy a descriptor. The pid is that of the
/// child until it is reaped.
struct Orphan {
    pid: libc::pid_t,
    registration: Option<WeakRegistration>,
}

/// Adds a child that runs.
pub(super) fn add(pid: libc::pid_t, registration: Option<&Registration>) {
    let mut orphans = ORPHANS.lock();
    orphans.push_back(Orphan { pid, registration: registration.map(Registration::downgrade) });
    COUNT.store(orphans.len(), Ordering::Relaxed);
}

/// Reaps orphans that have exited.
pub(crate) fn reap_orphans() {
    if COUNT.load(Ordering::Relaxed) == 0 {
        return;
    }
    let mut orphans = ORPHANS.lock();
    for _ in 0..orphans.len().min(LOOKED_AT_MAX) {
        let Some(orphan) = orphans.pop_front() else { break };
        if !orphan.reap() {
            orphans.push_back(orphan);
        }
    }
    COUNT.store(orphans.len(), Ordering::Relaxed);
}

impl Orphan {
    /// Returns whether it has exited. Another part of the program may have reaped it, too.
    fn reap(&self) -> bool {
        // Without a registration, looking and reaping are one call.
        let look = if self.registration.is_some() { libc::WNOWAIT } else { 0 };
        if matches!(wait_for_exit(self.pid, None, libc::WNOHANG | look), Ok(None)) {
            return false;
        }
        if let Some(registration) = &self.registration {
            registration.remove();
            let _ = wait_for_exit(self.pid, None, libc::WNOHANG);
        }
        true
    }
}
