//! Children without a pidfd: each is looked at by its own number, at intervals that grow while nothing happens.
//!
//! The signal that would tell of an exit belongs to the host, and one signal may stand for many exits, so that a look at
//! every child would follow anyway. A look costs about 0.3 us a child (measured, Linux 6.18). This is the last resort:
//! kernels before 5.3, and sandboxes.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Process;
use crate::sys::wait::Ready;

/// The first interval after something happened, and the longest.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

/// The children of one port that have to be looked at.
#[derive(Debug, Default)]
pub(crate) struct Sweep {
    pids: HashMap<u64, libc::pid_t>,
    at: Option<Instant>,
    interval: Duration,
}

impl Sweep {
    pub(super) fn add(&mut self, pid: libc::pid_t, token: u64) {
        self.pids.insert(token, pid);
        self.soon();
    }

    pub(super) fn remove(&mut self, token: u64) {
        self.pids.remove(&token);
    }

    /// When the next look is due; `None` without children.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.pids.is_empty() { None } else { self.at }
    }

    /// Reports those that ended, if a look is due.
    pub(crate) fn report(&mut self, reports: &mut Vec<Ready>, now: Instant) {
        if self.at.is_some_and(|at| now < at) {
            return;
        }
        let before = reports.len();
        for (&token, &pid) in &self.pids {
            // An error is an end as well: the endpoint finds out which.
            if !matches!(Process::new(pid, None).peek(), Ok(None)) {
                reports.push(Ready { token, readable: true, writable: false, closed: false });
            }
        }
        if reports.len() > before {
            self.soon();
        } else {
            self.interval = (self.interval * 2).min(LONGEST);
            self.at = Some(now + self.interval);
        }
    }

    fn soon(&mut self) {
        self.interval = SHORTEST;
        self.at = Some(Instant::now() + SHORTEST);
    }
}
