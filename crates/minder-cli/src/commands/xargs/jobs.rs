//! The jobs that run, and what their ends mean.

use std::ffi::{OsStr, OsString};
use std::time::Instant;

use minder::{
    ChildId, ChildSet, ChildSetOptions, Command, Error, Event, ExitStatus, NextEvent, SpawnOptions,
};
use minder_runner::exit_status;

use super::plan::FAILURE;

/// An error that ends the run, with the message and the exit status.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stop {
    pub(super) message: String,
    pub(super) status: u8,
}

impl Stop {
    pub(super) fn new(message: impl Into<String>, status: u8) -> Self {
        Self { message: message.into(), status }
    }
}

/// The running jobs.
#[derive(Debug)]
pub(super) struct Jobs {
    set: ChildSet,
    /// The job of each slot.
    slots: Vec<Option<ChildId>>,
    /// The name of the program, for messages.
    program: OsString,
    /// `true` once a job has failed with another status than 255.
    pub(super) has_failed: bool,
}

impl Jobs {
    pub(super) fn new(program: OsString) -> minder::Result<Self> {
        let set = ChildSet::new(ChildSetOptions::new().max_children(usize::MAX))?;
        Ok(Self { set, slots: Vec::new(), program, has_failed: false })
    }

    pub(super) fn running(&self) -> usize {
        self.set.len()
    }

    /// Starts a job in the lowest free slot. The variable `slot_var` has the number of the slot.
    pub(super) fn start(&mut self, command: &mut Command, slot_var: Option<&OsStr>) -> Result<(), Error> {
        let slot = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if let Some(name) = slot_var {
            command.env(name, slot.to_string());
        }
        let child = self.set.spawn(command, SpawnOptions::new())?;
        if slot == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[slot] = Some(child);
        Ok(())
    }

    /// Waits for the next job that ends, until the deadline at the latest.
    ///
    /// # Errors
    /// The job has ended in a way that ends the run.
    pub(super) fn wait_for_one(&mut self, deadline: Option<Instant>) -> Result<(), Stop> {
        loop {
            match self.set.next_event_deadline(deadline) {
                Ok(NextEvent::Event(Event::Done { child, outcome, .. })) => {
                    self.slots.iter_mut().filter(|slot| **slot == Some(child)).for_each(|slot| *slot = None);
                    return self.check(outcome.exit.status);
                }
                Ok(NextEvent::Event(_)) => (),
                Ok(_) => return Ok(()),
                Err(error) => return Err(Stop::new(error.to_string(), FAILURE)),
            }
        }
    }

    /// Waits for all jobs.
    ///
    /// # Errors
    /// As [`wait_for_one`](Self::wait_for_one).
    pub(super) fn wait_for_all(&mut self) -> Result<(), Stop> {
        while self.running() > 0 {
            self.wait_for_one(None)?;
        }
        Ok(())
    }

    /// Waits for all jobs. Whatever happens to them, nothing more is said.
    pub(super) fn wait_silently(&mut self) {
        while self.wait_for_all().is_err_and(|stop| stop.status != FAILURE) {}
    }

    fn check(&mut self, status: ExitStatus) -> Result<(), Stop> {
        let program = self.program.display();
        let (what, code) = match status {
            _ if status.success() => return Ok(()),
            ExitStatus::Exited(255) => {
                (format!("{program}: exited with status 255; aborting"), exit_status::XARGS_STOPPED)
            }
            ExitStatus::Signaled { signal, .. } => {
                (format!("{program}: terminated by signal {signal}"), exit_status::XARGS_SIGNALED)
            }
            _ => {
                self.has_failed = true;
                return Ok(());
            }
        };
        Err(Stop::new(what, code))
    }
}
