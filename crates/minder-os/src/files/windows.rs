//! Windows: access rights come from the directory, and open files keep their names.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_ATTRIBUTE_TEMPORARY, FILE_FLAG_DELETE_ON_CLOSE,
    FILE_FLAG_OPEN_REPARSE_POINT, SECURITY_IDENTIFICATION,
};

use super::{acl, new_name};

pub(super) fn open_fifo_now(path: &Path) -> io::Result<Option<File>> {
    OpenOptions::new().write(true).open(path).map(Some)
}

pub(super) fn duplicate_high(file: &File) -> io::Result<File> {
    file.try_clone()
}

pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

pub(super) fn create_file_with_mode(path: &Path, _: u32) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

pub(super) fn mode(_: &Metadata) -> u32 {
    0o644
}

pub(super) fn has_no_locks(_: &io::Error) -> bool {
    false
}

pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    match create_private_file(path) {
        // The system refuses access to a directory, here or when it is opened.
        Err(_) if path.is_dir() => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            // Refuses a link. Opening for writing would follow it.
            drop(open_no_follow(path)?);
            OpenOptions::new().read(true).write(true).open(path)
        }
        created => created,
    }
}

pub(super) fn create_unnamed_file(dir: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    // Nothing else opens it while it exists, and its contents need not reach the disk.
    options.share_mode(0).attributes(FILE_ATTRIBUTE_TEMPORARY).custom_flags(FILE_FLAG_DELETE_ON_CLOSE);
    new_name::create(dir, |path| options.open(path)).map(|(file, _)| file)
}

pub(super) fn create_fifo(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn create_private_dir(path: &Path) -> io::Result<()> {
    acl::create_dir(path)
}

pub(super) fn restrict_to_owner(_dir: &Path) -> io::Result<()> {
    Ok(())
}

pub(super) fn is_fifo(_metadata: &Metadata) -> bool {
    false
}

pub(super) fn is_owned_by_user(_metadata: &Metadata) -> bool {
    true
}

pub(super) fn is_owned_by_user_or_root(_metadata: &Metadata) -> bool {
    true
}

pub(super) fn is_writable_by_others(_metadata: &Metadata) -> bool {
    false
}

pub(super) fn is_executable(_metadata: &Metadata) -> bool {
    true
}

pub(super) fn remove_open_file(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut renamed = path.as_os_str().to_owned();
    renamed.push(format!(".{}-{}.gone", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::rename(path, &renamed)?;
    std::fs::remove_file(&renamed).inspect_err(|_| {
        // The path is a directory, or the file must not be removed: give it its name back.
        let _ = std::fs::rename(&renamed, path);
    })
}

pub(super) fn open_no_follow(path: &Path) -> io::Result<File> {
    // The server of a named pipe learns the user's identity, but cannot act as the user.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).security_qos_flags(SECURITY_IDENTIFICATION);
    let file = options.open(path)?;
    let refuse = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    // A device or a pipe has no such metadata.
    let Ok(metadata) = file.metadata() else { return refuse("not a regular file") };
    match metadata.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT {
        _ if metadata.is_symlink() => refuse("a link"),
        0 if metadata.is_file() => Ok(file),
        0 => refuse("not a regular file"),
        // Not a link: a file whose blocks are stored elsewhere, for example. Without the flag it can be
        // read.
        _ => File::open(path),
    }
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.seek_read(buffer, offset)
}

pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, offset) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => {
                bytes = &bytes[count..];
                offset += count as u64;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(super) fn send_file(_from: &File, _offset: u64, _len: u64, _to: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unnamed_file_cannot_be_opened_again_and_goes_with_its_handle() {
        let dir = tempfile::tempdir().expect("create a directory");
        let names = || -> Vec<_> {
            let entries = std::fs::read_dir(dir.path()).expect("list the directory");
            entries.map(|entry| entry.expect("read an entry").path()).collect()
        };
        let file = create_unnamed_file(dir.path()).expect("create a file");
        let [path] = &names()[..] else { panic!("{:?}", names()) };
        File::open(path).expect_err("it is open elsewhere");
        drop(file);
        assert_eq!(names(), [] as [&Path; 0]);
    }

    #[test]
    fn open_no_follow_refuses_everything_but_regular_files() {
        let dir = tempfile::tempdir().expect("create a directory");
        let plain = dir.path().join("plain");
        std::fs::write(&plain, "text").expect("write a file");
        let file = open_no_follow(&plain).expect("open a regular file");
        assert_eq!(io::read_to_string(file).expect("read it"), "text");
        for path in [dir.path(), Path::new("NUL"), Path::new(r"\\.\NUL"), &dir.path().join("NUL")] {
            open_no_follow(path).expect_err("not a regular file");
        }
    }
}
