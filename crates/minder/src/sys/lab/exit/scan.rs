//! Told that one child has ended, and not which, it looks at every child that lives, 64 by each
//! `WaitForMultipleObjects` that does not wait. What tells it is the one that was killed, as a
//! signal would.

#![expect(unsafe_code, reason = "WaitForMultipleObjects over handles that are kept open")]

use std::collections::VecDeque;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::time::Instant;

use windows_sys::Win32::Foundation::{HANDLE, WAIT_FAILED};
use windows_sys::Win32::System::Threading::WaitForMultipleObjects;

use super::children::Children;
use super::windows::is_over;
use super::{End, Hear};
use crate::sys::spawn::Spawned;

/// How many objects one call takes.
const CALL_MAX: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Scan {
    children: Children,
    /// Their numbers and, at the same places, their handles.
    pids: Vec<u32>,
    handles: Vec<HANDLE>,
    found: VecDeque<End>,
}

impl Hear for Scan {
    fn add(&mut self, child: Spawned) -> io::Result<()> {
        let pid = child.process.pid();
        self.children.add(child);
        self.pids.push(pid);
        self.handles.push(self.children.handle(pid)?.as_raw_handle());
        Ok(())
    }

    fn next(&mut self, awaited: u32, deadline: Instant) -> io::Result<Option<End>> {
        while self.found.is_empty() {
            // One that an earlier look has found tells nothing more.
            if let Ok(handle) = self.children.handle(awaited)
                && !is_over(&handle, deadline.saturating_duration_since(Instant::now()))?
            {
                return Ok(None);
            }
            self.look()?;
            if self.found.is_empty() {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                std::thread::yield_now();
            }
        }
        Ok(self.found.pop_front())
    }
}

impl Scan {
    /// Looks at all, from the last to the first: what is taken out does not disturb those before
    /// it.
    fn look(&mut self) -> io::Result<()> {
        let mut first = self.handles.len().next_multiple_of(CALL_MAX);
        while first > 0 {
            first -= CALL_MAX;
            while let Some(place) = signalled(&self.handles[first..self.handles.len().min(first + CALL_MAX)])?
            {
                self.handles.swap_remove(first + place);
                let pid = self.pids.swap_remove(first + place);
                self.found.push_back(self.children.take(pid)?);
                if first >= self.handles.len() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The first of at most 64 handles that is signalled.
fn signalled(handles: &[HANDLE]) -> io::Result<Option<usize>> {
    // SAFETY: these are so many handles, which `Children` keeps open.
    match unsafe { WaitForMultipleObjects(handles.len() as u32, handles.as_ptr(), 0, 0) } {
        WAIT_FAILED => Err(io::Error::last_os_error()),
        // From `WAIT_OBJECT_0`, which is 0, on; or that time is over.
        place => Ok(Some(place as usize).filter(|place| *place < handles.len())),
    }
}
