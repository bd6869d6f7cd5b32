//! The configuration of a set and of each of its children.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::restart_policy::RestartPolicy;
use crate::backend::Backend;
use crate::backlog::Backlog;
use crate::guardian::Guardian;
use crate::termination::Termination;
use crate::{Error, ErrorKind, Operation, Result};

/// The limits and options of a [`ChildSet`](crate::ChildSet). Every queue and every wait has a limit.
///
/// ```
/// use minder::{ChildSet, ChildSetOptions};
/// let config = ChildSetOptions::new().max_children(100).max_buffered_bytes(1 << 20);
/// let set = ChildSet::new(config)?;
/// assert!(set.is_empty());
/// # Ok::<(), minder::Error>(())
/// ```
///
/// The options for special cases:
///
/// ```
/// use minder::{Backend, ChildSet, ChildSetOptions};
/// use std::time::Duration;
///
/// let config = ChildSetOptions::new()
///     .backend(Backend::available().next())
///     .max_child_bytes(256 << 10)
///     .read_buffer_bytes(16 << 10)
///     .read_delay(Duration::from_millis(2)) // most children write nothing before they exit
///     .leak_timeout(None) // daemons that hold an output open are waited for
///     .stop_poll_interval(Some(Duration::from_secs(1)))
///     .thread_times(true) // how long children waited for a processor
///     .thread_times_per_second(Some(100)) // a sample of the short ones
///     .spill_dir(std::env::temp_dir())
///     .spill_prefix(Some("build-".to_string()));
/// assert!(ChildSet::new(config)?.is_empty());
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct ChildSetOptions {
    pub(crate) max_children: usize,
    pub(crate) max_buffered_bytes: usize,
    pub(crate) max_child_bytes: usize,
    pub(crate) read_buffer_bytes: usize,
    pub(crate) read_delay: Duration,
    pub(crate) leak_timeout: Option<Duration>,
    pub(crate) stop_poll_interval: Option<Duration>,
    pub(crate) spill_dir: Option<PathBuf>,
    pub(crate) spill_prefix: Option<String>,
    pub(crate) backlog: Option<Arc<Backlog>>,
    pub(crate) min_readers: usize,
    pub(crate) thread_times: bool,
    pub(crate) thread_times_per_second: Option<u32>,
    pub(crate) backend: Option<Backend>,
    pub(crate) guardian: Option<Guardian>,
    /// `true` if the set starts one child in its life.
    pub(crate) starts_one: bool,
    /// The number of descriptors that the backend accepts before it reports that it is full. For tests.
    pub(crate) fault_capacity: Option<usize>,
}

impl Default for ChildSetOptions {
    fn default() -> Self {
        Self {
            max_children: 65_536,
            max_buffered_bytes: 16 << 20,
            max_child_bytes: 1 << 20,
            read_buffer_bytes: 64 << 10,
            read_delay: Duration::ZERO,
            leak_timeout: Some(Duration::from_millis(100)),
            stop_poll_interval: None,
            spill_dir: None,
            spill_prefix: None,
            backlog: None,
            min_readers: 1,
            thread_times: false,
            thread_times_per_second: None,
            backend: None,
            guardian: None,
            starts_one: false,
            fault_capacity: None,
        }
    }
}

impl ChildSetOptions {
    /// Returns the default configuration.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the most children that may live at once. Default: 65,536. On most machines the limit on
    /// descriptors is reached earlier: a child with two piped outputs takes three.
    pub fn max_children(mut self, count: usize) -> Self {
        self.max_children = count;
        self
    }

    /// Sets the most bytes of output in memory, in the set and in the caller's chunks together.
    /// Default: 16 MiB. Each paused child may exceed it by one read, so that no child waits for ever.
    pub fn max_buffered_bytes(mut self, bytes: usize) -> Self {
        self.max_buffered_bytes = bytes;
        self
    }

    /// Sets the most bytes of output in memory for one child. Default: 1 MiB.
    pub fn max_child_bytes(mut self, bytes: usize) -> Self {
        self.max_child_bytes = bytes;
        self
    }

    /// Sets the size of one read. Default: 64 KiB, the size of a pipe; a larger size gains nothing
    /// (measured). At least 64 bytes; [`ChildSet::new`](crate::ChildSet::new) fails for more than 16 MiB.
    pub fn read_buffer_bytes(mut self, bytes: usize) -> Self {
        self.read_buffer_bytes = bytes;
        self
    }

    /// Sets the delay before the first read of a child's output. It doubles with each read that finds
    /// nothing. From 32 ms on, or from the first byte, the pipe is registered with the backend. A
    /// child that exits earlier is read at its exit, which takes fewer system calls. Default: zero,
    /// the pipe is registered at once.
    pub fn read_delay(mut self, delay: Duration) -> Self {
        self.read_delay = delay;
        self
    }

