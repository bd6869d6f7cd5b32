//! Spawning on Windows: `CreateProcessW` into a job object, with a list of the only handles that are inherited.
//!
//! A child whose streams are all pipes, files or `NUL` is started without a console; one that inherits a stream shares
//! ours. Batch files are refused so far: `cmd.exe` would read their arguments with rules of its own, and run parts of
//! them.
//!
//! What is on the list has to be inheritable from its making to the child's start. Our own children never take what is
//! not on their list; one that other code of the host starts in this moment, without a list, does, and then holds a
//! pipe open.

#![expect(unsafe_code, reason = "CreateProcessW and its attribute list")]

use std::ffi::{OsStr, OsString, c_void};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::windows::ffi::OsStrExt;
use std::os::windows::io::{AsHandle, AsRawHandle, BorrowedHandle, FromRawHandle, OwnedHandle};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    DUPLICATE_SAME_ACCESS, DuplicateHandle, ERROR_COMMITMENT_LIMIT, ERROR_DIRECTORY, ERROR_MAX_THRDS_REACHED,
    ERROR_NO_PROC_SLOTS, ERROR_NO_SYSTEM_RESOURCES, ERROR_NONPAGED_SYSTEM_RESOURCES, ERROR_NOT_ENOUGH_MEMORY,
    ERROR_NOT_ENOUGH_QUOTA, ERROR_OUTOFMEMORY, ERROR_PAGED_SYSTEM_RESOURCES, ERROR_TOO_MANY_OPEN_FILES,
    ERROR_WORKING_SET_QUOTA, HANDLE,
};
use windows_sys::Win32::System::Threading::{
    ABOVE_NORMAL_PRIORITY_CLASS, BELOW_NORMAL_PRIORITY_CLASS, CREATE_NEW_PROCESS_GROUP,
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DETACHED_PROCESS, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetCurrentProcess, HIGH_PRIORITY_CLASS, IDLE_PRIORITY_CLASS,
    InitializeProcThreadAttributeList, LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_JOB_LIST, PROCESS_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    UpdateProcThreadAttribute,
};

use super::quote::{self, Unquotable};
use super::{Failure, Spawned, Step};
use crate::command::{Command, Env, Group, Stdio};
use crate::sys::pipe::{Reader, Writer};
use crate::sys::reap::Process;
use crate::sys::tree::Tree;

/// Starts children, one at a time, from one thread. What can be kept from one start to the next is kept here.
#[derive(Debug)]
pub(crate) struct Spawner {
    null: Option<File>,
    /// The last look into PATH: most runs start one program many times.
    found: Option<(OsString, PathBuf)>,
}

/// What `CreateProcessW` is told, as it takes it: UTF-16, each ended by a zero.
struct Words {
    program: Vec<u16>,
    line: Vec<u16>,
    environment: Option<Vec<u16>>,
    folder: Option<Vec<u16>>,
}

/// Both sides of a child's streams. Theirs are inheritable copies, to be closed when the child has its own.
#[derive(Default)]
struct Streams {
    theirs: [Option<OwnedHandle>; 3],
    ours: (Option<Writer>, Option<Reader>, Option<Reader>),
}

