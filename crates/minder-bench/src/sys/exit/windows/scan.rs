//! Learns that a child has exited, but not which, and checks every live child, 64 by each
//! `WaitForMultipleObjects` without a wait. The exit of the child that was killed stands for the
//! signal that another system would send.

#![expect(unsafe_code, reason = "WaitForMultipleObjects over handles that `Children` keeps open")]

use std::collections::VecDeque;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::time::Instant;

use minder::Child;
use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED};
use windows_sys::Win32::System::Threading::WaitForMultipleObjects;

use super::children::Children;
use crate::sys::exit::process::has_exited;
use crate::sys::exit::types::ObservedExit;
use crate::sys::exit::watcher::ExitWatcher;

/// The number of handles that one call takes (`MAXIMUM_WAIT_OBJECTS`).
const CALL_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Scan {
    children: Children,
    pids: Vec<u32>,
    /// The handle of each pid, at the same position.
    handles: Vec<HANDLE>,
    /// Exits that were observed and not yet returned.
    observed: VecDeque<ObservedExit>,
}

impl ExitWatcher for Scan {
    fn add(&mut self, child: Child) -> io::Result<()> {
        let pid = child.id();
        self.children.add(child)?;
        self.pids.push(pid);
        self.handles.push(self.children.handle(pid)?.as_raw_handle());
        Ok(())
    }

    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<ObservedExit>> {
        while self.observed.is_empty() {
            // A child that an earlier scan removed has no handle, and no second exit.
            if let Ok(handle) = self.children.handle(awaited)
                && !has_exited(&handle, deadline.saturating_duration_since(Instant::now()))?
            {
                return Ok(None);
            }
            self.scan()?;
            if self.observed.is_empty() {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                std::thread::yield_now();
            }
        }
        Ok(self.observed.pop_front())
    }
}

impl Scan {
    /// Checks all children, from the last to the first, so that removing one does not move those
    /// that are still to be checked.
    fn scan(&mut self) -> io::Result<()> {
        let mut first = self.handles.len().next_multiple_of(CALL_MAX);
        while first > 0 {
            first -= CALL_MAX;
            while first < self.handles.len() {
                let end = self.handles.len().min(first + CALL_MAX);
                let Some(position) = poll(&self.handles[first..end])? else { break };
                self.handles.swap_remove(first + position);
                let pid = self.pids.swap_remove(first + position);
                self.observed.push_back(self.children.remove(pid)?);
            }
        }
        Ok(())
    }
}

/// Returns the position of the first of at most 64 handles that is signalled.
fn poll(handles: &[HANDLE]) -> io::Result<Option<usize>> {
    // SAFETY: the slice has this many handles, which `Children` keeps open.
    match unsafe { WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), 0, 0) } {
        WAIT_FAILED => Err(io::Error::last_os_error()),
        // `WAIT_OBJECT_0`, which is 0, plus the position.
        position if (position as usize) < handles.len() => Ok(Some(position as usize)),
        // WAIT_TIMEOUT.
        _ => Ok(None),
    }
}
