//! Directories with a separate access control list: only the user, the administrators and
//! the account SYSTEM have rights, and nothing is inherited from the parent directory.
//!
//! In a user's profile directories inherit such a list anyway. Elsewhere, for example in `D:\`, all
//! users may read what is created.

#![expect(unsafe_code, reason = "security descriptors")]

use std::ffi::{OsStr, c_void};
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsRawHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, Prefix};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::LocalFree;
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, SDDL_REVISION_1,
};
use windows_sys::Win32::Security::{
    GetTokenInformation, SECURITY_ATTRIBUTES, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::Storage::FileSystem::CreateDirectoryW;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

/// The longest path of a new directory that is not verbatim: Windows reserves room for an 8.3
/// file name in it (CreateDirectoryW).
const PLAIN_PATH_MAX: usize = 247;

/// Creates a directory. The path must not exist. A file system without access rights creates it
/// without them.
pub(super) fn create_dir(path: &Path) -> io::Result<()> {
    let path = verbatim(path)?;
    let descriptor = SecurityDescriptor::for_user()?;
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: descriptor.0.0,
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a zero; both outlive the call, as does the descriptor.
    check(unsafe { CreateDirectoryW(path.as_ptr(), &attributes) })
}

/// Converts the result of a call that returns zero on failure and then sets the last error.
fn check(result: i32) -> io::Result<()> {
    if result == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Memory that Windows allocated and that the caller frees with `LocalFree`.
struct LocalAlloc(*mut c_void);

impl Drop for LocalAlloc {
    fn drop(&mut self) {
        // SAFETY: the calls that returned this pointer document `LocalFree`, and this is its only owner.
        unsafe { LocalFree(self.0) };
    }
}

/// A security descriptor.
struct SecurityDescriptor(LocalAlloc);

impl SecurityDescriptor {
    /// Grants all rights to the user, the administrators and SYSTEM, also on what is created in
    /// the directory.
    fn for_user() -> io::Result<Self> {
        let all_rights = |sid: &str| format!("(A;OICI;FA;;;{sid})");
        let text = format!("D:P{}{}{}", all_rights(&user_sid()?), all_rights("BA"), all_rights("SY"));
        let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
        let mut descriptor = null_mut();
        // SAFETY: the text ends with a zero, and `descriptor` outlives the call; its size is not asked for.
        check(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                null_mut(),
            )
        })?;
        Ok(Self(LocalAlloc(descriptor)))
    }
}

/// Returns the security identifier of the user that this process runs as: `S-1-5-21-…`.
fn user_sid() -> io::Result<String> {
    // SAFETY: has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let mut token = null_mut();
    // SAFETY: `token` outlives the call.
    check(unsafe { OpenProcessToken(us, TOKEN_QUERY, &mut token) })?;
    // SAFETY: the call above opened it, and it has no other owner.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // Aligned for pointers, and large enough for the structure and an identifier of at most 68 bytes
    // behind it (SECURITY_MAX_SID_SIZE).
    let mut memory = [0_usize; 32];
    let into = memory.as_mut_ptr().cast();
    let size = size_of_val(&memory) as u32;
    let mut used = 0;
    // SAFETY: the token is open, `into` has room for `size` bytes, and `used` outlives the call.
    check(unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, into, size, &mut used) })?;
    // SAFETY: the call above filled it with this structure, and its alignment is that of a pointer.
    let found = unsafe { &*memory.as_ptr().cast::<TOKEN_USER>() };
    let mut text = null_mut();
    // SAFETY: the name lies in `memory`, behind the structure; `text` outlives the call.
    check(unsafe { ConvertSidToStringSidW(found.User.Sid, &mut text) })?;
    let text = LocalAlloc(text.cast());
    let mut name = Vec::new();
    for at in 0.. {
        // SAFETY: the text ends with a zero, and nothing after it is read.
        match unsafe { *text.0.cast::<u16>().add(at) } {
            0 => break,
            unit => name.push(unit),
        }
    }
    Ok(String::from_utf16_lossy(&name))
}

/// Converts a path to UTF-16. A long path gets the prefix `\\?\`, which lifts the limit of its
/// length, as std does for other calls.
fn verbatim(path: &Path) -> io::Result<Vec<u16>> {
    let whole = std::path::absolute(path)?;
    let start = match whole.components().next() {
        Some(Component::Prefix(prefix)) if whole.as_os_str().encode_wide().count() > PLAIN_PATH_MAX => {
            prefix.kind()
        }
        _ => return nul_terminated(path.as_os_str()),
    };
    let mut long = std::ffi::OsString::from(r"\\?\");
    match (start, whole.to_str()) {
        (Prefix::Disk(_), _) => long.push(&whole),
        (Prefix::UNC(..), Some(text)) => long.push(format!(r"UNC\{}", text.trim_start_matches('\\'))),
        _ => return nul_terminated(path.as_os_str()),
    }
    nul_terminated(&long)
}

fn nul_terminated(path: &OsStr) -> io::Result<Vec<u16>> {
    let units: Vec<u16> = path.encode_wide().chain([0]).collect();
    match units.iter().position(|&unit| unit == 0) {
        Some(end) if end + 1 == units.len() => Ok(units),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "a NUL character in a path")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_sid_is_an_identifier() {
        assert!(user_sid().expect("read the token").starts_with("S-1-"));
    }

    #[test]
    fn create_dir_makes_a_directory_that_its_owner_can_use() {
        let root = tempfile::tempdir().expect("create a directory");
        let dir = root.path().join("private");
        create_dir(&dir).expect("create a private directory");
        assert_eq!(
            create_dir(&dir).expect_err("create an existing directory").kind(),
            io::ErrorKind::AlreadyExists
        );
        std::fs::write(dir.join("file"), "ours").expect("write a file");
        assert_eq!(std::fs::read(dir.join("file")).expect("read it"), b"ours");
    }

    #[test]
    fn create_dir_accepts_long_paths() {
        let root = tempfile::tempdir().expect("create a directory");
        let mut dir = root.path().to_owned();
        while dir.as_os_str().len() < 600 {
            dir.push("f".repeat(100));
            create_dir(&dir).expect("create a private directory");
        }
        std::fs::write(dir.join("file"), "ours").expect("write a file");
        let share: String = String::from_utf16_lossy(
            &verbatim(Path::new(&format!(r"\\server\share\{}", "x/".repeat(200)))).expect("convert the path"),
        );
        assert!(share.starts_with(r"\\?\UNC\server\share\x\x\"), "{share}");
    }
}
