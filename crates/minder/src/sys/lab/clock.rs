//! The clock of this process's CPU on Windows.

#![expect(unsafe_code, reason = "GetProcessTimes fills structures that are handed to it")]

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
