//! A waker that ends a wait from any thread.

#![expect(unsafe_code, reason = "events")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::System::Threading::{ResetEvent, SetEvent};

use super::port_sender::{KEY_WAKER, PortSender};
use crate::sys::event::event;
use crate::sys::last_error::done;
use crate::sys::wait::types::Ready;
use crate::sys::wait::wake_flag::{RECHECK, WOKEN, WakeFlag, report_wakes};

/// Ends a wait from any thread. Wake-ups are merged: several before one wait end it once.
#[derive(Debug)]
pub(crate) struct Waker {
    flag: WakeFlag,
    target: WakeTarget,
}

/// The kernel object that a wake-up signals.
#[derive(Debug)]
enum WakeTarget {
    /// A packet without an operation, posted to the port.
    Port(Arc<PortSender>),
    /// An event that stays set, for a foreign loop.
    Event(OwnedHandle),
}

impl Waker {
    /// Creates a waker that belongs to no port.
    pub(crate) fn new() -> io::Result<Self> {
        // The event stays set until the reset.
        Ok(Self { flag: WakeFlag::new(), target: WakeTarget::Event(event(true)?) })
    }

    /// Creates the waker of a port.
    pub(super) fn of_port(sender: Arc<PortSender>) -> Self {
        Self { flag: WakeFlag::new(), target: WakeTarget::Port(sender) }
    }

    /// Ends the running wait, or else the next one. The thread that waits sees everything that was
    /// written before this call.
    pub(crate) fn wake(&self) -> io::Result<()> {
        self.flag.wake(WOKEN, || self.signal())
    }

    /// Makes the running wait compute its deadline again. The caller of the wait gets no report.
    pub(crate) fn recheck(&self) -> io::Result<()> {
        self.flag.wake(RECHECK, || self.signal())
    }

    /// Clears the waker. Call it before reading the data that the waking threads have stored. The
    /// port does so for its own waker.
    pub(crate) fn reset(&self) {
        self.flag.reset(|| self.clear_event());
    }

    /// Clears the waker and reports the reasons of the wake-ups.
    pub(super) fn take_wakes(&self, ready: &mut Vec<Ready>) {
        report_wakes(self.flag.reset(|| self.clear_event()), ready);
    }

    fn signal(&self) -> io::Result<()> {
        match &self.target {
            WakeTarget::Port(sender) => sender.send(KEY_WAKER, std::ptr::null()),
            WakeTarget::Event(event) => set_event(event),
        }
    }

    /// Clears the event. A packet has already left the port when it is reported.
    fn clear_event(&self) {
        if let WakeTarget::Event(event) = &self.target {
            // SAFETY: the event is open.
            unsafe { ResetEvent(event.as_raw_handle()) };
        }
    }

    /// Returns the handle that is signalled from a wake-up until the reset, for a foreign loop. For
    /// the waker of a port this is the port's handle, and waiting for it is not documented: create
    /// a separate waker instead.
    pub(crate) fn poll_handle(&self) -> BorrowedHandle<'_> {
        match &self.target {
            WakeTarget::Port(sender) => sender.as_handle(),
            WakeTarget::Event(event) => event.as_handle(),
        }
    }
}

fn set_event(event: &OwnedHandle) -> io::Result<()> {
    // SAFETY: the event is open.
    let answer = unsafe { SetEvent(event.as_raw_handle()) };
    done(answer)
}

#[cfg(test)]
mod tests {
    use windows_sys::Win32::Foundation::WAIT_OBJECT_0;
    use windows_sys::Win32::System::Threading::WaitForSingleObject;

    use super::*;

    #[test]
    fn waker_without_port_stays_set_until_reset() {
        let waker = Waker::new().unwrap();
        // SAFETY: the event is open, and the call does not wait.
        let is_set =
            || unsafe { WaitForSingleObject(waker.poll_handle().as_raw_handle(), 0) } == WAIT_OBJECT_0;
        assert!(!is_set());
        waker.wake().unwrap();
        assert!(is_set() && is_set());
        waker.reset();
        assert!(!is_set());
        waker.wake().unwrap();
        assert!(is_set());
    }
}
