//! Processes that nothing tells of, neither a pidfd nor the backend: each is looked at by its own
//! number, at intervals that grow while nothing happens.
//!
//! The signal that would tell of an exit belongs to the host, and one signal may stand for many
//! exits, so that a look at every child would follow anyway. A look costs about 0.3 us a child
//! (measured, Linux 6.18). This is the last resort: Linux before 5.4, sandboxes, the backend `poll`
//! elsewhere.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Ready;
use crate::sys::pid;

/// The first interval after something happened, and the longest.
const SHORTEST: Duration = Duration::from_millis(1);
const LONGEST: Duration = Duration::from_millis(50);

/// The processes of one port that have to be looked at, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct ExitPoller {
    watched: HashMap<libc::pid_t, PolledProcess>,
    next_poll: Option<Instant>,
    interval: Duration,
    /// How many have ended and are to be told again.
    exited: usize,
}

#[derive(Debug)]
struct PolledProcess {
    token: u64,
    /// Not a child of ours: it is over when nobody of its number is left.
    is_foreign: bool,
    /// Told once only.
    once: bool,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Running,
    Exited,
    /// Ended, and told as often as was asked for.
    Disabled,
}

impl PolledProcess {
    fn has_exited(&self, pid: libc::pid_t) -> bool {
        if self.is_foreign {
            return !pid::exists(pid);
        }
        // An error is an end as well: the endpoint finds out which.
        !matches!(pid::wait_for_exit(pid, None, libc::WNOHANG | libc::WNOWAIT), Ok(None))
    }
}

impl ExitPoller {
    pub(crate) fn add(&mut self, pid: libc::pid_t, token: u64, once: bool) {
        let is_foreign = !pid::is_unreaped_child(pid);
        self.watched.insert(pid, PolledProcess { token, is_foreign, once, state: State::Running });
        self.reset_interval();
    }

    /// Whether it was there.
    pub(crate) fn remove(&mut self, pid: libc::pid_t) -> bool {
        let Some(watched) = self.watched.remove(&pid) else { return false };
        self.exited -= usize::from(watched.state == State::Exited);
        true
    }

    /// When the next look is due; `None` without processes.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.watched.is_empty() { None } else { self.next_poll }
    }

    /// Reports those that ended, if a look is due. What ended is told until it is removed.
    pub(crate) fn report(&mut self, reports: &mut Vec<Ready>, now: Instant) {
        if self.exited == 0 && self.next_poll.is_some_and(|next_poll| now < next_poll) {
            return;
        }
        let before = reports.len();
        for (&pid, watched) in &mut self.watched {
            if watched.state == State::Running && watched.has_exited(pid) {
                watched.state = State::Exited;
                self.exited += 1;
            }
            if watched.state == State::Exited {
                reports.push(Ready { readable: true, ..Ready::none(watched.token) });
                if watched.once {
                    watched.state = State::Disabled;
                    self.exited -= 1;
                }
            }
        }
        if self.exited > 0 {
            self.next_poll = Some(now);
        } else if reports.len() > before {
            self.reset_interval();
        } else {
            self.interval = (self.interval * 2).min(LONGEST);
            self.next_poll = Some(now + self.interval);
        }
    }

    fn reset_interval(&mut self) {
        self.interval = SHORTEST;
        self.next_poll = Some(Instant::now() + SHORTEST);
    }
}
