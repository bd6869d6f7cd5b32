//! The program to start, with its streams and attributes: plain data, without system calls.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::environment::Environment;
use crate::group::Group;
use crate::process_attributes::{ProcessAttributes, Resource, ResourceLimit};

/// A program, its arguments, and the environment in which it starts.
///
/// Cloning a command is cheap compared with a spawn. One command can be started many times, from any
/// thread. A child inherits nothing by accident: it gets the three standard streams that are set here,
/// no other descriptor or handle (unless [`descriptors`](Self::descriptors) adds some), no blocked
/// signal, and the soft limit on descriptors that this process was started with.
///
/// The program is looked up at each start. A name with a slash is used as it is. Any other name is
/// searched for in the `PATH` of the child, as in std: that of this process, unless the command sets,
/// removes or clears it. Without `PATH`, that is `/usr/local/bin`, `/bin` and `/usr/bin`. The current
/// directory is searched only if `PATH` names it. A relative entry is relative to the directory of this
/// process. On Unix, `/bin/sh` runs a script without `#!` in its first line, as with execvp(3).
///
/// On Windows:
///
/// - The `PATH` of this process is searched, whatever that of the child is.
/// - A backslash or a colon counts as a slash. Entries of `PATH` that are not absolute are skipped, so
///   the current directory is never searched. A name may lack its extension if that is one of `.COM`,
///   `.EXE`, `.BAT` and `.CMD` and in `PATHEXT`. Files with other extensions are documents, and are
///   not started.
/// - A program gets one command line of at most 32,766 characters and splits it by itself. Arguments
///   are quoted by the rules of the C runtime, which nearly all programs follow.
/// - A batch file is run by the `cmd.exe` of the system directory, to which some arguments cannot be
///   passed. A start fails with `InvalidInput`, and names the argument, if one contains `%`, `"`, a
///   line end or another control character, or has to be quoted and ends with a backslash. It fails
///   with `TooLong` if the command line has more than 8,191 characters.
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
    /// Text that follows the arguments on the command line, unquoted; see
    /// [`raw_tail`](Self::raw_tail).
    pub(crate) tail: Option<OsString>,
    pub(crate) env: Env,
    pub(crate) current_dir: Option<PathBuf>,
    /// `None` is the default of the call that starts the command.
    pub(crate) stdin: Option<Stdio>,
    pub(crate) stdout: Option<Stdio>,
    pub(crate) stderr: Option<Stdio>,
    pub(crate) descriptors: Descriptors,
    pub(crate) group: Group,
    pub(crate) die_with_parent: bool,
    pub(crate) nice: i32,
    /// `None` leaves the child the slack of the thread that starts it.
    pub(crate) timer_slack: Option<Duration>,
    pub(crate) attributes: Option<Box<ProcessAttributes>>,
    /// The time for which the child waits before it joins its group; tests set it.
    #[allow(dead_code, reason = "only clone has steps that a test can delay")]
    pub(crate) late: Duration,
}

/// The environment of the child.
#[derive(Clone, Debug, Default)]
pub(crate) struct Env {
    /// The variables to begin with. `None` is a copy of ours.
    pub(crate) base: Option<Environment>,
    /// The changes in order. `None` removes the variable.
    pub(crate) changes: Vec<(OsString, Option<OsString>)>,
}

/// The target of one of a child's standard streams.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{Command, Stdio};
/// // The output of one child is the input of another.
/// let mut first = Command::new("echo").arg("text").stdout(Stdio::piped()).spawn()?;
/// let mut second = Command::new("cat");
/// second.stdin(first.stdout.take().expect("stdout is piped")).stdout(Stdio::null());
/// assert!(second.spawn()?.wait()?.status.success() && first.wait()?.status.success());
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stdio(pub(crate) StdioKind);

/// The target that [`Stdio`] stands for.
#[derive(Clone, Debug, Default)]
pub(crate) enum StdioKind {
    Null,
    #[default]
    Inherit,
    Piped,
    File(Arc<File>),
    /// For standard error: whatever standard output is connected to.
    Stdout,
}

impl Stdio {
    /// Connects the stream to the null device (`/dev/null`, `NUL`): an empty input, an output that is
    /// discarded.
    pub const fn null() -> Self {
        Self(StdioKind::Null)
    }

    /// Connects the stream to that of this process.
    pub const fn inherit() -> Self {
        Self(StdioKind::Inherit)
    }

