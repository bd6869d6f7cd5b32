//! Functions of Windows that not every version has, or that only Wine has: looked up when they are
//! wanted.

#![expect(unsafe_code, reason = "functions by their names")]

use std::ffi::CStr;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::HMODULE;
use windows_sys::Win32::System::LibraryLoader::{
    GetModuleHandleW, GetProcAddress, LOAD_LIBRARY_SEARCH_SYSTEM32, LoadLibraryExW,
};
use windows_sys::core::PCWSTR;
use windows_sys::w;

/// A function whose form the caller knows.
pub(super) type DynamicFunction = unsafe extern "system" fn() -> isize;

/// The operating system's own library.
pub(super) const NTDLL: PCWSTR = w!("ntdll.dll");
/// The library with the functions that programs call.
pub(super) const KERNEL32: PCWSTR = w!("kernel32.dll");

/// A function of a library that is in every process.
pub(super) fn find(library: PCWSTR, name: &CStr) -> Option<DynamicFunction> {
    // SAFETY: the constants above, and whatever else is a constant, end with a zero; nothing is loaded
    // by it.
    let module = unsafe { GetModuleHandleW(library) };
    named(module, name)
}

/// A function of a library of the operating system's that few processes need.
pub(super) fn load(library: PCWSTR, name: &CStr) -> Option<DynamicFunction> {
    // SAFETY: the name is a constant that ends with a zero; it is looked for in the directory of
    // the operating system and nowhere else.
    let module = unsafe { LoadLibraryExW(library, std::ptr::null_mut(), LOAD_LIBRARY_SEARCH_SYSTEM32) };
    named(module, name)
}

/// Returns a function of a loaded module, if it exists. This program never unloads one.
fn named(module: HMODULE, name: &CStr) -> Option<DynamicFunction> {
    if module.is_null() {
        return None;
    }
    // SAFETY: the module is loaded and stays so, and the name ends with a zero.
    unsafe { GetProcAddress(module, name.as_ptr().cast()) }
}

/// The version of Wine that we run under, if we do.
pub(super) fn wine() -> Option<&'static str> {
    static VERSION: OnceLock<Option<String>> = OnceLock::new();
    let version = VERSION.get_or_init(|| {
        let function = find(NTDLL, c"wine_get_version")?;
        // SAFETY: only Wine has a function of this name; it takes nothing and returns a text (Wine's
        // developer's guide).
        let function =
            unsafe { std::mem::transmute::<DynamicFunction, unsafe extern "C" fn() -> *const i8>(function) };
        // SAFETY: as above.
        let text = unsafe { function() };
        if text.is_null() {
            return None;
        }
        // SAFETY: the text is constant, and ends with a zero.
        Some(unsafe { CStr::from_ptr(text.cast()) }.to_string_lossy().into_owned())
    });
    version.as_deref()
}
