//! A bell that ends a wait from any thread.

#![expect(unsafe_code, reason = "events")]

use std::io;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, OwnedHandle};
use std::sync::Arc;

use windows_sys::Win32::System::Threading::{ResetEvent, SetEvent};

use super::queue::{KEY_DOORBELL, Post};
use crate::sys::answer::done;
use crate::sys::event::event;
use crate::sys::wait::bell::{Bell, NUDGED, WOKEN};
use crate::sys::wait::{Ready, report_rings};

/// A bell that ends a wait from any thread. Rings are merged: many before one wait end it once.
#[derive(Debug)]
pub(crate) struct Doorbell {
    bell: Bell,
    chime: Chime,
}

/// What is heard of a bell.
#[derive(Debug)]
enum Chime {
    /// A packet without an operation, by the port.
    Port(Arc<Post>),
    /// An event that stays set, by a loop that is not ours.
    Event(OwnedHandle),
}

impl Doorbell {
    /// Makes a bell that belongs to no port.
    pub(crate) fn new() -> io::Result<Self> {
        // It stays set until it is hushed.
        Ok(Self { bell: Bell::new(), chime: Chime::Event(event(true)?) })
    }

    /// Makes the bell of a port.
    pub(super) fn of_port(post: Arc<Post>) -> Self {
        Self { bell: Bell::new(), chime: Chime::Port(post) }
    }

    /// Ends the wait that goes on, or else the next one. What was written before this is seen after
    /// that wait.
    pub(crate) fn ring(&self) -> io::Result<()> {
        self.bell.ring(WOKEN, || self.signal())
    }

    /// Makes the wait that goes on look again at what bounds it; it is not told to the caller.
    pub(crate) fn nudge(&self) -> io::Result<()> {
        self.bell.ring(NUDGED, || self.signal())
    }

    /// Makes it silent again. Call it before looking at what the ringers left; the port does so for
    /// its own bell.
    pub(crate) fn hush(&self) {
        self.bell.hush(|| self.empty());
    }

    /// Hushes it, and reports for which reasons it was rung.
    pub(super) fn answer(&self, ready: &mut Vec<Ready>) {
        report_rings(self.bell.hush(|| self.empty()), ready);
    }

    fn signal(&self) -> io::Result<()> {
        match &self.chime {
            Chime::Port(post) => post.send(KEY_DOORBELL, std::ptr::null()),
            Chime::Event(event) => set_event(event),
        }
    }

    /// A packet is out of the queue by the time that it is heard.
    fn empty(&self) {
        if let Chime::Event(event) = &self.chime {
            // SAFETY: the event is open.
            unsafe { ResetEvent(event.as_raw_handle()) };
        }
    }

    /// The handle that is signalled from a ring until the bell is hushed, for a loop that is not
    /// ours. For the bell of a port that is the port, of which nothing of the kind is
    /// documented: make a bell for it.
    pub(crate) fn news(&self) -> BorrowedHandle<'_> {
        match &self.chime {
            Chime::Port(post) => post.as_handle(),
            Chime::Event(event) => event.as_handle(),
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
        let bell = Doorbell::new().unwrap();
        // SAFETY: the event is open, and the call does not wait.
        let is_set = || unsafe { WaitForSingleObject(bell.news().as_raw_handle(), 0) } == WAIT_OBJECT_0;
        assert!(!is_set());
        bell.ring().unwrap();
        assert!(is_set() && is_set());
        bell.hush();
        assert!(!is_set());
        bell.ring().unwrap();
        assert!(is_set());
    }
}
