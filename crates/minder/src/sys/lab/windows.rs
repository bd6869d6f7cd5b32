//! The clock of this process's CPU on Windows. There are no baselines yet, and so no objects.

#![expect(unsafe_code, reason = "GetProcessTimes fills structures that are handed to it")]

use std::convert::Infallible;
use std::io;
use std::os::windows::io::OwnedHandle;
use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, GetProcessTimes};

/// The CPU time of all threads of this process, those that ended included. Windows counts it in ticks of some
/// milliseconds.
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

/// Objects that one can signal, wait for and reset: none can be opened.
#[derive(Debug)]
pub(crate) struct Objects(Infallible);

impl Objects {
    pub(crate) const DESCRIPTORS: usize = 1;

    pub(crate) fn open(_count: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(crate) fn len(&self) -> usize {
        match self.0 {}
    }

    pub(crate) fn signal(&self, _index: usize) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn reset(&self, _index: usize) -> io::Result<()> {
        match self.0 {}
    }

    pub(crate) fn source(&self, _index: usize) -> &OwnedHandle {
        match self.0 {}
    }
}

/// No baselines.
pub(crate) mod wait {
    use std::fmt::Debug;
    use std::io;
    use std::sync::Arc;

    use super::Objects;

    pub(crate) trait Baseline: Debug {
        fn wait(&mut self) -> io::Result<Option<usize>>;
        fn resets(&self) -> bool;
    }

    type Open = fn(Arc<Objects>) -> io::Result<Box<dyn Baseline>>;

    pub(crate) const BASELINES: &[(&str, Open)] = &[];
}
