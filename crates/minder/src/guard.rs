//! The one object that changes the process itself: its signals, its descriptor limit, and who dies
//! with it.
//!
//! The long documentation is at [`ProcessGuard`]; the mechanism is in `sys/guard`.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sys::guard as sys;
use crate::sys::jobserver::Debt;

pub use crate::sys::guard::{ExitMode, Signal, SignalSource};

/// How to guard; see [`ProcessGuard::install`].
#[derive(Clone, Debug)]
#[must_use]
pub struct GuardOptions {
    setup: sys::GuardConfig,
}

impl Default for GuardOptions {
    fn default() -> Self {
        GuardOptions::new()
    }
}

impl GuardOptions {
    /// Asks for guardians where the system has them.
    pub fn new() -> Self {
        GuardOptions {
            setup: sys::GuardConfig { guardians: true, faults: sys::FaultInjection::default(), debt: None },
        }
    }

    /// Gives this back when the run is killed.
    pub(crate) fn owing(mut self, debt: Option<Debt>) -> Self {
        self.setup.debt = debt.map(Arc::new);
        self
    }

    /// Chooses whether there are guardians. Without, this process stays the only one: signals work
    /// the same, and `kill -9` of it leaves its jobs running, where no job objects hold them as
    /// on Windows.
    pub fn guardians(mut self, guardians: bool) -> Self {
        self.setup.guardians = guardians;
        self
    }

    /// Delays the inner guardian, as a busy machine does. For tests.
    #[doc(hidden)]
    pub fn fault_late(mut self, late: Duration) -> Self {
        self.setup.faults.late = late;
        self
    }

    /// Goes without the `children` files of `/proc`. For tests.
    #[doc(hidden)]
    pub fn fault_no_children_file(mut self) -> Self {
        self.setup.faults.no_children_file = true;
        self
    }

    /// Goes without pidfds. For tests.
    #[doc(hidden)]
    pub fn fault_no_pidfd(mut self) -> Self {
        self.setup.faults.no_pidfd = true;
        self
    }
}

/// The two processes round the runner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GuardianPids {
    /// What the user started.
    pub outer: u32,
    /// The runner's parent.
    pub inner: u32,
}

