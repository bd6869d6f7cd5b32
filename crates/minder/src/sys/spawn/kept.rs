//! Descriptors above the standard streams that are open here and that execve does not close.
//!
//! A shell leaves such descriptors open for its children: `3>file`, `exec 9>lock`, `<(command)`.
//! execve closes everything that Rust's `std` and this crate open. So the close-on-exec flag tells
//! the two kinds apart.

#![expect(unsafe_code, reason = "descriptors that are known by their number only")]

use std::os::fd::{BorrowedFd, RawFd};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};

/// The most numbers that are looked at where the operating system lists no descriptors: 10 ms.
const LOOKED_AT_MAX: RawFd = 65_536;

/// Returns the numbers from 3 upwards, sorted.
pub(crate) fn inherited() -> Vec<RawFd> {
    let mut found: Vec<RawFd> = match listed() {
        Some(listed) => listed.into_iter().filter(|&number| number > 2 && is_inheritable(number)).collect(),
        None => (3..LOOKED_AT_MAX.min(limit())).filter(|&number| is_inheritable(number)).collect(),
    };
    found.sort_unstable();
    found
}

/// Marks a descriptor so that execve closes it.
pub(crate) fn close_on_exec(number: RawFd) {
    // It fails for a number that is not open, which then needs no mark.
    let _ = fcntl_setfd(borrow(number), FdFlags::CLOEXEC);
}

/// Returns the descriptors that the operating system lists, that of the list itself among them.
fn listed() -> Option<Vec<RawFd>> {
    // Other systems have a directory that lists the first three only.
    let dir = if cfg!(any(target_os = "linux", target_os = "android")) {
        "/proc/self/fd"
    } else if cfg!(target_vendor = "apple") {
        "/dev/fd"
    } else {
        return None;
    };
    let names = std::fs::read_dir(dir).ok()?;
    names.map(|name| Some(name.ok()?.file_name().to_str()?.parse().unwrap_or(-1))).collect()
}

/// Returns the first number that is not given out.
pub(super) fn limit() -> RawFd {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.and_then(|limit| RawFd::try_from(limit).ok()).unwrap_or(RawFd::MAX)
}

fn is_inheritable(number: RawFd) -> bool {
    fcntl_getfd(borrow(number)).is_ok_and(|flags| !flags.contains(FdFlags::CLOEXEC))
}

fn borrow(number: RawFd) -> BorrowedFd<'static> {
    // SAFETY: no caller passes -1, and none keeps the borrow beyond one call of fcntl, which refuses a
    // number that is not open. It reads or sets a flag of the number and does not touch what is
    // open behind it.
    unsafe { BorrowedFd::borrow_raw(number) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    #[test]
    fn inherited_lists_only_descriptors_without_cloexec() {
        let (reads, writes) = std::io::pipe().expect("create pipe");
        // Tests that run at the same time use lower descriptors.
        let high = rustix::io::fcntl_dupfd_cloexec(&writes, 700).expect("duplicate descriptor");
        let number = high.as_raw_fd();
        assert!(!inherited().contains(&number) && !inherited().contains(&reads.as_raw_fd()));
        fcntl_setfd(&high, FdFlags::empty()).expect("clear close-on-exec");
        assert!(inherited().contains(&number));
        close_on_exec(number);
        assert!(!inherited().contains(&number));
    }
}
