//! Text for a Windows console, which reads bytes in a code page that is seldom UTF-8, and UTF-16 as
//! it is (WriteConsoleW).

#![expect(unsafe_code, reason = "two calls for consoles")]

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::null;

use windows_sys::Win32::System::Console::{GetConsoleMode, WriteConsoleW};

/// The most units of one call: older consoles share a buffer of 64 KiB between all processes.
const UNITS_MAX: usize = 8 << 10;

/// Writes text to a console. Returns false, and writes nothing, if the file is not a console or the
/// bytes are not UTF-8.
pub(super) fn write(file: &File, bytes: &[u8]) -> io::Result<bool> {
    let mut mode = 0;
    // SAFETY: the file is open, and `mode` outlives the call.
    let is_console = unsafe { GetConsoleMode(file.as_raw_handle(), &mut mode) } != 0;
    let text = match str::from_utf8(bytes) {
        Ok(text) if is_console => text,
        _ => return Ok(false),
    };
    let units: Vec<u16> = text.encode_utf16().collect();
    let mut rest = units.as_slice();
    while !rest.is_empty() {
        let count = whole_characters(rest, UNITS_MAX);
        let handle = file.as_raw_handle();
        let mut written = 0;
        // SAFETY: the file is open, `rest` has at least `count` units, and `written` outlives the call.
        let result =
            unsafe { WriteConsoleW(handle, rest.as_ptr().cast(), count as u32, &mut written, null()) };
        if result == 0 {
            return Err(io::Error::last_os_error());
        }
        if written == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = &rest[rest.len().min(written as usize)..];
    }
    Ok(true)
}

/// Returns the number of units, at most `max`, that ends with a whole character.
fn whole_characters(units: &[u16], max: usize) -> usize {
    match units.get(max - 1) {
        Some(0xd800..=0xdbff) if units.len() > max => max - 1,
        _ => units.len().min(max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn surrogate_pairs_are_not_split() {
        let units: Vec<u16> = "ab😀c".encode_utf16().collect();
        assert_eq!([1, 2, 3, 4, 5, 9].map(|max| whole_characters(&units, max)), [1, 2, 2, 4, 5, 5]);
    }

    #[test]
    fn write_refuses_a_file_that_is_not_a_console() {
        assert!(!write(&tempfile::tempfile().expect("create a file"), b"text").expect("ask for its mode"));
    }
}
