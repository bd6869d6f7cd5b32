//! The standard input of one child.

use crate::sys::pipe::Writer;
use crate::sys::reactor::Reactor;
use crate::sys::wait::Report;
use crate::{Error, Operation, Result};

/// The standard input of one child: its pipe, until it is closed.
#[derive(Debug)]
pub(super) struct ChildInput(Option<Writer>);

impl ChildInput {
    pub(super) fn new(writer: Option<Writer>) -> Self {
        Self(writer)
    }

    /// Returns the pipe, if it is open.
    pub(super) fn writer(&self) -> Option<&Writer> {
        self.0.as_ref()
    }

    /// Returns whether bytes may be written: it is open, and is not being ended.
    pub(super) fn is_writable(&self) -> bool {
        self.0.as_ref().is_some_and(|writer| !writer.is_ending())
    }

    /// Returns whether it is to be polled: it has no room, and the backend had none for it.
    pub(super) fn is_unwatched(&self) -> bool {
        self.0.as_ref().is_some_and(Writer::is_unwatched)
    }

    /// Writes as many bytes as there is room for. Closes the pipe after an error.
    pub(super) fn write(&mut self, reactor: &mut Reactor, key: u64, pid: u32, bytes: &[u8]) -> Result<usize> {
        let Some(writer) = &mut self.0 else { return Ok(0) };
        writer.write(reactor, key, bytes).or_else(|error| {
            self.close(reactor)?;
            let error = Error::new("write to the input of", error).during(Operation::Write);
            Err(error.with_subject(pid.to_string()))
        })
    }

    /// Handles a report. Returns whether there is room.
    pub(super) fn handle(&mut self, reactor: &mut Reactor, key: u64, report: &Report) -> Result<bool> {
        let Some(writer) = &mut self.0 else { return Ok(false) };
        let has_room = writer.ready(reactor, report);
        self.offer(reactor, key, has_room)
    }

    /// Looks for room, if the backend had none for the pipe. Returns whether there is room.
    pub(super) fn poll(&mut self, reactor: &mut Reactor, key: u64) -> Result<bool> {
        let Some(writer) = self.0.as_mut().filter(|writer| writer.is_unwatched()) else {
            return Ok(false);
        };
        let has_room = writer.poll(reactor, key);
        self.offer(reactor, key, has_room)
    }

    /// Uses room to end a terminal. Returns whether there is room for the caller.
    fn offer(&mut self, reactor: &mut Reactor, key: u64, has_room: std::io::Result<bool>) -> Result<bool> {
        let has_room =
            has_room.map_err(|error| Error::new("write to a child", error).during(Operation::Write))?;
        if has_room && !self.is_writable() {
            self.end_terminal(reactor, key)?;
            return Ok(false);
        }
        Ok(has_room)
    }

    /// Ends the input of a child's terminal, as far as there is room. [`handle`](Self::handle) and
    /// [`poll`](Self::poll) continue it.
    pub(super) fn end_terminal(&mut self, reactor: &mut Reactor, key: u64) -> Result<()> {
        let Some(writer) = &mut self.0 else { return Ok(()) };
        match writer.end_terminal(reactor, key) {
            Ok(false) => Ok(()),
            // It is written, or no process has the terminal open any more.
            Ok(true) | Err(_) => self.close(reactor),
        }
    }

    /// Closes the pipe. Without effect if there is none.
    pub(super) fn close(&mut self, reactor: &mut Reactor) -> Result<()> {
        let Some(writer) = self.0.take() else { return Ok(()) };
        writer
            .close(reactor)
            .map_err(|error| Error::new("close the input of a child", error).during(Operation::Write))
    }
}
