//! Unix: descriptors as sources and as news.

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Standard;
use crate::Source;
use crate::command::{Command, Size};
use crate::event::{Interest, Status};

impl<'a, F: AsFd> From<&'a F> for Source<'a> {
    fn from(source: &'a F) -> Self {
        Self(crate::sys::wait::Source::descriptor(source))
    }
}

impl<'a> Source<'a> {
    /// A socket. On Unix that is a descriptor as any other; on Windows it is not, and this says so.
    ///
    /// - Windows: told by the driver of sockets (AFD), level-triggered or one-shot; [`edge`](crate::Interest::edge) is
    ///   `Unsupported`.
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
    pub fn socket(socket: &'a impl AsFd) -> Self {
        Self::from(socket)
    }
}

pub use crate::sys::wait::News;

/// See [`super::Line`]: nobody has one.
#[derive(Clone, Debug)]
pub(super) enum Line {}

impl Line {
    pub(super) fn of(_command: &Command) -> Option<Self> {
        None
    }

    pub(super) fn units_max(&self) -> usize {
        match *self {}
    }

    pub(super) fn takes(&self, _command: &Command) -> bool {
        match *self {}
    }
}

/// See [`crate::Descriptors::inherited`].
pub(super) use crate::sys::spawn::{close_on_exec, inherited as inherited_descriptors};

/// The number of an open file.
pub(super) fn descriptor_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// See [`super::TEMP_VARIABLE`].
pub(super) const TEMP_VARIABLE: &str = "TMPDIR";

/// See [`super::standard`].
pub(super) fn standard(which: Standard) -> io::Result<File> {
    let copy = match which {
        Standard::Input => io::stdin().as_fd().try_clone_to_owned(),
        Standard::Output => io::stdout().as_fd().try_clone_to_owned(),
        Standard::Error => io::stderr().as_fd().try_clone_to_owned(),
    };
    copy.map(File::from)
}

/// See [`super::wait_ready`].
pub(super) fn wait_ready(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    match crate::sys::wait::poll_once(&source.0, interest, deadline) {
        Some(ready) => ready,
        // A process has no descriptor of ours.
        None => super::wait_by_poller(source, interest, deadline),
    }
}

/// See [`super::system_shell`].
pub(super) fn system_shell() -> PathBuf {
    PathBuf::from("/bin/sh")
}

/// See [`super::may_be_killed`].
pub(super) fn may_be_killed(status: Status) -> bool {
    matches!(status, Status::Signaled { .. })
}

/// See [`super::may_be_told_to_end`].
pub(super) fn may_be_told_to_end(status: Status) -> bool {
    let signal = match status {
        Status::Signaled { signal, .. } => signal,
        Status::Exited(code) => code - 128,
        _ => return false,
    };
    [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGKILL].contains(&signal)
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(signal: i32) -> bool {
    signal == libc::SIGTTIN || signal == libc::SIGTTOU
}

/// See [`super::signal_number`].
pub(super) fn signal_number(name: &str) -> Option<i32> {
    Some(match name {
        "HUP" => libc::SIGHUP,
        "INT" => libc::SIGINT,
        "QUIT" => libc::SIGQUIT,
        "ILL" => libc::SIGILL,
        "TRAP" => libc::SIGTRAP,
        "ABRT" | "IOT" => libc::SIGABRT,
        "BUS" => libc::SIGBUS,
        "FPE" => libc::SIGFPE,
        "KILL" => libc::SIGKILL,
        "USR1" => libc::SIGUSR1,
        "SEGV" => libc::SIGSEGV,
        "USR2" => libc::SIGUSR2,
        "PIPE" => libc::SIGPIPE,
        "ALRM" => libc::SIGALRM,
        "TERM" => libc::SIGTERM,
        "CHLD" => libc::SIGCHLD,
        "CONT" => libc::SIGCONT,
        "STOP" => libc::SIGSTOP,
        "TSTP" => libc::SIGTSTP,
        "TTIN" => libc::SIGTTIN,
        "TTOU" => libc::SIGTTOU,
        "URG" => libc::SIGURG,
        "XCPU" => libc::SIGXCPU,
        "XFSZ" => libc::SIGXFSZ,
        "VTALRM" => libc::SIGVTALRM,
        "PROF" => libc::SIGPROF,
        "WINCH" => libc::SIGWINCH,
        "SYS" => libc::SIGSYS,
        _ => return None,
    })
}

/// See [`super::can_ask`].
pub(super) fn can_ask() -> bool {
    true
}

/// See [`super::can_suspend`].
pub(super) fn can_suspend() -> bool {
    true
}

/// See [`super::has_terminal`].
pub(super) fn has_terminal() -> bool {
    // Opening fails without a controlling terminal (ENXIO), whatever our streams are.
    File::open("/dev/tty").is_ok()
}

/// See [`super::terminal`].
pub(super) fn terminal() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).open("/dev/tty")
}

