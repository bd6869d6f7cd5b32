//! Which standard streams were closed when the process began.
//!
//! Rust's runtime opens the null device in the place of each, before `main`, so the question has to be asked before that: by
//! a function that the loader calls, as it calls constructors of C++. It only looks.
#![cfg_attr(unix, expect(unsafe_code, reason = "a function that runs before `main`, and fcntl of a number"))]

#[cfg(unix)]
pub(crate) use self::unix::was_closed;

/// Here a stream that is missing is seen when it is used.
#[cfg(windows)]
pub(crate) fn was_closed(_number: usize) -> bool {
    false
}

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// One bit a stream.
    static CLOSED: AtomicU8 = AtomicU8::new(0);

    // SAFETY: the section holds pointers to functions that the loader calls once, on the only thread, with the C library
    // ready. This one allocates nothing, does not panic, and needs nothing of Rust's runtime.
    #[used]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    static LOOK: extern "C" fn() = look;

    extern "C" fn look() {
        for number in 0..3 {
            // SAFETY: asks for the flags of a number, which need not be open.
            if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
                CLOSED.fetch_or(1 << number, Ordering::Relaxed);
            }
        }
    }

    /// Whether descriptor 0, 1 or 2 was closed.
    pub(crate) fn was_closed(number: usize) -> bool {
        // Named here, so that whatever links this function links the table's entry, too.
        std::hint::black_box(&LOOK);
        CLOSED.load(Ordering::Relaxed) & (1 << number) != 0
    }
}
