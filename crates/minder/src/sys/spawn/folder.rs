//! Where Windows itself lies.

#![expect(unsafe_code, reason = "GetSystemDirectoryW")]

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;

use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;

/// The longest path without `\\?\`, with its end mark; the folder's is chosen by the system and much shorter.
const PATH_MAX: usize = 260;

/// The folder of the system's own programs. Asked of the system: a variable could name another one.
pub(crate) fn system_folder() -> PathBuf {
    let mut path = [0; PATH_MAX];
    // SAFETY: `path` has as many units as are said, and outlives the call.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), PATH_MAX as u32) } as usize;
    // 0 for a failure that is not documented to happen, more than there is room for a path that is too long.
    match path.get(..length).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(OsString::from_wide(path)),
        None => PathBuf::from(r"C:\Windows\System32"),
    }
}
