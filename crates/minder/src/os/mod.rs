//! What differs between systems in the public interface, and the little that a command needs of its system.

mod descriptors;
mod gauge;
mod jobserver;
mod line;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;
#[cfg(any(windows, test))]
mod wtf8;

#[cfg(unix)]
use self::unix as system;
#[cfg(windows)]
use self::windows as system;

pub use self::gauge::{Disk, Memory, Swaps, disks, load, memory, processors, swaps};
pub use self::jobserver::{JobToken, Jobserver};
pub use self::line::Line;
pub use self::system::News;

use std::borrow::Cow;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::Source;
use crate::command::{Command, Size};
use crate::event::{Interest, Status};

impl Command {
    /// Puts a text at the end of the command line, behind a blank, as it is: for the few programs of Windows that read their
    /// line by rules of their own, first of all `cmd.exe`. The last one that is given counts.
    ///
    /// Whoever calls this answers for every character: nothing is quoted, and a value in the text may become anything.
    ///
    /// - Windows: the text may hold any unit but 0; with the arguments before it, the line may have 32,766 UTF-16 units
    ///   (`CreateProcessW`).
    /// - Unix: programs get words, not a line. A start fails with [`Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// ```
    /// let mut command = minder::Command::new(minder::os::system_shell());
    /// command.args(["/d", "/s", "/c"]).raw_tail(r#""ver | more""#);
    /// assert_eq!(command.spawn().is_ok(), cfg!(windows));
    /// ```
    pub fn raw_tail(&mut self, text: impl AsRef<OsStr>) -> &mut Self {
        self.tail = Some(text.as_ref().to_owned());
        self
    }

    /// The text that was given to [`raw_tail`](Self::raw_tail).
    pub fn get_raw_tail(&self) -> Option<&OsStr> {
        self.tail.as_deref()
    }
}

/// One of this process's standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standard {
    /// Standard input.
    Input,
    /// Standard output.
    Output,
    /// Standard error.
    Error,
}

/// A standard stream of this process as a file without a buffer: every write is one system call, and no byte waits
/// for a newline.
///
/// # Errors
/// When the stream is closed, or no descriptor is free.
pub fn standard(which: Standard) -> io::Result<File> {
    system::standard(which)
}

/// Whether this standard stream was closed when the process began. Rust's runtime has opened the null device in its place,
/// so that writing to it succeeds and loses everything.
///
/// - Windows: always false; a stream that is missing is an error of [`standard`].
pub fn was_closed(which: Standard) -> bool {
    crate::sys::closed::was_closed(which as usize)
}

/// Waits until a source is ready, or the deadline has come; whether it is ready. A file that is never waited for is ready.
///
/// - Unix: poll(2), which takes no descriptor. Windows: a [`Poller`](crate::Poller).
///
/// # Errors
/// Windows: `Unsupported` for what cannot be watched.
pub fn wait_ready<'a>(
    source: impl Into<Source<'a>>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    system::wait_ready(source.into(), interest, deadline)
}

/// See [`wait_ready`].
fn wait_by_poller(source: Source<'_>, interest: Interest, deadline: Option<Instant>) -> io::Result<bool> {
    let poller = crate::Poller::new()?;
    poller.add(source, crate::Token(0), interest)?;
    Ok(poller.wait(&mut crate::Events::new(), deadline)? > 0)
}

/// The shell that this system is never without, as a whole path: no variable and no folder decides which program it is.
///
/// - Unix: `/bin/sh`. Windows: `cmd.exe` in the system folder (`GetSystemDirectoryW`).
pub fn system_shell() -> PathBuf {
    system::system_shell()
}

/// Whether [`Event::Stopped`](crate::Event::Stopped) with this signal means that the child wants the terminal, which
/// belongs to another process group: `SIGTTIN` (it reads) or `SIGTTOU` (it writes or changes modes).
pub fn wants_terminal(signal: i32) -> bool {
    system::wants_terminal(signal)
}

/// Whether a child that was killed may have ended so.
///
/// - Unix: by a signal. Windows: with the exit code that killed children get, 1; others may end with it, too.
pub fn may_be_killed(status: Status) -> bool {
    system::may_be_killed(status)
}

/// Whether a child may have ended so because it was told to end, as all processes are when the machine shuts down.
///
/// - Unix: by `SIGHUP`, `SIGINT`, `SIGQUIT`, `SIGTERM` or `SIGKILL`, or with the code that shells and many programs give
///   for them, 128 and the number. Windows: with the code of a console that was closed or interrupted (0xC000013A).
pub fn may_be_told_to_end(status: Status) -> bool {
    system::may_be_told_to_end(status)
}

/// The variable of the environment that names the folder for temporary files, [`std::env::temp_dir`].
///
/// - Unix: `TMPDIR`. Windows: `TMP`; see `GetTempPath2W` for what is taken without it.
pub const TEMP_VARIABLE: &str = system::TEMP_VARIABLE;

