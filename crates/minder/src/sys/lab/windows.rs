//! The clock of this process's CPU on Windows, and events to wait for.

#![expect(unsafe_code, reason = "events, and GetProcessTimes, which fills structures that are handed to it")]

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle};
use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetProcessTimes, INFINITE, ResetEvent, SetEvent, WaitForSingleObject,
};

use crate::sys::event::event;
use crate::sys::last_error::done;

/// The steps in which the clock of the CPU goes on: those of the system's own clock, 64 a second
/// (Wine: 100). What counts cycles (`QueryProcessCycleTime`) is finer, and its page says that
/// cycles are not to be taken for time.
pub(crate) const TICK: Duration = Duration::from_micros(15_625);

/// At how many objects it is worth while to look: a call takes 64, one of which may have to call
/// back a thread.
pub(crate) const SIZES: &[u64] = &[0, 2, 32, 63, 64, 65, 256, 1024, 2048, 4096];

/// Whether this system is Wine: its library exports a function that says its version, and the real
/// one does not.
pub(crate) fn is_wine() -> bool {
    crate::sys::dynlib::wine().is_some()
}

/// The CPU time of all threads of this process, those that ended included, in steps of [`TICK`].
pub(crate) fn cpu_time() -> Duration {
    let zero = FILETIME { dwLowDateTime: 0, dwHighDateTime: 0 };
    let (mut begun, mut ended, mut kernel, mut user) = (zero, zero, zero, zero);
    // SAFETY: it takes nothing, and what it returns needs no closing.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is always open, and the four structures are ours to be written.
    let filled = unsafe { GetProcessTimes(process, &mut begun, &mut ended, &mut kernel, &mut user) };
    let time = |time: FILETIME| {
        let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
        Duration::from_nanos(ticks.saturating_mul(100))
    };
    if filled == 0 { Duration::ZERO } else { time(kernel) + time(user) }
}

/// Objects that one can signal, wait for and reset: events that stay set until they are reset, as a
/// process stays ended.
#[derive(Debug)]
pub(crate) struct Objects(Vec<OwnedHandle>);

impl Objects {
    /// How many handles one of them takes.
    pub(crate) const DESCRIPTORS: usize = 1;

    pub(crate) fn open(count: usize) -> io::Result<Self> {
        (0..count).map(|_| event(true)).collect::<io::Result<_>>().map(Self)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn signal(&self, index: usize) -> io::Result<()> {
        // SAFETY: the event is open.
        done(unsafe { SetEvent(self.0[index].as_raw_handle()) })
    }

    pub(crate) fn reset(&self, index: usize) -> io::Result<()> {
        // SAFETY: the event is open.
        done(unsafe { ResetEvent(self.0[index].as_raw_handle()) })
    }

    /// What a wait is satisfied by.
    pub(crate) fn source(&self, index: usize) -> &OwnedHandle {
        &self.0[index]
    }
}

/// Where one thread waits until another lets it through, once for each time that it is opened in
/// between: an event that a wait resets.
#[derive(Debug)]
pub(crate) struct Gate(OwnedHandle);

impl Gate {
    pub(crate) fn new() -> io::Result<Self> {
        event(false).map(Self)
    }

    pub(crate) fn open(&self) {
        // SAFETY: the event is open.
        unsafe { SetEvent(self.0.as_raw_handle()) };
    }

    pub(crate) fn pass(&self) {
        // SAFETY: the event is open.
        unsafe { WaitForSingleObject(self.0.as_raw_handle(), INFINITE) };
    }
}
