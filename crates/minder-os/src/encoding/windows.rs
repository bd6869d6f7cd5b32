//! Windows: names are UTF-16, in which surrogates may be unpaired.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::os::windows::ffi::OsStringExt;

use super::wtf8;

pub(super) fn os_string_from_encoded(bytes: Vec<u8>) -> OsString {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => OsString::from_wide(&wtf8::units_or_replaced(error.as_bytes())),
    }
}

pub(super) fn os_string_from_bytes(bytes: Vec<u8>) -> Result<OsString, Vec<u8>> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => match wtf8::units(error.as_bytes()) {
            Ok(units) => Ok(OsString::from_wide(&units)),
            Err(_) => Err(error.into_bytes()),
        },
    }
}

pub(super) fn os_str_from_encoded(bytes: &[u8]) -> Cow<'_, OsStr> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(OsStr::new(text)),
        Err(_) => Cow::Owned(OsString::from_wide(&wtf8::units_or_replaced(bytes))),
    }
}
