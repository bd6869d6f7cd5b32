//! What to run: plain data, without a word to the operating system.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// A program, its arguments, and what it finds when it starts.
///
/// Plain data: cloning is cheap beside a spawn, and one command can be started many times from any
/// thread. Nothing is inherited by accident: a child has the three standard streams that are named
/// here and no other descriptor or handle (unless [`descriptors`](Self::descriptors) adds some), no
/// blocked signal, and the soft descriptor limit that its user had.
///
/// The program is looked up once a start: a name with a slash is used as it is; any other name is
/// searched for in the `PATH` of this process, whatever the child's will be (never in the current
/// folder, unless `PATH` names it).
///
/// On Windows:
///
/// - A backslash or a colon counts as a slash. Parts of `PATH` that are not absolute are passed
///   over, so that the current folder is never searched. A name may lack an extension of `PATHEXT`,
///   of which `.COM`, `.EXE`, `.BAT` and `.CMD` count: files with the others are documents, and are
///   not started.
/// - A program gets one line of at most 32,766 characters and takes it apart by itself. It is
///   quoted by the rules of the C runtime, which nearly all programs follow.
/// - A batch file is run by the `cmd.exe` of the system's folder, which cannot be told everything.
///   A start fails with `InvalidInput`, and names the argument, when one holds `%`, `"`, a line end
///   or another control character, or has to be quoted and ends with a backslash; with `TooLong`
///   when the line has more than 8,191 characters.
///
/// ```
/// # #[cfg(unix)] {
/// let mut child = minder::Command::new("true").spawn()?;
/// assert!(child.wait()?.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Command {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// What stands behind the arguments on the command line as it is; see
    /// [`raw_tail`](Self::raw_tail).
    pub(crate) tail: Option<OsString>,
    pub(crate) env: Env,
    pub(crate) current_dir: Option<PathBuf>,
    pub(crate) stdin: Stdio,
    pub(crate) stdout: Stdio,
    pub(crate) stderr: Stdio,
    pub(crate) descriptors: Descriptors,
    pub(crate) group: Group,
    pub(crate) die_with_parent: bool,
    pub(crate) nice: i32,
    /// How long the child waits before it joins its group; see [`fault_late`](Self::fault_late).
    #[allow(dead_code, reason = "only `clone3` has steps that a test can delay")]
    pub(crate) late: Duration,
}

/// Changes to the environment that the child inherits.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    /// Whether it starts from nothing instead of from ours.
    pub(crate) clear: bool,
    /// In order; `None` removes.
    pub(crate) changes: Vec<(OsString, Option<OsString>)>,
}

/// Where one of a child's standard streams comes from or goes to.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Stdio {
    /// An empty input; an output that vanishes (`/dev/null`, `NUL`).
    Null,
    /// Ours.
    #[default]
    Inherit,
    /// A pipe, whose other end a [`ChildSet`](crate::ChildSet), [`Pump`](crate::BackgroundSet) or
    /// [`Child`](crate::Child) holds.
    Piped,
    /// An open file. It is used as it is, with its position; it stays open here.
    File(Arc<File>),
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self::File(Arc::new(file))
    }
}

/// Open descriptors that a child gets beside its three streams, under the numbers that they have in
/// this process.
///
/// A clone shares its files. The methods are those of a system: see [`inherited`](Self::inherited)
/// and [`with`](Self::with).
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// Sorted by number, each from 3 upwards and there once; `None` is the same as an empty list
    /// and costs nothing.
    pub(crate) list: Option<Arc<Vec<Kept>>>,
}

impl Descriptors {
    pub(crate) fn kept(&self) -> &[Kept] {
        self.list.as_deref().map_or(&[], Vec::as_slice)
    }
}

/// One descriptor that a child keeps.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) number: i32,
    /// What holds it open; `None` for one that this process inherited and that belongs to no
    /// object.
    #[allow(dead_code, reason = "handles of Windows have no numbers that a child could know")]
    pub(crate) file: Option<Arc<File>>,
}