/// Holds the process's signals and ties its tree to its life.
///
/// Everything else in this crate leaves the process as its host made it. A command that *is* the
/// process takes a [`ProcessGuard`] first thing, and gets from it what a library must not take: the
/// signals as a stream that a loop can wait on, and the promise that nothing of its tree outlives
/// it, even when it is killed by `kill -9`.
///
/// # How it works
///
/// On Linux the process that was started becomes the *outer guardian*, forks the *inner guardian*,
/// and that one forks the *runner*, which alone returns from [`ProcessGuard::install`]:
///
/// ```text
/// outer guardian   what the user started and the shell waits for; relays signals, repeats the runner's end
///  └ inner guardian   in a session of its own, holds nothing open, named `run-guardian`
///     └ runner           in the user's group and session: your program, from `enter` on
///        └ jobs
/// ```
///
/// Both guardians are subreapers, so whatever is orphaned below them becomes their child, also what
/// has left its group and session. The three watch each other. Whoever of the guardians outlives
/// the first death kills the whole tree, and repeats until the kernel says that there is no child
/// left.
///
/// # What is promised
///
/// After `SIGKILL` of any one of the three, of the outer or the inner guardian together with the
/// runner, of the process group, of the session, or of all processes of the program's name or path,
/// also while others of the three are stopped, or the run is by Ctrl-Z: nothing that descends from
/// the run lives one second later. The caller sees an end by `SIGKILL` (137 in a shell). After a
/// normal end ([`ProcessGuard::exit`]) daemons that jobs left behind live on;
/// [`ProcessGuard::orphans`] names them. After every other end they die.
///
/// What is *not* promised:
///
/// * Both guardians killed at once: the runner then kills its own descendants, but daemons that the
///   inner guardian had adopted live on. All three killed at once (`killall /path/to/program` finds
///   all three by their file): the jobs live.
/// * Processes that belong wholly to another user (`sudo`, `su`): a run without privileges may not
///   signal them. They are named on stderr after a second, and left. Plain setuid programs whose
///   real user is still ours are killed.
/// * Work handed to somebody else: `docker run`, `systemd-run`, `at`, a server that was running
///   before, the far side of `ssh`.
/// * Processes that cannot take their `SIGKILL`, since a file server is dead, a tracer holds them
///   or their cgroup is frozen. They have it, start nothing any more, and end when they can; nobody
///   waits for them longer than a second.
/// * A tree that forks faster than a starved machine lets the guardian look. Not seen with fifty
///   processes at once; a PID namespace would be the proof.
/// * `SIGSTOP` to the outer guardian's pid alone does not stop the run; use `SIGTSTP`, or Ctrl-Z.
/// * A Ctrl-Z within microseconds after `fg`: the guardian's continuation may throw it away, as
///   every SIGCONT does with a stop that waits.
/// * Signals sent to the runner's own pid other than interrupt, terminate, hang-up and quit. Those
///   four count, once where the outer guardian relays the same signal, as with `kill` of the whole
///   group.
///
/// # A runner that does not answer
///
/// The runner may be stopped alone (`kill -STOP`), or hang. Three seconds after a Ctrl-Z that it
/// did not follow the outer guardian stops alone, so that the shell goes on. At the third of the
/// signals that ask for the end of which it read none, the outer guardian says so on stderr and has
/// the runner killed with its tree.
///
/// # Systems
///
/// * Linux: all of the above. Without pidfds (before 5.3, or forbidden by a filter) a pid that is
///   given to another process within microseconds may be mistaken. Without the `children` files of
///   `/proc` every look reads all of `/proc`. Without `/proc`, or with that of another PID
///   namespace (`unshare --pid --fork` without `--mount-proc`), there are no guardians.
/// * Other Unix: signals and descriptors, no guardians; there is no subreaper.
/// * Windows: the console's events, no guardians. Each child is in a job object that ends with its
///   last handle (`JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE`), and the system closes the handles of
///   whoever dies, however it dies. Ctrl-C is [`Signal::Interrupt`], Ctrl-Break
///   [`Signal::Terminate`]; a console that is closed, the end of the session and of the machine are
///   [`Signal::Hangup`], after which the system leaves some seconds. There is no Ctrl-Z. A process
///   that was started in a group of its own (`CREATE_NEW_PROCESS_GROUP`) ignores Ctrl-C, and so
///   does this one then.
///
/// # Example
///
/// ```standalone_crate
/// use minder::{Guard, GuardOptions};
///
/// fn main() -> minder::Result<()> {
///     let guard = Guard::enter(&GuardOptions::new())?; // before any thread
///     // … read flags, open files …
///     guard.armed()?; // before the first child
///     // … run jobs; wait on `guard.signals()` beside them …
///     guard.leave(0)
/// }
/// ```
#[must_use = "a dropped guard can no longer end the run in order: daemons of its jobs would die"]
pub struct ProcessGuard {
    sys: sys::Guard,
}

impl ProcessGuard {
    /// Takes the signals and puts the guardians in place. Call it first thing, before any thread
    /// exists and before anything is written to a buffer or opened that the guardians should
    /// not hold for a moment.
    ///
    /// On Linux it forks twice and returns in the runner: another process than the one that called,
    /// with another pid. The relayed signals are blocked from here on, but those that the
    /// process was started to ignore (`nohup`, `sh -c 'program … &'`): they stay ignored.
    /// `SIGCHLD` is given back its default action. `SIGXFSZ` is ignored, so that a write beyond
    /// `ulimit -f` is an error; children get its default action back.
    ///
    /// A program that returns from `main` instead of calling [`ProcessGuard::exit`] keeps its exit
    /// status, but the tree is swept.
    ///
    /// # Errors
    ///
    /// When the process has a guard already, has more than one thread, or the system lacks the
    /// memory, processes or descriptors. That there are no guardians is no error; see
    /// [`ProcessGuard::guardians`].
    pub fn install(options: &GuardOptions) -> Result<ProcessGuard> {
        let sys = sys::Guard::enter(&options.setup).map_err(|e| failed("guard the run", e))?;
        Ok(ProcessGuard { sys })
    }

