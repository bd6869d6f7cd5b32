//! Guards that end the child processes when this process ends in any way, and the signals to it.
//!
//! | this process | use |
//! | --- | --- |
//! | is a command, and has no thread yet | [`ProcessGuard`] |
//! | has threads, or belongs to other code (an editor, a server, an interpreter) | [`Guardian`] |
//!
//! A [`ProcessGuard`] is the one object that changes the process itself: its signals, its limit of
//! descriptors, and what is killed when it dies. All descendants of the process are killed with it.
//!
//! A [`Guardian`] is a separate program that ends the guarded children when this process is killed. It
//! changes nothing else.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::error::{Error, Result};
use crate::sys::guard as sys;
use crate::sys::jobserver::HeldTokens;

pub use crate::guardian::{GuardedProcess, Guardian, GuardianOptions};
pub use crate::sys::guard::{ExitMode, SignalSender, SignalSource};
use crate::sys::signal::Signal;

/// Options of [`ProcessGuard::install`].
#[derive(Clone, Debug)]
#[must_use]
pub struct GuardOptions {
    config: sys::GuardConfig,
}

impl Default for GuardOptions {
    fn default() -> Self {
        GuardOptions::new()
    }
}

impl GuardOptions {
    /// Requests guardians where the operating system supports them.
    pub fn new() -> Self {
        GuardOptions {
            config: sys::GuardConfig {
                guardians: true,
                watchdog: false,
                faults: sys::FaultInjection::default(),
                held_tokens: None,
            },
        }
    }

    /// Returns these jobserver tokens when the run is killed.
    pub(crate) fn held_tokens(mut self, tokens: Option<HeldTokens>) -> Self {
        self.config.held_tokens = tokens.map(Arc::new);
        self
    }

    /// Sets whether there are guardians. Without guardians this process is the only one. Signals work
    /// the same, and its jobs keep running after a `kill -9` of it, except on Windows, where job
    /// objects end them.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new().guardians(false))?;
    ///     assert!(guard.guardians().is_none());
    ///     println!("no guardians: {}", guard.unavailable_reason().unwrap_or_default());
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn guardians(mut self, guardians: bool) -> Self {
        self.config.guardians = guardians;
        self
    }

    /// Sets whether a guardian watches a deadline of this process: see [`ProcessGuard::watchdog`]. It then
    /// wakes up once a second.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new().watchdog(true))?;
    ///     assert_eq!(guard.watchdog().is_some(), guard.guardians().is_some());
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn watchdog(mut self, watchdog: bool) -> Self {
        self.config.watchdog = watchdog;
        self
    }

    /// Delays the inner guardian, as a busy machine would. For tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_late(mut self, late: std::time::Duration) -> Self {
        self.config.faults.late = late;
        self
    }

    /// Does not use the `children` files of `/proc`. For tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_no_children_file(mut self) -> Self {
        self.config.faults.no_children_file = true;
        self
    }

    /// Does not use pidfds. For tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_no_pidfd(mut self) -> Self {
        self.config.faults.no_pidfd = true;
        self
    }
}

/// The pids of the two guardians.
///
/// ```standalone_crate
/// use minder::guard::{GuardOptions, GuardianPids, ProcessGuard};
///
/// fn main() -> minder::Result<()> {
///     let guard = ProcessGuard::install(&GuardOptions::new())?;
///     if let Some(GuardianPids { outer, inner, .. }) = guard.guardians() {
///         println!("process {} is guarded by {outer} and {inner}", std::process::id());
///         assert!(guard.kills_descendants() && outer != inner);
///     }
///     guard.exit(0)
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardianPids {
    /// The outer guardian: the process that the user started.
    pub outer: u32,
    /// The inner guardian: the parent of the runner.
    pub inner: u32,
}