/// See [`super::argument`].
pub(super) fn argument(bytes: Vec<u8>) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes)
}

/// See [`super::foreign`].
pub(super) fn foreign(bytes: Vec<u8>) -> Result<OsString, Vec<u8>> {
    Ok(argument(bytes))
}

/// See [`super::os_str`].
pub(super) fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    Cow::Borrowed(std::os::unix::ffi::OsStrExt::from_bytes(bytes))
}

/// See [`super::write_console`].
pub(super) fn write_console(_file: &File, _bytes: &[u8]) -> io::Result<bool> {
    Ok(false)
}

/// See [`super::nameless_file`].
pub(super) fn nameless_file(folder: &Path) -> io::Result<File> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        let mut options = OpenOptions::new();
        // With `O_EXCL` nobody can give it a name later.
        let flags = libc::O_TMPFILE | libc::O_EXCL;
        if let Ok(file) = options.read(true).write(true).mode(0o600).custom_flags(flags).open(folder) {
            return Ok(file);
        }
    }
    // Made with `O_EXCL` and mode 0600.
    let (file, path) = tempfile::Builder::new().prefix("minder-").tempfile_in(folder)?.into_parts();
    path.close()?;
    Ok(file)
}

/// See [`super::private_file`].
pub(super) fn private_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600).custom_flags(libc::O_NOFOLLOW).open(path)
}

/// See [`super::remove_open`].
pub(super) fn remove_open(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)
}

/// See [`super::private_pipe`].
#[cfg(not(target_vendor = "apple"))]
pub(super) fn private_pipe(path: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    Ok(mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0)?)
}

