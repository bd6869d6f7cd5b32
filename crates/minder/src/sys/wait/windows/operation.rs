//! A packet of the completion port: an `OVERLAPPED`, the token of its report, and the memory of its
//! operation.

#![expect(unsafe_code, reason = "packets that the kernel holds")]

use std::cell::UnsafeCell;
use std::fmt::{self, Debug};
use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minder_os::sync::{Mutex, MutexGuard};
use windows_sys::Win32::System::IO::{CancelIoEx, GetOverlappedResult, OVERLAPPED};

use crate::sys::wait::RECHECK_TOKEN;

/// The state of an operation after its start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Submission {
    /// The packet arrives from the port when the operation has finished.
    Pending,
    /// The operation has finished successfully, and no packet arrives.
    Completed,
}

/// A packet of the completion port.
///
/// `overlapped` belongs to the kernel while the packet is in flight, and to its one endpoint
/// otherwise. `in_flight` decides between the two: the swap in [`begin`](Self::begin) lets one
/// thread through, and [`complete`](Self::complete) stores `false` with release ordering after the
/// kernel's last write. All other fields may be used by any thread at any time;
/// `CompletionPort::submit` defines the rules for the bytes.
#[repr(C)]
pub(crate) struct Operation {
    overlapped: UnsafeCell<OVERLAPPED>,
    in_flight: AtomicBool,
    /// [`NO_TOKEN`] if the completion is not reported.
    token: AtomicU64,
    data: Mutex<OperationData>,
}

/// The memory of an operation while it runs.
#[derive(Debug, Default)]
pub(crate) struct OperationData {
    /// Bytes that the kernel reads while the packet is in flight. They must not change then.
    pub(crate) bytes: Vec<u8>,
    /// Memory that the kernel reads and writes while the packet is in flight.
    pub(super) buffer: Vec<u64>,
    /// The handle of an operation that outlives its endpoint.
    handle: Option<Arc<OwnedHandle>>,
}

const NO_TOKEN: u64 = RECHECK_TOKEN - 1;

// SAFETY: of its parts only `overlapped` is not `Send`, for the pointers in it: they are null, or
// an offset of zero. Nothing in it depends on the thread.
unsafe impl Send for Operation {}
// SAFETY: of its parts only `overlapped` is not `Sync`. It is written by `begin` alone, whose swap
// of `in_flight` lets one thread through and keeps it from running while the kernel has it; the
// kernel itself accesses it through a raw pointer.
unsafe impl Sync for Operation {}

impl Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation")
            .field("in_flight", &self.in_flight)
            .field("token", &self.token)
            .finish_non_exhaustive()
    }
}

impl Operation {
    /// Creates a packet whose completion is not reported.
    pub(crate) fn new() -> Arc<Self> {
        const { assert!(std::mem::offset_of!(Operation, overlapped) == 0) };
        Arc::new(Self {
            overlapped: UnsafeCell::new(OVERLAPPED::default()),
            in_flight: AtomicBool::new(false),
            token: AtomicU64::new(NO_TOKEN),
            data: Mutex::default(),
        })
    }

    /// Turns one reference into the pointer for the kernel. Returns `None` if the packet is already
    /// in flight.
    pub(super) fn begin(self: &Arc<Self>) -> Option<*mut OVERLAPPED> {
        if self.in_flight.swap(true, Ordering::AcqRel) {
            return None;
        }
        // SAFETY: `in_flight` was false, so that neither the kernel nor another thread uses the
        // structure,
        // and this thread has just set it.
        unsafe { *self.overlapped.get() = OVERLAPPED::default() };
        // The structure is the first field, so that its address is the packet's.
        Some(Arc::into_raw(Arc::clone(self)).cast_mut().cast())
    }

    /// Turns the pointer into a reference again: the operation has finished, or did not begin.
    ///
    /// # Safety
    /// The pointer was returned by [`begin`](Self::begin), and comes back once.
    pub(super) unsafe fn complete(overlapped: *mut OVERLAPPED) -> Arc<Self> {
        // SAFETY: the caller guarantees it.
        let packet = unsafe { Arc::from_raw(overlapped.cast::<Self>().cast_const()) };
        packet.in_flight.store(false, Ordering::Release);
        packet
    }

    /// Reports completions with this token from now on.
    pub(crate) fn set_token(&self, token: u64) {
        debug_assert!(token < NO_TOKEN);
        self.token.store(token, Ordering::Release);
    }

    /// Stops reporting completions, including that of a packet in flight.
    pub(crate) fn suppress(&self) {
        self.token.store(NO_TOKEN, Ordering::Release);
    }

    pub(super) fn token(&self) -> Option<u64> {
        Some(self.token.load(Ordering::Acquire)).filter(|&token| token != NO_TOKEN)
    }

    /// Returns whether the kernel holds the packet. The operation may have finished, with its
    /// packet still in the port.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.load(Ordering::Acquire)
    }

    pub(crate) fn data(&self) -> MutexGuard<'_, OperationData> {
        self.data.lock()
    }

    /// Cancels the operation if it is still running. The packet completes in both cases.
    pub(crate) fn cancel(&self, handle: &OwnedHandle) {
        // An error means that there was nothing to cancel, or that nothing can be done.
        // SAFETY: the handle is open; the pointer is compared with those of operations and not
        // dereferenced.
        unsafe { CancelIoEx(handle.as_raw_handle(), self.overlapped.get()) };
    }

    /// Keeps the handle of an operation that outlives its endpoint, until it completes.
    pub(super) fn keep(&self, handle: Arc<OwnedHandle>) {
        self.data().handle = Some(handle);
    }

    /// Cancels the operation on the handle that was kept.
    pub(super) fn cancel_kept(&self) {
        if let Some(handle) = &self.data().handle {
            self.cancel(handle);
        }
    }

    /// Returns the number of bytes that the completed operation on `handle` transferred, or its
    /// error.
    pub(crate) fn result(&self, handle: &OwnedHandle) -> io::Result<u32> {
        assert!(!self.is_in_flight(), "the result exists once the packet has completed");
        let mut count = 0;
        // SAFETY: the packet is not in flight, so the kernel does not write to the structure, and
        // its only endpoint is this caller. The call does not wait and only reads.
        let answer =
            unsafe { GetOverlappedResult(handle.as_raw_handle(), self.overlapped.get(), &mut count, 0) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(count) }
    }
}
