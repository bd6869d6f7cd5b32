//! Why a loop of the pool starts no job now, and when it tries again.

use std::io;
use std::time::{Duration, Instant};

use super::handler::SpawnRequest;
use super::scheduler::Attempt;
use crate::Error;

/// The longest time for which a loop without children sleeps. Every reason to wake it earlier wakes
/// it.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(60);

/// The pause after a spawn that failed with `Exhausted`. It doubles up to the maximum.
const SHORTAGE_PAUSE_MIN: Duration = Duration::from_millis(10);
const SHORTAGE_PAUSE_MAX: Duration = Duration::from_secs(1);
/// A shortage that lasts this long while no job of the pool runs is an error.
const SHORTAGE_TIMEOUT: Duration = Duration::from_secs(1);
/// The pause after a spawn whose program was open for writing. It doubles up to the maximum.
const BUSY_PAUSE_MIN: Duration = Duration::from_millis(5);
const BUSY_PAUSE_MAX: Duration = Duration::from_millis(100);
/// The longest time for which a program may stay open for writing.
const BUSY_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a loop starts no job now.
pub(super) enum Idle {
    /// All of its slots are taken, or one of its jobs must finish first.
    OwnJob,
    /// The operating system is short of resources. They may be free at this time, even if no job of
    /// this loop finishes.
    Shortage(Instant),
    /// Another loop or the source of jobs must act first; or this time must come.
    Elsewhere(Option<Instant>),
    /// No more jobs will start.
    Finished,
}

impl Idle {
    /// Returns how long to wait for events at most.
    pub(super) fn deadline(self, has_no_child: bool) -> Option<Instant> {
        match self {
            Self::Shortage(at) | Self::Elsewhere(Some(at)) => Some(at),
            // A wait of an empty set without a deadline would return at once.
            Self::Elsewhere(None) if has_no_child => Some(Instant::now() + IDLE_WAIT_MAX),
            Self::Finished | Self::OwnJob | Self::Elsewhere(None) => None,
        }
    }
}

/// The last spawn failed, because no descriptor, process or memory was free.
pub(super) struct Shortage {
    /// Since when no job of the pool runs that could free some.
    since: Instant,
    /// The time for which the loop waits before the next try.
    pause: Duration,
}

impl Shortage {
    pub(super) fn new(now: Instant) -> Self {
        Self { since: now, pause: SHORTAGE_PAUSE_MIN / 2 }
    }

    /// Returns when to try again; `None` if the shortage has lasted too long. `may_end`: a job runs
    /// that could free something.
    pub(super) fn next_try(&mut self, now: Instant, may_end: bool) -> Option<Instant> {
        self.pause = (self.pause * 2).min(SHORTAGE_PAUSE_MAX);
        if may_end {
            self.since = now;
        }
        (now.duration_since(self.since) < SHORTAGE_TIMEOUT).then(|| now + self.pause)
    }
}

/// A job whose command is known and that has no child yet.
pub(super) struct PendingStart<J> {
    pub(super) attempt: Attempt,
    pub(super) job: J,
    pub(super) request: SpawnRequest,
    /// If its program was open for writing: since when, and the pause before `at`.
    busy: Option<(Instant, Duration)>,
    /// The time of the next try.
    pub(super) at: Option<Instant>,
}

impl<J> PendingStart<J> {
    pub(super) fn new(attempt: Attempt, job: J, request: SpawnRequest) -> Self {
        Self { attempt, job, request, busy: None, at: None }
    }

    /// Sets when to try again. Returns `false` if the error is another one than that the program is
    /// open for writing, or if it was for too long: it is not tried again then.
    pub(super) fn delay(&mut self, error: &Error, now: Instant) -> bool {
        if error.io_error().kind() != io::ErrorKind::ExecutableFileBusy {
            return false;
        }
        let (since, pause) = self.busy.map_or((now, BUSY_PAUSE_MIN), |(since, pause)| (since, pause * 2));
        let pause = pause.min(BUSY_PAUSE_MAX);
        self.busy = Some((since, pause));
        self.at = Some(now + pause);
        now.duration_since(since) < BUSY_TIMEOUT
    }
}
