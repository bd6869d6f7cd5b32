//! The declarations of `emacs-module.h` of Emacs 28, as far as they are used.
//!
//! Later versions append members, so this structure is the beginning of theirs.
#![expect(unsafe_code, reason = "pointers of Emacs")]

use std::ffi::{c_char, c_int, c_void};

/// A value of Lisp, valid until the function that got it returns. NULL may be one.
pub(crate) type RawValue = *mut c_void;

/// A member of the structure that is not used.
type Unused = *const c_void;

/// A function that Lisp can call.
pub(crate) type RawFunction =
    unsafe extern "C" fn(env: *mut RawEnv, count: isize, args: *mut RawValue, data: *mut c_void) -> RawValue;

/// `struct emacs_runtime`.
#[repr(C)]
pub(crate) struct RawRuntime {
    size: isize,
    private_members: Unused,
    get_environment: unsafe extern "C" fn(*mut RawRuntime) -> *mut RawEnv,
}

/// `struct emacs_env_28`.
#[repr(C)]
pub(crate) struct RawEnv {
    size: isize,
    private_members: Unused,
    make_global_ref: Unused,
    free_global_ref: Unused,
    pub(crate) non_local_exit_check: unsafe extern "C" fn(*mut RawEnv) -> c_int,
    pub(crate) non_local_exit_clear: unsafe extern "C" fn(*mut RawEnv),
    non_local_exit_get: Unused,
    pub(crate) non_local_exit_signal: unsafe extern "C" fn(*mut RawEnv, RawValue, RawValue),
    non_local_exit_throw: Unused,
    pub(crate) make_function:
        unsafe extern "C" fn(*mut RawEnv, isize, isize, RawFunction, *const c_char, *mut c_void) -> RawValue,
    pub(crate) funcall: unsafe extern "C" fn(*mut RawEnv, RawValue, isize, *mut RawValue) -> RawValue,
    pub(crate) intern: unsafe extern "C" fn(*mut RawEnv, *const c_char) -> RawValue,
    type_of: Unused,
    pub(crate) is_not_nil: unsafe extern "C" fn(*mut RawEnv, RawValue) -> bool,
    eq: Unused,
    pub(crate) extract_integer: unsafe extern "C" fn(*mut RawEnv, RawValue) -> i64,
    pub(crate) make_integer: unsafe extern "C" fn(*mut RawEnv, i64) -> RawValue,
    extract_float: Unused,
    make_float: Unused,
    pub(crate) copy_string_contents:
        unsafe extern "C" fn(*mut RawEnv, RawValue, *mut c_char, *mut isize) -> bool,
    pub(crate) make_string: unsafe extern "C" fn(*mut RawEnv, *const c_char, isize) -> RawValue,
    make_user_ptr: Unused,
    get_user_ptr: Unused,
    set_user_ptr: Unused,
    get_user_finalizer: Unused,
    set_user_finalizer: Unused,
    pub(crate) vec_get: unsafe extern "C" fn(*mut RawEnv, RawValue, isize) -> RawValue,
    pub(crate) vec_set: unsafe extern "C" fn(*mut RawEnv, RawValue, isize, RawValue),
    pub(crate) vec_size: unsafe extern "C" fn(*mut RawEnv, RawValue) -> isize,
    should_quit: Unused,
    process_input: Unused,
    extract_time: Unused,
    make_time: Unused,
    extract_big_integer: Unused,
    make_big_integer: Unused,
    get_function_finalizer: Unused,
    set_function_finalizer: Unused,
    pub(crate) open_channel: unsafe extern "C" fn(*mut RawEnv, RawValue) -> c_int,
    make_interactive: Unused,
    pub(crate) make_unibyte_string: unsafe extern "C" fn(*mut RawEnv, *const c_char, isize) -> RawValue,
}

/// Returns the environment of an initialization. `None` if Emacs is older than 28.
///
/// # Safety
/// Emacs has just passed `runtime` to `emacs_module_init`.
pub(crate) unsafe fn environment(runtime: *mut RawRuntime) -> Option<*mut RawEnv> {
    // SAFETY: Emacs' pointer is valid for the time of the call.
    let known = unsafe { &*runtime };
    if known.size < size_of::<RawRuntime>() as isize {
        return None;
    }
    // SAFETY: it is the function of this runtime.
    let pointer = unsafe { (known.get_environment)(runtime) };
    // SAFETY: the size stands before everything that differs between versions.
    let size = unsafe { (*pointer).size };
    (size >= size_of::<RawEnv>() as isize).then_some(pointer)
}
