//! macOS: the program of a process.

#![expect(unsafe_code, reason = "proc_pidpath")]

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// The size of a buffer for any path (`PROC_PIDPATHINFO_MAXSIZE` in `sys/proc_info.h`).
const PATH_MAX: usize = 4 * 1024;

/// Returns the path of the program that a process runs, or `None` if there is no such process.
pub(super) fn program_of(pid: u32) -> Option<PathBuf> {
    let pid = i32::try_from(pid).ok()?;
    let mut path = vec![0_u8; PATH_MAX];
    // SAFETY: `path` has `PATH_MAX` bytes and outlives the call.
    let length = unsafe { libc::proc_pidpath(pid, path.as_mut_ptr().cast(), PATH_MAX as u32) };
    path.truncate(usize::try_from(length).ok().filter(|length| *length > 0)?);
    Some(PathBuf::from(OsString::from_vec(path)))
}
