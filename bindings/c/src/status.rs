//! Status and errors: what a function returns, and the text of the last error.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};

use minder::{Error, ErrorKind};

/// The result of a function: 0, a positive number for "no result", or a negative number for an
/// error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum minder_status {
    /// It succeeded.
    MINDER_OK = 0,
    /// The time-out has passed. Nothing else is wrong.
    MINDER_TIMED_OUT = 1,
    /// minder_poller_notify() was called.
    MINDER_WOKEN = 2,
    /// There is nothing to return: no message is whole.
    MINDER_NONE = 3,
    /// The program does not exist, or is not in PATH.
    MINDER_NOT_FOUND = -1,
    /// The program, directory or process exists, but this process may not use it.
    MINDER_PERMISSION_DENIED = -2,
    /// No descriptor, process or memory is free now. It may succeed after a child has exited.
    MINDER_EXHAUSTED = -3,
    /// The arguments and the environment are longer than the operating system allows.
    MINDER_TOO_LONG = -4,
    /// An argument is invalid: NULL, a handle of another type, a source that is registered twice.
    MINDER_INVALID = -5,
    /// The child, source or timer is not known, or no longer.
    MINDER_UNKNOWN = -6,
    /// The operating system lacks the mechanism, or a policy of this machine forbids it.
    MINDER_UNSUPPORTED = -7,
    /// A limit that the caller set is reached.
    MINDER_LIMIT = -8,
    /// Anything else: see minder_last_error() and minder_last_os_error().
    MINDER_FAILED = -9,
    /// The library has a defect: it panicked. The text says where.
    MINDER_PANIC = -10,
    /// The handle belongs to the parent of this process, which was made by fork(2).
    MINDER_FORKED = -11,
}

use minder_status::*;

/// Why a function failed.
#[derive(Debug)]
pub(crate) struct Failure {
    status: minder_status,
    text: String,
    os_error: c_int,
}

impl Failure {
    pub(crate) fn new(status: minder_status, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), os_error: 0 }
    }

    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self::new(MINDER_INVALID, text)
    }

    /// Returns the same failure again, for a handle that remembers its first one.
    pub(crate) fn repeat(&self) -> Self {
        Self { status: self.status, text: self.text.clone(), os_error: self.os_error }
    }

    pub(crate) fn os_error(&self) -> c_int {
        self.os_error
    }

    pub(crate) fn with_status(mut self, status: minder_status) -> Self {
        self.status = status;
        self
    }

    /// Replaces the text, which may contain the present one.
    pub(crate) fn with_text(mut self, text: impl FnOnce(&str) -> String) -> Self {
        self.text = text(&self.text);
        self
    }

    fn of_panic(payload: &(dyn Any + Send)) -> Self {
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
        Self::new(MINDER_PANIC, format!("panic in minder: {}", text.unwrap_or("no message")))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let os_error = error.io_error().raw_os_error().unwrap_or(0);
        Self { status: status_of(error.kind()), text: error.to_string(), os_error }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        let status = match error.kind() {
            std::io::ErrorKind::NotFound => MINDER_NOT_FOUND,
            std::io::ErrorKind::PermissionDenied => MINDER_PERMISSION_DENIED,
            std::io::ErrorKind::InvalidInput => MINDER_INVALID,
            _ => MINDER_FAILED,
        };
        Self { status, text: error.to_string(), os_error: error.raw_os_error().unwrap_or(0) }
    }
}

fn status_of(kind: ErrorKind) -> minder_status {
    match kind {
        ErrorKind::NotFound => MINDER_NOT_FOUND,
        ErrorKind::PermissionDenied => MINDER_PERMISSION_DENIED,
        ErrorKind::Exhausted => MINDER_EXHAUSTED,
        ErrorKind::TooLong => MINDER_TOO_LONG,
        ErrorKind::InvalidInput => MINDER_INVALID,
        ErrorKind::Unknown => MINDER_UNKNOWN,
        ErrorKind::Unsupported => MINDER_UNSUPPORTED,
        ErrorKind::Limit => MINDER_LIMIT,
        _ => MINDER_FAILED,
    }
}

/// The last error of a thread.
struct LastError {
    text: CString,
    os_error: c_int,
}

thread_local! {
    static LAST_ERROR: RefCell<Option<LastError>> = const { RefCell::new(None) };
}

/// Runs the body of a function with C linkage. A failure or a panic becomes the thread's last error.
pub(crate) fn call(body: impl FnOnce() -> Result<minder_status, Failure>) -> minder_status {
    match catch(body) {
        Ok(status) => status,
        Err(failure) => store(failure),
    }
}