    /// The guardians' pids, or why there are none.
    ///
    /// # Errors
    ///
    /// The reason, as a lower-case fragment.
    pub fn guardians(&self) -> std::result::Result<GuardianPids, &'static str> {
        self.sys.guardians().map(|(outer, inner)| GuardianPids { outer, inner })
    }

    /// Whether what descends from the run ends with it, even when it is killed: there are
    /// guardians, or the system sees to it.
    ///
    /// - Windows: always; the system ends the job objects that hold the children.
    #[must_use]
    pub fn kills_descendants(&self) -> bool {
        self.sys.holds_tree()
    }

    /// Waits until the guardians watch. Call it before the first child is started, not earlier:
    /// meanwhile they get ready beside you. A child started before lives on when the group is
    /// killed in the first milliseconds.
    ///
    /// # Errors
    ///
    /// After 5 s without an answer.
    pub fn wait_ready(&self) -> Result<()> {
        self.sys.armed().map_err(|e| failed("guard the run", e))
    }

    /// What to wait on beside the children: readable while [`ProcessGuard::next_signal`] has
    /// something to say, or the guardians are gone, which it notices. Level-triggered.
    #[must_use]
    pub fn signals(&self) -> SignalSource<'_> {
        self.sys.source()
    }

    /// The next signal that waits, without blocking.
    ///
    /// One key is one signal, and so is one wish that came twice: the same of interrupt, terminate,
    /// hang-up and quit counts again after 200 ms only. Should both guardians be dead, this
    /// kills what descends from the runner and does not return.
    pub fn next_signal(&mut self) -> Option<Signal> {
        self.sys.next_signal()
    }

    /// Sets `flag` before this process kills its tree because both guardians are dead: see
    /// [`ProcessGuard::next_signal`]. From then on other threads know that children do not end by
    /// themselves. Never set without guardians.
    pub fn set_orphaned_flag(&mut self, flag: Arc<AtomicBool>) {
        self.sys.tell_orphaned(flag);
    }

    /// Stops this process as Ctrl-Z does, and returns when it was continued. Stop the jobs before,
    /// continue them after.
    ///
    /// In a process group that no shell watches (`ssh -t`, `script`, a container's terminal) the
    /// system ignores Ctrl-Z, and this returns at once. Does nothing on Windows.
    pub fn suspend_self(&self) {
        self.sys.stop_self();
    }

    /// Raises the soft limit of descriptors to the hard one (at most 1048576) and returns both, old
    /// and new. Children that this crate starts get the old limit back.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn raise_fd_limit(&self) -> Result<(u64, u64)> {
        sys::raise_descriptors().map_err(|e| failed("raise the limit of descriptors", e))
    }

    /// What ended jobs have left running, by pid and name; always empty without guardians.
    #[must_use]
    pub fn orphans(&self) -> Vec<(u32, String)> {
        self.sys.adopted()
    }

    /// Ends the run in order, with this exit status. What jobs left running lives on.
    pub fn exit(self, status: u8) -> ! {
        self.sys.leave(status)
    }

    /// Ends a run that was cancelled: this process at once, without flushing buffers or running
    /// destructors, then everything that descends from it; then the caller sees the ending.
    pub fn terminate(self, ending: ExitMode) -> ! {
        self.sys.die(ending)
    }
}

impl fmt::Debug for ProcessGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Guard").field("guardians", &self.guardians()).finish_non_exhaustive()
    }
}

/// The one place where the system's word becomes an error of this crate.
fn failed(operation: &'static str, error: io::Error) -> Error {
    Error::new(operation, error)
}
