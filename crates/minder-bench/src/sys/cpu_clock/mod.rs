//! The CPU clocks of this process and of the calling thread.

#[cfg(all(unix, not(any(target_os = "netbsd", target_os = "openbsd"))))]
mod posix;
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
mod rusage;
#[cfg(windows)]
mod windows;

#[cfg(all(unix, not(any(target_os = "netbsd", target_os = "openbsd"))))]
pub(crate) use self::posix::{CPU_RESOLUTION, cpu_time, thread_cpu_time};
#[cfg(any(target_os = "netbsd", target_os = "openbsd"))]
pub(crate) use self::rusage::{CPU_RESOLUTION, cpu_time, thread_cpu_time};
#[cfg(windows)]
pub(crate) use self::windows::{CPU_RESOLUTION, cpu_time, thread_cpu_time};
