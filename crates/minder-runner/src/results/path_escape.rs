//! Turns a value into the name of one directory.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The longest name that file systems accept.
const NAME_MAX: usize = 255;

/// The rules for names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathRules {
    /// Any byte except the slash, written as GNU parallel writes it.
    Unix,
    /// Names that Windows accepts: no `<>:"/\|?*`, no control character, no dot or space at the
    /// end, and no name of a device ("Naming Files, Paths, and Namespaces").
    Windows,
}

impl PathRules {
    /// Returns the rules of this operating system.
    pub(crate) fn of_system() -> Self {
        if std::env::consts::FAMILY == "windows" { Self::Windows } else { Self::Unix }
    }

    /// Returns a value as the name of one directory, different for each value. A name that is too
    /// long is cut and gets a checksum.
    ///
    /// - Unix: `/` becomes `\_`, `\` becomes `\\`, a tab `\t`. Names that would lead elsewhere
    ///   (`.`, `..`, the empty name) get a backslash before them.
    /// - Windows: bytes that no name may contain, and `%` itself, become `%` and two hexadecimal
    ///   digits. The empty value becomes `%`.
    pub(crate) fn escape(self, value: &[u8]) -> Vec<u8> {
        let mut name = match self {
            Self::Unix => like_gnu(value),
            Self::Windows => percent(value),
        };
        if name.len() > NAME_MAX {
            self.cut(&mut name, value);
        }
        name
    }

    /// Returns another name for a value whose name is that of another value's directory.
    fn escape_apart(self, value: &[u8]) -> Vec<u8> {
        let mut name = self.escape(value);
        self.cut(&mut name, value);
        name
    }

    /// Ends a name, which may be too long, with the checksum of the value. No other name ends like
    /// this.
    fn cut(self, name: &mut Vec<u8>, value: &[u8]) {
        let (escape, sum) = match self {
            Self::Unix => (b'\\', format!("\\~{:08x}", crc32fast::hash(value))),
            Self::Windows => (b'%', format!("%~{:08x}", crc32fast::hash(value))),
        };
        let mut cut = name.len().min(NAME_MAX - sum.len());
        // Not within a character, which some file systems refuse, and not within an escape.
        while cut > 0 && name.get(cut).is_some_and(|byte| byte & 0xc0 == 0x80) {
            cut -= 1;
        }
        if self == Self::Windows && name.len() > cut {
            cut -= name[..cut].iter().rev().take(2).position(|byte| *byte == escape).map_or(0, |at| at + 1);
        }
        name.truncate(cut);
        name.extend_from_slice(sum.as_bytes());
    }
}

fn like_gnu(value: &[u8]) -> Vec<u8> {
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
    name
}

fn percent(value: &[u8]) -> Vec<u8> {
    if value.is_empty() {
        return b"%".to_vec();
    }
    let mut name = Vec::with_capacity(value.len());
    let device = is_device(value);
    for (at, &byte) in value.iter().enumerate() {
        let last = at + 1 == value.len();
        match byte {
            b'<' | b'>' | b':' | b'"' | b'/' | b'\\' | b'|' | b'?' | b'*' | b'%' | ..=0x1f => {
                hex(byte, &mut name)
            }
            b'.' | b' ' if last => hex(byte, &mut name),
            _ if device && at == 0 => hex(byte, &mut name),
            byte => name.push(byte),
        }
    }
    name
}

fn hex(byte: u8, name: &mut Vec<u8>) {
    name.extend_from_slice(format!("%{byte:02X}").as_bytes());
}

/// Returns `true` if a file of this name is a device in every directory, whatever its extension.
fn is_device(value: &[u8]) -> bool {
    let end = value.iter().position(|byte| matches!(byte, b'.' | b':')).unwrap_or(value.len());
    let stem = value[..end].trim_ascii_end().to_ascii_uppercase();
    match stem.as_slice() {
        b"CON" | b"PRN" | b"AUX" | b"NUL" | b"CONIN$" | b"CONOUT$" => true,
        // Superscript digits count as digits.
        [b'C', b'O', b'M', digit @ ..] | [b'L', b'P', b'T', digit @ ..] => {
            matches!(digit, [b'0'..=b'9'] | [0xc2, 0xb9 | 0xb2 | 0xb3])
        }
        _ => false,
    }
}