/// See [`super::private_pipe`].
#[cfg(target_vendor = "apple")]
pub(super) fn private_pipe(_path: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::private_folder`].
pub(super) fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(path)
}

/// See [`super::open_plain`].
pub(super) fn open_plain(path: &Path) -> io::Result<File> {
    // Opening a named pipe would wait for a writer, and a terminal could become ours.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    // Asked of the descriptor: a path may name something else by now.
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// See [`super::is_own`].
pub(super) fn is_own(about: &Metadata) -> bool {
    about.uid() == rustix::process::geteuid().as_raw()
}

/// See [`super::others_may_write`].
pub(super) fn others_may_write(about: &Metadata) -> bool {
    about.mode() & 0o022 != 0
}

/// See [`super::make_private`].
pub(super) fn make_private(folder: &Path) -> io::Result<()> {
    std::fs::set_permissions(folder, Permissions::from_mode(0o700))
}

/// See [`super::read_at`].
pub(super) fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    file.read_at(buffer, at)
}

/// See [`super::write_all_at`].
pub(super) fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    file.write_all_at(bytes, at)
}

/// See [`super::send`].
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn send(from: &File, mut at: u64, len: u64, to: &File) -> io::Result<u64> {
    let len = usize::try_from(len).unwrap_or(usize::MAX);
    Ok(rustix::fs::sendfile(to, from, Some(&mut at), len)? as u64)
}

/// See [`super::send`].
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn send(_from: &File, _at: u64, _len: u64, _to: &File) -> io::Result<u64> {
    Err(io::ErrorKind::Unsupported.into())
}

/// See [`super::enlarge_pipe`].
pub(super) fn enlarge_pipe(pipe: &File) {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    crate::sys::pipe::enlarge(pipe);
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    let _ = pipe;
}

/// See [`super::path_of_input`].
pub(super) fn path_of_input() -> Option<PathBuf> {
    use std::io::Seek;
    let mut input = standard(Standard::Input).ok()?;
    if !input.metadata().ok()?.is_file() || input.stream_position().ok()? != 0 {
        return None;
    }
    // Elsewhere there is no such link.
    std::fs::read_link("/proc/self/fd/0").ok().filter(|path| path.is_file())
}

/// See [`super::terminal_name`].
pub(super) fn terminal_name() -> Option<OsString> {
    let name = rustix::termios::ttyname(io::stdin(), Vec::new())
        .or_else(|_| rustix::termios::ttyname(io::stdout(), Vec::new()))
        .or_else(|_| rustix::termios::ttyname(io::stderr(), Vec::new()));
    name.ok().map(|name| argument(name.into_bytes()))
}

/// See [`super::nice_for`].
pub(super) fn nice_for(niceness: i32) -> i32 {
    let Ok(own) = rustix::process::getpriority_process(None) else { return 0 };
    let niceness = niceness.clamp(-20, 19);
    if niceness < own && !can_set(niceness) { 0 } else { niceness - own }
}

/// Whether a process of ours may have this niceness.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn can_set(niceness: i32) -> bool {
    // On Linux a thread has a niceness of its own (setpriority(2)), which goes with it.
    let thread = std::thread::Builder::new().stack_size(64 << 10);
    let tried = thread.spawn(move || rustix::process::setpriority_process(None, niceness).is_ok());
    tried.is_ok_and(|thread| thread.join().unwrap_or(false))
}

/// Whether a process of ours may have this niceness: the start of a child says so.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn can_set(_niceness: i32) -> bool {
    true
}

/// See [`super::terminal_size`].
pub(super) fn terminal_size() -> Option<Size> {
    let size = rustix::termios::tcgetwinsize(io::stderr())
        .or_else(|_| rustix::termios::tcgetwinsize(io::stdout()))
        .ok()?;
    Some(Size { rows: size.ws_row, columns: size.ws_col }).filter(|size| size.rows > 0 && size.columns > 0)
}

/// See [`super::stack_size`].
pub(super) fn stack_size() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Stack).current
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("plain"), "text").expect("room");
        assert_eq!(io::read_to_string(open_plain(&at("plain")).expect("a file")).expect("text"), "text");
        std::os::unix::fs::symlink(at("plain"), at("link")).expect("a link");
        #[cfg(not(target_vendor = "apple"))]
        private_pipe(&at("pipe")).expect("a pipe");
        // With a pipe in the list this hangs where the descriptor may block.
        for odd in [at("link"), at("pipe"), folder.path().to_owned(), "/dev/null".into()] {
            open_plain(&odd).expect_err("no regular file");
        }
    }

    #[test]
    fn a_folder_that_others_may_change_becomes_private() {
        let folder = tempfile::tempdir().expect("a folder");
        for (mode, open) in [(0o777, true), (0o1777, true), (0o775, true), (0o755, false), (0o700, false)] {
            fs::set_permissions(folder.path(), Permissions::from_mode(mode)).expect("its mode");
            let about = fs::metadata(folder.path()).expect("a folder");
            assert!(is_own(&about));
            assert_eq!(others_may_write(&about), open, "{mode:o}");
            make_private(folder.path()).expect("its mode");
            assert_eq!(fs::metadata(folder.path()).expect("a folder").mode() & 0o7777, 0o700);
        }
    }
}
