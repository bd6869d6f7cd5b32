//! Spawning on Unix: streams first, then the process, by the best mechanism that this machine has.

#![expect(unsafe_code, reason = "a variable in the environment of a child")]

use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::Arc;

use super::exec_args::ExecArgs;
use super::in_progress::StartInProgress;
use super::null_device::open_null;
use super::request::{NULL_DEVICE, Request};
use super::{SpawnError, SpawnStep, Spawned};
use crate::command::{Command, StdioKind};
use crate::group::Group;
use crate::sys::fd::pipe;
use crate::sys::guardian::GuardianLink;
use crate::sys::pipe::{Reader, Terminal, Writer, open_terminal};
use crate::sys::process_tree::ProcessTree;

/// The message for a path that does not exist.
pub(crate) const NO_FILE: &str = "no such file, or the interpreter named in its first line does not exist";
/// The message for a file that the kernel cannot run.
pub(crate) const NO_PROGRAM: &str = "neither a program for this system nor a script";

/// Starts children, one at a time, from one thread. It keeps what later starts can use again.
#[derive(Debug)]
pub(crate) struct Spawner {
    image: ExecArgs,
    /// The null device. A lone start leaves it to the child to open that.
    null: Option<Arc<OwnedFd>>,
    /// `true` if our ends of pipes are for readers and writers that do not block.
    nonblocking: bool,
    /// The guardian of the children.
    guardian: Option<Arc<GuardianLink>>,
    #[cfg(any(target_os = "linux", target_os = "android"))]
    by_clone: super::clone::CloneSpawner,
}

impl Spawner {
    /// Makes one without opening anything. Our ends of pipes block.
    pub(crate) fn new() -> Self {
        Self {
            image: ExecArgs::default(),
            null: None,
            nonblocking: false,
            guardian: None,
            #[cfg(any(target_os = "linux", target_os = "android"))]
            by_clone: super::clone::CloneSpawner::default(),
        }
    }

    /// Registers the children with this guardian.
    pub(crate) fn guarded_by(mut self, guardian: Option<Arc<GuardianLink>>) -> Self {
        self.guardian = guardian;
        self
    }

    /// Makes one for the only child of a set, without opening anything.
    pub(crate) fn for_one() -> Self {
        Self { nonblocking: true, ..Self::new() }
    }

    /// Makes one for the children of a set, and opens now what all of them use.
    ///
    /// # Errors
    /// No descriptor is free.
    pub(crate) fn for_many() -> io::Result<Self> {
        let mut spawner = Self::for_one();
        // Opened first, so that its number is below those that a shared table is cut above. It is
        // never copied for a child.
        spawner.null = Some(Arc::new(open_null()?));
        #[cfg(any(target_os = "linux", target_os = "android"))]
        spawner.by_clone.reserve()?;
        Ok(spawner)
    }

    /// Starts `command`. After a failure no process and no descriptor is left.
    pub(crate) fn spawn(&mut self, command: &Command) -> Result<Spawned, SpawnError> {
        let mut result = self.search_and_start(command);
        if let (Err(failure), Some(guardian)) = (&result, &self.guardian)
            && failure.step == SpawnStep::Guardian
            && failure.is_broken_pipe()
            && guardian.settings().restart
        {
            guardian.start().map_err(|error| SpawnStep::Guardian.failed(io::Error::other(error)))?;
            result = self.search_and_start(command);
        }
        result
    }

    fn search_and_start(&mut self, command: &Command) -> Result<Spawned, SpawnError> {
        let mut result = self.attempt(command, false);
        // The program found in PATH earlier may have moved: search once more.
        if let Err(SpawnError { step: SpawnStep::Exec, error }) = &result
            && self.image.forget()
            && error.kind() == io::ErrorKind::NotFound
        {
            result = self.attempt(command, false);
        }
        if let Err(SpawnError { step: SpawnStep::Exec, error }) = &result
            && is_no_program(error)
            && self.image.is_script(command)?
        {
            result = self.attempt(command, true);
        }
        result
    }

    /// With `in_shell`, the program is a script that the shell runs.
    fn attempt(&mut self, command: &Command, in_shell: bool) -> Result<Spawned, SpawnError> {
        if command.tail.is_some() {
            return Err(SpawnStep::Tail.failed(io::ErrorKind::Unsupported));
        }
        self.image.build(command, in_shell)?;
        if let Some(variable) = self.guardian.as_ref().and_then(|guardian| guardian.variable()) {
            // SAFETY: `self` holds the guardian with its variable; the next child gets a new list.
            unsafe { self.image.add_variable(variable) };
        }
        let dir = match &command.current_dir {
            Some(dir) => Some(c_string(dir.as_os_str())?),
            None => None,
        };
        // Descriptors are opened before the process: if none is free, nothing has to be undone.
        let streams = self.streams(command).map_err(|error| SpawnStep::Streams.failed(error))?;
        let guardian = self.guardian.as_ref().map(GuardianLink::register).transpose();
        let registration = guardian.map_err(|error| SpawnStep::Guardian.failed(error))?;
        let request = Request {
            image: &self.image,
            command,
            dir: dir.as_deref(),
            streams: streams.theirs(),
            registration: registration.as_ref(),
            nofile: crate::sys::guard::inherited_nofile(),
        };
        let start = StartInProgress::new();
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let mut process = self.by_clone.spawn(&request)?;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let mut process = super::posix::spawn(&request)?;
        drop(start);
        if let Some(registration) = &registration {
            registration.confirm(process.pid().cast_signed(), request.leads_group());
        }
        process.set_registration(registration);
        let tree = ProcessTree::new(&process, command.group != Group::Inherit);
        let Streams { ours: (stdin, stdout, stderr), .. } = streams;
        Ok(Spawned { process, tree, stdin, stdout, stderr })
    }

