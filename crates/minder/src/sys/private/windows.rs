//! Folders that nobody else may open: their list of rights names the user, the administrators and the system, and takes
//! nothing from the folder above.
//!
//! In a profile that is what folders inherit anyway; elsewhere (`D:\`) everybody may read what is made there.

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

use crate::sys::answer::done;

/// The longest path of a new folder that is not verbatim: room is kept for a short name in it (CreateDirectoryW).
const PLAIN_MAX: usize = 247;

/// Makes a folder. It must not exist. File systems without rights make it all the same.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let (path, rights) = (verbatim(path)?, Rights::ours()?);
    let attributes = SECURITY_ATTRIBUTES {
        nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
        lpSecurityDescriptor: rights.0.0,
        bInheritHandle: 0,
    };
    // SAFETY: the path ends with a zero; both outlive the call, as does the descriptor.
    done(unsafe { CreateDirectoryW(path.as_ptr(), &attributes) })
}

/// Memory of the system's that is ours to give back.
struct Local(*mut c_void);

impl Drop for Local {
    fn drop(&mut self) {
        // SAFETY: the calls that made it say so, and nobody else does.
        unsafe { LocalFree(self.0) };
    }
}

/// A security descriptor.
struct Rights(Local);

impl Rights {
    /// All rights for the user, the administrators and the system, also on whatever is made in the folder.
    fn ours() -> io::Result<Self> {
        let all = |whom: &str| format!("(A;OICI;FA;;;{whom})");
        let text = format!("D:P{}{}{}", all(&user()?), all("BA"), all("SY"));
        let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
        let mut descriptor = null_mut();
        // SAFETY: the text ends with a zero, and `descriptor` outlives the call; its size is not asked for.
        done(unsafe {
            ConvertStringSecurityDescriptorToSecurityDescriptorW(
                text.as_ptr(),
                SDDL_REVISION_1,
                &mut descriptor,
                null_mut(),
            )
        })?;
        Ok(Self(Local(descriptor)))
    }
}

/// The user that this process runs as: `S-1-5-21-…`.
fn user() -> io::Result<String> {
    // SAFETY: has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let mut token = null_mut();
    // SAFETY: `token` outlives the call.
    done(unsafe { OpenProcessToken(us, TOKEN_QUERY, &mut token) })?;
    // SAFETY: the call above opened it, and nobody else has it.
    let token = unsafe { OwnedHandle::from_raw_handle(token) };
    // As large as a user can be, aligned for pointers: the structure, and a name of at most 68 bytes behind it
    // (SECURITY_MAX_SID_SIZE).
    let mut memory = [0_usize; 32];
    let (into, size, mut used) = (memory.as_mut_ptr().cast(), size_of_val(&memory) as u32, 0);
    // SAFETY: the token is open, `into` has the size that is said, and `used` outlives the call.
    done(unsafe { GetTokenInformation(token.as_raw_handle(), TokenUser, into, size, &mut used) })?;
    // SAFETY: the call above filled it with this structure, and its alignment is that of a pointer.
    let found = unsafe { &*memory.as_ptr().cast::<TOKEN_USER>() };
    let mut text = null_mut();
    // SAFETY: the name lies in `memory`, behind the structure; `text` outlives the call.
    done(unsafe { ConvertSidToStringSidW(found.User.Sid, &mut text) })?;
    let text = Local(text.cast());
    let mut name = Vec::new();
    for at in 0.. {
        // SAFETY: the text ends with a zero, behind which nothing is read.
        match unsafe { *text.0.cast::<u16>().add(at) } {
            0 => break,
            unit => name.push(unit),
        }
    }
    Ok(String::from_utf16_lossy(&name))
}

/// A path as the system takes it whatever its length, as the standard library does it for other calls.
fn verbatim(path: &Path) -> io::Result<Vec<u16>> {
    let whole = std::path::absolute(path)?;
    let start = match whole.components().next() {
        Some(Component::Prefix(prefix)) if whole.as_os_str().encode_wide().count() > PLAIN_MAX => {
            prefix.kind()
        }
        _ => return with_end(path.as_os_str()),
    };
    let mut long = std::ffi::OsString::from(r"\\?\");
    match (start, whole.to_str()) {
        (Prefix::Disk(_), _) => long.push(&whole),
        (Prefix::UNC(..), Some(text)) => long.push(format!(r"UNC\{}", text.trim_start_matches('\\'))),
        _ => return with_end(path.as_os_str()),
    }
    with_end(&long)
}

fn with_end(path: &OsStr) -> io::Result<Vec<u16>> {
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
    fn the_user_has_a_number() {
        assert!(user().expect("a token").starts_with("S-1-"));
    }

    #[test]
    fn a_folder_is_made_once_and_used() {
        let root = tempfile::tempdir().expect("a folder");
        let folder = root.path().join("private");
        make_folder(&folder).expect("a new folder");
        assert_eq!(make_folder(&folder).expect_err("twice").kind(), io::ErrorKind::AlreadyExists);
        std::fs::write(folder.join("file"), "ours").expect("a file");
        assert_eq!(std::fs::read(folder.join("file")).expect("a file"), b"ours");
    }

    #[test]
    fn a_path_may_be_long() {
        let root = tempfile::tempdir().expect("a folder");
        let mut folder = root.path().to_owned();
        while folder.as_os_str().len() < 600 {
            folder.push("f".repeat(100));
            make_folder(&folder).expect("a new folder");
        }
        std::fs::write(folder.join("file"), "ours").expect("a file");
        let share: String = String::from_utf16_lossy(
            &verbatim(Path::new(&format!(r"\\server\share\{}", "x/".repeat(200)))).expect("a path"),
        );
        assert!(share.starts_with(r"\\?\UNC\server\share\x\x\"), "{share}");
    }
}
