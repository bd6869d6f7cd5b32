//! Arguments of the caller: pointers become references here. The exceptions are a buffer in `child.rs`, the
//! steps in `termination.rs` and a key in `cells.rs`.
//!
//! Each conversion checks what can be checked, and rests on what the head of the header states for the
//! rest: a handle is alive, a string ends with NUL, a range is readable, a result has room.
#![expect(unsafe_code, reason = "pointers of the caller")]

use std::ffi::{CStr, OsStr, c_char};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::native;
use crate::status::Failure;

/// An opaque type of the header.
pub(crate) trait Opaque: Sized {
    /// The data behind a handle of this type. Every handle may be used by several threads.
    type Inner: Send + Sync;
    /// Tells the types apart. Eight letters, so that a debugger shows them.
    const TAG: [u8; 8];
}

/// The allocation behind every handle: a tag and the data.
#[repr(C)]
struct Tagged<T> {
    /// [`Opaque::TAG`], or zero after the handle was freed.
    tag: AtomicU64,
    inner: T,
}

/// Makes a handle of `inner`.
pub(crate) fn new_handle<T: Opaque>(inner: T::Inner) -> *mut T {
    let tag = AtomicU64::new(u64::from_ne_bytes(T::TAG));
    Box::into_raw(Box::new(Tagged { tag, inner })).cast()
}

/// Returns what a handle points to.
///
/// # Safety
/// `pointer` is NULL, or points to a live handle of any type, which nothing frees meanwhile.
pub(crate) unsafe fn handle_ref<'a, T: Opaque>(
    pointer: *const T,
    name: &'static str,
) -> Result<&'a T::Inner, Failure> {
    check::<T>(pointer.cast(), name)?;
    // SAFETY: the tag is that of `T`, so that `new_handle::<T>` made it.
    Ok(&unsafe { &*pointer.cast::<Tagged<T::Inner>>() }.inner)
}

/// Takes a handle apart. Returns `None` for NULL.
///
/// # Safety
/// As [`handle_ref`], and no other thread uses the handle, now or later.
pub(crate) unsafe fn take_handle<T: Opaque>(pointer: *mut T) -> Result<Option<T::Inner>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    check::<T>(pointer.cast(), "handle")?.store(0, Ordering::Relaxed);
    // SAFETY: the tag was that of `T`, so that `new_handle::<T>` made it.
    Ok(Some(unsafe { Box::from_raw(pointer.cast::<Tagged<T::Inner>>()) }.inner))
}

/// Checks the type of a handle.
fn check<'a, T: Opaque>(pointer: *const AtomicU64, name: &str) -> Result<&'a AtomicU64, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: every handle begins with a tag, and the caller of this file's functions passes a handle.
    let tag = unsafe { &*pointer };
    if tag.load(Ordering::Relaxed) == u64::from_ne_bytes(T::TAG) {
        return Ok(tag);
    }
    Err(Failure::invalid(format!("argument `{name}` is a handle of another type, or was freed")))
}

/// Locks what a handle holds, even after a thread panicked with the lock.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn null(name: &str) -> Failure {
    Failure::invalid(format!("argument `{name}` is NULL"))
}

/// Returns a string of the caller.
///
/// # Safety
/// `pointer` is NULL, or points to a string that ends with NUL and does not change during the call.
pub(crate) unsafe fn os_text<'a>(pointer: *const c_char, name: &str) -> Result<&'a OsStr, Failure> {
    if pointer.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not NULL, and the rest is the contract of this function.
    let text = unsafe { CStr::from_ptr(pointer) };
    native::os_str(text).ok_or_else(|| Failure::invalid(format!("argument `{name}` is not UTF-8")))
}

/// Returns a range of bytes of the caller. NULL is an empty range if `len` is 0.
///
/// # Safety
/// `pointer` is NULL, or points to `len` readable bytes that do not change during the call.
pub(crate) unsafe fn byte_range<'a>(pointer: *const u8, len: usize, name: &str) -> Result<&'a [u8], Failure> {
    // SAFETY: the contract of this function.
    unsafe { array(pointer, len, name) }
}

