//! Tells whether this process was forked since a handle was made.
//!
//! A forked process shares the kernel objects of its parent, and has none of its threads. To find out
//! by getpid(2) takes a system call for each use of a handle. On Linux a page that the kernel clears in
//! a forked process tells it by one load.
#![cfg_attr(target_os = "linux", expect(unsafe_code, reason = "a mapping that the kernel clears"))]

/// The process in which a handle was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin(u64);

impl Origin {
    /// Returns the present process.
    pub(crate) fn here() -> Self {
        Self(number())
    }

    /// Returns whether this process is a forked one.
    pub(crate) fn is_left(self) -> bool {
        self != Self::here()
    }
}

#[cfg(target_os = "linux")]
fn number() -> u64 {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A page that is zero in a forked process; `None` before Linux 4.14.
    static PAGE: OnceLock<Option<&'static AtomicU64>> = OnceLock::new();
    /// The number of this process: that of its parent, plus one.
    static NUMBER: AtomicU64 = AtomicU64::new(0);

    let Some(page) = PAGE.get_or_init(cleared_page) else { return u64::from(std::process::id()) };
    match page.load(Ordering::Acquire) {
        0 => {
            // Threads that come here at the same time agree on the number that is stored first.
            let number = NUMBER.fetch_add(1, Ordering::Relaxed) + 1;
            match page.compare_exchange(0, number, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => number,
                Err(stored) => stored,
            }
        }
        number => number,
    }
}

/// Maps a page that is zero in every forked process. It is never unmapped.
#[cfg(target_os = "linux")]
fn cleared_page() -> Option<&'static std::sync::atomic::AtomicU64> {
    use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous};

    const SIZE: usize = 4096;
    let flags = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: a new private mapping at an address that the kernel chooses overlaps nothing.
    let page = unsafe { mmap_anonymous(std::ptr::null_mut(), SIZE, flags, MapFlags::PRIVATE) }.ok()?;
    // SAFETY: the range is the mapping, and nothing refers to its contents yet.
    unsafe { madvise(page, SIZE, Advice::LinuxWipeOnFork) }.ok()?;
    // SAFETY: the mapping is aligned, readable, writable and zero, and stays until the process ends.
    Some(unsafe { &*page.cast() })
}

#[cfg(not(target_os = "linux"))]
fn number() -> u64 {
    u64::from(std::process::id())
}