/// The number of the signal of this name (`TERM`, without `SIG`) on this system.
///
/// - Unix: the signals of POSIX, and `WINCH`. Windows has none; `HUP`, `INT`, `QUIT`, `TERM` and `KILL` all end a job at once.
pub fn signal_number(name: &str) -> Option<i32> {
    system::signal_number(name)
}

/// Whether a child can be asked to end, so that it may tidy up first.
///
/// - Unix: yes, by a signal. Windows: no, a job object only ends.
pub fn can_ask() -> bool {
    system::can_ask()
}

/// Whether a child can be made to stand still and to go on.
///
/// - Unix: yes, by signals. Windows: no.
pub fn can_suspend() -> bool {
    system::can_suspend()
}

/// Whether this process has a controlling terminal. Without one, a child that wants it gets an error and is not stopped.
pub fn has_terminal() -> bool {
    system::has_terminal()
}

/// Opens the terminal that controls this process, to ask and to be answered, whatever the standard streams are. On Windows it
/// is the console's input.
///
/// # Errors
/// There is none.
pub fn terminal() -> io::Result<File> {
    system::terminal()
}

/// Bytes that came from an [`OsStr`], whole or in pieces, as an argument for a program or a name.
///
/// - Unix: any bytes. Windows: UTF-8 and surrogates that stand alone, so that every name comes back as it was; anything else,
///   which no name holds, is replaced. See [`foreign`] for bytes that came from elsewhere.
pub fn argument(bytes: Vec<u8>) -> OsString {
    system::argument(bytes)
}

/// Bytes from a file or a pipe as an argument for a program or a name.
///
/// - Unix: any bytes. Windows: UTF-8 (and surrogates that stand alone, as three bytes each).
///
/// # Errors
/// Windows: the bytes are anything else, and come back.
///
/// ```
/// let name = minder::os::foreign("naïve.txt".into()).expect("UTF-8 is fine everywhere");
/// assert_eq!(name, "naïve.txt");
/// assert_eq!(minder::os::foreign(vec![0xff]).is_ok(), cfg!(unix));
/// ```
pub fn foreign(bytes: Vec<u8>) -> std::result::Result<OsString, Vec<u8>> {
    system::foreign(bytes)
}

/// Bytes that were cut from an [`OsStr`] at ASCII characters only, as one again: exact.
pub fn os_str(bytes: &[u8]) -> Cow<'_, OsStr> {
    system::os_str(bytes)
}

/// Writes text to a console that would read bytes in another encoding. False: nothing was written, and the bytes are to be
/// written as they are.
///
/// - Unix: always false; terminals take bytes. Windows: UTF-8 for a console is written as UTF-16. A console reads what is
///   anything else in its own code page (`chcp`), in which many programs write.
///
/// # Errors
/// What the console says.
pub fn write_console(file: &File, bytes: &[u8]) -> io::Result<bool> {
    system::write_console(file, bytes)
}

/// Makes a file for its owner alone, to write to and to read from. It must not exist, and a link in its place is not
/// followed.
///
/// - Unix: mode 0600, `O_EXCL`, `O_NOFOLLOW`. Windows: as private as the folder that it is in.
///
/// # Errors
/// `AlreadyExists`; whatever the file system says.
pub fn private_file(path: &Path) -> io::Result<File> {
    system::private_file(path)
}

/// Removes a file such that its name is free at once, be it that somebody has it open. No link is followed.
///
/// - Windows: a file that is removed while it is open keeps its name until the last handle is closed ("DeleteFileW"), so it
///   gets another name first, beside its own. Whoever opened it has to allow that, as this library and Rust's do.
///
/// # Errors
/// `NotFound`; whatever the file system says.
pub fn remove_open(path: &Path) -> io::Result<()> {
    system::remove_open(path)
}

/// Makes a file for its owner alone that goes with its last handle, however that comes about.
///
/// - Linux: it never has a name (`O_TMPFILE`, open(2)). On file systems that cannot do so, and on other Unix systems, it
///   is removed as soon as it is made: a kill between the two leaves an empty file.
/// - Windows: it has a name that nobody can open, and the system removes it (`FILE_FLAG_DELETE_ON_CLOSE`, CreateFileW).
///
/// # Errors
/// Whatever the file system says.
pub fn nameless_file(folder: &Path) -> io::Result<File> {
    system::nameless_file(folder)
}

/// Makes a pipe that has this name and that nobody else may open.
///
/// - macOS has no `mknod` for it here, and Windows names pipes otherwise: `Unsupported`.
///
/// # Errors
/// `AlreadyExists` for a path that is there, and what the system says.
pub fn private_pipe(path: &Path) -> io::Result<()> {
    system::private_pipe(path)
}

/// Makes a folder for its owner alone. It must not exist.
///
/// - Unix: mode 0700. Windows: only the user, the administrators and the system have rights, also on what is made in it.
///
/// # Errors
/// `AlreadyExists`; whatever the file system says.
pub fn private_folder(path: &Path) -> io::Result<()> {
    system::private_folder(path)
}

