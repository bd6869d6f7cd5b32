//! Text for a Windows console, which reads bytes in a code page that is seldom UTF-8, and UTF-16 as it is (WriteConsoleW).

#![expect(unsafe_code, reason = "two calls for consoles")]

use std::fs::File;
use std::io;
use std::os::windows::io::AsRawHandle;
use std::ptr::null;

use windows_sys::Win32::System::Console::{GetConsoleMode, WriteConsoleW};

/// Units that are written at once: older consoles have 64 KiB for one call, theirs and others'.
const UNITS_MAX: usize = 8 << 10;

/// Writes text to a console. False: the file is no console, or the bytes are no UTF-8; then nothing was written.
pub(crate) fn write(file: &File, bytes: &[u8]) -> io::Result<bool> {
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
        let most = whole(rest, UNITS_MAX);
        let (mut wrote, handle) = (0, file.as_raw_handle());
        // SAFETY: the file is open; so many units stand there, and `wrote` outlives the call.
        let answer = unsafe { WriteConsoleW(handle, rest.as_ptr().cast(), most as u32, &mut wrote, null()) };
        if answer == 0 {
            return Err(io::Error::last_os_error());
        }
        if wrote == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        rest = &rest[rest.len().min(wrote as usize)..];
    }
    Ok(true)
}

/// At most so many units, and no half of a character.
fn whole(units: &[u16], most: usize) -> usize {
    match units.get(most - 1) {
        Some(0xd800..=0xdbff) if units.len() > most => most - 1,
        _ => units.len().min(most),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_character_is_torn() {
        let units: Vec<u16> = "ab😀c".encode_utf16().collect();
        assert_eq!([1, 2, 3, 4, 5, 9].map(|most| whole(&units, most)), [1, 2, 2, 4, 5, 5]);
    }

    #[test]
    fn a_file_is_no_console() {
        assert!(!write(&tempfile::tempfile().expect("a file"), b"text").expect("an answer"));
    }
}