/// A deadline of a guarded process. If it passes, a guardian kills the process and all of its descendants,
/// within two seconds, even while the process is stopped or hangs in a system call.
///
/// For a process that may work only as long as it hears from another machine. The deadline passes while this
/// machine is suspended, too (`CLOCK_BOOTTIME` of clock_gettime(2)); the kill follows when it wakes up.
///
/// - Linux only: no other system has guardians.
///
/// ```standalone_crate
/// use std::time::Duration;
/// use minder::guard::{GuardOptions, ProcessGuard, Watchdog};
///
/// fn heard(watchdog: Option<Watchdog>) {
///     if let Some(watchdog) = watchdog {
///         watchdog.set_deadline(Some(Duration::from_secs(30)));
///     }
/// }
///
/// fn main() -> minder::Result<()> {
///     let guard = ProcessGuard::install(&GuardOptions::new().watchdog(true))?;
///     heard(guard.watchdog());
///     guard.exit(0)
/// }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Watchdog(sys::Watchdog);

impl Watchdog {
    /// Sets the deadline to so long from now on, rounded up to a tenth of a second, or removes it.
    pub fn set_deadline(self, left: Option<std::time::Duration>) {
        self.0.set_deadline(left);
    }
}

/// Receives the signals of the process, and kills its whole process tree when it dies.
///
/// Everything else in this crate leaves the process as its host made it. A command that *is* the
/// process creates a [`ProcessGuard`] before anything else. It gets what a library must not take: the
/// signals as a stream that an event loop can wait for, and the guarantee that no process of its tree
/// outlives it, even after `kill -9`.
///
/// # How it works
///
/// On Linux the process that was started becomes the *outer guardian*. It forks the *inner guardian*,
/// which forks the *runner*. Only the runner returns from [`ProcessGuard::install`]:
///
/// ```text
/// outer guardian   the process that the shell waits for; relays signals, repeats the runner's exit
///  └ inner guardian   in a separate session, with no open descriptors, named `run-guardian`
///     └ runner           in the user's process group and session: your program, from `install` on
///        └ jobs
/// ```
///
/// Both guardians are subreapers: every process that is orphaned below them becomes their child, even
/// if it left its group and session. The three processes watch one another. When one of them dies, a
/// guardian that is left kills the whole tree, and repeats that until the kernel reports no child.
///
/// # What is guaranteed
///
/// No descendant of the run is alive one second after `SIGKILL` of any of these: one of the three
/// processes; the outer or the inner guardian together with the runner; the process group; the
/// session; all processes with the program's name or path. This also holds while others of the three
/// are stopped, or the run is stopped by Ctrl-Z. The caller sees an exit by `SIGKILL` (137 in a
/// shell).
///
/// After a normal exit ([`ProcessGuard::exit`]), daemons that jobs left behind keep running;
/// [`ProcessGuard::orphans`] names them. After every other exit they are killed.
///
/// What is *not* guaranteed:
///
/// * Both guardians are killed at once: the runner then kills its descendants, but daemons that the
///   inner guardian had adopted keep running. All three are killed at once (`killall
///   /path/to/program` finds all three by their file): the jobs keep running.
/// * Processes that run entirely as another user (`sudo`, `su`): a run without privileges may not
///   signal them. After a second, a message on stderr names them, and they are left. Set-user-id
///   programs whose real user is still ours are killed.
/// * Work that another process does: `docker run`, `systemd-run`, `at`, a server that was already
///   running, the remote side of `ssh`.
/// * Processes that cannot handle their `SIGKILL`, because a file server does not answer, a debugger
///   holds them or their cgroup is frozen. The signal is pending, they start no process, and they exit
///   when they can. The guardians wait for them for at most a second.
/// * A tree that forks faster than the guardian can follow on an overloaded machine. It did not happen
///   with fifty processes at once; only a PID namespace would exclude it.
/// * `SIGSTOP` to the pid of the outer guardian alone does not stop the run; use `SIGTSTP` or Ctrl-Z.
/// * A Ctrl-Z within microseconds after `fg`: the guardian's `SIGCONT` may discard it, as every
///   `SIGCONT` discards a pending stop.
/// * Signals to the runner's pid other than interrupt, terminate, hang-up and quit. Each of those four
///   counts once, even if the outer guardian relays the same signal, as with `kill` of the whole
///   group.
///
/// # A runner that does not respond
///
/// The runner may be stopped alone (`kill -STOP`), or hang. If it does not stop within three seconds
/// after a Ctrl-Z, the outer guardian stops alone, so that the shell continues. If it reads none of
/// three signals that ask it to exit, the outer guardian prints a message on stderr and has the runner
/// killed with its tree.
///
/// # Operating systems
///
/// * Linux: all of the above. Without pidfds (before 5.3, or forbidden by a filter), a pid that the
///   kernel reuses within microseconds may be mistaken for the old process. Without the `children`
///   files of `/proc`, every search reads all of `/proc`. Without `/proc`, or with that of another PID
///   namespace (`unshare --pid --fork` without `--mount-proc`), there are no guardians.
/// * Other Unix: signals and descriptors, without guardians, because there is no subreaper.
/// * Windows: the console's events, without guardians. Each child is in a job object that ends with its
///   last handle (`JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`), and the kernel closes the handles of a process
///   however it dies. Ctrl-C is [`Signal::INT`], Ctrl-Break is [`Signal::TERM`]. Closing the
///   console, logging off and shutting down are [`Signal::HUP`], after which Windows leaves some
///   seconds. There is no Ctrl-Z. A process that was started in a separate process group
///   (`CREATE_NEW_PROCESS_GROUP`) ignores Ctrl-C.
///
/// # Example
///
/// ```standalone_crate
/// use minder::{ChildSet, ChildSetOptions, Command, Signal};
/// use minder::guard::{ExitMode, GuardOptions, ProcessGuard};
/// use minder::{SpawnOptions, Termination};
/// use std::time::Duration;
///
/// fn main() -> minder::Result<()> {
///     let mut guard = ProcessGuard::install(&GuardOptions::new())?; // before any thread
///     // … parse flags, open files …
///     guard.wait_ready()?; // before the first child
///     let mut set = ChildSet::new(ChildSetOptions::new())?;
///     set.spawn(&Command::new("true"), SpawnOptions::new()).ok();
///     // Programs with an event loop watch `guard.signals()` instead.
///     while !set.wait_all(Some(Duration::from_millis(20)), drop)? {
///         match guard.next_signal() {
///             Some(Signal::INT | Signal::TERM) => {
///                 set.kill_all(Termination::graceful(Duration::from_secs(5)))?;
///             }
///             Some(signal @ Signal::QUIT) => guard.terminate(ExitMode::Signal(signal)),
///             _ => (),
///         }
///     }
///     guard.exit(0)
/// }
/// ```
#[must_use = "without a call of `exit`, daemons that jobs left behind are killed"]
pub struct ProcessGuard {
    sys: sys::Guard,
}

