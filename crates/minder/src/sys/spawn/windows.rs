//! Spawning on Windows: `CreateProcessW` into a job object, with a list of the only handles that
//! are inherited.
//!
//! A child shares our console. Where we have none it gets one that nobody sees. The system is
//! always told the absolute path of what it is to start, never left to search, and never handed a
//! batch file: that is run by the `cmd.exe` of the system's folder, on a line that this reads as we
//! mean it.
//!
//! What is on the list has to be inheritable from its making to the child's start. Our own children
//! never take what is not on their list; one that other code of the host starts in this moment,
//! without a list, does, and then holds a pipe open.

#![expect(unsafe_code, reason = "copies of handles")]

mod command_line;
mod process;
mod search;
mod process_params;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::{Component, Path, PathBuf, Prefix};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY,
    ERROR_EXE_MACHINE_TYPE_MISMATCH, ERROR_PATH_NOT_FOUND, MAX_PATH,
};
use windows_sys::Win32::System::Console::GetConsoleCP;
use windows_sys::Win32::System::Threading::{
    ABOVE_NORMAL_PRIORITY_CLASS, BELOW_NORMAL_PRIORITY_CLASS, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW,
    DETACHED_PROCESS, GetCurrentProcess, HIGH_PRIORITY_CLASS, IDLE_PRIORITY_CLASS, PROCESS_CREATION_FLAGS,
};

pub(crate) use self::command_line::CommandLineLimit;
use self::process::{CreateArgs, JobAssignment};
use self::process_params::ProcessParams;
use self::search::SearchDirs;
use super::{SpawnError, SpawnStep, Spawned};
use crate::command::{Command, Group, Stdio};
use crate::sys::dynlib;
use crate::sys::error::is_exhausted;
use crate::sys::pipe::{Reader, Writer};
use crate::sys::process_tree::Tree;

/// Words for a path that leads to nothing.
pub(crate) const NO_FILE: &str = "no such file, with or without an extension of PATHEXT";
/// Words for a file that is no program.
pub(crate) const NO_PROGRAM: &str = "not a program for this system";
/// The longest folder that a process can be in, in UTF-16 units (documented with
/// `SetCurrentDirectory`).
const FOLDER_MAX: usize = MAX_PATH as usize - 2;

/// Starts children, one at a time, from one thread. What can be kept from one start to the next is
/// kept here.
#[derive(Debug)]
pub(crate) struct Spawner {
    null: Option<File>,
    /// The last look into PATH: most runs start one program many times.
    found: Option<CachedLookup>,
    entry: JobAssignment,
}

/// Where a program was found, and where it was looked for.
#[derive(Debug)]
struct CachedLookup {
    program: OsString,
    places: SearchDirs,
    path: PathBuf,
}

/// Both sides of a child's streams. Theirs are inheritable copies, to be closed when the child has
/// its own.
#[derive(Default)]
struct Streams {
    theirs: [Option<OwnedHandle>; 3],
    ours: (Option<Writer>, Option<Reader>, Option<Reader>),
}

impl Spawner {
    /// Makes one without taking anything from the system: that happens at the first start.
    pub(crate) fn new() -> Self {
        Self { null: None, found: None, entry: JobAssignment::AtCreation }
    }

    /// Makes one for many children: what serves all of them is taken now.
    ///
    /// # Errors
    /// When no handle is free.
    pub(crate) fn for_many() -> io::Result<Self> {
        let mut spawner = Self::new();
        spawner.null()?;
        Ok(spawner)
    }

    /// Starts `command`. When it fails nothing is left: no process, no handle.
    pub(crate) fn spawn(&mut self, command: &Command) -> Result<Spawned, SpawnError> {
        match self.attempt(command) {
            // What PATH led to before may have moved: one more look.
            Err(SpawnError { step: SpawnStep::Exec, error })
                if self.found.take().is_some() && error.kind() == io::ErrorKind::NotFound =>
            {
                self.attempt(command)
            }
            result => result,
        }
    }

