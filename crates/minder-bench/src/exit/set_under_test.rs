//! A `ChildSet` as a mechanism that observes exits.

use std::io;
use std::time::Instant;

use minder::{Backend, Child, ChildSet, ChildSetOptions, Command, Event, Result, SpawnOptions};

use crate::sys::exit::{ExitWatcher, ObservedExit, was_killed};

/// A set, and the pids of its children by the indices of their ids.
#[derive(Debug)]
pub(super) struct SetUnderTest {
    set: ChildSet,
    pids: Vec<u32>,
}

impl SetUnderTest {
    pub(super) fn open(backend: Backend) -> Result<Self> {
        let config = ChildSetOptions::new().backend(Some(backend));
        Ok(Self { set: ChildSet::new(config)?, pids: Vec::new() })
    }

    /// Starts a child and returns its pid.
    pub(super) fn spawn(&mut self, command: &Command) -> Result<u32> {
        let child = self.set.spawn(command, SpawnOptions::default())?;
        let pid = self.set.pid(child)?;
        if self.pids.len() <= child.index() {
            self.pids.resize(child.index() + 1, 0);
        }
        self.pids[child.index()] = pid;
        Ok(pid)
    }
}

impl ExitWatcher for SetUnderTest {
    fn add(&mut self, _child: Child) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a set starts its children itself"))
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        loop {
            match self.set.next_event_deadline(Some(deadline))?.into_event() {
                Some(Event::Done { child, outcome, .. }) => {
                    let pid = self.pids.get(child.index()).copied().unwrap_or(0);
                    return Ok(Some(ObservedExit { pid, killed: was_killed(outcome.exit.status) }));
                }
                Some(_) => (),
                None => return Ok(None),
            }
        }
    }
}
