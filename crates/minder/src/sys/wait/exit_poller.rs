//! Processes whose exit neither a pidfd nor the backend reports. Each is polled by its pid, at
//! intervals that grow while nothing happens.
//!
//! SIGCHLD would report an exit, but it belongs to the host program. One SIGCHLD may also stand for
//! several exits, so every child would have to be checked anyway. One check costs about 0.3 us a
//! child (measured, Linux 6.18). This is the last resort: Linux before 5.4, sandboxes, and the
//! backend `poll` on other systems.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use super::Ready;
use crate::sys::pid;

/// The first interval after a report or a new process.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest interval.
const LONGEST: Duration = Duration::from_millis(50);

/// The processes of one port that are polled, by their pids.
#[derive(Debug, Default)]
pub(crate) struct ExitPoller {
    watched: HashMap<libc::pid_t, PolledProcess>,
    next_poll: Option<Instant>,
    interval: Duration,
    /// The number of processes that have exited and are reported by every poll.
    exited: usize,
}

#[derive(Debug)]
struct PolledProcess {
    token: u64,
    /// The process is not a child of ours. It has exited when its pid is unused.
    is_foreign: bool,
    /// The exit is reported once only.
    once: bool,
    state: State,
}

#[derive(Debug, PartialEq)]
enum State {
    Running,
    Exited,
    /// The process has exited and the one report that was requested has been made.
    Disabled,
}

impl PolledProcess {
    fn has_exited(&self, pid: libc::pid_t) -> bool {
        if self.is_foreign {
            return !pid::exists(pid);
        }
        // An error is reported as an exit, so that the endpoint gets the error when it reaps.
        !matches!(pid::wait_for_exit(pid, None, libc::WNOHANG | libc::WNOWAIT), Ok(None))
    }
}

impl ExitPoller {
    pub(crate) fn add(&mut self, pid: libc::pid_t, token: u64, once: bool) {
        let is_foreign = !pid::is_unreaped_child(pid);
        self.watched.insert(pid, PolledProcess { token, is_foreign, once, state: State::Running });
        self.reset_interval();
    }

    /// Removes a process. Returns whether it was polled.
    pub(crate) fn remove(&mut self, pid: libc::pid_t) -> bool {
        let Some(watched) = self.watched.remove(&pid) else { return false };
        self.exited -= usize::from(watched.state == State::Exited);
        true
    }

    /// Returns when the next poll is due; `None` without processes.
    pub(crate) fn next_at(&self) -> Option<Instant> {
        if self.watched.is_empty() { None } else { self.next_poll }
    }

    /// Reports the processes that have exited, if a poll is due. An exit is reported until the
    /// process is removed.
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
