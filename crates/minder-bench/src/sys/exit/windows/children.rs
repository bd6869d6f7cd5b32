//! Children by their pids, with the handles that mechanisms wait for.

#![expect(unsafe_code, reason = "GetExitCodeProcess")]

use std::collections::HashMap;
use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};

use minder::Child;
use windows_sys::Win32::System::Threading::{
    GetExitCodeProcess, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SYNCHRONIZE,
};

use crate::sys::exit::process::{KILLED, open};
use crate::sys::exit::types::ObservedExit;

/// A child, whose job object ends it together with this process, and a handle of it.
#[derive(Debug)]
struct OpenChild {
    handle: OwnedHandle,
    _child: Child,
}

/// Live children, and those that have exited. The latter are closed when the next child is added:
/// outside of what is measured.
#[derive(Debug, Default)]
pub(super) struct Children {
    live: HashMap<u32, OpenChild>,
    exited: Vec<OpenChild>,
}

impl Children {
    pub(super) fn add(&mut self, child: Child) -> io::Result<()> {
        self.exited.clear();
        let pid = child.id();
        // The child holds a handle, so the pid is its own.
        let handle = open(pid, PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE)?;
        self.live.insert(pid, OpenChild { handle, _child: child });
        Ok(())
    }

    /// Returns the handle of a live child.
    pub(super) fn handle(&self, pid: u32) -> io::Result<BorrowedHandle<'_>> {
        let child = self.live.get(&pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(child.handle.as_handle())
    }

    /// Removes a child that has exited, and returns how.
    pub(super) fn remove(&mut self, pid: u32) -> io::Result<ObservedExit> {
        let process = self.handle(pid)?.as_raw_handle();
        let mut code = 0;
        // SAFETY: the handle is open, and `code` outlives the call.
        if unsafe { GetExitCodeProcess(process, &mut code) } == 0 {
            return Err(io::Error::last_os_error());
        }
        self.exited.extend(self.live.remove(&pid));
        Ok(ObservedExit { pid, killed: code == KILLED })
    }
}
