//! Version: the library that a program has at run time, and the header it was compiled with.
#![expect(unsafe_code, reason = "functions with C linkage")]

use std::ffi::{CStr, c_char};

use crate::status::{Failure, call, minder_status};

/// The major version of this header.
pub const MINDER_VERSION_MAJOR: u32 = 0;
/// The minor version of this header.
pub const MINDER_VERSION_MINOR: u32 = 1;
/// The patch level of this header.
pub const MINDER_VERSION_PATCH: u32 = 0;

const VERSION: u32 = MINDER_VERSION_MAJOR << 16 | MINDER_VERSION_MINOR << 8 | MINDER_VERSION_PATCH;

/// The version of the package, which the constants have to repeat.
const _: () = {
    let version = env!("CARGO_PKG_VERSION").as_bytes();
    let digits = [MINDER_VERSION_MAJOR as u8, MINDER_VERSION_MINOR as u8, MINDER_VERSION_PATCH as u8];
    assert!(version.len() == 5, "a number has two digits now: compare them here, too");
    assert!(
        version[0] == b'0' + digits[0] && version[2] == b'0' + digits[1] && version[4] == b'0' + digits[2]
    );
};

/// Returns the version of the library: major << 16 | minor << 8 | patch. Compare it with MINDER_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn minder_version() -> u32 {
    VERSION
}

/// Returns the version of the library as text, such as "0.1.0".
#[unsafe(no_mangle)]
pub extern "C" fn minder_version_text() -> *const c_char {
    const TEXT: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(text) => text,
        Err(_) => c"",
    };
    TEXT.as_ptr()
}

/// Checks that a program compiled with this header can use the library. Pass MINDER_VERSION.
///
/// Returns MINDER_UNSUPPORTED if the major versions differ, if they are 0 and the minor versions differ, or
/// if the library is older than the header.
#[unsafe(no_mangle)]
pub extern "C" fn minder_check_version(header_version: u32) -> minder_status {
    call(|| {
        // Before 1.0 the minor version is what the major version is later.
        let series = |version: u32| (version >> 16, if version >> 16 == 0 { version >> 8 } else { 0 });
        if series(header_version) == series(VERSION) && header_version <= VERSION {
            return Ok(minder_status::MINDER_OK);
        }
        let text = |version: u32| format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff);
        let header = text(header_version);
        let library = text(VERSION);
        let reason = format!(
            "the program was compiled with minder.h {header}, and the library is {library}; compile it again"
        );
        Err(Failure::new(minder_status::MINDER_UNSUPPORTED, reason))
    })
}
