//! The run of one child to its end without a set, by a few calls of poll(2).
//!
//! It is for the plain call: no input, no time limit, no terminal. A set costs more than the child then:
//! it opens what it needs for many children.

use super::captured::{Captured, CapturedStage};
use super::output_buffer::{OutputBuffer, OutputLimit};
use super::read_order::ReadOrder;
use crate::child::Child;
use crate::command::Command;
use crate::event::Stream;
use crate::group::Group;
use crate::sys::pipe::{CAN_POLL_OUTPUTS, ReadOutcome, Reader, poll_outputs};
use crate::sys::reap::reap_orphans;
use crate::sys::spawn::{Spawned, Spawner};
use crate::termination::Termination;
use crate::{Error, Operation, Result};

/// The least room for a read.
const ROOM_MIN: usize = 1 << 10;
/// The room for the first read, and the least that is added.
const ROOM_ADDED: usize = 4 << 10;

/// Returns whether this child can be run without a set.
pub(super) fn applies_to(command: &Command) -> bool {
    CAN_POLL_OUTPUTS && !matches!(command.group, Group::Terminal(_))
}

/// Runs a command to the end of its outputs and of its process. Its streams are set.
pub(super) fn capture(command: &Command, limit: OutputLimit) -> Result<Captured> {
    reap_orphans();
    let spawned = Spawner::new().spawn(command).map_err(|failure| crate::spawn::explain(command, failure))?;
    let Spawned { process, tree, stdin, stdout, stderr } = spawned;
    // Nothing will be written.
    drop(stdin);
    let mut child = Child::without_pipes(process, tree);
    let mut reading = Reading {
        outputs: [stdout, stderr],
        captured: Default::default(),
        order: ReadOrder::default(),
        limit,
    };
    if let Err(error) = reading.until_closed() {
        // That error is the one that counts.
        let _ = child.kill_and_wait(Termination::IMMEDIATE);
        return Err(error.with_subject(&command.program));
    }
    let exit = child.wait()?;
    let [(stdout, stdout_dropped), (stderr, stderr_dropped)] = reading.captured.map(OutputBuffer::into_kept);
    let stage = CapturedStage { exit, stderr, stderr_dropped, timed_out: false, leaked: false };
    Ok(Captured { stages: vec![stage], stdout, stdout_dropped, order: reading.order })
}

/// The outputs of a child, which are read to their end.
struct Reading {
    outputs: [Option<Reader>; 2],
    captured: [OutputBuffer; 2],
    order: ReadOrder,
    limit: OutputLimit,
}

impl Reading {
    /// Reads until both outputs have ended.
    fn until_closed(&mut self) -> Result<()> {
        loop {
            let is_ready = match &self.outputs {
                [Some(stdout), Some(stderr)] => poll_outputs([stdout, stderr])
                    .map_err(|error| Error::new("wait for", error).during(Operation::Wait))?,
                [None, None] => return Ok(()),
                // A read of the only one may block.
                outputs => [outputs[0].is_some(), outputs[1].is_some()],
            };
            for place in [0, 1] {
                if is_ready[place] {
                    self.read(place)?;
                }
            }
        }
    }

    /// Reads an output once.
    fn read(&mut self, place: usize) -> Result<()> {
        let Some(reader) = &mut self.outputs[place] else { return Ok(()) };
        let bytes = self.captured[place].memory();
        if bytes.capacity() - bytes.len() < ROOM_MIN {
            bytes.reserve(bytes.len().max(ROOM_ADDED));
        }
        match reader.drain(bytes).map_err(|error| Error::new("read from", error).during(Operation::Read))? {
            ReadOutcome::Eof => self.outputs[place] = None,
            ReadOutcome::Data(count) => {
                self.limit.apply(&mut self.captured, place, count)?;
                let stream = if place == 0 { Stream::Stdout } else { Stream::Stderr };
                self.limit.record(&mut self.order, stream, count, self.captured.each_ref());
            }
            ReadOutcome::WouldBlock => (),
        }
        Ok(())
    }
}
