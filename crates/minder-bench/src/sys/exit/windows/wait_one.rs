//! The least that observing an exit can cost: `WaitForSingleObject` for a child that was just
//! killed. It observes no other exit.

use std::io;
use std::time::Instant;

use minder::Child;

use super::children::Children;
use crate::sys::exit::process::has_exited;
use crate::sys::exit::types::ObservedExit;
use crate::sys::exit::watcher::ExitWatcher;

#[derive(Debug, Default)]
pub(super) struct WaitOne(Children);

impl ExitWatcher for WaitOne {
    fn add(&mut self, child: Child) -> io::Result<()> {
        self.0.add(child)
    }

    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        let timeout = deadline.saturating_duration_since(Instant::now());
        if has_exited(&self.0.handle(awaited)?, timeout)? {
            self.0.remove(awaited).map(Some)
        } else {
            Ok(None)
        }
    }
}
