//! Whether this process runs under Wine.

#![cfg_attr(windows, expect(unsafe_code, reason = "looks up a function by its name"))]

/// Returns whether this process runs under Wine, whose `ntdll.dll` exports a function that the one
/// of Windows does not have (Wine Developer's Guide, "Detecting Wine").
#[cfg(windows)]
pub(crate) fn is_wine() -> bool {
    use windows_sys::Win32::System::LibraryLoader::{GetModuleHandleW, GetProcAddress};
    use windows_sys::w;

    // SAFETY: the name is a constant that ends with a zero; nothing is loaded.
    let ntdll = unsafe { GetModuleHandleW(w!("ntdll.dll")) };
    if ntdll.is_null() {
        return false;
    }
    // SAFETY: this library is in every process and stays loaded; the name ends with a zero. The
    // function is not called.
    unsafe { GetProcAddress(ntdll, c"wine_get_version".as_ptr().cast()) }.is_some()
}

/// Returns whether this process runs under Wine: a program for Unix does not.
#[cfg(not(windows))]
pub(crate) fn is_wine() -> bool {
    false
}