impl ProcessGuard {
    /// Takes over the signals and creates the guardians. Call it before any thread exists, and before
    /// anything is buffered for writing or opened that the guardians should not hold for a moment.
    ///
    /// On Linux it forks twice and returns in the runner: another process than the caller, with another
    /// pid. From then on the relayed signals are blocked, except those that the process was started to
    /// ignore (`nohup`, `sh -c 'program … &'`), which stay ignored. `SIGCHLD` gets its default action.
    /// `SIGXFSZ` and `SIGPIPE` get a handler that does nothing, so that a write beyond `ulimit -f` or to a
    /// closed pipe is an error; children get the default action.
    ///
    /// If the program returns from `main` instead of calling [`ProcessGuard::exit`], its exit status is
    /// kept, but the tree is killed.
    ///
    /// It is not an error that there are no guardians; see [`ProcessGuard::guardians`].
    ///
    /// # Errors
    /// - The process already has a guard, or more than one thread.
    /// - No memory, process or descriptor is free.
    pub fn install(options: &GuardOptions) -> Result<ProcessGuard> {
        let sys = sys::Guard::install(&options.config).map_err(|error| failed("guard the run", error))?;
        Ok(ProcessGuard { sys })
    }

    /// Returns the pids of the guardians, if there are any.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     match (guard.guardians(), guard.unavailable_reason()) {
    ///         (Some(pids), _) => println!("guarded by {} and {}", pids.outer, pids.inner),
    ///         (None, reason) => println!("no guardians: {}", reason.unwrap_or_default()),
    ///     }
    ///     // On Windows job objects do it, without guardians.
    ///     assert!(guard.kills_descendants() || guard.guardians().is_none());
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn guardians(&self) -> Option<GuardianPids> {
        self.sys.guardians().ok().map(|(outer, inner)| GuardianPids { outer, inner })
    }