    /// Sets how long an output may be silent after its child's exit before it is closed and the child
    /// counts as *leaked*. The time begins again with each byte. `None` waits for the end of the output.
    /// Default: 100 ms.
    pub fn leak_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.leak_timeout = timeout;
        self
    }

    /// Sets how often to poll for children that were stopped (job control). Default: `None`, never.
    pub fn stop_poll_interval(mut self, interval: Option<Duration>) -> Self {
        self.stop_poll_interval = interval;
        self
    }

    /// Sets the directory for spill files. Default: the operating system's directory for temporary
    /// files.
    pub fn spill_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.spill_dir = Some(dir.into());
        self
    }

    /// Gives the spill files names that start with `prefix`; a number follows. A named file outlives
    /// this process, whatever happens to it. The caller that takes the file removes it; dropping the
    /// set removes the files that were not taken. Default: `None`, spill files have no name and
    /// disappear with the process.
    pub fn spill_prefix(mut self, prefix: Option<String>) -> Self {
        self.spill_prefix = prefix;
        self
    }

    /// Counts the bytes that wait in spill files. While there are many, few children are read at a
    /// time: see [`Backlog`]. Default: none, all children are always read.
    ///
    /// ```
    /// use minder::{Backlog, ChildSet, ChildSetOptions};
    /// use std::sync::Arc;
    ///
    /// // Two sets whose spill files are on the same disk.
    /// let backlog = Backlog::new(64 << 20);
    /// let processors = std::thread::available_parallelism().map_or(1, usize::from);
    /// let config = ChildSetOptions::new().backlog(Arc::clone(&backlog)).min_readers(processors);
    /// let sets = [ChildSet::new(config.clone())?, ChildSet::new(config)?];
    /// # let _ = sets;
    /// # Ok::<(), minder::Error>(())
    /// ```
    pub fn backlog(mut self, backlog: Arc<Backlog>) -> Self {
        self.backlog = Some(backlog);
        self
    }

    /// Sets the least number of children that are read at a time while a [`Backlog`] is full. A good
    /// number is the number of processors: no child is paused that could compute. Default: 1.
    pub fn min_readers(mut self, count: usize) -> Self {
        self.min_readers = count;
        self
    }

    /// Sets whether [`ResourceUsage::main_thread`](crate::ResourceUsage::main_thread) is read at
    /// the exit of each child, which takes an open, a read and a close. Default: no.
    pub fn thread_times(mut self, yes: bool) -> Self {
        self.thread_times = yes;
        self
    }

    /// Limits how many children a second the thread times are read of, among those that ran for less than
    /// 10 ms. Children that ran longer are always read. Zero reads only those. Default: `None`, all.
    ///
    /// A read costs about 40 us of processor time in the kernel and here, which is a third of what a
    /// minimal child costs (measured on Linux 6.18).
    pub fn thread_times_per_second(mut self, count: Option<u32>) -> Self {
        self.thread_times_per_second = count;
        self
    }

    /// Sets the wait backend. Default: `None`, the best one that works here.
    pub fn backend(mut self, backend: Option<Backend>) -> Self {
        self.backend = backend;
        self
    }

    /// Guards the children: they do not outlive this process. Default: none. The set holds a handle of
    /// the guardian until it is dropped.
    ///
    /// ```standalone_crate
    /// use minder::{BackgroundSet, ChildSetOptions, Command, SpawnOptions};
    /// use minder::guard::{Guardian, GuardianOptions};
    /// use std::process::ExitCode;
    ///
    /// fn main() -> ExitCode {
    ///     if std::env::args().nth(1).is_some_and(|arg| arg == "guardian") {
    ///         return Guardian::run_program(); // this host is its own guardian
    ///     }
    ///     host().expect("no step fails");
    ///     ExitCode::SUCCESS
    /// }
    ///
    /// fn host() -> Result<(), Box<dyn std::error::Error>> {
    ///     let config = GuardianOptions::new().program(std::env::current_exe()?).arg("guardian");
    ///     let guardian = Guardian::start(&config)?;
    ///     let set = BackgroundSet::new(ChildSetOptions::new().guardian(&guardian))?;
    ///     # if cfg!(unix) {
    ///     set.spawn(&Command::new("true"), SpawnOptions::new())?;
    ///     set.wait_all(None, drop)?;
    ///     # }
    ///     Ok(())
    /// }
    /// ```
    pub fn guardian(mut self, guardian: &Guardian) -> Self {
        self.guardian = Some(guardian.clone());
        self
    }

    /// Sets how many descriptors the backend accepts before it reports that it is full. For tests.
    #[cfg(feature = "fault-injection")]
    #[doc(hidden)]
    pub fn fault_capacity(mut self, count: usize) -> Self {
        self.fault_capacity = Some(count);
        self
    }
}

