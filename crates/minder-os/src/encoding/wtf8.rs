//! The encoding of Windows strings as bytes: UTF-8, and three bytes for each unpaired surrogate
//! (WTF-8).
//!
//! That is what [`OsStr::as_encoded_bytes`](std::ffi::OsStr::as_encoded_bytes) gives on Windows.
//! The standard library has no safe way back; this one goes through UTF-16, where nothing can be
//! lost.

/// Decodes bytes to UTF-16, in which surrogates may be unpaired.
///
/// # Errors
/// The index of the first byte that is neither UTF-8 nor part of a surrogate.
pub(super) fn units(bytes: &[u8]) -> Result<Vec<u16>, usize> {
    let mut units = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let text = match std::str::from_utf8(&bytes[at..]) {
            Ok(text) => text,
            Err(error) => str::from_utf8(&bytes[at..at + error.valid_up_to()]).unwrap_or_default(),
        };
        units.extend(text.encode_utf16());
        at += text.len();
        if at < bytes.len() {
            units.push(surrogate(&bytes[at..]).ok_or(at)?);
            at += SURROGATE_LEN;
        }
    }
    Ok(units)
}

/// The same for bytes that may be anything: U+FFFD stands for what is neither.
pub(super) fn units_or_replaced(mut bytes: &[u8]) -> Vec<u16> {
    let mut all = Vec::with_capacity(bytes.len());
    loop {
        match units(bytes) {
            Ok(rest) => {
                all.extend(rest);
                return all;
            }
            Err(at) => {
                all.extend(units(&bytes[..at]).unwrap_or_default());
                all.push(0xfffd);
                // The bytes of an incomplete character become one U+FFFD.
                let begun = bytes[at..].utf8_chunks().next().map_or(1, |chunk| chunk.invalid().len());
                bytes = &bytes[at + begun.max(1)..];
            }
        }
    }
}

/// The number of bytes of an unpaired surrogate.
const SURROGATE_LEN: usize = 3;

/// The surrogate that these bytes begin with.
fn surrogate(bytes: &[u8]) -> Option<u16> {
    match *bytes {
        [0xed, high @ 0xa0..=0xbf, low @ 0x80..=0xbf, ..] => {
            Some(0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_surrogates_that_stand_alone() {
        let emoji: Vec<u16> = "a😀".encode_utf16().collect();
        assert_eq!(units("a😀".as_bytes()), Ok(emoji));
        assert_eq!(units(b""), Ok(vec![]));
        assert_eq!(units(b"x\xed\xa0\x80y"), Ok(vec![0x78, 0xd800, 0x79]));
        assert_eq!(units(b"\xed\xbf\xbf"), Ok(vec![0xdfff]));
        // The last character before the surrogates.
        assert_eq!(units(b"\xed\x9f\xbf"), Ok(vec![0xd7ff]));
        // Two that were put together are one character.
        assert_eq!(
            String::from_utf16(&units(b"\xed\xa0\xbd\xed\xb8\x80").expect("decode surrogates"))
                .expect("decode UTF-16"),
            "😀"
        );
    }

    #[test]
    fn what_is_neither_is_found_or_replaced() {
        assert_eq!(units(b"ab\xffc"), Err(2));
        assert_eq!(units(b"\xed\xa0"), Err(0));
        assert_eq!(units(b"\xed\xa0\x80\xe2\x82"), Err(3));
        let replaced = |bytes: &[u8]| String::from_utf16_lossy(&units_or_replaced(bytes));
        for bytes in [&b"ab\xffc"[..], b"\xff\xfe", b"caf\xe9", b"\xe2\x82", b"\xe2\x82x", b"plain"] {
            assert_eq!(replaced(bytes), String::from_utf8_lossy(bytes));
        }
        assert_eq!(units_or_replaced(b"\xff\xed\xa0\x80"), [0xfffd, 0xd800]);
    }

    #[cfg(windows)]
    #[test]
    fn units_restores_every_utf16_name() {
        use std::ffi::OsString;
        use std::os::windows::ffi::OsStringExt;

        // Each unit next to each kind of neighbour.
        for unit in 0..=u16::MAX {
            for (before, after) in [(0x61, 0x62), (0xd83d, 0x62), (0x61, 0xde00), (0xdc00, 0xd800)] {
                let name = OsString::from_wide(&[before, unit, after]);
                let back =
                    OsString::from_wide(&units(name.as_encoded_bytes()).expect("decode encoded bytes"));
                assert_eq!(name, back, "{unit:04x}");
            }
        }
    }
}