/// Does the same for a function that returns a value, which is `default` after a failure.
pub(crate) fn value<T>(default: T, body: impl FnOnce() -> Result<T, Failure>) -> T {
    match catch(body) {
        Ok(value) => value,
        Err(failure) => {
            store(failure);
            default
        }
    }
}

fn catch<T>(body: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    // What a panic leaves half done is behind the locks of the library, whose state stays valid.
    catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|payload| Err(Failure::of_panic(&*payload)))
}

fn store(failure: Failure) -> minder_status {
    let Failure { status, text, os_error } = failure;
    // No text of the library contains a NUL, and a panic's message is cut at one.
    let text = text.split('\0').next().unwrap_or_default();
    let error = LastError { text: CString::new(text).unwrap_or_default(), os_error };
    // A thread that is ending has no last error.
    let _ = LAST_ERROR.try_with(|last| last.replace(Some(error)));
    status
}

/// Returns the text of the last error of this thread, on one line; "" if there was none.
///
/// The text is valid until the next call on this thread that fails.
///
/// Why not an argument of every function for it: a caller that ignores the text has nothing to pass and
/// nothing to free, and no text is lost on the way through several functions of the caller. errno and
/// libgit2 work in the same way. SQLite keeps the text in the handle, which fails where the handle could
/// not be made. GLib passes a GError **, which needs an argument for each call.
#[unsafe(no_mangle)]
pub extern "C" fn minder_last_error() -> *const c_char {
    // The borrow ends here. Only `store` changes the text, in a later call on this thread.
    let text = |last: &RefCell<Option<LastError>>| last.borrow().as_ref().map(|error| error.text.as_ptr());
    LAST_ERROR.try_with(text).ok().flatten().unwrap_or(c"".as_ptr())
}

/// Returns the number that the operating system gave to the last error of this thread: errno, or that of
/// GetLastError() on Windows; 0 if it gave none.
#[unsafe(no_mangle)]
pub extern "C" fn minder_last_os_error() -> c_int {
    let number = |last: &RefCell<Option<LastError>>| last.borrow().as_ref().map(|error| error.os_error);
    LAST_ERROR.try_with(number).ok().flatten().unwrap_or(0)
}

/// Returns the name of a status, such as "MINDER_NOT_FOUND"; "?" for another number.
#[unsafe(no_mangle)]
pub extern "C" fn minder_status_name(status: i32) -> *const c_char {
    const NAMES: [(minder_status, &CStr); 15] = [
        (MINDER_OK, c"MINDER_OK"),
        (MINDER_TIMED_OUT, c"MINDER_TIMED_OUT"),
        (MINDER_WOKEN, c"MINDER_WOKEN"),
        (MINDER_NONE, c"MINDER_NONE"),
        (MINDER_NOT_FOUND, c"MINDER_NOT_FOUND"),
        (MINDER_PERMISSION_DENIED, c"MINDER_PERMISSION_DENIED"),
        (MINDER_EXHAUSTED, c"MINDER_EXHAUSTED"),
        (MINDER_TOO_LONG, c"MINDER_TOO_LONG"),
        (MINDER_INVALID, c"MINDER_INVALID"),
        (MINDER_UNKNOWN, c"MINDER_UNKNOWN"),
        (MINDER_UNSUPPORTED, c"MINDER_UNSUPPORTED"),
        (MINDER_LIMIT, c"MINDER_LIMIT"),
        (MINDER_FAILED, c"MINDER_FAILED"),
        (MINDER_PANIC, c"MINDER_PANIC"),
        (MINDER_FORKED, c"MINDER_FORKED"),
    ];
    let found = NAMES.iter().find(|(known, _)| *known as i32 == status);
    found.map_or(c"?", |(_, name)| name).as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn last_error() -> String {
        // SAFETY: the text is valid until this thread's next failing call.
        unsafe { CStr::from_ptr(minder_last_error()) }.to_string_lossy().into_owned()
    }

    #[test]
    fn panic_becomes_a_status_and_a_text() {
        assert_eq!(call(|| panic!("at {}", 7)), MINDER_PANIC);
        assert_eq!(last_error(), "panic in minder: at 7");
        assert_eq!(value(3, || panic!("again")), 3);
        assert_eq!(last_error(), "panic in minder: again");
    }

    #[test]
    fn last_error_belongs_to_one_thread_and_outlives_success() {
        call(|| Err(Failure::invalid("first")));
        std::thread::spawn(|| assert_eq!(last_error(), "")).join().expect("join thread");
        assert_eq!((call(|| Ok(MINDER_OK)), last_error().as_str()), (MINDER_OK, "first"));
    }
}
