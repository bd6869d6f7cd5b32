//! `Guardian`: a small program that ends the children of a host when the host is killed.
//!
//! [`Guardian`] documents the guarantees. The host's side of the mechanism is in `sys/guardian`, the
//! program in `sys/guardian_program`.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use crate::command::Command;
use crate::spawn::explain_guardian;
use crate::sys::guardian::{GuardianError, GuardianLink, GuardianSettings, Registration};
use crate::sys::guardian_program;
use crate::sys::is_no_such_process;
use crate::sys::spawn::{Spawner, start_guardian};
use crate::{Child, Error, ErrorKind, Operation, Result};

/// The options of a [`Guardian`].
///
/// ```
/// use minder::guard::GuardianOptions;
/// use std::time::Duration;
///
/// let config = GuardianOptions::new()
///     .program("/usr/bin/editor") // a host that is its own guardian
///     .arg("guardian")
///     .grace(Duration::from_secs(2))
///     .tag(true)
///     .restart(true)
///     .start_timeout(Duration::from_secs(5))
///     .inherit_stderr(true);
/// # let _ = config;
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct GuardianOptions {
    settings: GuardianSettings,
}

impl GuardianOptions {
    /// Returns the default configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the path of the program `minder-guardian`. Default: the environment variable
    /// `MINDER_GUARDIAN`; else a file of that name in the directory of this process's program; else
    /// in `PATH`.
    pub fn program(mut self, path: impl Into<PathBuf>) -> Self {
        self.settings.program = Some(path.into());
        self
    }

    /// Adds an argument for the program. `minder-guardian` takes none; a host that is its own guardian
    /// needs one: see [`Guardian::run_program`].
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.settings.args.push(arg.into());
        self
    }

    /// Sets the time between `SIGTERM` and `SIGKILL`. Default: zero, the children are killed at once.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// Sets whether each child is tagged by the environment variable `MINDER_GUARDIAN_ID`. Linux only.
    /// Default: no.
    ///
    /// Descendants inherit the variable, so the guardian also finds those that left the group and whose
    /// parents have exited: daemons. A daemon leaves on purpose, and others may use it by then (a
    /// terminal multiplexer, an agent with keys). Without tags it survives, as it survives
    /// [`ChildSet::kill`](crate::ChildSet::kill).
    pub fn tag(mut self, yes: bool) -> Self {
        self.settings.tag = yes;
        self
    }

    /// Sets whether the program is started again if it has exited, with the list of the children.
    /// Default: no, then the next start of a child fails. The program is checked when a child starts.
    pub fn restart(mut self, yes: bool) -> Self {
        self.settings.restart = yes;
        self
    }

    /// Sets how long [`Guardian::start`] waits until the program is ready. Default: 10 s.
    pub fn start_timeout(mut self, timeout: Duration) -> Self {
        self.settings.start_timeout = timeout;
        self
    }

    /// Sets whether the program prints to the standard error of this process which processes it could
    /// not kill. Default: no. The program holds that stream open for as long as it runs.
    pub fn inherit_stderr(mut self, yes: bool) -> Self {
        self.settings.inherit_stderr = yes;
        self
    }
}

