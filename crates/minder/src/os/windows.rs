//! Windows: handles as sources and as news.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::windows::ffi::OsStringExt;
use std::os::windows::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::os::windows::io::{AsHandle, AsSocket};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_ATTRIBUTE_REPARSE_POINT, FILE_FLAG_OPEN_REPARSE_POINT, SECURITY_IDENTIFICATION,
};

use super::{Standard, wtf8};
use crate::Source;
use crate::command::Size;
use crate::event::{Interest, Status};

impl<'a, H: AsHandle> From<&'a H> for Source<'a> {
    fn from(source: &'a H) -> Self {
        Self(crate::sys::wait::Source::handle(source))
    }
}

impl<'a> Source<'a> {
    /// A socket: level-triggered or one-shot; [`edge`](crate::Interest::edge) is `Unsupported`. It is told by the driver of
    /// sockets (AFD), which is not documented; libuv and mio use it, too.
    ///
    /// ```
    /// use minder::{Events, Interest, Poller, Source, Token};
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let poller = Poller::new()?;
    /// poller.add(Source::socket(&server), Token(1), Interest::READABLE)?;
    /// let client = std::net::TcpStream::connect(server.local_addr()?)?;
    /// assert_eq!(poller.wait(&mut Events::new(), None)?, 1);
    /// poller.delete(Source::socket(&server))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn socket(socket: &'a impl AsSocket) -> Self {
        Self(crate::sys::wait::Source::socket(socket))
    }
}

pub use crate::sys::wait::News;

/// See [`super::Line`].
pub(super) use crate::sys::spawn::Line;

/// See [`crate::Descriptors::inherited`]: there are none.
pub(super) fn inherited_descriptors() -> Vec<i32> {
    Vec::new()
}

/// See [`crate::Descriptors::close_on_exec`]: std's handles are not inherited.
pub(super) fn close_on_exec(_number: i32) {}

/// There are no numbers.
pub(super) fn descriptor_of(_file: &File) -> i32 {
    -1
}

/// See [`super::TEMP_VARIABLE`].
pub(super) const TEMP_VARIABLE: &str = "TMP";

/// See [`super::standard`].
pub(super) fn standard(which: Standard) -> io::Result<File> {
    let copy = match which {
        Standard::Input => io::stdin().as_handle().try_clone_to_owned(),
        Standard::Output => io::stdout().as_handle().try_clone_to_owned(),
        Standard::Error => io::stderr().as_handle().try_clone_to_owned(),
    };
    copy.map(File::from)
}

/// See [`super::wait_ready`].
pub(super) fn wait_ready(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    super::wait_by_poller(source, interest, deadline)
}

/// See [`super::system_shell`].
pub(super) fn system_shell() -> PathBuf {
    crate::sys::spawn::system_folder().join("cmd.exe")
}

/// See [`super::may_be_killed`].
pub(super) fn may_be_killed(status: Status) -> bool {
    status == Status::Exited(crate::sys::tree::KILLED.cast_signed())
}

/// See [`super::may_be_told_to_end`].
pub(super) fn may_be_told_to_end(status: Status) -> bool {
    /// `STATUS_CONTROL_C_EXIT` of ntstatus.h.
    const CONTROL_C_EXIT: u32 = 0xC000_013A;
    status == Status::Exited(CONTROL_C_EXIT.cast_signed())
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(_signal: i32) -> bool {
    false
}

/// See [`super::signal_number`].
pub(super) fn signal_number(name: &str) -> Option<i32> {
    // Those by which people end programs; a job object knows one way only.
    let known = [("HUP", 1), ("INT", 2), ("QUIT", 3), ("KILL", 9), ("TERM", 15)];
    known.into_iter().find_map(|(known, number)| (known == name).then_some(number))
}

/// See [`super::can_ask`].
pub(super) fn can_ask() -> bool {
    false
}

/// See [`super::can_suspend`].
pub(super) fn can_suspend() -> bool {
    false
}

/// See [`super::has_terminal`].
pub(super) fn has_terminal() -> bool {
    false
}

/// See [`super::terminal`].
pub(super) fn terminal() -> io::Result<File> {
    std::fs::OpenOptions::new().read(true).write(true).open("CONIN$")
}

/// See [`super::argument`].
pub(super) fn argument(bytes: Vec<u8>) -> OsString {
    match String::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(error) => OsString::from_wide(&wtf8::units_or_replaced(error.as_bytes())),
    }
}

