//! minder: start, watch, time and schedule thousands of child processes.
//!
//! This header is the reference of the C interface. `minder.hpp` is the same for C++.
//!
//! STATUS. Most functions return a minder_status. MINDER_OK is 0. A positive status is not an error: there
//! is no result, such as MINDER_TIMED_OUT. A negative status is an error. minder_last_error() returns its
//! text, one line that names the subject and the reason. The text belongs to the calling thread: other
//! threads do not change it, and a call that succeeds does not change it either.
//!
//! HANDLES. A function with "new", "spawn" or "install" in its name returns a handle, which the caller
//! frees with the function that its documentation names. Freeing NULL does nothing. All other functions
//! return MINDER_INVALID for NULL and for a handle of another type. A handle must not be used after it was
//! freed, nor freed while another thread uses it.
//!
//! THREADS. Every handle may be used by several threads at the same time, unless its section says
//! otherwise. The library calls back on the thread of the caller, and on other threads only where a
//! function says so.
//!
//! STRINGS are terminated by NUL. They are bytes on Unix, and UTF-8 on Windows. The library copies what it
//! keeps.
//!
//! TIMES are in nanoseconds, in int64_t: 5 * MINDER_SECOND. A negative time-out, MINDER_FOREVER, sets no
//! limit. A wait with a time-out of zero returns at once. No wait ends before its time-out without a
//! result.
//!
//! STRUCTURES with a member `size` grow in later versions. Initialise them with MINDER_INIT, which sets
//! the size and clears the rest: minder_exit end = MINDER_INIT(minder_exit). Zero in an option is its
//! default. A library that is older than the header refuses options that it does not know. A member
//! `reserved` of an option must be zero: another number is MINDER_INVALID.
//!
//! NUMBERS of statuses, kinds and flags are stable. Later versions add some: ignore kinds of events that
//! you do not know.
//!
//! FORK. A process that was made by fork(2) cannot use the children, sets and pollers of its parent. The
//! functions return MINDER_FORKED there, and freeing such a handle is safe. minder_poller_renew() replaces a
//! poller.
//!
//! PANICS. A panic of the library is a defect. It does not leave the library: the function returns
//! MINDER_PANIC. C++ exceptions must not leave a callback.
#![expect(non_camel_case_types, reason = "the types have the names of the header")]
#![allow(clippy::missing_safety_doc, reason = "the head of this file states what every caller ensures")]

mod status;
mod version;
mod fork;
mod native;
mod arg;
mod termination;
mod exit;
mod command;
mod output;
mod child;
mod event;
mod guardian;
mod set;
mod poller;
mod executor;
mod framer;
mod cells;

pub use crate::{
    cells::*, child::*, command::*, event::*, executor::*, exit::*, framer::*, guardian::*,
    native::minder_fd, output::*, poller::*, set::*, status::*, termination::*, version::*,
};
