//! Children by their numbers, with the handles that mechanisms wait for.

#![expect(unsafe_code, reason = "exit codes by handles")]

use std::collections::HashMap;
use std::io;
use std::os::windows::io::{AsRawHandle, BorrowedHandle};

use windows_sys::Win32::System::Threading::GetExitCodeProcess;

use super::End;
use super::windows::KILLED;
use crate::sys::spawn::Spawned;
use crate::sys::wait::Source;

/// Children that live, and those that ended: they are let go when the next one is started, outside
/// of what is measured. Their jobs are kept as well, so that they die with this process.
#[derive(Debug, Default)]
pub(super) struct Children {
    live: HashMap<u32, Spawned>,
    ended: Vec<Spawned>,
}

impl Children {
    pub(super) fn add(&mut self, child: Spawned) {
        self.ended.clear();
        self.live.insert(child.process.pid(), child);
    }

    /// The handle of one that lives.
    pub(super) fn handle(&self, pid: u32) -> io::Result<BorrowedHandle<'_>> {
        match self.live.get(&pid).map(|child| child.process.source()) {
            Some(Source::Handle(handle)) => Ok(handle),
            _ => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Takes one that has ended.
    pub(super) fn take(&mut self, pid: u32) -> io::Result<End> {
        let (mut code, process) = (0, self.handle(pid)?.as_raw_handle());
        // SAFETY: the handle is open, `code` outlives the call.
        if unsafe { GetExitCodeProcess(process, &mut code) } == 0 {
            return Err(io::Error::last_os_error());
        }
        self.ended.extend(self.live.remove(&pid));
        Ok(End { pid, killed: code == KILLED })
    }
}
