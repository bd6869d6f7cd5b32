//! A `ChildSet` as a mechanism that observes exits.

use std::io;
use std::time::Instant;

use minder::{Child, ChildSet, ChildSetConfig, Command, Event, Result, SpawnOptions};

use crate::sys::exit::{ExitWatcher, ObservedExit, was_killed};

/// A set, and the pids of its children by the indices of their tokens.
#[derive(Debug)]
pub(super) struct SetUnderTest {
    set: ChildSet,
    pids: Vec<u32>,
}

impl SetUnderTest {
    pub(super) fn open(backend: &'static str) -> Result<Self> {
        let mut config = ChildSetConfig::default();
        config.backend = Some(backend);
        Ok(Self { set: ChildSet::new(config)?, pids: Vec::new() })
    }

    /// Starts a child and returns its pid.
    pub(super) fn spawn(&mut self, command: &Command) -> Result<u32> {
        let token = self.set.spawn(command, SpawnOptions::default())?;
        let pid = self.set.id(token)?;
        if self.pids.len() <= token.index() {
            self.pids.resize(token.index() + 1, 0);
        }
        self.pids[token.index()] = pid;
        Ok(pid)
    }
}

impl ExitWatcher for SetUnderTest {
    fn add(&mut self, _child: Child) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a set starts its children itself"))
    }

    fn next(&mut self, _awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        loop {
            match self.set.next(Some(deadline))? {
                Some(Event::Done(token, outcome)) => {
                    let pid = self.pids.get(token.index()).copied().unwrap_or(0);
                    return Ok(Some(ObservedExit { pid, killed: was_killed(outcome.exit.status) }));
                }
                Some(_) => (),
                None => return Ok(None),
            }
        }
    }
}
