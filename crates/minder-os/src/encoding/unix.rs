//! Unix: names are bytes.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};

pub(super) fn os_string_from_encoded(bytes: Vec<u8>) -> OsString {
    OsString::from_vec(bytes)
}

pub(super) fn os_string_from_bytes(bytes: Vec<u8>) -> Result<OsString, Vec<u8>> {
    Ok(OsString::from_vec(bytes))
}

pub(super) fn os_str_from_encoded(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(OsStr::from_bytes(bytes))
}
