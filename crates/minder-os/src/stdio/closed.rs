//! Reports which standard streams were closed when the process started.
//!
//! Rust's runtime opens the null device in place of a closed stream before `main`. So a function
//! that the loader calls before the runtime starts, as it calls constructors of C++, looks at the
//! descriptors and changes nothing.
#![cfg_attr(unix, expect(unsafe_code, reason = "a function that runs before `main`, and fcntl of a number"))]

#[cfg(unix)]
pub(super) use self::unix::was_closed;

/// On Windows a missing stream is an error when it is used.
#[cfg(windows)]
pub(super) fn was_closed(_number: usize) -> bool {
    false
}

#[cfg(unix)]
mod unix {
    use std::sync::atomic::{AtomicU8, Ordering};

    /// One bit for each stream.
    static CLOSED: AtomicU8 = AtomicU8::new(0);

    // SAFETY: the section holds pointers to functions that the loader calls once, on the only thread,
    // when the C library is ready. This function allocates nothing, does not panic, and needs
    // nothing of Rust's runtime.
    #[used]
    #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
    #[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
    static CHECK: extern "C" fn() = check;

    extern "C" fn check() {
        for number in 0..3 {
            // SAFETY: asks for the flags of a descriptor number, which need not be open.
            if unsafe { libc::fcntl(number, libc::F_GETFD) } < 0 {
                CLOSED.fetch_or(1 << number, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether descriptor 0, 1 or 2 was closed.
    pub(in super::super) fn was_closed(number: usize) -> bool {
        // This reference makes the linker keep the entry of the table with this function.
        std::hint::black_box(&CHECK);
        CLOSED.load(Ordering::Relaxed) & (1 << number) != 0
    }
}