impl Spawner {
    /// Makes one without taking anything from the system: that happens at the first start.
    pub(crate) fn new() -> Self {
        Self { null: None, found: None }
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
    pub(crate) fn spawn(&mut self, command: &Command) -> Result<Spawned, Failure> {
        if let Group::Terminal(_) = command.group {
            let error =
                io::Error::new(io::ErrorKind::Unsupported, "no child runs on a pseudo-terminal here yet");
            return Err(Step::Setup.failed(error));
        }
        let program = self.resolve(&command.program)?;
        let words = Words::new(command, &program)?;
        // Handles come before the process: when they are used up, nothing has happened yet.
        let streams = self.streams(command).map_err(|error| Step::Streams.failed(error))?;
        let tree = Tree::new(command.group != Group::Inherit).map_err(|error| Step::Process.failed(error))?;
        let process = start(command, words, &streams.theirs, &tree).map_err(|error| {
            self.found = None;
            refusal(command, error)
        })?;
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

    /// The path of the program: as given where it names a folder or drive, else from PATH.
    fn resolve(&mut self, program: &OsStr) -> Result<PathBuf, Failure> {
        if let Some((_, path)) = self.found.as_ref().filter(|(known, _)| known == program) {
            return Ok(path.clone());
        }
        if program.encode_wide().any(|unit| unit == 0) {
            return Err(Step::Arguments.failed(io::ErrorKind::InvalidInput));
        }
        let named = program.encode_wide().any(|unit| [b'/', b'\\', b':'].map(u16::from).contains(&unit));
        let found = if named { complete(Path::new(program), true) } else { look_up(program) };
        let step = if named { Step::Exec } else { Step::Lookup };
        let path = found.ok_or_else(|| step.failed(io::ErrorKind::NotFound))?;
        if is_batch(&path) {
            let text =
                "batch files are not started yet: give `cmd.exe`, `/d`, `/c` and the file, quoted for it";
            return Err(Step::Exec.failed(io::Error::new(io::ErrorKind::Unsupported, text)));
        }
        self.found = Some((program.to_owned(), path.clone()));
        Ok(path)
    }
}

impl Words {
    fn new(command: &Command, program: &Path) -> Result<Self, Failure> {
        let args = command.args.iter().map(|arg| arg.encode_wide().collect()).collect::<Vec<Vec<u16>>>();
        let name = command.program.encode_wide().collect::<Vec<_>>();
        let line =
            quote::command_line(&name, args.iter().map(Vec::as_slice)).map_err(|error| match error {
                Unquotable::Invalid => Step::Arguments.failed(io::ErrorKind::InvalidInput),
                Unquotable::TooLong => Step::Exec.failed(io::ErrorKind::ArgumentListTooLong),
            })?;
        Ok(Self {
            program: wide(program.as_os_str())?,
            line,
            environment: environment(&command.env)?,
            folder: command.current_dir.as_ref().map(|dir| wide(dir.as_os_str())).transpose()?,
        })
    }
}

/// The block for a changed environment; `None` for ours as it is.
fn environment(env: &Env) -> Result<Option<Vec<u16>>, Failure> {
    if !env.clear && env.changes.is_empty() {
        return Ok(None);
    }
    let wide = |text: &OsStr| text.encode_wide().collect::<Vec<_>>();
    let inherited = (!env.clear).then(std::env::vars_os).into_iter().flatten();
    let inherited = inherited.map(|(key, value)| (wide(&key), Some(wide(&value))));
    let changes = env.changes.iter().map(|(key, value)| (wide(key), value.as_deref().map(wide)));
    match quote::environment(inherited.chain(changes)) {
        Some(block) => Ok(Some(block)),
        None => {
            let nul = |text: &OsStr| text.encode_wide().any(|unit| unit == 0);
            let holds = env.changes.iter().any(|(key, value)| nul(key) || value.as_deref().is_some_and(nul));
            let step = if holds { Step::Arguments } else { Step::Variable };
            Err(step.failed(io::ErrorKind::InvalidInput))
        }
    }
}

fn wide(text: &OsStr) -> Result<Vec<u16>, Failure> {
    let wide = text.encode_wide().chain([0]).collect::<Vec<_>>();
    match wide.iter().position(|&unit| unit == 0) {
        Some(end) if end + 1 == wide.len() => Ok(wide),
        _ => Err(Step::Arguments.failed(io::ErrorKind::InvalidInput)),
    }
}

/// Searches the folders of PATH, and no other: the system would begin with our own and the current one.
fn look_up(program: &OsStr) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| !folder.as_os_str().is_empty());
    if program.is_empty() {
        None
    } else {
        folders.into_iter().find_map(|folder| complete(&folder.join(program), false))
    }
}

/// The file of this name, or else with one of the extensions of programs. `bare` allows for none at all.
fn complete(path: &Path, bare: bool) -> Option<PathBuf> {
    // Not followed: what stands for a program of the store is a link that only `CreateProcessW` can open.
    let is_file = |path: &Path| path.symlink_metadata().is_ok_and(|found| !found.is_dir());
    if path.extension().is_some() && is_file(path) {
        return Some(path.to_owned());
    }
    let listed = std::env::var("PATHEXT").unwrap_or_default().to_ascii_uppercase();
    let listed = if listed.is_empty() { ".COM;.EXE;.BAT;.CMD" } else { &listed };
    // The others are documents: they are opened by a shell, not started.
    let programs =
        listed.split(';').filter(|extension| matches!(*extension, ".COM" | ".EXE" | ".BAT" | ".CMD"));
    let with = |extension: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(extension.to_ascii_lowercase());
        PathBuf::from(name)
    };
    programs.map(with).find(|path| is_file(path)).or_else(|| (bare && is_file(path)).then(|| path.to_owned()))
}

/// Whether the system would hand it to `cmd.exe`. It looks at the name without the dots and blanks at its end.
fn is_batch(path: &Path) -> bool {
    let name = path.as_os_str().to_string_lossy().to_ascii_lowercase();
    let name = name.trim_end_matches(['.', ' ']);
    name.ends_with(".bat") || name.ends_with(".cmd")
}

/// An inheritable copy. Where there is nothing to copy (a program without a console), the child has nothing as well.
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

