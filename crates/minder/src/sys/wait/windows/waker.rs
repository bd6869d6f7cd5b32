//! A bell that ends a wait from any thread.

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

/// A bell that ends a wait from any thread. Rings are merged: many before one wait end it once.
#[derive(Debug)]
pub(crate) struct Waker {
    flag: WakeFlag,
    target: WakeTarget,
}

/// What is heard of a bell.
#[derive(Debug)]
enum WakeTarget {
    /// A packet without an operation, by the port.
    Port(Arc<PortSender>),
    /// An event that stays set, by a loop that is not ours.
    Event(OwnedHandle),
}

impl Waker {
    /// Makes a bell that belongs to no port.
    pub(crate) fn new() -> io::Result<Self> {
        // It stays set until it is hushed.
        Ok(Self { flag: WakeFlag::new(), target: WakeTarget::Event(event(true)?) })
    }

    /// Makes the bell of a port.
    pub(super) fn of_port(post: Arc<PortSender>) -> Self {
        Self { flag: WakeFlag::new(), target: WakeTarget::Port(post) }
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after
    /// that wait.
    pub(crate) fn wake(&self) -> io::Result<()> {
        self.flag.wake(WOKEN, || self.signal())
    }

    /// Makes the wait that goes on look again at what bounds it; it is not told to the caller.
    pub(crate) fn recheck(&self) -> io::Result<()> {
        self.flag.wake(RECHECK, || self.signal())
    }

    /// Makes it silent again. Call it before looking at what the ringers left; the port does so for
    /// its own bell.
    pub(crate) fn reset(&self) {
        self.flag.reset(|| self.clear_event());
    }

    /// Hushes it, and reports for which reasons it was rung.
    pub(super) fn take_wakes(&self, ready: &mut Vec<Ready>) {
        report_wakes(self.flag.reset(|| self.clear_event()), ready);
    }

    fn signal(&self) -> io::Result<()> {
        match &self.target {
            WakeTarget::Port(post) => post.send(KEY_WAKER, std::ptr::null()),
            WakeTarget::Event(event) => set_event(event),
        }
    }

    /// A packet is out of the queue by the time that it is heard.
    fn clear_event(&self) {
        if let WakeTarget::Event(event) = &self.target {
            // SAFETY: the event is open.
            unsafe { ResetEvent(event.as_raw_handle()) };
        }
    }

    /// The handle that is signalled from a ring until the bell is hushed, for a loop that is not
    /// ours. For the bell of a port that is the port, of which nothing of the kind is
    /// documented: make a bell for it.
    pub(crate) fn poll_handle(&self) -> BorrowedHandle<'_> {
        match &self.target {
            WakeTarget::Port(post) => post.as_handle(),
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
    fn a_bell_of_its_own_stays_set_until_it_is_hushed() {
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