    /// Connects the stream to a pipe, whose other end the [`Child`](crate::Child), the
    /// [`ChildSet`](crate::ChildSet) or the [`BackgroundSet`](crate::BackgroundSet) has.
    pub const fn piped() -> Self {
        Self(StdioKind::Piped)
    }

    /// Connects the stream to an open file, at its present position. Any number of children may share
    /// the file; it stays open here.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Stdio};
    /// use std::sync::Arc;
    ///
    /// let log = Arc::new(std::fs::File::options().append(true).open("/dev/null")?);
    /// for text in ["one", "two"] {
    ///     let mut command = Command::new("echo");
    ///     command.arg(text).stdin(Stdio::inherit()).stdout(Stdio::shared(Arc::clone(&log)));
    ///     assert!(command.status()?.success());
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shared(file: Arc<File>) -> Self {
        Self(StdioKind::File(file))
    }
}

impl From<File> for Stdio {
    fn from(file: File) -> Self {
        Self::shared(Arc::new(file))
    }
}

/// Open descriptors that a child gets in addition to its three streams, with the same numbers as in
/// this process.
///
/// A clone shares the files. The methods depend on the operating system: see
/// [`inherited`](Self::inherited) and [`with`](Self::with).
#[derive(Clone, Debug, Default)]
pub struct Descriptors {
    /// Sorted by number; each number is at least 3 and occurs once. `None` is an empty list, without
    /// an allocation.
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
    /// The file that keeps it open. `None` for a descriptor that this process inherited and that no
    /// object owns.
    #[allow(dead_code, reason = "handles of Windows have no numbers that a child could know")]
    pub(crate) file: Option<Arc<File>>,
}

impl Command {
    /// Creates a command that runs `program` without arguments, with the working directory, environment
    /// and streams of this process, in a new process group.
    pub fn new(program: impl AsRef<OsStr>) -> Self {
        Self {
            program: program.as_ref().to_owned(),
            args: Vec::new(),
            tail: None,
            env: Env::default(),
            current_dir: None,
            stdin: None,
            stdout: None,
            stderr: None,
            descriptors: Descriptors::default(),
            group: Group::New,
            die_with_parent: false,
            nice: 0,
            timer_slack: None,
            attributes: None,
            late: Duration::ZERO,
        }
    }

