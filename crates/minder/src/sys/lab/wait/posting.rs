//! A pool of resident threads that stay in their calls, each with 63 objects and an event of its
//! own, and post what they hear to a completion port, where whoever waits takes it. An object that
//! was told rests until the next wait, which has its thread listen to it again: it may still be
//! signalled.

#![expect(unsafe_code, reason = "a completion port that is posted to")]

use std::collections::VecDeque;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED_ENTRY, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::Threading::INFINITE;

use super::{Baseline, CALL_MAX, List, Objects};
use crate::sys::last_error::done;
use crate::sys::thread::start_small;

/// How many objects a thread waits for.
const SHARE: usize = CALL_MAX - 1;

#[derive(Debug)]
pub(super) struct Posting {
    queue: Arc<OwnedHandle>,
    crew: Vec<(Arc<Shared>, JoinHandle<()>)>,
    /// What one call brought, to be told.
    found: VecDeque<usize>,
    /// What was told, and is not listened to.
    told: Vec<usize>,
}

/// What a thread and the one who waits share.
#[derive(Debug)]
struct Shared {
    objects: Arc<Objects>,
    queue: Arc<OwnedHandle>,
    /// The event that says that there is something below.
    wake: Objects,
    again: Mutex<Vec<usize>>,
    over: AtomicBool,
}

impl Posting {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        // SAFETY: asks for a new port: no file handle, no existing port, so nothing is borrowed.
        let raw = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this handle, and nobody else has it.
        let queue = Arc::new(unsafe { OwnedHandle::from_raw_handle(raw) });
        let mut it = Self { queue, crew: Vec::new(), found: VecDeque::new(), told: Vec::new() };
        for first in (0..objects.len()).step_by(SHARE) {
            let last = objects.len().min(first + SHARE);
            let shared = Arc::new(Shared {
                objects: Arc::clone(&objects),
                queue: Arc::clone(&it.queue),
                wake: Objects::open(1)?,
                again: Mutex::new((first..last).collect()),
                over: AtomicBool::new(false),
            });
            shared.wake.signal(0)?;
            let theirs = Arc::clone(&shared);
            // A thread that fails has nobody to tell but the one who waits, and it ends when that one does.
            let thread = start_small("bench", move || drop(theirs.serve()))?;
            it.crew.push((shared, thread));
        }
        Ok(it)
    }

    fn take(&mut self, timeout_ms: u32) -> io::Result<Option<usize>> {
        for index in self.told.drain(..) {
            let (shared, _) = &self.crew[index / SHARE];
            shared.again().push(index);
            shared.wake.signal(0)?;
        }
        if self.found.is_empty() {
            self.call(timeout_ms)?;
        }
        let found = self.found.pop_front();
        self.told.extend(found);
        Ok(found)
    }

    fn call(&mut self, timeout_ms: u32) -> io::Result<()> {
        let mut entries = [OVERLAPPED_ENTRY::default(); 64];
        let (queue, mut count) = (self.queue.as_raw_handle(), 0);
        let (into, room) = (entries.as_mut_ptr(), entries.len() as u32);
        // SAFETY: the port is open; there is room for so many entries, and `count` outlives the call.
        let answer = unsafe { GetQueuedCompletionStatusEx(queue, into, room, &mut count, timeout_ms, 0) };
        if answer == 0 {
            let error = io::Error::last_os_error();
            let early = error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed());
            return if early { Ok(()) } else { Err(error) };
        }
        self.found.extend(entries[..count as usize].iter().map(|entry| entry.lpCompletionKey));
        Ok(())
    }
}

impl Baseline for Posting {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.take(INFINITE)
    }

    fn look(&mut self) -> io::Result<Option<usize>> {
        self.take(0)
    }
}

impl Drop for Posting {
    fn drop(&mut self) {
        for (shared, thread) in self.crew.drain(..) {
            shared.over.store(true, Ordering::Release);
            if shared.wake.signal(0).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    /// A thread's life.
    fn serve(&self) -> io::Result<()> {
        let (mut list, mut mine) = (List::of([self.wake.source(0)].into_iter()), Vec::new());
        loop {
            match list.wait()? {
                Some(0) => {
                    self.wake.reset(0)?;
                    if self.over.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    for index in self.again().drain(..) {
                        list.push(self.objects.source(index));
                        mine.push(index);
                    }
                }
                Some(place) => {
                    list.swap_remove(place);
                    self.post(mine.swap_remove(place - 1))?;
                }
                None => {}
            }
        }
    }

    fn post(&self, index: usize) -> io::Result<()> {
        // SAFETY: the port is open; it is handed an index, and no pointer.
        let answer = unsafe { PostQueuedCompletionStatus(self.queue.as_raw_handle(), 0, index, null()) };
        done(answer)
    }

    fn again(&self) -> MutexGuard<'_, Vec<usize>> {
        self.again.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