    /// Returns why there are no guardians, as a fragment of a sentence in lower case; `None` if there
    /// are.
    pub fn unavailable_reason(&self) -> Option<&'static str> {
        self.sys.guardians().err()
    }

    /// Returns whether the descendants of the run are killed when it is killed: there are guardians, or the
    /// kernel does it.
    ///
    /// - Windows: always; the kernel ends the job objects of the children.
    #[must_use]
    pub fn kills_descendants(&self) -> bool {
        self.sys.kills_descendants()
    }

    /// Returns the deadline that a guardian watches, if [`GuardOptions::watchdog`] was set and there are
    /// guardians. No deadline is set at first.
    ///
    /// ```standalone_crate
    /// use std::time::Duration;
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new().watchdog(true))?;
    ///     if let Some(watchdog) = guard.watchdog() {
    ///         // While the server answers: the jobs of this process are killed 30 s after its last answer.
    ///         watchdog.set_deadline(Some(Duration::from_secs(30)));
    ///         watchdog.set_deadline(None);
    ///     }
    ///     guard.exit(0)
    /// }
    /// ```
    #[must_use]
    pub fn watchdog(&self) -> Option<Watchdog> {
        self.sys.watchdog().map(Watchdog)
    }

    /// Waits until the guardians watch the runner. Call it just before the first child is started; the
    /// guardians start up in parallel with the caller until then.
    ///
    /// A child that was started earlier keeps running if the group is killed in the first
    /// milliseconds.
    ///
    /// # Errors
    /// The guardians are not ready after 5 s.
    pub fn wait_ready(&self) -> Result<()> {
        self.sys.wait_ready().map_err(|error| failed("guard the run", error))
    }

    /// Returns what to wait for in addition to the children. It is readable while
    /// [`ProcessGuard::next_signal`] would return a signal, and when the guardians are dead, which that
    /// method handles. Level-triggered.
    ///
    /// ```standalone_crate
    /// use minder::poll::{Events, Interest, Poller, Token};
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     let poller = Poller::new()?;
    ///     poller.add(&guard.signals(), Token(0), Interest::READABLE)?;
    ///     let mut events = Events::new();
    ///     // … children are further sources of this wait …
    ///     poller.wait(&mut events, Some(std::time::Duration::from_millis(1)))?;
    ///     if !events.is_empty() {
    ///         println!("{:?}", guard.next_signal());
    ///     }
    ///     guard.exit(0)
    /// }
    /// ```
    #[must_use]
    pub fn signals(&self) -> SignalSource<'_> {
        self.sys.signals()
    }

    /// Returns the next pending signal. Never blocks.
    ///
    /// A repeated interrupt, terminate, hang-up or quit counts again only after 200 ms, so that one key
    /// press is one signal. If both guardians are dead, this kills the descendants of the runner and
    /// does not return.
    pub fn next_signal(&mut self) -> Option<Signal> {
        self.next_signal_and_sender().map(|(signal, _)| signal)
    }

    /// Returns what [`next_signal`](Self::next_signal) returns, and who sent the signal. For a program
    /// that passes signals on to a child in its own process group: the terminal has sent a key to both.
    ///
    /// - Linux, without guardians: always known. With guardians: known for the keys Ctrl-C and Ctrl-\, and
    ///   for requests to exit that were sent to the runner.
    /// - Elsewhere: [`SignalSender::Unknown`] for most signals.
    ///
    /// ```standalone_crate
    /// use minder::{Command, Group, Signal};
    /// use minder::guard::{GuardOptions, ProcessGuard, SignalSender};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let mut guard = ProcessGuard::install(&GuardOptions::new().guardians(false))?;
    ///     let mut child = Command::new("true").group(Group::Inherit).spawn()?;
    ///     while let Some((signal, sender)) = guard.next_signal_and_sender() {
    ///         if signal == Signal::INT && sender != SignalSender::Terminal {
    ///             child.signal(signal)?;
    ///         }
    ///     }
    ///     assert!(child.wait()?.status.success());
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn next_signal_and_sender(&mut self) -> Option<(Signal, SignalSender)> {
        self.sys.next_signal()
    }

    /// Registers a flag that is set before this process kills its tree because both guardians are dead:
    /// see [`ProcessGuard::next_signal`]. Other threads read from it that children do not exit by
    /// themselves. Without guardians it is never set.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicBool, Ordering};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     let orphaned = Arc::new(AtomicBool::new(false));
    ///     guard.set_orphaned_flag(Arc::clone(&orphaned));
    ///     // A thread that reports failed jobs reads the flag first.
    ///     assert!(!orphaned.load(Ordering::Relaxed));
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn set_orphaned_flag(&mut self, flag: Arc<AtomicBool>) {
        self.sys.set_orphaned_flag(flag);
    }

    /// Stops this process as Ctrl-Z does, and returns when it was continued. Suspend the jobs before, and
    /// resume them afterwards.
    ///
    /// In a process group that no shell watches (`ssh -t`, `script`, a container's terminal) the kernel
    /// ignores Ctrl-Z, and this returns at once. Without effect on Windows.
    ///
    /// ```standalone_crate
    /// use minder::{ChildSet, ChildSetOptions, Signal};
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     let mut set = ChildSet::new(ChildSetOptions::new())?;
    ///     if guard.next_signal() == Some(Signal::TSTP) {
    ///         set.suspend_all()?;
    ///         guard.suspend_self(); // until `fg` or `bg`
    ///         set.resume_all()?;
    ///     }
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn suspend_self(&self) {
        self.sys.suspend_self();
    }

    /// Stops this process by `SIGSTOP`, which the kernel never ignores, and returns when it was continued.
    /// For a request that a program sent, when [`suspend_self`](Self::suspend_self) returned at once: only
    /// `SIGCONT` continues the process, and at a terminal without a shell none comes. Without effect on
    /// Windows.
    ///
    /// ```standalone_crate
    /// use minder::Signal;
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let mut guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     if guard.next_signal() == Some(Signal::TSTP) {
    ///         guard.suspend_self();
    ///         if guard.next_signal() != Some(Signal::CONT) {
    ///             guard.stop_self(); // this group is not watched by a shell
    ///         }
    ///     }
    ///     guard.exit(0)
    /// }
    /// ```
    pub fn stop_self(&self) {
        self.sys.stop_self();
    }

    /// Raises the soft limit on descriptors to the hard limit, at most 1048576, and returns the old and
    /// the new limit. Children that this crate starts get the old limit.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     let (old, new) = guard.raise_fd_limit()?;
    ///     assert!(new >= old);
    ///     guard.exit(0)
    /// }
    /// ```
    ///
    /// # Errors
    /// The operating system refuses the change.
    pub fn raise_fd_limit(&self) -> Result<(u64, u64)> {
        sys::raise_descriptors().map_err(|error| failed("raise the limit of descriptors", error))
    }

    /// Returns pid and name of the processes that finished jobs left running. Always empty without
    /// guardians.
    ///
    /// ```standalone_crate
    /// use minder::guard::{GuardOptions, ProcessGuard};
    ///
    /// fn main() -> minder::Result<()> {
    ///     let guard = ProcessGuard::install(&GuardOptions::new())?;
    ///     // … run jobs …
    ///     for (pid, name) in guard.orphans() {
    ///         println!("still running: {name} ({pid})");
    ///     }
    ///     guard.exit(0)
    /// }
    /// ```
    #[must_use]
    pub fn orphans(&self) -> Vec<(u32, String)> {
        self.sys.orphans()
    }

    /// Exits with this status. Processes that jobs left behind keep running.
    pub fn exit(self, status: u8) -> ! {
        self.sys.exit(status)
    }

    /// Exits a run that was cancelled: ends this process at once, without flushing buffers or running
    /// destructors, then kills all of its descendants. The caller sees the exit after that.
    pub fn terminate(self, ending: ExitMode) -> ! {
        self.sys.terminate(ending)
    }
}

impl fmt::Debug for ProcessGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessGuard").field("guardians", &self.guardians()).finish_non_exhaustive()
    }
}

/// Wraps an error of the operating system.
fn failed(operation: &'static str, error: io::Error) -> Error {
    Error::new(operation, error)
}
