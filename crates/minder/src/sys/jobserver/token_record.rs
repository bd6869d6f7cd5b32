//! The record of the tokens that this process holds, in memory that it shares with its guardians. They
//! release the tokens if the process is killed.
#![expect(unsafe_code, reason = "shared memory")]

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

/// The number of held tokens of each kind. A token is a byte, and the same byte has to be returned.
#[derive(Debug)]
pub(super) struct TokenRecord([AtomicU32; 256]);

impl TokenRecord {
    /// Maps counters that this process shares with every process forked from now on. They are never
    /// unmapped: these processes use them until they exit.
    pub(super) fn new() -> io::Result<&'static TokenRecord> {
        let read_write = libc::PROT_READ | libc::PROT_WRITE;
        let shared = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
        // SAFETY: a new anonymous mapping, placed by the kernel, touches no memory that exists.
        let page =
            unsafe { libc::mmap(ptr::null_mut(), size_of::<TokenRecord>(), read_write, shared, -1, 0) };
        if page == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: page-aligned, zeroed, never unmapped, and all of it is atomics, for which all-zero is
        // valid.
        Ok(unsafe { &*page.cast::<TokenRecord>() })
    }

    /// Records a token that was just taken. A kill between the two steps loses it: the kernel has
    /// no call for both.
    pub(super) fn add(&self, token: u8) {
        self.0[usize::from(token)].fetch_add(1, SeqCst);
    }

    /// Records that a token is about to be returned. Returns false if [`HeldTokens::release_all`] has already
    /// returned it.
    ///
    /// The record comes first: a kill in between loses the token. The other order would duplicate
    /// it, and more jobs would run than the build allows.
    pub(super) fn remove(&self, token: u8) -> bool {
        let count = &self.0[usize::from(token)];
        count.fetch_update(SeqCst, SeqCst, |count| count.checked_sub(1)).is_ok()
    }
}

/// The tokens that this process holds, for another process to release if this one is killed.
#[derive(Debug)]
pub(crate) struct HeldTokens {
    writes: OwnedFd,
    record: &'static TokenRecord,
}

impl HeldTokens {
    pub(super) fn new(writes: OwnedFd, record: &'static TokenRecord) -> Self {
        Self { writes, record }
    }

    /// Returns the descriptor that a guardian has to keep open.
    pub(crate) fn fd(&self) -> RawFd {
        self.writes.as_raw_fd()
    }

    /// Returns all held tokens to the pipe. Each is returned once, even if several processes call
    /// this.
    pub(crate) fn release_all(&self) {
        for (token, count) in (0_u8..=255).zip(&self.record.0) {
            for _ in 0..count.swap(0, SeqCst) {
                // The pipe has room for all tokens of the build. An error means that the build has
                // exited.
                let _ = rustix::io::retry_on_intr(|| rustix::io::write(&self.writes, &[token]));
            }
        }
    }
}