/// Which process group, session or terminal a child starts in.
///
/// A child that is to be killed with everything that it started needs a group of its own.
///
/// - Windows has no process groups. Every child has a job object of its own, in which all that it
///   starts remains; `New` and `Session` both mean a new console process group, too, so that
///   Ctrl-Break can be sent to it. `Terminal` is not supported yet. Where the job that we are in
///   ourselves allows none inside it (before Windows 8), a start fails with `Unsupported`, but for
///   `Inherit`: then the child is killed alone.
/// - NetBSD and OpenBSD: `Terminal` is not supported. Unix other than Linux and macOS: neither is
///   `Session`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Group {
    /// The parent's: Ctrl-C at the terminal reaches the child directly; its tree cannot be killed
    /// as a whole.
    Inherit,
    /// A process group of its own, in the parent's session.
    #[default]
    New,
    /// A session of its own, without a controlling terminal.
    Session,
    /// A session of its own on a new pseudo-terminal of this size. The three streams are that
    /// terminal, whatever the command says of them, but for an input that is [`Stdio::Null`];
    /// what the child writes is one merged stream and arrives as
    /// [`Stream::Stdout`](crate::Stream::Stdout).
    Terminal(Size),
}

/// The size of a terminal, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Lines.
    pub rows: u16,
    /// Characters a line.
    pub columns: u16,
}

impl Default for Size {
    fn default() -> Self {
        Self { rows: 24, columns: 80 }
    }
}

impl Command {
    /// Makes a command that runs `program` without arguments, in our folder, with our environment
    /// and streams, in a process group of its own.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            tail: None,
            env: Env::default(),
            current_dir: None,
            stdin: Stdio::Inherit,
            stdout: Stdio::Inherit,
            stderr: Stdio::Inherit,
            descriptors: Descriptors::default(),
            group: Group::New,
            die_with_parent: false,
            nice: 0,
            late: Duration::ZERO,
        }
    }

    /// Adds one argument. It reaches the program as it is: no shell, no splitting.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Sets a variable in the child's environment.
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.env.changes.push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Removes a variable from the child's environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.env.changes.push((key.as_ref().to_owned(), None));
        self
    }

    /// Starts the child's environment from nothing; variables set before are forgotten.
    pub fn env_clear(&mut self) -> &mut Self {
        self.env = Env { clear: true, changes: Vec::new() };
        self
    }

    /// Sets the folder that the child starts in. A relative program path is resolved in that
    /// folder.
    ///
    /// - Windows: the system takes no folder of more than 258 characters.
    pub fn current_dir(&mut self, dir: impl AsRef<Path>) -> &mut Self {
        self.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets the standard input.
    pub fn stdin(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stdin = stdio.into();
        self
    }

    /// Sets the standard output.
    pub fn stdout(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stdout = stdio.into();
        self
    }

    /// Sets the standard error.
    pub fn stderr(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stderr = stdio.into();
        self
    }

    /// Sets the descriptors that the child gets beside its three streams; none by default.
    pub fn descriptors(&mut self, descriptors: &Descriptors) -> &mut Self {
        self.descriptors = descriptors.clone();
        self
    }

    /// Sets the group, session or terminal of the child.
    pub fn group(&mut self, group: Group) -> &mut Self {
        self.group = group;
        self
    }

    /// Asks the system to kill the child when the *thread* that started it ends.
    ///
    /// A second line of defence for programs whose spawning thread lives as long as they do. It
    /// covers the child alone, not what it starts, and a set-user-id program takes it off
    /// (prctl(2), `PR_SET_PDEATHSIG`).
    ///
    /// - Linux: `PR_SET_PDEATHSIG` with `SIGKILL`. Other Unix: no effect. Windows: always so,
    ///   through the job object.
    pub fn die_with_parent(&mut self, yes: bool) -> &mut Self {
        self.die_with_parent = yes;
        self
    }

    /// Adds this to our niceness for the child and what it starts: the higher, the less it is in
    /// the way of others. The sum stays between -20 and 19. Zero, the default, changes nothing.
    ///
    /// A start fails with `PermissionDenied` for a sum that is lower than our niceness and lower
    /// than the limit for it (`RLIMIT_NICE`), unless we have the privilege (`CAP_SYS_NICE`).
    ///
    /// - Linux by `clone3`: the niceness of the thread that starts the child counts as ours. Linux
    ///   without it, and other Unix: a start with a niceness fails with `Unsupported`.
    /// - Windows: a priority class, whatever ours is: idle from 10 on, below normal from 1 on,
    ///   above normal from -1 down, high from -10 down.
    pub fn nice(&mut self, nice: i32) -> &mut Self {
        self.nice = nice;
        self
    }

    /// Delays the child before it joins its group, as a busy machine does (Linux by `clone3`). For
    /// tests.
    #[doc(hidden)]
    pub fn fault_late(&mut self, late: Duration) -> &mut Self {
        self.late = late;
        self
    }

    /// The program, as it was given.
    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    /// The arguments, without the program.
    pub fn get_args(&self) -> impl ExactSizeIterator<Item = &OsStr> {
        self.args.iter().map(OsString::as_os_str)
    }
}