/// Ends the children of this process when it is killed, by a small separate program.
///
/// It is for a host that may not fork, because it has threads or belongs to others: an editor, an
/// interpreter, a plugin. A command that owns its process uses a
/// [`ProcessGuard`](crate::guard::ProcessGuard) instead, which reaches more.
///
/// The program `minder-guardian` has the list of the guarded children and watches this process. When
/// this process ends in any way, `kill -9` included, the program kills the children on the list with
/// everything that they started, and exits. Guarded are the children of a
/// [`ChildSet`](crate::ChildSetOptions::guardian), of a [`BackgroundSet`](crate::BackgroundSet) with such
/// a configuration, and of [`spawn`](Self::spawn). [`guard`](Self::guard) adds a child that was started by
/// other code.
///
/// # What is guaranteed
///
/// A child is on the list before it executes its program, and until it is reaped. There is no moment at
/// which a `kill -9` of the host leaves a child behind. No other process is ever killed: on Linux the
/// program identifies processes by pidfds, and not by their numbers. For a child that was started by other
/// code, [`guard`](Self::guard) states what its caller has to do for that.
///
/// The program is in a separate session, ignores every signal that can be ignored, and does not have
/// the name of the host. It holds none of the host's descriptors, except the standard error if
/// [`inherit_stderr`](GuardianOptions::inherit_stderr) asks for it.
///
/// It kills the group of each child, and the descendants outside of the group whose parents still live;
/// with [`tag`](GuardianOptions::tag) also those whose parents have exited.
///
/// What it cannot reach:
///
/// - Processes that run as another user (`sudo`).
/// - With [`tag`](GuardianOptions::tag): a process that left its group, and whose environment was cleaned
///   or overwritten. Without: every process that left its group and lost its parent.
/// - Work that was handed to a server that ran before: `docker run`, `systemd-run`, `at`.
/// - Everything, if the host and the program are killed at the same time.
/// - A process in an uninterruptible system call, until that returns.
/// - On systems other than Linux, a child that runs but was not registered yet: the time between two calls
///   of the host.
///
/// # End
///
/// Handles are cheap to clone. Sets and children hold handles, too. Dropping the last one ends the
/// program and releases the children that still run, as dropping a [`Child`] does. The drop waits for
/// the exit of the program, for at most two seconds. A child that was dropped while it ran stays on the
/// list until then.
///
/// A host that exits without that drop, by [`std::process::exit`] or an abort, or that executes another
/// program, is treated as killed.
///
/// A fork of the host has no guardian: its handles have no effect, and its starts fail.
///
/// If the program does not read, because it was stopped, starts fail with
/// [`Exhausted`](ErrorKind::Exhausted) when some hundred records wait. A start never blocks for it.
///
/// - Linux: before 6.9 a group whose leader has exited is identified by its number; before 6.5 the
///   program opens the pidfds itself when it reads the list.
/// - macOS and the BSDs, not tested: no pidfds, no tags. Only the groups are killed. If a fork
///   of the host keeps the socket open, the program notices the end of the host within a second.
/// - Windows: not needed. Job objects end every child of this library with the host, whether there is a
///   guardian or not. No program is started. [`guard`](Self::guard) is not supported.
///
/// ```standalone_crate
/// use minder::{ChildSet, ChildSetOptions, Command, SpawnOptions, Termination};
/// use minder::guard::{Guardian, GuardianOptions};
/// use std::process::ExitCode;
///
/// fn main() -> ExitCode {
///     // This host is its own guardian. Others ship the program `minder-guardian`.
///     if std::env::args().nth(1).is_some_and(|arg| arg == "guardian") {
///         return Guardian::run_program();
///     }
///     host().expect("no step fails");
///     ExitCode::SUCCESS
/// }
///
/// fn host() -> Result<(), Box<dyn std::error::Error>> {
///     let config = GuardianOptions::new().program(std::env::current_exe()?).arg("guardian");
///     let guardian = Guardian::start(&config)?;
///     println!("guarded by process {:?}", guardian.pid());
///     # if cfg!(unix) {
///     let mut child = guardian.spawn(Command::new("sleep").arg("60"))?;
///     let mut set = ChildSet::new(ChildSetOptions::new().guardian(&guardian))?;
///     set.spawn(Command::new("sleep").arg("60"), SpawnOptions::new())?;
///     let mut other = std::process::Command::new("sleep").arg("60").spawn()?;
///     let guarded = guardian.guard(other.id())?;
///     // From here on, a `kill -9` of this process ends all three children, too.
///     other.kill()?;
///     guarded.release();
///     other.wait()?;
///     child.kill_and_wait(Termination::IMMEDIATE)?;
///     set.kill_all(Termination::IMMEDIATE)?;
///     set.wait_all(None, drop)?;
///     # }
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Guardian {
    link: Arc<GuardianLink>,
}

