//! Conversions between bytes and [`OsStr`].
//!
//! - Unix: an `OsStr` is any sequence of bytes.
//! - Windows: an `OsStr` is a sequence of UTF-16 units. As bytes it is UTF-8, in which an unpaired
//!   surrogate takes three bytes (WTF-8); see [`OsStr::as_encoded_bytes`].

#[cfg(unix)]
mod unix;
#[cfg(any(windows, test))]
mod wtf8;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};

/// Converts bytes that came from an [`OsStr`] of this system back to an [`OsString`].
///
/// - Windows: the conversion is exact for whole names and for parts that were cut at ASCII
///   characters. Bytes that no name contains are replaced by U+FFFD. Use [`os_string_from_bytes`]
///   for bytes from elsewhere.
///
/// ```
/// use minder_os::encoding::os_string_from_encoded;
/// assert_eq!(os_string_from_encoded("naïve.txt".into()), "naïve.txt");
/// ```
#[must_use]
pub fn os_string_from_encoded(bytes: Vec<u8>) -> OsString {
    system::os_string_from_encoded(bytes)
}

/// Converts bytes from a file or a pipe to an argument or a file name.
///
/// # Errors
/// Returns the bytes if they are not a name on this system. On Windows these are bytes that are
/// neither UTF-8 nor unpaired surrogates; Unix accepts all bytes.
///
/// ```
/// use minder_os::encoding::os_string_from_bytes;
/// assert_eq!(os_string_from_bytes("naïve.txt".into()).expect("valid everywhere"), "naïve.txt");
/// assert_eq!(os_string_from_bytes(vec![0xff]).is_ok(), cfg!(unix));
/// ```
pub fn os_string_from_bytes(bytes: Vec<u8>) -> Result<OsString, Vec<u8>> {
    system::os_string_from_bytes(bytes)
}

/// Borrows bytes that were cut from an [`OsStr`] at ASCII characters as an `OsStr`.
///
/// - Windows: the result is owned if the bytes contain an unpaired surrogate.
#[must_use]
pub fn os_str_from_encoded(bytes: &[u8]) -> Cow<'_, OsStr> {
    system::os_str_from_encoded(bytes)
}
