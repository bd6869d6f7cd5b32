//! The same on Windows, where Emacs watches no descriptors of ours, and no process has a group or a signal.
//!
//! It compiles. It was never run.
#![expect(unsafe_code, reason = "a descriptor of Emacs' C library")]

use std::ffi::{OsString, c_int};

/// The end of a pipe whose other end Emacs reads: a descriptor of the C library.
#[derive(Debug)]
pub(crate) struct Channel(c_int);

impl Channel {
    /// Takes over the result of `open_channel`.
    ///
    /// # Safety
    /// It is an open descriptor that belongs to the caller.
    pub(crate) unsafe fn adopt(descriptor: c_int) -> Self {
        Self(descriptor)
    }

    /// Writes one byte. Without effect if Emacs has closed its end.
    pub(crate) fn notify(&self) {
        // SAFETY: the descriptor is ours until the drop, and the buffer has one byte.
        let _ = unsafe { libc::write(self.0, b"!".as_ptr().cast(), 1) };
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        // SAFETY: the descriptor is ours, and is not used any more.
        let _ = unsafe { libc::close(self.0) };
    }
}

/// The limit that a child gets: there is none.
pub(crate) type Limit = ();

/// Calls `make`.
pub(crate) fn made_high<T>(make: impl FnOnce() -> T) -> (T, Limit) {
    (make(), ())
}

/// Does nothing.
pub(crate) fn restore_limit(_: u32, _: Limit) {}

/// Does nothing.
pub(crate) fn prepare_terminal(_: u32) {}

/// Does nothing.
pub(crate) fn block_signals() {}

/// Fails: there are no signals.
pub(crate) fn send_to_group(_: u32, _: i32) -> std::io::Result<bool> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Returns bytes as a string of the system.
pub(crate) fn os_string(bytes: Vec<u8>) -> OsString {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned().into(),
    }
}