    /// Creates a command from the words of its command line, the program first. Nothing is copied.
    ///
    /// Without a word, the name of the program is empty, and each start fails with `NotFound`.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let mut command = minder::Command::from_argv(vec!["echo".into(), "text".into()]);
    /// assert_eq!(command.output()?.stdout, b"text\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn from_argv(argv: Vec<OsString>) -> Self {
        let mut words = argv.into_iter();
        let mut command = Self::new("");
        command.program = words.next().unwrap_or_default();
        command.args = words.collect();
        command
    }

    /// Adds one argument. The program receives it unchanged: no shell, no splitting.
    pub fn arg(&mut self, arg: impl AsRef<OsStr>) -> &mut Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// Adds several arguments.
    pub fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> &mut Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// Appends a text to the command line, after a space and unchanged. This is for the few Windows
    /// programs that parse their command line by their own rules, above all `cmd.exe`. The last
    /// call counts.
    ///
    /// The caller is responsible for every character: nothing is quoted, and a value in the text
    /// may become anything.
    ///
    /// - Windows: the text may hold any unit except 0; with the arguments before it, the line may
    ///   have 32,766 UTF-16 units (`CreateProcessW`).
    /// - Unix: programs get separate arguments, not a line. A start fails with
    ///   [`Unsupported`](crate::ErrorKind::Unsupported).
    ///
    /// ```
    /// let mut command = minder::Command::new("cmd.exe");
    /// command.args(["/d", "/s", "/c"]).raw_tail(r#""ver | more""#);
    /// assert_eq!(command.spawn().is_ok(), cfg!(windows));
    /// ```
    pub fn raw_tail(&mut self, text: impl AsRef<OsStr>) -> &mut Self {
        self.tail = Some(text.as_ref().to_owned());
        self
    }

    /// Sets a variable in the child's environment. On Unix, the program is searched for in a `PATH` that is
    /// set so.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, ErrorKind};
    ///
    /// let mut command = Command::new("true");
    /// command.env("PATH", "/proc:/dev");
    /// assert_eq!(command.status().unwrap_err().kind(), ErrorKind::NotFound);
    /// assert!(command.env("PATH", "/bin:/usr/bin").status()?.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn env(&mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> &mut Self {
        self.env.changes.push((key.as_ref().to_owned(), Some(value.as_ref().to_owned())));
        self
    }

    /// Sets several variables in the child's environment.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let mut command = minder::Command::new("sh");
    /// command.args(["-c", "echo $NAME$USER"]).env_clear().envs([("NAME", "a"), ("USER", "b")]);
    /// command.env("NAME", "c").env_remove("USER");
    /// assert_eq!(command.output()?.stdout, b"c\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn envs(
        &mut self,
        vars: impl IntoIterator<Item = (impl AsRef<OsStr>, impl AsRef<OsStr>)>,
    ) -> &mut Self {
        for (key, value) in vars {
            self.env(key, value);
        }
        self
    }

    /// Removes a variable from the child's environment.
    pub fn env_remove(&mut self, key: impl AsRef<OsStr>) -> &mut Self {
        self.env.changes.push((key.as_ref().to_owned(), None));
        self
    }

    /// Clears the child's environment, including the variables that were set before.
    pub fn env_clear(&mut self) -> &mut Self {
        self.env = Env { base: Some(Environment::empty()), changes: Vec::new() };
        self
    }

    /// Sets the variables that the child starts with, in place of those of this process. Changes by
    /// [`env`](Self::env) and [`env_remove`](Self::env_remove), earlier and later ones, apply to them.
    ///
    /// A start is cheaper than with a copy of the environment of this process: see [`Environment`].
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Environment};
    ///
    /// let environment = Environment::empty().with("A", "1").with("B", "2");
    /// let mut command = Command::new("/usr/bin/env");
    /// command.environment(&environment).env("C", "3").env_remove("B");
    /// assert_eq!(command.output()?.stdout, b"A=1\nC=3\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn environment(&mut self, environment: &Environment) -> &mut Self {
        self.env.base = Some(environment.clone());
        self
    }

    /// Sets the working directory of the child. A relative program path is resolved in that directory.
    ///
    /// - Windows: the path can have at most 258 characters.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let mut command = minder::Command::new("pwd");
    /// command.current_dir("/");
    /// assert_eq!(command.output()?.stdout, b"/\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn current_dir(&mut self, dir: impl AsRef<Path>) -> &mut Self {
        self.current_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Sets the standard input. Default: that of this process; for [`output`](Self::output), the null
    /// device.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Stdio};
    ///
    /// let mut command = Command::new("cat");
    /// command.stdin(std::fs::File::open("/dev/null")?).stdout(Stdio::piped()).stderr(Stdio::null());
    /// assert_eq!(command.output()?.stdout, b"");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn stdin(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stdin = Some(stdio.into());
        self
    }

    /// Sets the standard output. Default: that of this process; for [`output`](Self::output), a pipe.
    pub fn stdout(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stdout = Some(stdio.into());
        self
    }

    /// Sets the standard error. Default: as the standard output.
    pub fn stderr(&mut self, stdio: impl Into<Stdio>) -> &mut Self {
        self.stderr = Some(stdio.into());
        self
    }

    /// Connects the standard error to whatever the standard output is connected to, as `2>&1` does in a
    /// shell. If that is a pipe, both outputs arrive in the order of their writes, as
    /// [`Stream::Stdout`](crate::Stream::Stdout).
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// let mut command = minder::Command::new("sh");
    /// command.args(["-c", "echo one; echo two >&2; echo three"]).stderr_to_stdout();
    /// assert_eq!(command.output()?.stdout, b"one\ntwo\nthree\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn stderr_to_stdout(&mut self) -> &mut Self {
        self.stderr = Some(Stdio(StdioKind::Stdout));
        self
    }

    /// Sets the descriptors that the child gets in addition to its three streams. Default: none.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, Descriptors};
    /// use std::os::fd::AsRawFd;
    ///
    /// let (reader, writer) = std::io::pipe()?;
    /// let writer = std::fs::File::from(std::os::fd::OwnedFd::from(writer));
    /// let script = format!("echo text >&{}", writer.as_raw_fd());
    /// let mut command = Command::new("bash");
    /// command.args(["-c", &script]).descriptors(&Descriptors::default().with(writer));
    /// assert!(command.status()?.success());
    /// drop(command); // and with it our copy of the writer
    /// assert_eq!(std::io::read_to_string(reader)?, "text\n");
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn descriptors(&mut self, descriptors: &Descriptors) -> &mut Self {
        self.descriptors = descriptors.clone();
        self
    }

    /// Sets the group, session or terminal of the child.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, Group};
    ///
    /// // Without a controlling terminal, `ssh` and `sudo` cannot ask for a password.
    /// let mut command = Command::new("true");
    /// command.group(Group::Session);
    /// assert!(command.status()?.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn group(&mut self, group: Group) -> &mut Self {
        self.group = group;
        self
    }

    /// Asks the kernel to kill the child when the *thread* that started it ends.
    ///
    /// This is a second line of defence for programs whose spawning thread lives as long as they do.
    /// It applies to the child alone, not to its descendants, and a set-user-id program removes it
    /// (prctl(2), `PR_SET_PDEATHSIG`).
    ///
    /// - Linux: `PR_SET_PDEATHSIG` with `SIGKILL`.
    /// - Other Unix: no effect.
    /// - Windows: always, by the job object.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, Termination};
    ///
    /// let mut child = Command::new("sleep").arg("60").die_with_parent(true).spawn()?;
    /// // If this thread ended now, the kernel would kill the child.
    /// let exit = child.kill_and_wait(Termination::IMMEDIATE)?;
    /// assert!(!exit.status.success());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn die_with_parent(&mut self, yes: bool) -> &mut Self {
        self.die_with_parent = yes;
        self
    }

    /// Adds `nice` to the niceness of the child and its descendants. A higher niceness gives other
    /// processes precedence. The sum is limited to -20 to 19. Zero, the default, changes nothing.
    ///
    /// A start fails with `PermissionDenied` if the sum is lower than the niceness of this process and
    /// than its limit (`RLIMIT_NICE`), unless the process has the privilege (`CAP_SYS_NICE`).
    ///
    /// - Linux: the niceness of the thread that starts the child is the base.
    /// - Other Unix: a start with a niceness fails with `Unsupported`.
    /// - Windows: a priority class, whatever that of this process is: idle from 10 on, below normal from
    ///   1 on, above normal from -1 down, high from -10 down.
    ///
    /// ```
    /// # #[cfg(unix)] {
    /// use minder::{Command, ErrorKind};
    ///
    /// match Command::new("nice").nice(5).output() {
    ///     // `nice` without arguments prints its niceness.
    ///     Ok(output) => assert!(output.status.success() && !output.stdout.is_empty()),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    /// }
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn nice(&mut self, nice: i32) -> &mut Self {
        self.nice = nice;
        self
    }

    /// Sets the timer slack of the child, which its descendants inherit: the time by which the kernel may
    /// delay its sleeps and time-outs, so that timers share a wake-up. Default: that of the thread that
    /// starts the child, which this library never changes; 50 us unless the host or its parent set
    /// another one (prctl(2), `PR_SET_TIMERSLACK`).
    ///
    /// A large slack saves power. A small one makes the sleeps of the child more exact. Zero counts as one
    /// nanosecond, the least that there is. Slack does not apply to threads under real-time scheduling.
    ///
    /// - Linux: the child sets it before it executes its program.
    /// - Other systems: a start with a slack fails with `Unsupported`.
    ///
    /// ```
    /// use minder::{Command, ErrorKind};
    /// use std::time::Duration;
    ///
    /// let mut command = Command::new("cat");
    /// command.arg("/proc/self/timerslack_ns").timer_slack(Duration::from_millis(5));
    /// match command.output() {
    ///     Ok(output) => assert_eq!(output.stdout, b"5000000\n"),
    ///     Err(error) => assert!(matches!(error.kind(), ErrorKind::Unsupported | ErrorKind::NotFound)),
    /// }
    /// ```
    pub fn timer_slack(&mut self, slack: Duration) -> &mut Self {
        self.timer_slack = Some(slack);
        self
    }

    /// Sets the user of the child: its real, effective and saved user id. With the privilege of root, the
    /// child has no supplementary groups then, unless [`groups`](Self::groups) sets them. Default: the user
    /// of this process.
    ///
    /// The order is that of the standard library: limits, groups, group, user, then the working directory.
    /// The environment stays as it is, with `HOME` and `USER`. The program is searched for with the rights of
    /// this process. A kill of a child that runs as another user needs the privilege, too (`CAP_KILL`).
    ///
    /// A start fails with `PermissionDenied` if this process may not set the id, and the error names it.
    ///
    /// - Linux: while the child starts, this process writes no core dump.
    /// - Other systems: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, ErrorKind};
    ///
    /// let mut command = Command::new("id");
    /// command.arg("-u").uid(65534).gid(65534);
    /// match command.output() {
    ///     Ok(output) => assert_eq!(output.stdout, b"65534\n"),
    ///     // This process is not that of root.
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    /// }
    /// # }
    /// ```
    pub fn uid(&mut self, uid: u32) -> &mut Self {
        self.attributes().uid = Some(uid);
        self
    }

    /// Sets the group of the child: its real, effective and saved group id. Default: the group of this
    /// process. Errors and systems: see [`uid`](Self::uid).
    pub fn gid(&mut self, gid: u32) -> &mut Self {
        self.attributes().gid = Some(gid);
        self
    }

    /// Sets the supplementary groups of the child. Default: those of this process, or none for another
    /// [user](Self::uid). Errors and systems: see there.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, ErrorKind};
    ///
    /// let mut command = Command::new("id");
    /// command.arg("-G").gid(7).groups([8, 9]);
    /// match command.output() {
    ///     Ok(output) => assert_eq!(output.stdout, b"7 8 9\n"),
    ///     Err(error) => assert_eq!(error.kind(), ErrorKind::PermissionDenied),
    /// }
    /// # }
    /// ```
    pub fn groups(&mut self, groups: impl IntoIterator<Item = u32>) -> &mut Self {
        self.attributes().groups = Some(groups.into_iter().collect());
        self
    }

    /// Sets the soft and the hard limit of a resource for the child and its descendants: setrlimit(2). `None`
    /// means unlimited. Default: the limits of this process; for descriptors, the soft limit that it was
    /// started with. They are set before the [user](Self::uid), so root may raise a hard limit for another
    /// user.
    ///
    /// A start fails with `PermissionDenied` if the hard limit is above that of this process, without the
    /// privilege (`CAP_SYS_RESOURCE`), and with `InvalidInput` if the soft limit is above the hard one.
    ///
    /// - Systems other than Linux: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::{Command, Resource};
    ///
    /// // It is stopped after a second of processor time, at the latest.
    /// let mut command = Command::new("sh");
    /// command.args(["-c", "while :; do :; done"]).limit(Resource::CpuTime, Some(1), Some(1));
    /// assert!(command.status()?.signal().is_some());
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn limit(&mut self, resource: Resource, soft: Option<u64>, hard: Option<u64>) -> &mut Self {
        let limits = &mut self.attributes().limits;
        limits.retain(|limit| limit.resource != resource);
        limits.push(ResourceLimit { resource, soft, hard });
        self
    }

    /// Sets the umask of the child: the permissions that new files do not get. Default: that of this process.
    ///
    /// - Systems other than Linux: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// let mut command = minder::Command::new("sh");
    /// command.args(["-c", "umask"]).umask(0o077);
    /// assert_eq!(command.output()?.stdout, b"0077\n");
    /// # }
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn umask(&mut self, mask: u32) -> &mut Self {
        self.attributes().umask = Some(mask);
        self
    }

    /// Starts the child in a cgroup of version 2: `dir` is the open directory of that cgroup, and stays open
    /// here. The child is in the cgroup before it executes its program, so everything that the program does
    /// counts there. Default: the cgroup of this process.
    ///
    /// The caller makes the directory, writes its limits, and removes it after the child: see "Control Group
    /// v2" in the documentation of the kernel.
    ///
    /// The child shares the memory of this process until it executes its program. If the kernel kills all
    /// processes of its cgroup before (`memory.oom.group`), it kills this process, too. It does not kill the
    /// child alone then, so with a limit of a few pages the start does not return. Therefore use one cgroup
    /// for each child if its memory is limited, and a limit of at least 1 MiB.
    ///
    /// A start fails with `PermissionDenied` if this process may not write to `cgroup.procs` of the cgroup
    /// and of the closest common ancestor with its own cgroup. The kernel also refuses a directory of another
    /// file system, a cgroup that was removed, and one that passes controllers on to its children.
    ///
    /// - Linux: `CLONE_INTO_CGROUP` of clone3(2), since Linux 5.7. Elsewhere the child writes to
    ///   `cgroup.procs` first.
    /// - Other systems: a start fails with `Unsupported`.
    ///
    /// ```
    /// # #[cfg(target_os = "linux")] {
    /// use minder::Command;
    /// use std::fs::{self, File};
    ///
    /// // Only root may make one here.
    /// let dir = "/sys/fs/cgroup/minder-example";
    /// if fs::create_dir(dir).is_ok() {
    ///     let mut command = Command::new("cat");
    ///     command.arg("/proc/self/cgroup").cgroup(File::open(dir)?);
    ///     let output = command.output();
    ///     fs::remove_dir(dir)?;
    ///     // The hierarchy of version 1 may be there instead.
    ///     if let Ok(output) = output {
    ///         assert!(output.stdout.ends_with(b"/minder-example\n"));
    ///     }
    /// }
    /// # }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn cgroup(&mut self, dir: impl Into<Arc<File>>) -> &mut Self {
        self.attributes().cgroup = Some(dir.into());
        self
    }

    /// Delays the child before it joins its group, as a busy machine does (Linux). For
    /// tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_late(&mut self, late: Duration) -> &mut Self {
        self.late = late;
        self
    }

    fn attributes(&mut self) -> &mut ProcessAttributes {
        self.attributes.get_or_insert_default()
    }

    /// Returns the target of its standard input.
    pub(crate) fn stdin_kind(&self) -> &StdioKind {
        kind_of(&self.stdin)
    }

    /// Returns the target of its standard output.
    pub(crate) fn stdout_kind(&self) -> &StdioKind {
        kind_of(&self.stdout)
    }

    /// Returns the target of its standard error.
    pub(crate) fn stderr_kind(&self) -> &StdioKind {
        kind_of(&self.stderr)
    }

    /// Returns the program, as it was passed to [`new`](Self::new).
    ///
    /// ```
    /// use minder::{Command, Group};
    /// use std::ffi::OsStr;
    ///
    /// let mut command = Command::new("make");
    /// command.args(["-j", "4"]).env("LANG", "C").current_dir("/tmp");
    /// assert_eq!(command.get_program(), "make");
    /// assert!(command.get_args().eq(["-j", "4"]));
    /// assert!(command.get_envs().eq([(OsStr::new("LANG"), Some(OsStr::new("C")))]));
    /// assert!(!command.get_env_clear());
    /// assert_eq!(command.get_current_dir(), Some("/tmp".as_ref()));
    /// assert_eq!(command.get_group(), Group::New);
    /// ```
    pub fn get_program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments, without the program.
    pub fn get_args(&self) -> impl ExactSizeIterator<Item = &OsStr> {
        self.args.iter().map(OsString::as_os_str)
    }

    /// Returns the text that was passed to [`raw_tail`](Self::raw_tail).
    ///
    /// ```
    /// let mut command = minder::Command::new("cmd");
    /// command.raw_tail("/c ver");
    /// assert_eq!(command.get_raw_tail(), Some("/c ver".as_ref()));
    /// ```
    pub fn get_raw_tail(&self) -> Option<&OsStr> {
        self.tail.as_deref()
    }

    /// Returns the changes to the environment in the order of the calls, with `None` for a variable
    /// that is removed. A later change of a variable replaces an earlier one.
    pub fn get_envs(&self) -> impl ExactSizeIterator<Item = (&OsStr, Option<&OsStr>)> {
        self.env.changes.iter().map(|(key, value)| (key.as_os_str(), value.as_deref()))
    }

    /// Returns whether the environment of this process is not inherited: see
    /// [`env_clear`](Self::env_clear) and [`environment`](Self::environment).
    pub fn get_env_clear(&self) -> bool {
        self.env.base.is_some()
    }

    /// Returns the working directory of the child, if it is not that of this process.
    pub fn get_current_dir(&self) -> Option<&Path> {
        self.current_dir.as_deref()
    }

    /// Returns the group, session or terminal of the child.
    pub fn get_group(&self) -> Group {
        self.group
    }
}

/// Streams are inherited unless they are set.
fn kind_of(stdio: &Option<Stdio>) -> &StdioKind {
    match stdio {
        Some(Stdio(kind)) => kind,
        None => &StdioKind::Inherit,
    }
}
