//! The CPU time of this process and of the calling thread on Windows.

#![expect(unsafe_code, reason = "GetProcessTimes and GetThreadTimes fill structures through pointers")]

use std::time::Duration;

use windows_sys::Win32::Foundation::FILETIME;
use windows_sys::Win32::System::Threading::{
    GetCurrentProcess, GetCurrentThread, GetProcessTimes, GetThreadTimes,
};

/// The resolution of CPU time: the tick of the system clock, 64 a second (Wine: 100).
///
/// `QueryProcessCycleTime` is finer, but its documentation forbids converting cycles to time.
pub(crate) const CPU_RESOLUTION: Duration = Duration::from_micros(15_625);

/// Returns the CPU time of all threads of this process, including those that have exited.
pub(crate) fn cpu_time() -> Duration {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the function takes nothing, and the handle that it returns needs no closing.
    let process = unsafe { GetCurrentProcess() };
    // SAFETY: the handle is always open, and the four structures outlive the call.
    let filled = unsafe { GetProcessTimes(process, &mut created, &mut exited, &mut kernel, &mut user) };
    if filled == 0 {
        return Duration::ZERO;
    }
    duration(kernel) + duration(user)
}

/// Returns the CPU time of the calling thread.
pub(crate) fn thread_cpu_time() -> Duration {
    let [mut created, mut exited, mut kernel, mut user] = [FILETIME::default(); 4];
    // SAFETY: the function takes nothing, and the handle that it returns needs no closing.
    let thread = unsafe { GetCurrentThread() };
    // SAFETY: the handle is always open, and the four structures outlive the call.
    let filled = unsafe { GetThreadTimes(thread, &mut created, &mut exited, &mut kernel, &mut user) };
    if filled == 0 {
        return Duration::ZERO;
    }
    duration(kernel) + duration(user)
}

fn duration(time: FILETIME) -> Duration {
    let ticks = u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime);
    Duration::from_nanos(ticks.saturating_mul(100))
}
