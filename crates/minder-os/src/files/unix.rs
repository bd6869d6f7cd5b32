//! Unix: modes, `O_NOFOLLOW` and unnamed files.

use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use super::new_name;

/// The flags that follow no link. Without `O_NONBLOCK`, opening a named pipe waits for a writer. Without
/// `O_NOCTTY`, a terminal may become the controlling terminal of this process.
const NO_FOLLOW: i32 = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;

pub(super) fn create_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

pub(super) fn create_file_with_mode(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(mode & 0o777 | 0o200).custom_flags(libc::O_NOFOLLOW).open(path)
}

pub(super) fn mode(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o777
}

pub(super) fn has_no_locks(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::NOLCK.raw_os_error())
}

pub(super) fn open_private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    match options.custom_flags(NO_FOLLOW).open(path) {
        Err(error) if error.kind() == io::ErrorKind::IsADirectory => Err(not_regular()),
        opened => regular(opened?),
    }
}

pub(super) fn create_unnamed_file(dir: &Path) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut options = OpenOptions::new();
        // `O_EXCL` prevents that the file gets a name later.
        let flags = libc::O_TMPFILE | libc::O_EXCL;
        if let Ok(file) = options.read(true).write(true).mode(0o600).custom_flags(flags).open(dir) {
            return Ok(file);
        }
    }
    create_removed_file(dir)
}

/// Creates a file and removes its name.
fn create_removed_file(dir: &Path) -> io::Result<File> {
    let (file, path) = new_name::create(dir, create_private_file)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

pub(super) fn open_fifo_now(path: &Path) -> io::Result<Option<File>> {
    match OpenOptions::new().write(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => Ok(None),
        opened => opened.map(Some),
    }
}

pub(super) fn duplicate_high(file: &File) -> io::Result<File> {
    /// Shells use numbers around 10 and 255 themselves, scripts those below 10.
    const LOWEST: i32 = 200;
    let high = rustix::io::fcntl_dupfd_cloexec(file, LOWEST);
    high.map(File::from).or_else(|_| file.try_clone())
}

#[cfg(not(target_vendor = "apple"))]
pub(super) fn create_fifo(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

#[cfg(target_vendor = "apple")]
pub(super) fn create_fifo(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn create_private_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

pub(super) fn restrict_to_owner(dir: &Path) -> io::Result<()> {
    std::fs::set_permissions(dir, Permissions::from_mode(0o700))
}

pub(super) fn is_fifo(metadata: &Metadata) -> bool {
    metadata.file_type().is_fifo()
}

pub(super) fn is_owned_by_user(metadata: &Metadata) -> bool {
    metadata.uid() == rustix::process::geteuid().as_raw()
}

pub(super) fn is_owned_by_user_or_root(metadata: &Metadata) -> bool {
    metadata.uid() == 0 || is_owned_by_user(metadata)
}

pub(super) fn is_writable_by_others(metadata: &Metadata) -> bool {
    metadata.mode() & 0o022 != 0
}

pub(super) fn is_executable(metadata: &Metadata) -> bool {
    metadata.mode() & 0o111 != 0
}

pub(super) fn remove_open_file(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

pub(super) fn open_no_follow(path: &Path) -> io::Result<File> {
    regular(OpenOptions::new().read(true).custom_flags(NO_FOLLOW).open(path)?)
}

/// Returns the file if it is a regular one. The path may refer to another file by now, so the type is
/// read from the descriptor.
fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")
}

pub(super) fn read_at(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    file.read_at(buffer, offset)
}

pub(super) fn write_all_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    file.write_all_at(bytes, offset)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn send_file(from: &File, mut offset: u64, len: u64, to: &File) -> io::Result<u64> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Ok(rustix::fs::sendfile(to, from, Some(&mut offset), len)? as u64)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn send_file(_from: &File, _offset: u64, _len: u64, _to: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn open_no_follow_refuses_everything_but_regular_files() {
        let dir = tempfile::tempdir().expect("create a directory");
        let at = |name: &str| dir.path().join(name);
        fs::write(at("plain"), "text").expect("write a file");
        let file = open_no_follow(&at("plain")).expect("open a regular file");
        assert_eq!(io::read_to_string(file).expect("read it"), "text");
        std::os::unix::fs::symlink(at("plain"), at("link")).expect("create a link");
        #[cfg(not(target_vendor = "apple"))]
        create_fifo(&at("fifo")).expect("create a named pipe");
        assert!(is_fifo(&at("fifo").metadata().expect("read metadata")));
        // If the call could block, the named pipe would block it here.
        for path in [at("link"), at("fifo"), dir.path().to_owned(), "/dev/null".into()] {
            open_no_follow(&path).expect_err("not a regular file");
        }
    }

    #[test]
    fn open_private_file_creates_for_its_owner_and_follows_no_link() {
        let dir = tempfile::tempdir().expect("create a directory");
        let at = |name: &str| dir.path().join(name);
        let file = open_private_file(&at("new")).expect("create a file");
        assert_eq!(file.metadata().expect("read the mode").mode() & 0o7777, 0o600);
        file.write_all_at(b"text", 0).expect("write");
        drop(open_private_file(&at("new")).expect("open it again"));
        assert_eq!(fs::read(at("new")).expect("read it"), b"text");
        for target in ["new", "missing"] {
            std::os::unix::fs::symlink(at(target), at("link")).expect("create a link");
            let error = open_private_file(&at("link")).expect_err("open a link");
            assert_eq!(error.raw_os_error(), Some(libc::ELOOP), "{target}");
            fs::remove_file(at("link")).expect("remove the link");
        }
        assert!(!at("missing").exists());
        open_private_file(dir.path()).expect_err("open a directory");
    }

    #[test]
    fn removed_file_has_no_name_and_belongs_to_its_owner() {
        let dir = tempfile::tempdir().expect("create a directory");
        let file = create_removed_file(dir.path()).expect("create a file");
        assert_eq!(fs::read_dir(dir.path()).expect("list the directory").count(), 0);
        let metadata = file.metadata().expect("read the mode");
        assert_eq!((metadata.mode() & 0o7777, metadata.nlink()), (0o600, 0));
        file.write_all_at(b"text", 0).expect("write");
        let mut text = [0; 4];
        file.read_exact_at(&mut text, 0).expect("read");
        assert_eq!(&text, b"text");
    }

    #[test]
    fn restrict_to_owner_removes_all_other_rights() {
        let dir = tempfile::tempdir().expect("create a directory");
        for (mode, open) in [(0o777, true), (0o1777, true), (0o775, true), (0o755, false), (0o700, false)] {
            fs::set_permissions(dir.path(), Permissions::from_mode(mode)).expect("set the mode");
            let metadata = fs::metadata(dir.path()).expect("read the mode");
            assert!(is_owned_by_user(&metadata) && is_owned_by_user_or_root(&metadata));
            assert_eq!(is_writable_by_others(&metadata), open, "{mode:o}");
            restrict_to_owner(dir.path()).expect("restrict the directory");
            assert_eq!(fs::metadata(dir.path()).expect("read the mode").mode() & 0o7777, 0o700);
        }
    }
}