/// The policy for output for which there is no room in memory.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, OverflowPolicy, SpawnOptions, Stdio};
///
/// // The last 64 KiB of a long output are enough.
/// let mut command = Command::new("head");
/// command.args(["-c", "300000", "/dev/zero"]).stdout(Stdio::piped());
/// let mut set = ChildSet::new(ChildSetOptions::new().max_child_bytes(64 << 10))?;
/// let options = SpawnOptions::new().overflow(OverflowPolicy::DropOldest);
/// set.spawn(&command, options.output_mode(OutputMode::AtExit))?;
/// let mut bytes = 0;
/// set.wait_all(None, |event| match event {
///     Event::Output { chunk, .. } => bytes += chunk.len() as u64,
///     Event::Done { outcome, .. } => assert_eq!(bytes + outcome.dropped, 300_000),
///     _ => (),
/// })?;
/// assert!(bytes < 300_000);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Stop reading the child until the caller drops chunks (back-pressure). The child blocks when
    /// its pipe is full.
    #[default]
    Block,
    /// Write the output to a private file (see [`ChildSetOptions::spill_prefix`]), and hand it over in
    /// order when there is room.
    Spill,
    /// Drop the oldest bytes that were not handed over yet, and count them in
    /// [`Outcome::dropped`](crate::Outcome::dropped).
    DropOldest,
}

/// The time at which output is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputMode {
    /// As it arrives.
    #[default]
    Stream,
    /// All of it after the child's exit, just before its [`Event::Done`](crate::Event::Done).
    AtExit,
}

/// The options of one child of a set.
///
/// ```
/// # #[cfg(unix)] {
/// use minder::{ChildSet, ChildSetOptions, Command, OutputMode, OverflowPolicy, Restart, SpawnOptions};
/// use minder::Termination;
/// use std::time::{Duration, Instant};
///
/// let in_a_minute = Instant::now() + Duration::from_secs(60);
/// let options = SpawnOptions::new()
///     .deadline(in_a_minute, Termination::graceful(Duration::from_secs(5)))
///     .output_mode(OutputMode::AtExit) // in one piece
///     .overflow(OverflowPolicy::Spill) // what does not fit into memory goes to a file
///     .restart(Restart::Never);
/// let mut set = ChildSet::new(ChildSetOptions::new())?;
/// set.spawn(&Command::new("true"), options)?;
/// assert!(set.wait_all(None, drop)?);
/// # }
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
#[must_use]
pub struct SpawnOptions {
    pub(crate) overflow: OverflowPolicy,
    pub(crate) output_mode: OutputMode,
    pub(crate) spill_as_file: bool,
    pub(crate) rank: u64,
    /// The time at which the child is killed, and the steps of the kill.
    pub(crate) deadline: Option<(Instant, Termination)>,
    pub(crate) restart: RestartPolicy,
}

impl SpawnOptions {
    /// Returns the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what to do with output for which there is no room in memory. Default:
    /// [`OverflowPolicy::Block`].
    pub fn overflow(mut self, policy: OverflowPolicy) -> Self {
        self.overflow = policy;
        self
    }

    /// Sets when output is handed over. Default: [`OutputMode::Stream`].
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// Sets whether spilled output is handed over as a file ([`Event::Spilled`](crate::Event::Spilled)),
    /// instead of being read back in chunks. Default: no.
    ///
    /// ```
    /// use minder::{OutputMode, OverflowPolicy, SpawnOptions};
    ///
    /// // The output is shown when the child is done, in the order in which the children were started.
    /// let options = |number: u64| {
    ///     let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill);
    ///     options.spill_as_file(true).rank(number)
    /// };
    /// # let _ = options(1);
    /// ```
    pub fn spill_as_file(mut self, yes: bool) -> Self {
        self.spill_as_file = yes;
        self
    }

    /// Sets the rank: the child with the lowest rank is read first while not all are read (see
    /// [`Backlog`]). Default: 0.
    pub fn rank(mut self, rank: u64) -> Self {
        self.rank = rank;
        self
    }

    /// Kills the child at `deadline`, in this way. A [restart](Self::restart) does not move the
    /// deadline, and none follows it. Default: never.
    pub fn deadline(mut self, deadline: Instant, how: Termination) -> Self {
        self.deadline = Some((deadline, how));
        self
    }

    /// Sets whether and when the child is started again after it exited, and with which streams: see
    /// [`RestartPolicy`].
    /// Default: [`Restart::Never`](crate::Restart::Never).
    pub fn restart(mut self, policy: impl Into<RestartPolicy>) -> Self {
        self.restart = policy.into();
        self
    }

    /// Rejects options with which a child could block for ever: one that blocks until its output is
    /// taken, while its output is only taken after its exit.
    pub(super) fn check(self) -> Result<()> {
        if self.output_mode == OutputMode::AtExit && self.overflow == OverflowPolicy::Block {
            let reason = "output that is kept until the end cannot be held back: choose Spill or DropOldest";
            let error = Error::of_kind(ErrorKind::InvalidInput, "start a child", reason);
            return Err(error.during(Operation::Spawn));
        }
        Ok(())
    }
}