/// See [`super::foreign`].
pub(super) fn foreign(bytes: Vec<u8>) -> Result<OsString, Vec<u8>> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.into()),
        Err(error) => match wtf8::units(error.as_bytes()) {
            Ok(units) => Ok(OsString::from_wide(&units)),
            Err(_) => Err(error.into_bytes()),
        },
    }
}

/// See [`super::os_str`].
pub(super) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    match str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(OsStr::new(text)),
        Err(_) => Cow::Owned(OsString::from_wide(&wtf8::units_or_replaced(bytes))),
    }
}

/// See [`super::write_console`].
pub(super) fn write_console(file: &File, bytes: &[u8]) -> io::Result<bool> {
    crate::sys::console::write(file, bytes)
}

/// See [`super::nameless_file`].
pub(super) fn nameless_file(folder: &Path) -> io::Result<File> {
    tempfile::tempfile_in(folder)
}

/// See [`super::private_file`].
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create_new(true).open(path)
}

/// See [`super::remove_open`].
pub(super) fn remove_open(path: &Path) -> io::Result<()> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let mut aside = path.as_os_str().to_owned();
    aside.push(format!(".{}-{}.gone", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed)));
    std::fs::rename(path, &aside)?;
    std::fs::remove_file(&aside).inspect_err(|_| {
        // It is a folder, or must not be removed: it stays what it was.
        let _ = std::fs::rename(&aside, path);
    })
}

/// See [`super::private_pipe`].
pub(super) fn private_pipe(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::private_folder`].
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    crate::sys::private::make_folder(path)
}

/// See [`super::open_plain`].
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    // Whoever serves a pipe of this name learns who we are, and cannot act as us.
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(FILE_FLAG_OPEN_REPARSE_POINT).security_qos_flags(SECURITY_IDENTIFICATION);
    let file = options.open(path)?;
    let refused = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidInput, what));
    // A device and a pipe have no such attributes.
    let Ok(about) = file.metadata() else { return refused("not a regular file") };
    match about.file_attributes() & FILE_ATTRIBUTE_REPARSE_POINT {
        _ if about.is_symlink() => refused("a link"),
        0 if about.is_file() => Ok(file),
        0 => refused("not a regular file"),
        // No link, but for instance a file whose blocks are stored elsewhere: its content is had without the flag.
        _ => File::open(path),
    }
}

/// See [`super::is_own`].
pub(super) fn is_own(_about: &Metadata) -> bool {
    true
}

/// See [`super::others_may_write`].
pub(super) fn others_may_write(_about: &Metadata) -> bool {
    false
}

/// See [`super::make_private`].
pub(super) fn make_private(_folder: &Path) -> io::Result<()> {
    Ok(())
}

/// See [`super::read_at`].
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.seek_read(buffer, at)
}

/// See [`super::write_all_at`].
pub(super) fn write_all_at(file: &File, mut bytes: &[u8], mut at: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match file.seek_write(bytes, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => (bytes, at) = (&bytes[count..], at + count as u64),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => (),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// See [`super::send`].
pub(super) fn send(_from: &File, _at: u64, _len: u64, _to: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::enlarge_pipe`].
pub(super) fn enlarge_pipe(_pipe: &File) {}

/// See [`super::path_of_input`].
pub(super) fn path_of_input() -> Option<PathBuf> {
    None
}

/// See [`super::terminal_name`].
pub(super) fn terminal_name() -> Option<OsString> {
    None
}

/// See [`super::nice_for`].
pub(super) fn nice_for(niceness: i32) -> i32 {
    niceness
}

/// See [`super::terminal_size`].
pub(super) fn terminal_size() -> Option<Size> {
    None
}

/// See [`super::stack_size`].
pub(super) fn stack_size() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_files_are_opened() {
        let folder = tempfile::tempdir().expect("a folder");
        let plain = folder.path().join("plain");
        std::fs::write(&plain, "text").expect("a file");
        assert_eq!(io::read_to_string(open_plain(&plain).expect("a file")).expect("text"), "text");
        for odd in [folder.path(), Path::new("NUL"), Path::new(r"\\.\NUL"), &folder.path().join("NUL")] {
            open_plain(odd).expect_err("no plain file");
        }
    }
}