/// Makes the process, with these streams, in this job.
fn start(
    command: &Command,
    mut words: Words,
    theirs: &[Option<OwnedHandle>; 3],
    tree: &Tree,
) -> io::Result<Process> {
    let streams =
        theirs.each_ref().map(|handle| handle.as_ref().map_or(null_mut(), AsRawHandle::as_raw_handle));
    let inherited = streams.iter().copied().filter(|handle| !handle.is_null()).collect::<Vec<HANDLE>>();
    let job = [tree.job().as_raw_handle()];
    let mut attributes = Attributes::new(2)?;
    attributes.set(PROC_THREAD_ATTRIBUTE_JOB_LIST, &job)?;
    if !inherited.is_empty() {
        attributes.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, &inherited)?;
    }
    let mut startup = STARTUPINFOEXW { lpAttributeList: attributes.list(), ..STARTUPINFOEXW::default() };
    startup.StartupInfo.cb = size_of::<STARTUPINFOEXW>() as u32;
    startup.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [startup.StartupInfo.hStdInput, startup.StartupInfo.hStdOutput, startup.StartupInfo.hStdError] = streams;
    let mut made = PROCESS_INFORMATION::default();
    let (inherit, flags) = (i32::from(!inherited.is_empty()), flags(command));
    let environment = words.environment.as_ref().map_or(null(), |block| block.as_ptr().cast::<c_void>());
    let folder = words.folder.as_ref().map_or(null(), |folder| folder.as_ptr());
    let (program, line) = (words.program.as_ptr(), words.line.as_mut_ptr());
    // `EXTENDED_STARTUPINFO_PRESENT` says that what begins with this goes on with the list.
    let startup = (&raw const startup).cast();
    // SAFETY: program, line, folder and environment are ended by zeros, `line` is ours to be written to; the attribute
    // list and the arrays that it points to outlive the call; its handles are open and inheritable.
    let answer = unsafe {
        CreateProcessW(program, line, null(), null(), inherit, flags, environment, folder, startup, &mut made)
    };
    if answer == 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call above made it, and nobody else has it.
    drop(unsafe { OwnedHandle::from_raw_handle(made.hThread) });
    // SAFETY: as above.
    let handle = unsafe { OwnedHandle::from_raw_handle(made.hProcess) };
    Ok(Process::new(made.dwProcessId, handle))
}

fn flags(command: &Command) -> u32 {
    let mut flags = CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    if command.group != Group::Inherit {
        // Ctrl-C at our console is for us.
        flags |= CREATE_NEW_PROCESS_GROUP;
    }
    let inherits =
        [&command.stdin, &command.stdout, &command.stderr].map(|stdio| matches!(stdio, Stdio::Inherit));
    if !inherits.contains(&true) {
        flags |= DETACHED_PROCESS;
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

/// A list of attributes for a new process. It points to the values that it was given.
struct Attributes<'a> {
    /// Memory that is aligned for pointers; its size is the system's secret.
    memory: Vec<usize>,
    values: PhantomData<&'a [HANDLE]>,
}

impl<'a> Attributes<'a> {
    fn new(count: u32) -> io::Result<Self> {
        let mut size = 0;
        // SAFETY: without a list the call only tells the size, and fails.
        unsafe { InitializeProcThreadAttributeList(null_mut(), count, 0, &mut size) };
        let mut memory = vec![0; size.div_ceil(size_of::<usize>())];
        // SAFETY: `memory` has the size that was asked for.
        let answer =
            unsafe { InitializeProcThreadAttributeList(memory.as_mut_ptr().cast(), count, 0, &mut size) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(Self { memory, values: PhantomData }) }
    }

    /// Sets an attribute that is a list of handles.
    fn set(&mut self, attribute: u32, handles: &'a [HANDLE]) -> io::Result<()> {
        let (list, attribute) = (self.list(), attribute as usize);
        let (value, size) = (handles.as_ptr().cast(), size_of_val(handles));
        // SAFETY: the list was initialised by `new`; `value` is as large as it is said to be, and lives as long as the list.
        let answer =
            unsafe { UpdateProcThreadAttribute(list, 0, attribute, value, size, null_mut(), null()) };
        if answer == 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    fn list(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.memory.as_mut_ptr().cast()
    }
}

impl Drop for Attributes<'_> {
    fn drop(&mut self) {
        // SAFETY: the list was initialised by `new`, and is deleted once.
        unsafe { DeleteProcThreadAttributeList(self.list()) };
    }
}

/// At which step the system refused.
fn refusal(command: &Command, error: io::Error) -> Failure {
    let no_folder = || command.current_dir.as_ref().is_some_and(|dir| !dir.is_dir());
    let step = match error.raw_os_error().map(i32::cast_unsigned) {
        _ if is_exhausted(&error) => Step::Process,
        Some(ERROR_DIRECTORY) => Step::Folder,
        _ if no_folder() => Step::Folder,
        _ => Step::Exec,
    };
    step.failed(error)
}

/// Whether a child that ends would give back what was missing.
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(i32::cast_unsigned);
    matches!(
        code,
        Some(
            ERROR_TOO_MANY_OPEN_FILES
                | ERROR_NOT_ENOUGH_MEMORY
                | ERROR_OUTOFMEMORY
                | ERROR_NO_PROC_SLOTS
                | ERROR_MAX_THRDS_REACHED
                | ERROR_NO_SYSTEM_RESOURCES
                | ERROR_NONPAGED_SYSTEM_RESOURCES
                | ERROR_PAGED_SYSTEM_RESOURCES
                | ERROR_WORKING_SET_QUOTA
                | ERROR_COMMITMENT_LIMIT
                | ERROR_NOT_ENOUGH_QUOTA
        )
    )
}
