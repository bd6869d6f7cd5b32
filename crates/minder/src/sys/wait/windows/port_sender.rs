//! The sending half of a completion port: posts packets, wakes and timer expirations.

#![expect(unsafe_code, reason = "posting to a completion port, setting an event")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::System::IO::{OVERLAPPED, PostQueuedCompletionStatus};
use windows_sys::Win32::System::Threading::SetEvent;

/// The completion key of a packet: the pointer of the entry is an `OVERLAPPED`.
pub(super) const KEY_PACKET: usize = 1;
/// The completion key of the waker.
pub(super) const KEY_WAKER: usize = 2;
/// The completion key of the timer: the wait compares its deadline with the clock.
pub(super) const KEY_TIMER: usize = 3;

/// The sending half of a completion port.
#[derive(Debug)]
pub(super) struct PortSender {
    port: OwnedHandle,
    /// The number of posted packets in the port. Valid until a handle or job is associated.
    posted: AtomicUsize,
    /// `true` once a handle was associated, so that the kernel queues packets by itself.
    associated: AtomicBool,
    /// `true` if a thread waits for the event in addition to the port, and must be woken by it.
    has_event_waiter: AtomicBool,
    event: OnceLock<Arc<OwnedHandle>>,
}

impl PortSender {
    /// Wraps a new completion port with which no handle is associated.
    pub(super) fn new(port: OwnedHandle) -> Self {
        Self {
            port,
            posted: AtomicUsize::new(0),
            associated: AtomicBool::new(false),
            has_event_waiter: AtomicBool::new(false),
            event: OnceLock::new(),
        }
    }

    pub(super) fn send(&self, key: usize, overlapped: *const OVERLAPPED) -> io::Result<()> {
        self.posted.fetch_add(1, Ordering::SeqCst);
        // SAFETY: the port is open. The pointer is passed through unchanged: null, or a reference that
        // `dequeue` takes back.
        let answer = unsafe { PostQueuedCompletionStatus(self.port.as_raw_handle(), 0, key, overlapped) };
        if answer == 0 {
            let error = io::Error::last_os_error();
            self.posted.fetch_sub(1, Ordering::SeqCst);
            return Err(error);
        }
        // This thread writes `posted` and then reads `has_event_waiter`. The thread that waits in
        // addition to the port writes `has_event_waiter` and then reads `posted`. With sequential
        // consistency at least one of them sees the other's store, so no packet is missed.
        self.signal_event();
        Ok(())
    }

    /// Returns the port's handle for calls on the port itself.
    pub(super) fn as_raw_handle(&self) -> HANDLE {
        self.port.as_raw_handle()
    }

    /// Records that the kernel queues packets by itself from now on, so that `posted` no longer
    /// counts everything in the port.
    pub(super) fn set_associated(&self) {
        self.associated.store(true, Ordering::SeqCst);
        self.signal_event();
    }

    pub(super) fn is_associated(&self) -> bool {
        self.associated.load(Ordering::SeqCst)
    }

    /// Returns whether posted packets wait in the port. Valid while the port is not associated.
    pub(super) fn has_posted(&self) -> bool {
        self.posted.load(Ordering::SeqCst) > 0
    }

    /// Subtracts packets that were taken out of the port. After an association the count is unused,
    /// because it would miss what the kernel queues.
    pub(super) fn subtract_posted(&self, count: usize) {
        if !self.is_associated() {
            self.posted.fetch_sub(count, Ordering::SeqCst);
        }
    }

    /// Makes every sender set `event` as well, because a thread waits for that event in addition to
    /// the port. The event is the same in every call.
    pub(super) fn set_event_waiter(&self, event: &Arc<OwnedHandle>) {
        self.event.get_or_init(|| Arc::clone(event));
        self.has_event_waiter.store(true, Ordering::SeqCst);
    }

    /// Ends the effect of [`set_event_waiter`](Self::set_event_waiter).
    pub(super) fn clear_event_waiter(&self) {
        self.has_event_waiter.store(false, Ordering::SeqCst);
    }

    /// Sets the event if a thread waits for it in addition to the port.
    fn signal_event(&self) {
        if self.has_event_waiter.load(Ordering::SeqCst)
            && let Some(event) = self.event.get()
        {
            // SAFETY: the event is open.
            unsafe { SetEvent(event.as_raw_handle()) };
        }
    }
}

impl AsHandle for PortSender {
    fn as_handle(&self) -> BorrowedHandle<'_> {
        self.port.as_handle()
    }
}
