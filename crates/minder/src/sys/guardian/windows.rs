//! Windows needs no program: every child is in a job object, and the operating system ends the
//! processes of a job when the last handle is closed, which happens when the host dies.

use std::io;
use std::sync::Arc;

use super::error::GuardianError;
use super::settings::GuardianSettings;

#[derive(Debug)]
pub(crate) struct GuardianLink;

impl GuardianLink {
    pub(crate) fn new(
        _settings: GuardianSettings,
        _start: fn(&Arc<Self>) -> Result<(), GuardianError>,
    ) -> Self {
        Self
    }

    /// Starts nothing.
    #[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
    pub(crate) fn start(self: &Arc<Self>) -> Result<(), GuardianError> {
        Ok(())
    }

    #[expect(clippy::unused_self, reason = "the contract's form")]
    pub(crate) fn pid(&self) -> Option<u32> {
        None
    }

    /// Fails: a process that other code has started is in no job object of this library.
    pub(crate) fn guard(self: &Arc<Self>, _pid: u32) -> io::Result<Registration> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// A process on the list: there is none.
#[derive(Debug)]
pub(crate) enum Registration {}

impl Registration {
    pub(crate) fn release(&self) {
        match *self {}
    }
}
