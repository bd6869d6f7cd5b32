//! Windows: the directory of the programs of Windows.

#![expect(unsafe_code, reason = "GetSystemDirectoryW")]

use std::ffi::OsString;
use std::os::windows::ffi::OsStringExt;
use std::path::PathBuf;

use windows_sys::Win32::System::SystemInformation::GetSystemDirectoryW;

/// The longest path without the prefix `\\?\`, with its terminating zero. The path of this
/// directory is much shorter.
const PATH_MAX: usize = 260;

/// Returns the directory of the programs of Windows. Windows reports it, since an environment
/// variable could name another directory.
#[must_use]
pub fn system_dir() -> PathBuf {
    let mut path = [0; PATH_MAX];
    // SAFETY: `path` has `PATH_MAX` units and outlives the call.
    let length = unsafe { GetSystemDirectoryW(path.as_mut_ptr(), PATH_MAX as u32) } as usize;
    // The length is 0 after a failure, which is not documented to happen, and larger than the buffer if
    // the path is too long for it.
    match path.get(..length).filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(OsString::from_wide(path)),
        None => PathBuf::from(r"C:\Windows\System32"),
    }
}
