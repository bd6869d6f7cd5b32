//! Starts one child after another, and keeps what later starts can use again.

#![expect(unsafe_code, reason = "copies of handles")]

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::sync::Arc;

use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_BAD_EXE_FORMAT, ERROR_DIRECTORY,
    ERROR_EXE_MACHINE_TYPE_MISMATCH,
};
use windows_sys::Win32::System::Console::GetConsoleCP;
use windows_sys::Win32::System::Threading::{
    ABOVE_NORMAL_PRIORITY_CLASS, BELOW_NORMAL_PRIORITY_CLASS, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW,
    DETACHED_PROCESS, GetCurrentProcess, HIGH_PRIORITY_CLASS, IDLE_PRIORITY_CLASS, PROCESS_CREATION_FLAGS,
};

use super::process;
use super::process::{CreateArgs, JobAssignment};
use super::process_params::ProcessParams;
use super::search;
use super::search::SearchDirs;
use super::working_dir::working_dir;
use crate::command::{Command, StdioKind};
use crate::group::Group;
use crate::sys::dynlib;
use crate::sys::error::is_exhausted;
use crate::sys::guardian::{GuardianError, GuardianLink};
use crate::sys::pipe::{Reader, Writer};
use crate::sys::process_tree::ProcessTree;
use crate::sys::spawn::{SpawnError, SpawnStep, Spawned};

/// The message for a path that does not exist.
pub(crate) const NO_FILE: &str = "no such file, with or without an extension of PATHEXT";
/// The message for a file that Windows cannot run.
pub(crate) const NO_PROGRAM: &str = "not a program for this system";
/// Starts children, one at a time, from one thread. It keeps what later starts can use again.
#[derive(Debug)]
pub(crate) struct Spawner {
    null: Option<File>,
    /// The last search in PATH: most runs start one program many times.
    found: Option<CachedLookup>,
    entry: JobAssignment,
}

/// The result of a search, with its input.
#[derive(Debug)]
struct CachedLookup {
    program: OsString,
    places: SearchDirs,
    path: PathBuf,
}

/// Both sides of a child's streams. The child's sides are inheritable copies, which are closed when
/// the child has inherited them.
#[derive(Default)]
struct Streams {
    theirs: [Option<OwnedHandle>; 3],
    ours: (Option<Writer>, Option<Reader>, Option<Reader>),
}

/// Starts nothing: job objects do the work of a guardian's program.
#[expect(clippy::unnecessary_wraps, reason = "the contract's form")]
pub(crate) fn start_guardian(_link: &Arc<GuardianLink>) -> Result<(), GuardianError> {
    Ok(())
}

impl Spawner {
    /// Makes one without opening anything: the first start does that.
    pub(crate) fn new() -> Self {
        Self { null: None, found: None, entry: JobAssignment::AtCreation }
    }

    /// Leaves the children to their job objects, which end them with this process.
    pub(crate) fn guarded_by(self, _guardian: Option<Arc<GuardianLink>>) -> Self {
        self
    }

    /// Makes one for the only child of a set, without opening anything.
    pub(crate) fn for_one() -> Self {
        Self::new()
    }

    /// Makes one for many children, and opens now what all of them use.
    ///
    /// # Errors
    /// No handle is free.
    pub(crate) fn for_many() -> io::Result<Self> {
        let mut spawner = Self::new();
        spawner.null()?;
        Ok(spawner)
    }

