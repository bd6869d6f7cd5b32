//! Threads that block all signals.

#![expect(unsafe_code, reason = "the signal mask of this thread")]

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

/// The stack of a thread that does little, in bytes.
const SMALL_STACK: usize = 64 << 10;

/// Starts a thread with a small stack that blocks all signals, so that the kernel delivers those of
/// the process to other threads.
///
/// A thread inherits the mask of its creator. This function therefore blocks the signals of the
/// calling thread while it starts the new one: blocking them in the new thread would be too late
/// for a signal that arrives before.
pub(crate) fn spawn_small(run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises the set.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the line above initialised `all`, and `before` outlives the call. Only the mask of this
    // thread changes.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) } == 0;
    let thread = Builder::new().name("bench".to_owned()).stack_size(SMALL_STACK).spawn(run);
    if blocked {
        // SAFETY: the call that succeeded filled `before`; a null pointer asks for no previous mask.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    thread
}
