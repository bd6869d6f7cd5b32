//! The timer of a port: a high-resolution waitable timer that posts to the port when a deadline has
//! passed.
//!
//! The time-out of a wait call itself ends with a tick of the operating system, up to 15.6 ms late.
//! A timer created with `CREATE_WAITABLE_TIMER_HIGH_RESOLUTION` (Windows 10, version 1803;
//! learn.microsoft.com, `CreateWaitableTimerExW`) does not depend on the tick and does not change
//! its rate. Older versions have only the time-out. The timer is a hint: the waiting thread
//! compares the clock with its deadline and waits again if the timer fired early or for another
//! wait.

#![expect(unsafe_code, reason = "waitable timers")]

use std::ffi::c_void;
use std::io;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::AtomicPtr;
use std::time::{Duration, Instant};

use minder_os::sync::Mutex;
use windows_sys::Win32::System::Threading::{
    CREATE_WAITABLE_TIMER_HIGH_RESOLUTION, CreateWaitableTimerExW, INFINITE, RegisterWaitForSingleObject,
    SetWaitableTimer, TIMER_ALL_ACCESS, UnregisterWaitEx, WT_EXECUTEINWAITTHREAD,
};

use super::callback::Callback;
use super::deferred_close::close;
use super::port_sender::{KEY_TIMER, PortSender};

/// The timer of a port. The first wait that has a deadline creates it.
#[derive(Debug, Default)]
pub(super) struct PortTimer(Mutex<State>);

#[derive(Debug, Default)]
enum State {
    #[default]
    Unknown,
    Absent,
    Present(Timer),
}

#[derive(Debug)]
struct Timer {
    wait: AtomicPtr<c_void>,
    timer: Arc<OwnedHandle>,
    _callback: Callback,
    /// The deadline that it is set to.
    deadline: Option<Instant>,
}

impl PortTimer {
    /// Sets the timer to this deadline, which is `left` from now. Of several waits, the one with
    /// the earliest deadline uses the timer. If another thread sets the timer at the same moment,
    /// that thread wins.
    pub(super) fn set(&self, sender: &Arc<PortSender>, deadline: Instant, left: Duration) {
        let Some(mut state) = self.0.try_lock() else { return };
        if matches!(*state, State::Unknown) {
            *state = Timer::open(sender).map_or(State::Absent, State::Present);
        }
        if let State::Present(timer) = &mut *state {
            timer.set(deadline, left);
        }
    }
}

impl Timer {
    fn open(sender: &Arc<PortSender>) -> io::Result<Self> {
        let flags = CREATE_WAITABLE_TIMER_HIGH_RESOLUTION;
        // SAFETY: no attributes, no name. Without the flag for manual reset, so that one wait takes its
        // signal.
        let raw = unsafe { CreateWaitableTimerExW(null(), null(), flags, TIMER_ALL_ACCESS) };
        if raw.is_null() {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the call above created the handle, and nothing else owns it.
        let timer = Arc::new(unsafe { OwnedHandle::from_raw_handle(raw) });
        let sender = Arc::clone(sender);
        // If the packet cannot be posted, the time-out of the wait call still ends the wait.
        let callback = Callback::new(move || drop(sender.send(KEY_TIMER, null())));
        let mut wait = null_mut();
        // SAFETY: the timer is open until the wait is unregistered; `expired` follows no pointer.
        let answer = unsafe {
            RegisterWaitForSingleObject(
                &mut wait,
                timer.as_raw_handle(),
                Some(expired),
                callback.context(),
                INFINITE,
                WT_EXECUTEINWAITTHREAD,
            )
        };
        if answer == 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self { wait: AtomicPtr::new(wait), timer, _callback: callback, deadline: None })
    }

    fn set(&mut self, deadline: Instant, left: Duration) {
        // The earlier deadline may have passed. The timer then has expired, or is about to.
        let now = deadline.checked_sub(left);
        let comes_first = |current: Instant| current <= deadline && now.is_some_and(|now| current > now);
        if self.deadline.is_some_and(comes_first) {
            return;
        }
        // Negative: from now on, in units of 100 ns.
        let due = -i64::try_from(left.as_nanos().div_ceil(100)).unwrap_or(i64::MAX);
        // SAFETY: the timer is open, and `due` outlives the call; no routine, no argument, no waking from
        // sleep.
        let answer = unsafe { SetWaitableTimer(self.timer.as_raw_handle(), &due, 0, None, null(), 0) };
        self.deadline = (answer != 0).then_some(deadline);
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        // SAFETY: the wait was registered by `open` and is unregistered only here.
        unsafe { UnregisterWaitEx(*self.wait.get_mut(), null_mut()) };
        close(Arc::clone(&self.timer));
    }
}

/// Runs on a thread of the operating system, each time the timer expires.
unsafe extern "system" fn expired(context: *mut c_void, _timed_out: bool) {
    Callback::run(context);
}