/// Returns an array of the caller. NULL is an empty array if `len` is 0. A length that no memory has is
/// refused.
///
/// # Safety
/// `pointer` is NULL, or points to `len` readable elements that do not change during the call.
pub(crate) unsafe fn array<'a, T>(pointer: *const T, len: usize, name: &str) -> Result<&'a [T], Failure> {
    match (pointer.is_null(), len) {
        (_, 0) => Ok(&[]),
        (true, _) => Err(null(name)),
        _ if len > longest::<T>() => Err(too_long(name, len)),
        // SAFETY: it is not NULL and has a valid length, and the rest is the contract of this function.
        (false, _) => Ok(unsafe { std::slice::from_raw_parts(pointer, len) }),
    }
}

/// Returns the most elements that an array may have: Rust allows `isize::MAX` bytes.
pub(crate) const fn longest<T>() -> usize {
    isize::MAX as usize / size_of::<T>()
}

pub(crate) fn too_long(name: &str, len: usize) -> Failure {
    Failure::invalid(format!("argument `{name}` cannot have {len} elements"))
}

/// Stores a result of the caller, which may be NULL.
///
/// # Safety
/// `pointer` is NULL, or points to writable memory of the type.
pub(crate) unsafe fn store_value<T>(pointer: *mut T, value: T) {
    if !pointer.is_null() {
        // SAFETY: it is not NULL, and the rest is the contract of this function.
        unsafe { pointer.write(value) };
    }
}

/// Copies bytes into a buffer of the caller. Fails with `MINDER_LIMIT` if it has less room.
///
/// # Safety
/// `buffer` is NULL, or points to `capacity` writable bytes that are not those of `bytes`.
pub(crate) unsafe fn copy_out(
    bytes: &[u8],
    buffer: *mut u8,
    capacity: usize,
    name: &str,
) -> Result<(), Failure> {
    if bytes.len() > capacity {
        let text = format!("the {name} takes {} bytes, and there is room for {capacity}", bytes.len());
        return Err(Failure::new(crate::minder_status::MINDER_LIMIT, text));
    }
    if buffer.is_null() {
        return Err(null("buffer"));
    }
    // SAFETY: the caller's buffer has at least as many bytes, and is not ours.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
    Ok(())
}

/// A structure of the header that grows in later versions. All its bits may be zero, and its first
/// member is its size, a `uint32_t`.
///
/// # Safety
/// The type has this form.
pub(crate) unsafe trait Growing: Copy {
    /// Returns the members `reserved` of a structure of options, which are zero. A later version of the
    /// library may give them a meaning.
    fn reserved(&self) -> u32 {
        0
    }
}

/// Returns a structure of options; the default for NULL.
///
/// Members that the caller's structure lacks are zero. Members that only the caller knows, and those that
/// are reserved, must be zero.
///
/// # Safety
/// `pointer` is NULL, or points to a structure whose first member is its size in bytes.
pub(crate) unsafe fn read_structure<T: Growing>(pointer: *const T, name: &str) -> Result<T, Failure> {
    // SAFETY: zero is a value of the type: see `Growing`.
    let mut options: T = unsafe { std::mem::zeroed() };
    if pointer.is_null() {
        return Ok(options);
    }
    // SAFETY: the caller's structure has its size.
    let size = unsafe { size_of_structure(pointer, name) }?;
    // SAFETY: the caller's structure has this many bytes.
    let given = unsafe { std::slice::from_raw_parts(pointer.cast::<u8>(), size) };
    let known = size.min(size_of::<T>());
    if given[known..].iter().any(|byte| *byte != 0) {
        let reason = format!("`{name}` has options that this version of the library does not know");
        return Err(Failure::new(crate::minder_status::MINDER_UNSUPPORTED, reason));
    }
    // SAFETY: both have at least `known` bytes, and `options` is ours alone.
    unsafe { std::ptr::copy_nonoverlapping(pointer.cast::<u8>(), (&raw mut options).cast(), known) };
    check_reserved(options.reserved(), name)?;
    Ok(options)
}

/// Fails if a member `reserved` is not zero.
pub(crate) fn check_reserved(reserved: u32, name: &str) -> Result<(), Failure> {
    match reserved {
        0 => Ok(()),
        _ => Err(Failure::invalid(format!("member `reserved` of `{name}` is {reserved}, and must be zero"))),
    }
}