    fn streams(&mut self, command: &Command) -> io::Result<Streams> {
        if let Group::Terminal(size) = command.group {
            let mut streams = Streams::terminal(open_terminal(size)?, self.nonblocking)?;
            if let StdioKind::Null = command.stdin_kind() {
                streams.theirs[0] = self.source(&StdioKind::Null);
                streams.ours.0 = None;
            }
            return Ok(streams);
        }
        let mut streams = Streams::default();
        match command.stdin_kind() {
            StdioKind::Piped => {
                let (read, write) = pipe()?;
                streams.theirs[0] = Some(Source::Own(read));
                streams.ours.0 = Some(Writer::new(write, self.nonblocking)?);
            }
            other => streams.theirs[0] = self.source(other),
        }
        for (place, stdio) in [(1, command.stdout_kind()), (2, command.stderr_kind())] {
            if let (StdioKind::Stdout, 2) = (stdio, place) {
                streams.share_stdout()?;
                continue;
            }
            let StdioKind::Piped = stdio else {
                streams.theirs[place] = self.source(stdio);
                continue;
            };
            let (read, write) = pipe()?;
            streams.theirs[place] = Some(Source::Own(write));
            let reader = Some(Reader::new(read, self.nonblocking)?);
            if place == 1 { streams.ours.1 = reader } else { streams.ours.2 = reader }
        }
        Ok(streams)
    }

    fn source(&self, stdio: &StdioKind) -> Option<Source> {
        match stdio {
            StdioKind::Inherit | StdioKind::Piped | StdioKind::Stdout => None,
            StdioKind::File(file) => Some(Source::File(Arc::clone(file))),
            StdioKind::Null => {
                Some(self.null.as_ref().map_or(Source::Null, |null| Source::Shared(Arc::clone(null))))
            }
        }
    }
}

/// Both sides of a child's streams.
#[derive(Debug, Default)]
struct Streams {
    theirs: [Option<Source>; 3],
    ours: (Option<Writer>, Option<Reader>, Option<Reader>),
}

/// A descriptor that becomes one of the child's streams.
#[derive(Debug)]
enum Source {
    Own(OwnedFd),
    Shared(Arc<OwnedFd>),
    /// The null device, which the child opens.
    Null,
    File(Arc<std::fs::File>),
}

impl Streams {
    /// Makes standard error what standard output is.
    fn share_stdout(&mut self) -> io::Result<()> {
        let shared = |fd| (Source::Shared(Arc::clone(&fd)), Source::Shared(fd));
        let (stdout, stderr) = match self.theirs[1].take() {
            Some(Source::File(file)) => (Source::File(Arc::clone(&file)), Source::File(file)),
            Some(Source::Null) => (Source::Null, Source::Null),
            Some(Source::Shared(fd)) => shared(fd),
            Some(Source::Own(fd)) => shared(Arc::new(fd)),
            // It is inherited.
            None => {
                // If it is closed, its number may be that of a descriptor of ours.
                if rustix::io::fcntl_getfd(io::stdout())?.contains(rustix::io::FdFlags::CLOEXEC) {
                    return Err(rustix::io::Errno::BADF.into());
                }
                shared(Arc::new(rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?))
            }
        };
        (self.theirs[1], self.theirs[2]) = (Some(stdout), Some(stderr));
        Ok(())
    }

    fn terminal(terminal: Terminal, nonblocking: bool) -> io::Result<Self> {
        let child = Arc::new(terminal.child);
        let writer = Writer::new(terminal.host.try_clone()?, nonblocking)?;
        let reader = Reader::of_terminal(terminal.host, nonblocking)?;
        let theirs = [0; 3].map(|_| Some(Source::Shared(Arc::clone(&child))));
        Ok(Self { theirs, ours: (Some(writer), Some(reader), None) })
    }

    fn theirs(&self) -> [RawFd; 3] {
        [0, 1, 2].map(|place| match &self.theirs[place] {
            None => -1,
            Some(Source::Null) => NULL_DEVICE,
            Some(Source::Own(fd)) => fd.as_fd().as_raw_fd(),
            Some(Source::Shared(fd)) => fd.as_fd().as_raw_fd(),
            Some(Source::File(file)) => file.as_fd().as_raw_fd(),
        })
    }
}

/// Returns whether the file exists, but the kernel cannot run it.
pub(crate) fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC)
}

fn c_string(string: &std::ffi::OsStr) -> Result<std::ffi::CString, SpawnError> {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::CString::new(string.as_bytes())
        .map_err(|_| SpawnStep::Arguments.failed(io::ErrorKind::InvalidInput))
}
