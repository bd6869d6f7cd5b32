//! A value as the name of one folder.

/// The longest name of a folder: what file systems take.
const NAME_MAX: usize = 255;

/// A value as the name of one folder, as GNU parallel writes it: `/` is `\_`, `\` is `\\`, a tab `\t`. Names that would
/// lead elsewhere (`.`, `..`, none at all) get a backslash before them; too long ones are cut, with a checksum.
pub(super) fn escape(value: &[u8]) -> Vec<u8> {
    let mut name = Vec::with_capacity(value.len());
    if matches!(value, b"" | b"." | b"..") {
        name.push(b'\\');
    }
    for &byte in value {
        match byte {
            b'/' => name.extend_from_slice(b"\\_"),
            b'\\' => name.extend_from_slice(b"\\\\"),
            b'\t' => name.extend_from_slice(b"\\t"),
            0 => name.extend_from_slice(b"\\0"),
            byte => name.push(byte),
        }
    }
    if name.len() > NAME_MAX {
        let sum = format!("\\~{:08x}", crc32fast::hash(value));
        let mut cut = NAME_MAX - sum.len();
        // Not within a character, which some file systems refuse.
        while cut > 0 && name[cut] & 0xc0 == 0x80 {
            cut -= 1;
        }
        name.truncate(cut);
        name.extend_from_slice(sum.as_bytes());
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_folder() {
        let names = [&b"a b"[..], b"a/b\\c\td", b"..", b"", b"../../etc"].map(escape);
        let texts = names.map(|name| String::from_utf8_lossy(&name).into_owned());
        assert_eq!(texts, ["a b", "a\\_b\\\\c\\td", "\\..", "\\", "..\\_..\\_etc"]);
        let long = escape("ä".repeat(400).as_bytes());
        assert!(long.len() <= NAME_MAX && std::str::from_utf8(&long).is_ok());
        assert_ne!(long, escape("ä".repeat(401).as_bytes()));
    }
}
