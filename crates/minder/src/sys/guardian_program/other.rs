//! Ends the children on Unix systems without `/proc`: their groups, and nothing that left them.

use std::time::{Duration, Instant};

use super::target::Target;

/// The time for which the program waits for processes that were killed.
const TIME_MAX: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(5);

/// The list after the end of the host.
#[derive(Debug)]
pub(super) struct Ending {
    targets: Vec<Target>,
}

impl Ending {
    pub(super) fn new(targets: Vec<Target>, _tag: u64) -> Self {
        Self { targets }
    }

    /// Asks everything to exit, and waits for that, for at most `grace`.
    pub(super) fn ask(&mut self, grace: Duration) {
        for target in &self.targets {
            target.signal(libc::SIGTERM);
            target.signal(libc::SIGCONT);
        }
        self.wait(Instant::now().checked_add(grace));
    }

    /// Kills until nothing is left that can be killed. Returns how many children are left, and one of
    /// them.
    pub(super) fn kill(&mut self) -> Option<(usize, libc::pid_t)> {
        for target in &self.targets {
            target.signal(libc::SIGKILL);
        }
        self.wait(Instant::now().checked_add(TIME_MAX));
        self.targets.first().map(|target| (self.targets.len(), target.pid))
    }

    fn wait(&mut self, deadline: Option<Instant>) {
        loop {
            self.targets.retain(Target::exists);
            if self.targets.is_empty() || deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return;
            }
            minder_os::time::pause(PAUSE, deadline);
        }
    }
}