impl Guardian {
    /// Starts the program, and waits until it is ready.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::ErrorKind;
    /// use minder::guard::{Guardian, GuardianOptions};
    ///
    /// let error = Guardian::start(&GuardianOptions::new().program("/nowhere/minder-guardian")).unwrap_err();
    /// assert_eq!(error.kind(), ErrorKind::NotFound);
    /// # }
    /// ```
    ///
    /// # Errors
    /// - `NotFound`: the program is in none of the places that [`GuardianOptions::program`] describes.
    /// - `Unsupported`: the program is of another version.
    /// - `Other`: the program exited, was not ready in time, or is another one.
    /// - Otherwise as [`Command::spawn`].
    pub fn start(config: &GuardianOptions) -> Result<Self> {
        let link = Arc::new(GuardianLink::new(config.settings.clone(), start_guardian));
        link.start().map_err(explain)?;
        Ok(Self { link })
    }

    /// Returns the pid of the program. `None` on Windows, where there is none.
    pub fn pid(&self) -> Option<u32> {
        self.link.pid()
    }

    /// Starts a guarded command on the calling thread: see [`Command::spawn`].
    ///
    /// # Errors
    /// As [`Command::spawn`], and:
    ///
    /// - `Exhausted`: the program does not read its list. It is stopped, or the machine is very busy.
    /// - `Other`: the program has exited. Without [`GuardianOptions::restart`], start another guardian.
    /// - `PermissionDenied`: this process is a fork of the one that started the guardian.
    pub fn spawn(&self, command: &Command) -> Result<Child> {
        let spawned = Spawner::new()
            .guarded_by(Some(self.link()))
            .spawn(command)
            .map_err(|failure| crate::spawn::explain(command, failure))?;
        Child::new(spawned)
    }

    /// Puts a child of this process that was started by other code on the list: by fork(2), by
    /// [`std::process::Command`]. The result has to be dropped before the child is reaped: see
    /// [`GuardedProcess`], which also has an example.
    ///
    /// After the end of this process it is killed like the other children: with the descendants that can be
    /// found, and with its process group if it leads one at the time of this call. A child that is to lead
    /// a group has to be made its leader before. It has no [`tag`](GuardianOptions::tag).
    ///
    /// The child is not guarded before this call has returned. If this process may be killed in between,
    /// let the forked child first read a byte from a pipe, which this process writes after the call. At end
    /// of file, which is the end of this process, the child exits. It has to close its copy of the pipe's
    /// other end, which would keep the end of file from coming.
    ///
    /// # Errors
    /// - `Unknown`: the pid is not that of a child of this process, or the child has been reaped.
    /// - `InvalidInput`: it is the pid of the guardian's program.
    /// - `Exhausted`, `Other`, `PermissionDenied`: as [`spawn`](Self::spawn).
    /// - `Unsupported`: on Windows. Job objects contain only children that this library has started.
    pub fn guard(&self, pid: u32) -> Result<GuardedProcess> {
        match self.link.guard(pid) {
            Ok(registration) => Ok(GuardedProcess { registration }),
            Err(error) => Err(explain_guard(pid, error)),
        }
    }

    /// Runs the program of a guardian, and returns its exit status. It is the whole of
    /// `minder-guardian`: a host that calls it at the start of `main`, if it was started for that, is its
    /// own guardian and needs no second file.
    ///
    /// The program needs some hundred kilobytes, and starts in a millisecond. A large host is better
    /// served by the separate file.
    pub fn run_program() -> ExitCode {
        ExitCode::from(guardian_program::run())
    }

    pub(crate) fn link(&self) -> Arc<GuardianLink> {
        Arc::clone(&self.link)
    }
}