    /// Starts `command`. After a failure no process and no handle is left.
    pub(crate) fn spawn(&mut self, command: &Command) -> Result<Spawned, SpawnError> {
        match self.attempt(command) {
            // The program found in PATH earlier may have moved: search once more.
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
        if command.timer_slack.is_some() {
            return Err(SpawnStep::TimerSlack.failed(io::ErrorKind::Unsupported));
        }
        if let Some(step) = command.attributes.as_ref().and_then(|attributes| attributes.first_step()) {
            return Err(SpawnStep::Attribute(step).failed(io::ErrorKind::Unsupported));
        }
        if !command.descriptors.kept().is_empty() {
            let error =
                io::Error::new(io::ErrorKind::Unsupported, "handles have no numbers that a child knows");
            return Err(SpawnStep::Streams.failed(error));
        }
        let dir = command.current_dir.as_deref().map(working_dir).transpose()?;
        let program = self.resolve(&command.program, dir.as_deref())?;
        let params = ProcessParams::new(command, &program, dir.as_deref())?;
        // Handles are opened before the process: if none is free, nothing has to be undone.
        let streams = self.streams(command).map_err(|error| SpawnStep::Streams.failed(error))?;
        let tree = ProcessTree::new(command.group != Group::Inherit);
        let mut tree = tree.map_err(|error| SpawnStep::Process.failed(error))?;
        let flags = flags(command, command.tail.is_some() || search::is_batch(&program));
        let request = CreateArgs { params, theirs: &streams.theirs, group: command.group, flags };
        let process = process::start(&request, &mut tree, &mut self.entry)
            .map_err(|error| refusal(&program, dir.as_deref(), error))?;
        let (stdin, stdout, stderr) = streams.ours;
        Ok(Spawned { process, tree, stdin, stdout, stderr })
    }

    fn streams(&mut self, command: &Command) -> io::Result<Streams> {
        let mut streams = Streams::default();
        match command.stdin_kind() {
            StdioKind::Piped => {
                let (writer, theirs) = Writer::pair()?;
                (streams.theirs[0], streams.ours.0) = (Some(theirs), Some(writer));
            }
            StdioKind::Inherit => streams.theirs[0] = copy(std::io::stdin().as_handle())?,
            other => streams.theirs[0] = self.source(other)?,
        }
        (streams.theirs[1], streams.ours.1) = match command.stdout_kind() {
            StdioKind::Piped => Reader::pair().map(|(reader, theirs)| (Some(theirs), Some(reader)))?,
            StdioKind::Inherit => (copy(std::io::stdout().as_handle())?, None),
            other => (self.source(other)?, None),
        };
        (streams.theirs[2], streams.ours.2) = match command.stderr_kind() {
            StdioKind::Stdout => match &streams.theirs[1] {
                Some(stdout) => (copy(stdout.as_handle())?, None),
                None => (None, None),
            },
            StdioKind::Piped => Reader::pair().map(|(reader, theirs)| (Some(theirs), Some(reader)))?,
            StdioKind::Inherit => (copy(std::io::stderr().as_handle())?, None),
            other => (self.source(other)?, None),
        };
        Ok(streams)
    }

    /// Returns an inheritable copy of the file, or of `NUL`.
    fn source(&mut self, stdio: &StdioKind) -> io::Result<Option<OwnedHandle>> {
        match stdio {
            StdioKind::File(file) => copy(file.as_ref().as_handle()),
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

    /// Returns the absolute path of the program. A name without a directory or drive is searched in
    /// PATH.
    pub(super) fn resolve(&mut self, program: &OsStr, dir: Option<&Path>) -> Result<PathBuf, SpawnError> {
        if program.is_empty() {
            return Err(SpawnStep::Lookup.failed(io::ErrorKind::NotFound));
        }
        if program.encode_wide().any(|unit| unit == 0) {
            return Err(SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput));
        }
        if search::is_path(program) {
            return search::at(program, dir);
        }
        let places = SearchDirs::now();
        // If the program has moved, the start fails, and the caller searches again.
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

/// Returns an inheritable copy. Returns `None` for a missing handle (a program without a console):
/// the child then has none, too.
fn copy(handle: BorrowedHandle<'_>) -> io::Result<Option<OwnedHandle>> {
    let raw = handle.as_raw_handle();
    if raw.is_null() {
        return Ok(None);
    }
    // SAFETY: the call has no preconditions.
    let us = unsafe { GetCurrentProcess() };
    let mut copied = null_mut();
    // SAFETY: `raw` is borrowed, so open; both processes are this one, and `copied` outlives the call.
    let answer = unsafe { DuplicateHandle(us, raw, us, &mut copied, 0, 1, DUPLICATE_SAME_ACCESS) };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above created the handle, and nothing else owns it.
    Ok(Some(unsafe { OwnedHandle::from_raw_handle(copied) }))
}

/// Returns the creation flags. `shell` means that the program is a shell, which starts programs.
fn flags(command: &Command, shell: bool) -> PROCESS_CREATION_FLAGS {
    let mut flags = 0;
    if command.group != Group::Inherit {
        // Ctrl-C on the console is for this process.
        flags |= CREATE_NEW_PROCESS_GROUP;
    }
    if !has_console() {
        // Programs that the child starts look for its console. Without one, each would open its own
        // window and write there. Under Wine such a console is one more process in each job, which
        // is worthwhile only for a shell.
        let bare = dynlib::wine().is_some() && !shell;
        flags |= if bare { DETACHED_PROCESS } else { CREATE_NO_WINDOW };
    }
    flags
        | match command.nice {
            ..=-10 => HIGH_PRIORITY_CLASS,
            -9..=-1 => ABOVE_NORMAL_PRIORITY_CLASS,
            // The class of this process, if that is below normal; else normal.
            0 => 0,
            1..=9 => BELOW_NORMAL_PRIORITY_CLASS,
            10.. => IDLE_PRIORITY_CLASS,
        }
}

/// Returns whether this process has a console, which children then share.
fn has_console() -> bool {
    // SAFETY: the call takes no arguments; without a console there is no code page.
    unsafe { GetConsoleCP() != 0 }
}

/// Returns the step at which `CreateProcessW` failed, with the error.
fn refusal(program: &Path, dir: Option<&Path>, error: io::Error) -> SpawnError {
    let is_dir = || dir.is_none_or(Path::is_dir);
    match error.raw_os_error().map(i32::cast_unsigned) {
        _ if is_exhausted(&error) => SpawnStep::Process.failed(error),
        code if code == Some(ERROR_DIRECTORY) || !is_dir() => {
            // Windows reports a missing directory as an invalid directory name.
            let reason = dir.and_then(|dir| dir.metadata().err());
            SpawnStep::Directory.failed(reason.unwrap_or(error))
        }
        // Windows reports another error for a directory. This one replaces it.
        _ if program.is_dir() => {
            SpawnStep::Exec.failed(io::Error::from_raw_os_error(ERROR_BAD_EXE_FORMAT.cast_signed()))
        }
        _ => SpawnStep::Exec.failed(error),
    }
}

/// Returns whether the file exists, but Windows cannot run it.
pub(crate) fn is_no_program(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(code, Some(ERROR_BAD_EXE_FORMAT | ERROR_EXE_MACHINE_TYPE_MISMATCH))
}
