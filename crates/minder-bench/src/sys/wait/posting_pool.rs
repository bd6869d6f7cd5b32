//! A pool of resident threads that stay in their calls and post signalled objects to a completion
//! port.
//!
//! Each thread waits for 63 objects and an event. It removes an object that it posted from its
//! list, since the object may stay signalled. The next wait asks the thread, by the event, to watch
//! the object again.

#![expect(unsafe_code, reason = "a completion port and posts to it")]

use std::collections::VecDeque;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use minder_os::sync::Mutex;
use windows_sys::Win32::Foundation::{INVALID_HANDLE_VALUE, WAIT_TIMEOUT};
use windows_sys::Win32::System::IO::{
    CreateIoCompletionPort, GetQueuedCompletionStatusEx, OVERLAPPED_ENTRY, PostQueuedCompletionStatus,
};
use windows_sys::Win32::System::Threading::INFINITE;

use super::objects::Objects;
use super::types::{CALL_MAX, WaitBaseline};
use super::wfmo::List;
use crate::sys::last_error::check;
use crate::sys::thread::spawn_small;

/// The number of objects of each thread.
const SHARE: usize = CALL_MAX - 1;

#[derive(Debug)]
pub(super) struct PostingPool {
    port: Arc<OwnedHandle>,
    threads: Vec<(Arc<Shared>, JoinHandle<()>)>,
    /// Objects that were dequeued and not yet returned.
    dequeued: VecDeque<usize>,
    /// Objects that were returned, and that no thread watches.
    returned: Vec<usize>,
}

/// State that a thread and the caller share.
#[derive(Debug)]
struct Shared {
    objects: Arc<Objects>,
    port: Arc<OwnedHandle>,
    /// The event that announces a change of `unwatched` or `is_stopped`.
    wake: Objects,
    /// Objects that the thread is to watch again. The lock protects the list only.
    unwatched: Mutex<Vec<usize>>,
    is_stopped: AtomicBool,
}

impl PostingPool {
    pub(super) fn open(objects: Arc<Objects>) -> io::Result<Self> {
        // SAFETY: the call makes a new port, without a file handle or an existing port.
        let raw = unsafe { CreateIoCompletionPort(INVALID_HANDLE_VALUE, null_mut(), 0, 1) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above made this handle, and nothing else owns it.
        let port = Arc::new(unsafe { OwnedHandle::from_raw_handle(raw) });
        // Dropping it joins the threads that were started before one failed to start.
        let mut pool = Self { port, threads: Vec::new(), dequeued: VecDeque::new(), returned: Vec::new() };
        for first in (0..objects.len()).step_by(SHARE) {
            let end = objects.len().min(first + SHARE);
            let shared = Arc::new(Shared {
                objects: Arc::clone(&objects),
                port: Arc::clone(&pool.port),
                wake: Objects::open(1)?,
                unwatched: Mutex::new((first..end).collect()),
                is_stopped: AtomicBool::new(false),
            });
            shared.wake.signal(0)?;
            let thread_shared = Arc::clone(&shared);
            // A thread that fails cannot report it. Its objects then time out.
            let thread = spawn_small(move || drop(thread_shared.run_thread()))?;
            pool.threads.push((shared, thread));
        }
        Ok(pool)
    }

    fn next(&mut self, timeout_ms: u32) -> io::Result<Option<usize>> {
        for index in self.returned.drain(..) {
            let (shared, _) = &self.threads[index / SHARE];
            shared.unwatched.lock().push(index);
            shared.wake.signal(0)?;
        }
        if self.dequeued.is_empty() {
            self.dequeue(timeout_ms)?;
        }
        let found = self.dequeued.pop_front();
        self.returned.extend(found);
        Ok(found)
    }

    fn dequeue(&mut self, timeout_ms: u32) -> io::Result<()> {
        let mut entries = [OVERLAPPED_ENTRY::default(); 64];
        let len = entries.len() as u32;
        let port = self.port.as_raw_handle();
        let mut count = 0;
        // SAFETY: the port is open; `entries` has room for `len` entries and, like `count`, outlives
        // the call.
        let result = unsafe {
            GetQueuedCompletionStatusEx(port, entries.as_mut_ptr(), len, &mut count, timeout_ms, 0)
        };
        if result == 0 {
            let error = io::Error::last_os_error();
            let timed_out = error.raw_os_error() == Some(WAIT_TIMEOUT.cast_signed());
            return if timed_out { Ok(()) } else { Err(error) };
        }
        self.dequeued.extend(entries[..count as usize].iter().map(|entry| entry.lpCompletionKey));
        Ok(())
    }
}

impl WaitBaseline for PostingPool {
    fn wait(&mut self) -> io::Result<Option<usize>> {
        self.next(INFINITE)
    }

    fn poll(&mut self) -> io::Result<Option<usize>> {
        self.next(0)
    }
}

impl Drop for PostingPool {
    fn drop(&mut self) {
        for (shared, thread) in self.threads.drain(..) {
            shared.is_stopped.store(true, Ordering::Release);
            if shared.wake.signal(0).is_ok() {
                let _ = thread.join();
            }
        }
    }
}

impl Shared {
    /// Runs the thread until it is stopped.
    fn run_thread(&self) -> io::Result<()> {
        let mut list = List::new([self.wake.source(0)].into_iter());
        // The index of each object in the list, which has the event before them.
        let mut watched = Vec::new();
        loop {
            match list.wait()? {
                Some(0) => {
                    self.wake.reset(0)?;
                    if self.is_stopped.load(Ordering::Acquire) {
                        return Ok(());
                    }
                    for index in self.unwatched.lock().drain(..) {
                        list.push(self.objects.source(index));
                        watched.push(index);
                    }
                }
                Some(position) => {
                    list.swap_remove(position);
                    self.post(watched.swap_remove(position - 1))?;
                }
                None => {}
            }
        }
    }

    fn post(&self, index: usize) -> io::Result<()> {
        // SAFETY: the port is open, and gets an index and no pointer.
        check(unsafe { PostQueuedCompletionStatus(self.port.as_raw_handle(), 0, index, null()) })
    }
}
