//! The time for which the main thread of a child ran, and the time for which it waited for a
//! processor (`/proc/PID/schedstat`, Documentation/scheduler/sched-stats.rst).
//!
//! The kernel keeps the file until the process is reaped: a zombie still has it. The file of a
//! process is that of its main thread.

use crate::exit_status::ThreadTimes;

/// Reads the times of a child that has exited and is not reaped. Returns `None` where the operating
/// system does not tell them.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn main_thread_times(pid: u32) -> Option<ThreadTimes> {
    use rustix::fs::{Mode, OFlags};
    use std::ffi::CStr;
    use std::io::Write;
    if super::why_no_table().is_some() {
        return None;
    }
    // One open, one read of at most three numbers, one close, and no allocation.
    let mut path = [0; 32];
    write!(&mut path[..], "/proc/{pid}/schedstat").ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    let file = rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut buffer = [0; 96];
    let len = rustix::io::read(file, &mut buffer).ok()?;
    parse(&buffer[..len])
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn main_thread_times(_pid: u32) -> Option<ThreadTimes> {
    None
}

/// Parses nanoseconds on a processor, nanoseconds in its run queue, and the number of times that
/// the thread got a processor. That is 0 if the kernel does not count (without
/// `CONFIG_SCHED_INFO`): every child has run.
#[cfg_attr(not(any(target_os = "linux", target_os = "android")), expect(dead_code, reason = "as above"))]
fn parse(text: &[u8]) -> Option<ThreadTimes> {
    use std::time::Duration;
    let mut numbers = str::from_utf8(text).ok()?.split_ascii_whitespace().map(str::parse::<u64>);
    let (Some(Ok(running)), Some(Ok(ready)), Some(Ok(turns))) =
        (numbers.next(), numbers.next(), numbers.next())
    else {
        return None;
    };
    (turns > 0)
        .then(|| ThreadTimes { running: Duration::from_nanos(running), ready: Duration::from_nanos(ready) })
}

#[cfg(all(test, any(target_os = "linux", target_os = "android")))]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn parse_refuses_what_is_not_counted() {
        let times = ThreadTimes { running: Duration::from_nanos(302), ready: Duration::from_nanos(89) };
        assert_eq!(parse(b"302 89 11\n"), Some(times));
        assert_eq!(parse(b"0 0 0\n"), None);
        assert_eq!(parse(b"302 89\n"), None);
        assert_eq!(parse(b""), None);
    }
}