/// Opens a regular file for reading. Anything else in its place is an error, and nothing is waited for.
///
/// - Unix: `O_NOFOLLOW | O_NONBLOCK`, and the descriptor is asked what it is (fstat(2)): a named pipe does not block, and no
///   device is read.
/// - Windows: `FILE_FLAG_OPEN_REPARSE_POINT`; devices and pipes, which are there in every folder or look like files (`NUL`,
///   `\\.\pipe\x`), are errors, too.
///
/// # Errors
/// `InvalidInput` for what is no regular file; a link is an error of the file system (`ELOOP`) on Unix; whatever else the
/// file system says.
pub fn open_plain(path: &Path) -> io::Result<File> {
    system::open_plain(path)
}

/// Returns whether a file or folder belongs to the user that this process acts as.
///
/// - Unix: its owner is the effective user. Windows: always true; a folder of the user's profile has rights of its own.
pub fn is_own(about: &Metadata) -> bool {
    system::is_own(about)
}

/// Returns whether users other than the owner may write to a file or change a folder, as far as its mode says.
///
/// - Unix: the mode has a write bit of the group or of others. Windows: always false.
pub fn others_may_write(about: &Metadata) -> bool {
    system::others_may_write(about)
}

/// Takes all rights on a folder from everyone but its owner.
///
/// - Unix: mode 0700. A file system without modes may ignore that, or refuse it. Windows: nothing is changed.
///
/// # Errors
/// Whatever the file system says.
pub fn make_private(folder: &Path) -> io::Result<()> {
    system::make_private(folder)
}

/// Reads from a place in a file, without moving its position.
///
/// - Windows: the position moves.
///
/// # Errors
/// Whatever the file system says.
pub fn read_at(file: &File, buffer: &mut [u8], at: u64) -> io::Result<usize> {
    system::read_at(file, buffer, at)
}

/// Writes all of `bytes` at a place in a file, whatever its position is, and whoever reads or moves it meanwhile.
///
/// - Windows: the position moves.
///
/// ```
/// let file = minder::os::nameless_file(&std::env::temp_dir())?;
/// minder::os::write_all_at(&file, b"ab", 0)?;
/// minder::os::write_all_at(&file, b"c", 2)?;
/// let mut bytes = [0; 4];
/// assert_eq!((minder::os::read_at(&file, &mut bytes, 1)?, &bytes[..2]), (2, &b"bc"[..]));
/// # Ok::<(), std::io::Error>(())
/// ```
///
/// # Errors
/// Whatever the file system says; a part may have been written.
pub fn write_all_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    system::write_all_at(file, bytes, at)
}

/// Moves bytes from a place in a file to another file or a pipe, without a copy through our memory; says how many.
///
/// - Linux: sendfile(2). Elsewhere: `Unsupported`.
///
/// # Errors
/// `Unsupported` or `InvalidInput` where these two files refuse, with nothing moved; else as a write.
pub fn send(from: &File, at: u64, len: u64, to: &File) -> io::Result<u64> {
    system::send(from, at, len, to)
}

/// Asks for a larger buffer of a pipe, as large as a user may have; other files stay as they are.
///
/// - Linux: 1 MiB, `F_SETPIPE_SZ`. Elsewhere: without effect.
pub fn enlarge_pipe(pipe: &File) {
    system::enlarge_pipe(pipe);
}

/// The path of the file that standard input reads from its beginning, if it is a plain file that has one.
///
/// - Linux only; elsewhere `None`.
pub fn path_of_input() -> Option<PathBuf> {
    system::path_of_input()
}

/// The name of the terminal that standard input, or else another standard stream, is.
///
/// - Windows: `None`, consoles have no names.
pub fn terminal_name() -> Option<OsString> {
    system::terminal_name()
}

/// Returns the number for [`Command::nice`] with which children get exactly this niceness, between -20 and 19: what is still
/// to be added to ours.
///
/// Returns 0 for a niceness that is lower than ours and that this process may not set.
///
/// - Linux: tried on a thread that ends at once, since privilege, namespaces and `RLIMIT_NICE` decide together. The niceness
///   of the calling thread counts as ours.
/// - Windows: returns the number as it is, which stands for a priority class.
pub fn nice_for(niceness: i32) -> i32 {
    system::nice_for(niceness)
}

/// The size of the terminal that standard error or standard output is, if one of them is a terminal.
pub fn terminal_size() -> Option<Size> {
    system::terminal_size()
}

/// How many bytes the stack of the main thread may have (`ulimit -s`), if that is limited and known.
///
/// - Unix: the soft limit `RLIMIT_STACK` (getrlimit(2)); arguments and environment lie there too (execve(2)). Windows: the
///   program's own file says it, so none is known.
///
/// ```
/// assert!(minder::os::stack_size().is_none_or(|bytes| bytes > 0));
/// ```
#[must_use]
pub fn stack_size() -> Option<u64> {
    system::stack_size()
}