    fn attempt(&mut self, command: &Command) -> Result<Spawned, SpawnError> {
        if let Group::Terminal(_) = command.group {
            let error =
                io::Error::new(io::ErrorKind::Unsupported, "no child runs on a pseudo-terminal here yet");
            return Err(SpawnStep::Setup.failed(error));
        }
        if !command.descriptors.kept().is_empty() {
            let error =
                io::Error::new(io::ErrorKind::Unsupported, "handles have no numbers that a child knows");
            return Err(SpawnStep::Streams.failed(error));
        }
        let folder = command.current_dir.as_deref().map(folder).transpose()?;
        let program = self.resolve(&command.program, folder.as_deref())?;
        let words = ProcessParams::new(command, &program, folder.as_deref())?;
        // Handles come before the process: when they are used up, nothing has happened yet.
        let streams = self.streams(command).map_err(|error| SpawnStep::Streams.failed(error))?;
        let tree = Tree::new(command.group != Group::Inherit);
        let mut tree = tree.map_err(|error| SpawnStep::Process.failed(error))?;
        let flags = flags(command, command.tail.is_some() || search::is_batch(&program));
        let request = CreateArgs { words, theirs: &streams.theirs, group: command.group, flags };
        let process = process::start(&request, &mut tree, &mut self.entry)
            .map_err(|error| refusal(&program, folder.as_deref(), error))?;
        let (stdin, stdout, stderr) = streams.ours;
        Ok(Spawned { process, tree, stdin, stdout, stderr })
    }

    fn streams(&mut self, command: &Command) -> io::Result<Streams> {
        let mut streams = Streams::default();
        match &command.stdin {
            Stdio::Piped => {
                let (writer, theirs) = Writer::pair()?;
                (streams.theirs[0], streams.ours.0) = (Some(theirs), Some(writer));
            }
            Stdio::Inherit => streams.theirs[0] = copy(std::io::stdin().as_handle())?,
            other => streams.theirs[0] = self.source(other)?,
        }
        (streams.theirs[1], streams.ours.1) = match &command.stdout {
            Stdio::Piped => Reader::pair().map(|(reader, theirs)| (Some(theirs), Some(reader)))?,
            Stdio::Inherit => (copy(std::io::stdout().as_handle())?, None),
            other => (self.source(other)?, None),
        };
        (streams.theirs[2], streams.ours.2) = match &command.stderr {
            Stdio::Piped => Reader::pair().map(|(reader, theirs)| (Some(theirs), Some(reader)))?,
            Stdio::Inherit => (copy(std::io::stderr().as_handle())?, None),
            other => (self.source(other)?, None),
        };
        Ok(streams)
    }

    /// A copy of the file, or of `NUL`.
    fn source(&mut self, stdio: &Stdio) -> io::Result<Option<OwnedHandle>> {
        match stdio {
            Stdio::File(file) => copy(file.as_ref().as_handle()),
            _ => copy(self.null()?.as_handle()),
        }
    }

    fn null(&mut self) -> io::Result<&File> {
        let null = match self.null.take() {
            Some(null) => null,
            None => File::options().read(true).write(true).open("NUL")?,
        };
        Ok(self.null.insert(null))
    }

    /// The absolute path of the program: as given where it names a folder or drive, else from PATH.
    fn resolve(&mut self, program: &OsStr, folder: Option<&Path>) -> Result<PathBuf, SpawnError> {
        if program.is_empty() {
            return Err(SpawnStep::Lookup.failed(io::ErrorKind::NotFound));
        }
        if program.encode_wide().any(|unit| unit == 0) {
            return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
        }
        if search::is_path(program) {
            return search::at(program, folder);
        }
        let places = SearchDirs::now();
        // When it has moved, the start says so, and looks again.
        if let Some(found) = &self.found
            && found.program == *program
            && found.places == places
        {
            return Ok(found.path.clone());
        }
        let path = places.search(program)?;
        self.found = Some(CachedLookup { program: program.to_owned(), places, path: path.clone() });
        Ok(path)
    }
}

/// The folder that the child starts in, absolute: that of a drive changes with ours.
fn folder(given: &Path) -> Result<PathBuf, SpawnError> {
    if given.as_os_str().encode_wide().any(|unit| unit == 0) {
        return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
    }
    if given.as_os_str().is_empty() {
        return Err(
            SpawnStep::Directory.failed(io::Error::from_raw_os_error(ERROR_PATH_NOT_FOUND.cast_signed()))
        );
    }
    let folder = std::path::absolute(given).map(short).map_err(|error| SpawnStep::Directory.failed(error))?;
    if folder.as_os_str().encode_wide().count() > FOLDER_MAX {
        let text = "longer than the 258 characters that the system takes for the folder of a process";
        return Err(SpawnStep::Directory.failed(io::Error::new(io::ErrorKind::InvalidInput, text)));
    }
    Ok(folder)
}