/// Creates the directory of a value in another one, if it does not exist.
///
/// Where names that differ only in case are the same, the first value gets the name. The name of
/// the other one ends with a checksum.
pub(crate) fn create_value_dir(parent: &Path, value: &OsStr, rules: PathRules) -> io::Result<PathBuf> {
    let value = value.as_encoded_bytes();
    let dir = parent.join(minder_os::encoding::os_str_from_encoded(&rules.escape(value)));
    match fs::create_dir(&dir) {
        // The name may be that of a dangling link.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && fs::exists(&dir).unwrap_or(true) => {}
        made => return made.map(|()| dir),
    }
    if is_named_so(&dir) {
        return Ok(dir);
    }
    let apart = parent.join(minder_os::encoding::os_str_from_encoded(&rules.escape_apart(value)));
    match fs::create_dir(&apart) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(apart),
    }
}

/// Returns `true` if an existing directory has exactly this name, not one that differs in case.
fn is_named_so(dir: &Path) -> bool {
    let lower = |path: &Path| path.file_name().map(|name| name.to_string_lossy().to_lowercase());
    match fs::canonicalize(dir) {
        Ok(whole) => whole.file_name() == dir.file_name() || lower(&whole) != lower(dir),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_value_is_one_directory() {
        let names =
            [&b"a b"[..], b"a/b\\c\td", b"..", b"", b"../../etc"].map(|value| PathRules::Unix.escape(value));
        let texts = names.map(|name| String::from_utf8_lossy(&name).into_owned());
        assert_eq!(texts, ["a b", "a\\_b\\\\c\\td", "\\..", "\\", "..\\_..\\_etc"]);
    }

    #[test]
    fn windows_value_is_one_directory() {
        for (value, name) in [
            ("a b", "a b"),
            ("", "%"),
            (".", "%2E"),
            ("..", ".%2E"),
            ("a.", "a%2E"),
            ("a ", "a%20"),
            (" .a", " .a"),
            (r"C:\x/y", "C%3A%5Cx%2Fy"),
            ("<>\"|?*%\t\n", "%3C%3E%22%7C%3F%2A%25%09%0A"),
            ("NUL", "%4EUL"),
            ("con.txt", "%63on.txt"),
            ("Com1 .x", "%43om1 .x"),
            ("lpt²", "%6Cpt²"),
            ("CONIN$", "%43ONIN$"),
            ("COM", "COM"),
            ("com10", "com10"),
            ("null", "null"),
            ("naïve", "naïve"),
        ] {
            assert_eq!(
                String::from_utf8_lossy(&PathRules::Windows.escape(value.as_bytes())),
                name,
                "{value:?}"
            );
        }
    }

    #[test]
    fn long_values_are_cut_and_stay_distinct() {
        for rules in [PathRules::Unix, PathRules::Windows] {
            for letter in ["ä", "/", "x"] {
                let long = rules.escape(letter.repeat(400).as_bytes());
                assert!(long.len() <= NAME_MAX && std::str::from_utf8(&long).is_ok());
                assert_ne!(long, rules.escape(letter.repeat(401).as_bytes()));
            }
        }
        let cut = PathRules::Windows.escape(&[b'/'; 400]);
        assert!(cut[..cut.len() - 10].chunks(3).all(|chunk| chunk == b"%2F"), "{cut:?}");
    }

    #[test]
    fn names_that_differ_in_case_get_two_directories() {
        let root = tempfile::tempdir().expect("create temp dir");
        let rules = PathRules::of_system();
        let make =
            |value: &str| create_value_dir(root.path(), OsStr::new(value), rules).expect("create directory");
        let one = make("readme");
        let other = make("README");
        assert_eq!((make("readme"), make("README")), (one.clone(), other.clone()));
        fs::write(one.join("f"), "1").expect("write file");
        fs::write(other.join("f"), "2").expect("write file");
        assert_eq!(fs::read(one.join("f")).expect("read file"), b"1");
    }
}
