//! The run of one child to its end without a set, by a few calls of poll(2).
//!
//! It is for the plain call: no input, no time limit, no terminal. A set costs more than the child then:
//! it opens what it needs for many children.

use std::time::{Duration, Instant};

use super::captured::{Captured, CapturedStage, too_much};
use crate::child::Child;
use crate::command::{Command, Group};
use crate::deadline::deadline_after;
use crate::sys::pipe::{ReadOutcome, Reader};
use crate::sys::reap::{ChildReadiness, can_poll_children, poll_child};
use crate::sys::spawn::{Spawned, Spawner};
use crate::termination::Termination;
use crate::{Error, Operation, Result};

/// The least room for a read.
const ROOM_MIN: usize = 1 << 10;
/// The room for the first read, and the least that is added.
const ROOM_ADDED: usize = 4 << 10;
/// How often the exit of a child is checked that has no descriptor.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);

/// Returns whether this child can be run without a set.
pub(super) fn applies_to(command: &Command) -> bool {
    can_poll_children() && !matches!(command.group, Group::Terminal(_))
}

/// Runs a command to its end. Its streams are set.
pub(super) fn capture(
    command: &Command,
    max_bytes: usize,
    leak_timeout: Option<Duration>,
) -> Result<Captured> {
    let spawned = Spawner::new().spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
    let Spawned { process, tree, stdin, stdout, stderr } = spawned;
    // Nothing will be written.
    drop(stdin);
    let outputs = [stdout, stderr];
    let captured = [Vec::new(), Vec::new()];
    let mut reading =
        Reading { child: Child::without_pipes(process, tree), outputs, captured, max_bytes, leak_timeout };
    let leaked = match reading.until_closed() {
        Ok(leaked) => leaked,
        Err(error) => {
            // That error is the one that counts.
            let _ = reading.child.kill_and_wait(Termination::IMMEDIATE);
            return Err(error.with_subject(&command.program));
        }
    };
    let exit = reading.child.wait()?;
    let [stdout, stderr] = reading.captured;
    Ok(Captured { stages: vec![CapturedStage { exit, stderr, timed_out: false, leaked }], stdout })
}

/// A child whose outputs are read.
struct Reading {
    child: Child,
    outputs: [Option<Reader>; 2],
    captured: [Vec<u8>; 2],
    max_bytes: usize,
    leak_timeout: Option<Duration>,
}

impl Reading {
    /// Reads until both outputs have ended, or are silent for too long after the exit. Returns whether
    /// they were closed for their silence.
    fn until_closed(&mut self) -> Result<bool> {
        let mut has_exited = false;
        let mut close_at = None;
        while self.outputs.iter().any(Option::is_some) {
            let ready = self.poll(has_exited, close_at)?;
            let mut was_active = false;
            for place in [0, 1] {
                was_active |= ready.outputs[place] && self.read(place)?;
            }
            has_exited |= ready.exited;
            if !has_exited {
                continue;
            }
            if was_active || ready.exited {
                close_at = deadline_after(self.leak_timeout);
            } else if close_at.is_some_and(|close_at| Instant::now() >= close_at) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Waits until an output can be read or the child has exited, until `close_at` at the latest.
    fn poll(&mut self, has_exited: bool, close_at: Option<Instant>) -> Result<ChildReadiness> {
        let failed = |error| Error::new("wait for", error).during(Operation::Wait);
        let process = (!has_exited).then(|| self.child.process());
        if let Some(ready) = poll_child(process, &self.outputs, close_at).map_err(failed)? {
            return Ok(ready);
        }
        // No descriptor was free for this child.
        let check_at = Some(Instant::now() + CHECK_INTERVAL);
        let ready = poll_child(None, &self.outputs, check_at).map_err(failed)?.unwrap_or_default();
        Ok(ChildReadiness { exited: self.child.peek()?.is_some(), ..ready })
    }

    /// Reads an output once. Returns whether there was anything.
    fn read(&mut self, place: usize) -> Result<bool> {
        let Some(reader) = &mut self.outputs[place] else { return Ok(false) };
        let bytes = &mut self.captured[place];
        if bytes.capacity() - bytes.len() < ROOM_MIN {
            bytes.reserve(bytes.len().max(ROOM_ADDED));
        }
        match reader.drain(bytes).map_err(|error| Error::new("read from", error).during(Operation::Read))? {
            ReadOutcome::Data(_) => (),
            ReadOutcome::Eof => self.outputs[place] = None,
            ReadOutcome::WouldBlock => return Ok(false),
        }
        if self.captured[0].len() + self.captured[1].len() > self.max_bytes {
            return Err(too_much());
        }
        Ok(true)
    }
}
