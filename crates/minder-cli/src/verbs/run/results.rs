//! `--results DIR`: a folder for each job, in GNU parallel's layout: `DIR/1/ARGUMENT/stdout`, `stderr` and `seq`.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use minder::Stream;
use minder::os::{os_str, read_at};

/// The longest name of a folder: what file systems take.
const NAME_MAX: usize = 255;

/// The files of one job.
#[derive(Debug)]
pub(super) struct Results {
    folder: PathBuf,
    files: [File; 2],
}

impl Results {
    /// Makes the folder and its files. What an earlier run left there is replaced, and no link is followed.
    pub(super) fn create(folder: &Path, columns: &[OsString], job: u64) -> io::Result<Self> {
        let mut folder = folder.to_owned();
        for (place, column) in columns.iter().enumerate() {
            folder.push((place + 1).to_string());
            folder.push(os_str(&escape(column.as_encoded_bytes())));
        }
        fs::create_dir_all(&folder)?;
        if fs::symlink_metadata(&folder)?.is_symlink() {
            return Err(io::Error::other(format!("`{}` is a link", folder.display())));
        }
        let make = |name: &str| {
            let path = folder.join(name);
            loop {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                    _ => (),
                }
                match File::create_new(&path) {
                    // A job with the same argument, of the other loop, was quicker: the last one stays.
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
                    made => return made,
                }
            }
        };
        make("seq")?.write_all(job.to_string().as_bytes())?;
        let files = [make("stdout")?, make("stderr")?];
        Ok(Self { folder, files })
    }

    pub(super) fn push(&mut self, stream: Stream, bytes: &[u8]) -> io::Result<()> {
        self.files[stream as usize].write_all(bytes)
    }

    /// Takes a part of a file.
    pub(super) fn push_file(&mut self, stream: Stream, from: &File, mut at: u64, end: u64) -> io::Result<()> {
        let mut buffer = vec![0; 64 << 10];
        while at < end {
            let most = usize::try_from(end - at).unwrap_or(buffer.len()).min(buffer.len());
            let read = read_at(from, &mut buffer[..most], at)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.push(stream, &buffer[..read])?;
            at += read as u64;
        }
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }
}

/// A value as the name of one folder, as GNU parallel writes it: `/` is `\_`, `\` is `\\`, a tab `\t`. Names that would
/// lead elsewhere (`.`, `..`, none at all) get a backslash before them; too long ones are cut, with a checksum.
fn escape(value: &[u8]) -> Vec<u8> {
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