/// A process that [`Guardian::guard`] has put on the list of a guardian.
///
/// Drop it before the process is reaped by wait(2) or a function that calls it. Until then the pid belongs
/// to the process; afterwards the operating system may give the pid and the group id to others.
///
/// On Linux a late drop harms no other process: the program identifies processes by pidfds. With
/// [`restart`](GuardianOptions::restart) another child of this process may be guarded in its place, if it
/// has got the pid before the program was started again. On other systems the program kills the process
/// and the group that have the numbers by then.
///
/// The drop does not wait, and does not end the process. It keeps the guardian: see
/// [the end](Guardian#end). In a fork of the host it has no effect.
///
/// ```standalone_crate
/// use minder::guard::{GuardedProcess, Guardian, GuardianOptions};
/// use std::process::{Child, Command, ExitCode, Stdio};
///
/// fn main() -> ExitCode {
///     if std::env::args().nth(1).is_some_and(|arg| arg == "guardian") {
///         return Guardian::run_program();
///     }
///     # if cfg!(unix) {
///     host().expect("no step fails");
///     # }
///     ExitCode::SUCCESS
/// }
///
/// /// A child of other code, and its place on the list.
/// struct Worker {
///     child: Child,
///     guarded: GuardedProcess,
/// }
///
/// fn host() -> Result<(), Box<dyn std::error::Error>> {
///     let config = GuardianOptions::new().program(std::env::current_exe()?).arg("guardian");
///     let guardian = Guardian::start(&config)?;
///
///     // The child does nothing before it has read a line. It exits if this process is killed before that.
///     let mut command = Command::new("sh");
///     command.args(["-c", "read -r line && exec sleep 60"]).stdin(Stdio::piped());
///     let mut child = command.spawn()?;
///     let guarded = guardian.guard(child.id())?;
///     std::io::Write::write_all(&mut child.stdin.take().expect("it is piped"), b"\n")?;
///     let worker = Worker { child, guarded };
///
///     // From here on, a `kill -9` of this process ends the child, too.
///     let Worker { mut child, guarded } = worker;
///     child.kill()?;
///     guarded.release(); // before the child is reaped
///     child.wait()?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
#[must_use = "the process is guarded until this is dropped"]
pub struct GuardedProcess {
    registration: Registration,
}

impl GuardedProcess {
    /// Removes the process from the list, as dropping this does. If the guardian's socket is full, this
    /// waits for room, at most 100 ms. A guardian that was stopped learns of the removal when this process
    /// next starts or releases a child.
    pub fn release(self) {
        drop(self);
    }
}

impl Drop for GuardedProcess {
    fn drop(&mut self) {
        self.registration.release();
    }
}

/// Returns the error for a process that is not on the list.
fn explain_guard(pid: u32, error: io::Error) -> Error {
    let kind = error.kind();
    let is_unknown = is_no_such_process(&error);
    let error = Error::new("guard process", error).with_subject(pid.to_string());
    match kind {
        _ if is_unknown => {
            error.with_kind(ErrorKind::Unknown, "not a child of this process, or reaped already")
        }
        io::ErrorKind::InvalidInput => {
            error.with_kind(ErrorKind::InvalidInput, "it is the program of the guardian")
        }
        io::ErrorKind::Unsupported => error.with_kind(
            ErrorKind::Unsupported,
            "job objects contain only children that this library has started",
        ),
        kind => explain_guardian(error, kind),
    }
}

/// Returns the error for a guardian that did not start.
fn explain(error: GuardianError) -> Error {
    const PHRASE: &str = "start the guardian";
    let of_kind = |kind, path: PathBuf, reason| Error::of_kind(kind, PHRASE, reason).with_subject(path);
    let error = match error {
        GuardianError::NotFound => of_kind(
            ErrorKind::NotFound,
            "minder-guardian".into(),
            "not found in the directory of this program or in PATH: name its path in `MINDER_GUARDIAN`",
        ),
        GuardianError::Start(path, error) => Error::new(PHRASE, error).with_subject(path),
        GuardianError::NoGuardian(path) => of_kind(
            ErrorKind::Other,
            path,
            "it exited or did not reply: is this the program `minder-guardian`?",
        ),
        GuardianError::Version(path) => {
            of_kind(ErrorKind::Unsupported, path, "it is of another version: install that of this library")
        }
        GuardianError::TimedOut(path) => of_kind(ErrorKind::Other, path, "it was not ready in time"),
    };
    error.during(Operation::Spawn)
}