/// The path without `\\?\`, which neither `cmd.exe` nor a current folder may have, where that means
/// the same.
fn short(path: PathBuf) -> PathBuf {
    let mut parts = path.components();
    let Some(Component::Prefix(prefix)) = parts.next() else { return path };
    let mut short = match prefix.kind() {
        Prefix::VerbatimDisk(letter) => OsString::from(format!("{}:", char::from(letter))),
        Prefix::VerbatimUNC(server, share) => {
            [OsStr::new(r"\\"), server, OsStr::new(r"\"), share].into_iter().collect()
        }
        _ => return path,
    };
    short.push(parts.as_path());
    let is_same = short.encode_wide().count() <= FOLDER_MAX
        && std::path::absolute(&short).is_ok_and(|path| path.as_os_str() == short);
    if is_same { short.into() } else { path }
}

/// An inheritable copy. Where there is nothing to copy (a program without a console), the child has
/// nothing as well.
fn copy(handle: BorrowedHandle<'_>) -> io::Result<Option<OwnedHandle>> {
    let raw = handle.as_raw_handle();
    if raw.is_null() {
        return Ok(None);
    }
    // SAFETY: has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let mut copied = null_mut();
    // SAFETY: `raw` is borrowed, so open; both processes are this one, and `copied` outlives the call.
    let answer = unsafe { DuplicateHandle(us, raw, us, &mut copied, 0, 1, DUPLICATE_SAME_ACCESS) };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made it, and nobody else has it.
    Ok(Some(unsafe { OwnedHandle::from_raw_handle(copied) }))
}

/// `shell`: it is there to start programs.
fn flags(command: &Command, shell: bool) -> PROCESS_CREATION_FLAGS {
    let mut flags = 0;
    if command.group != Group::Inherit {
        // Ctrl-C at our console is for us.
        flags |= CREATE_NEW_PROCESS_GROUP;
    }
    if !has_console() {
        // What it starts looks for its console: without one, each program would open a window of its own,
        // and write there. Under Wine such a console is a process more in each job, which only a
        // shell is worth.
        let bare = dynlib::wine().is_some() && !shell;
        flags |= if bare { DETACHED_PROCESS } else { CREATE_NO_WINDOW };
    }
    flags
        | match command.nice {
            ..=-10 => HIGH_PRIORITY_CLASS,
            -9..=-1 => ABOVE_NORMAL_PRIORITY_CLASS,
            // Ours, if that is below normal; else normal.
            0 => 0,
            1..=9 => BELOW_NORMAL_PRIORITY_CLASS,
            10.. => IDLE_PRIORITY_CLASS,
        }
}

/// Whether we have a console, which children then share.
fn has_console() -> bool {
    // SAFETY: takes nothing; without a console there is no code page.
    unsafe { GetConsoleCP() != 0 }
}

/// At which step the system refused.
fn refusal(program: &Path, folder: Option<&Path>, error: io::Error) -> SpawnError {
    let is_folder = || folder.is_none_or(Path::is_dir);
    match error.raw_os_error().map(i32::cast_unsigned) {
        _ if is_exhausted(&error) => SpawnStep::Process.failed(error),
        code if code == Some(ERROR_DIRECTORY) || !is_folder() => {
            // The system calls one that is not there no folder.
            let reason = folder.and_then(|folder| folder.metadata().err());
            SpawnStep::Directory.failed(reason.unwrap_or(error))
        }
        // For a folder the system has other words.
        _ if program.is_dir() => {
            SpawnStep::Exec.failed(io::Error::from_raw_os_error(ERROR_BAD_EXE_FORMAT.cast_signed()))
        }
        _ => SpawnStep::Exec.failed(error),
    }
}

/// Whether the system says that the file is there, and nothing that it can run.
pub(crate) fn is_no_program(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BAD_EXE_FORMAT | ERROR_EXE_MACHINE_TYPE_MISMATCH))
}