/// Stores a structure of results, as far as the caller's has room; none for NULL.
///
/// # Safety
/// `pointer` is NULL, or points to a structure whose first member is its size in bytes.
pub(crate) unsafe fn write_structure<T: Growing>(pointer: *mut T, value: &T) -> Result<(), Failure> {
    if pointer.is_null() {
        return Ok(());
    }
    // SAFETY: the caller's structure has its size.
    let size = unsafe { size_of_structure(pointer, "result") }?;
    let known = size.min(size_of::<T>());
    const AFTER_SIZE: usize = size_of::<u32>();
    // SAFETY: the size is in bounds of the caller's structure, which has `known` bytes or more.
    let target = unsafe { pointer.cast::<u8>().add(AFTER_SIZE) };
    // SAFETY: the size is in bounds of `value`.
    let source = unsafe { std::ptr::from_ref(value).cast::<u8>().add(AFTER_SIZE) };
    // SAFETY: both have this many bytes; the caller's structure is not ours.
    unsafe { std::ptr::copy_nonoverlapping(source, target, known - AFTER_SIZE) };
    Ok(())
}

/// Returns the size that the caller has set.
///
/// # Safety
/// `pointer` is not NULL, and points to a structure whose first member is its size in bytes.
unsafe fn size_of_structure<T: Growing>(pointer: *const T, name: &str) -> Result<usize, Failure> {
    const SIZE_MAX: usize = 4096;
    // SAFETY: the first member is a `uint32_t`.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if (size_of::<u64>()..=SIZE_MAX).contains(&size) {
        return Ok(size);
    }
    Err(Failure::invalid(format!("`{name}` has no size; initialise it with MINDER_INIT")))
}

/// Returns a time-out: `None` if it is negative.
pub(crate) fn timeout(nanoseconds: i64) -> Option<Duration> {
    u64::try_from(nanoseconds).ok().map(Duration::from_nanos)
}

/// Returns an option that is a time: `None` for zero, its default.
pub(crate) fn time_option(nanoseconds: i64) -> Option<Duration> {
    timeout(nanoseconds).filter(|time| !time.is_zero())
}

/// Returns nanoseconds, at most as many as fit.
pub(crate) fn nanoseconds(time: Duration) -> i64 {
    i64::try_from(time.as_nanos()).unwrap_or(i64::MAX)
}

/// Arguments by their names. Each macro is an expression that leaves the function on an error, and may be
/// used only for the arguments of a function of the header.
macro_rules! handle {
    ($name:ident) => {
        // SAFETY: the caller of a function of the header passes NULL or a live handle.
        unsafe { $crate::arg::handle_ref($name, stringify!($name)) }?
    };
}

macro_rules! text {
    ($name:ident) => {
        // SAFETY: the caller of a function of the header passes NULL or a string that ends with NUL.
        unsafe { $crate::arg::os_text($name, stringify!($name)) }?
    };
}

macro_rules! bytes {
    ($name:ident, $len:expr) => {
        // SAFETY: the caller of a function of the header passes a range that it may read.
        unsafe { $crate::arg::byte_range($name, $len, stringify!($name)) }?
    };
}

macro_rules! options {
    ($name:ident) => {
        // SAFETY: the caller of a function of the header passes NULL or a structure with its size.
        unsafe { $crate::arg::read_structure($name, stringify!($name)) }?
    };
}

/// Stores a result at a pointer that may be NULL.
macro_rules! store {
    ($name:ident, $value:expr) => {{
        let value = $value;
        // SAFETY: the caller of a function of the header passes NULL or room for the result.
        unsafe { $crate::arg::store_value($name, value) }
    }};
}

/// Stores a structure with its size at a pointer that may be NULL.
macro_rules! store_structure {
    ($name:ident, $value:expr) => {{
        let value = $value;
        // SAFETY: the caller of a function of the header passes NULL or a structure with its size.
        unsafe { $crate::arg::write_structure($name, &value) }?
    }};
}

/// Takes a handle from the caller, and drops what it pointed to.
macro_rules! free {
    ($name:ident) => {{
        $crate::status::value((), || {
            // SAFETY: the caller of a function of the header uses the handle no more.
            unsafe { $crate::arg::take_handle($name) }.map(drop)
        })
    }};
}

/// Fails if a pointer for a result that the caller needs is NULL.
macro_rules! required {
    ($name:ident) => {
        if $name.is_null() {
            return Err($crate::arg::null(stringify!($name)));
        }
    };
}

pub(crate) use {bytes, free, handle, options, required, store, store_structure, text};
