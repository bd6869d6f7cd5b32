//! Reports whether SIGPIPE was ignored when the process started.
//!
//! Rust's runtime ignores the signal before `main`. So a function that the loader calls before the
//! runtime starts, as it calls constructors of C++, looks at it and changes nothing.

#![expect(unsafe_code, reason = "a function that runs before `main`, and sigaction")]

use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, Ordering};

static IGNORED: AtomicBool = AtomicBool::new(false);

// SAFETY: the section holds pointers to functions that the loader calls once, on the only thread,
// when the C library is ready. This function allocates nothing, does not panic, and needs nothing
// of Rust's runtime.
#[used]
#[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__mod_init_func"))]
#[cfg_attr(not(target_vendor = "apple"), unsafe(link_section = ".init_array"))]
static CHECK: extern "C" fn() = check;

extern "C" fn check() {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: the call changes nothing, and `action` has room for the answer.
    let asked = unsafe { libc::sigaction(libc::SIGPIPE, std::ptr::null(), action.as_mut_ptr()) };
    // SAFETY: all-zero is a valid `sigaction`.
    let handler = unsafe { action.assume_init() }.sa_sigaction;
    IGNORED.store(asked == 0 && handler == libc::SIG_IGN, Ordering::Relaxed);
}

pub(super) fn ignored_sigpipe() -> bool {
    // This reference makes the linker keep the entry of the table with this function.
    std::hint::black_box(&CHECK);
    IGNORED.load(Ordering::Relaxed)
}
