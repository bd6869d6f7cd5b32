//! The signal mask of one thread.

#![expect(unsafe_code, reason = "the signal mask of this thread")]

use std::io;
use std::mem::MaybeUninit;
use std::thread::{Builder, JoinHandle};

use super::stack::SMALL_STACK;

/// Starts a thread that takes no signals, so that the operating system hands those of the process to threads
/// of the host: a handler of the host must not run where the host does not expect it. Children
/// start without blocked signals whatever the mask.
///
/// A mask is inherited, so it is set here for the moment of `start`: set in the new thread it would
/// come too late for a signal that comes first.
pub(crate) fn without_signals<T>(start: impl FnOnce() -> T) -> T {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset initialises what it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: the set was initialised by the line above, and `before` is ours to be written; only this
    // thread's mask changes.
    let blocked = unsafe { libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr()) } == 0;
    let result = start();
    if blocked {
        // SAFETY: the call that succeeded filled `before`; the old mask is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    }
    result
}

/// Starts a thread that does next to nothing: it has a small stack, and takes none of the host's
/// signals.
pub(crate) fn start_small(name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let builder = Builder::new().name(name.to_owned()).stack_size(SMALL_STACK);
    without_signals(|| builder.spawn(run))
}
