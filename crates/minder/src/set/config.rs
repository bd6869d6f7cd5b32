//! The configuration of a set and of each of its children.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backlog::Backlog;
use crate::child::Termination;
use crate::{Error, ErrorKind, Operation, Result};

/// The limits and options of a [`ChildSet`](crate::ChildSet). Every queue and every wait has a limit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildSetConfig {
    /// The most children that may live at once. Default: 65,536. On most machines the limit on
    /// descriptors is reached earlier: a child with two piped outputs takes three.
    pub max_children: usize,
    /// The most bytes of output in memory, in the set and in the caller's chunks together. Default:
    /// 16 MiB. Each paused child may exceed it by one read, so that no child waits for ever.
    pub max_buffered_bytes: usize,
    /// The most bytes of output in memory for one child. Default: 1 MiB.
    pub max_child_bytes: usize,
    /// The size of one read. Default: 64 KiB, the size of a pipe; a larger size gains nothing
    /// (measured).
    pub read_buffer_bytes: usize,
    /// The delay before the first read of a child's output. It doubles with each read that finds
    /// nothing. From 32 ms on, or from the first byte, the pipe is registered with the backend. A
    /// child that exits earlier is read at its exit, which takes fewer system calls. Default: zero,
    /// the pipe is registered at once.
    pub read_delay: Duration,
    /// How long an output may be silent after its child's exit before it is closed and the child
    /// counts as *leaked*. `None` waits for the end of the output. Default: 100 ms.
    pub leak_timeout: Option<Duration>,
    /// How often to poll for children that were stopped (job control). Default: `None`, never.
    pub stop_poll_interval: Option<Duration>,
    /// The directory for spill files. Default: `None`, the operating system's directory for temporary
    /// files.
    pub spill_dir: Option<PathBuf>,
    /// The start of the names of spill files; a number follows. A named file outlives this process,
    /// whatever happens to it. The caller that takes the file removes it; dropping the set removes
    /// the files that were not taken. Default: `None`, spill files have no name and disappear with
    /// the process.
    pub spill_prefix: Option<String>,
    /// Counts the bytes that wait in spill files. While there are many, few children are read at a
    /// time: see [`Backlog`]. Default: `None`, all children are always read.
    pub backlog: Option<Arc<Backlog>>,
    /// The least number of children that are read at a time then. A good number is the number of
    /// processors: no child is paused that could compute. Default: 1.
    pub min_readers: usize,
    /// The name of the wait backend. Default: `None`, the best one that works here.
    pub backend: Option<&'static str>,
    /// How many descriptors the backend accepts before it reports that it is full. For tests.
    #[doc(hidden)]
    pub fault_capacity: Option<usize>,
}

impl Default for ChildSetConfig {
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
            backend: None,
            fault_capacity: None,
        }
    }
}

/// What to do with output for which there is no room in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Stop reading the child until the caller drops chunks (back-pressure). The child blocks when
    /// its pipe is full.
    #[default]
    Block,
    /// Write the output to a private file (see [`ChildSetConfig::spill_prefix`]), and hand it over in
    /// order when there is room.
    Spill,
    /// Drop the oldest bytes that were not handed over yet, and count them in
    /// [`Outcome::dropped`](crate::Outcome::dropped).
    DropOldest,
}

/// When output is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputMode {
    /// As it arrives.
    #[default]
    Stream,
    /// All of it after the child's exit, just before its [`Event::Done`](crate::Event::Done).
    AtExit,
}

/// How a set treats one child.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SpawnOptions {
    /// What to do with output for which there is no room in memory.
    pub overflow: OverflowPolicy,
    /// When output is handed over.
    pub output_mode: OutputMode,
    /// Whether spilled output is handed over as a file ([`Event::Spilled`](crate::Event::Spilled)),
    /// instead of being read back in chunks.
    pub spill_as_file: bool,
    /// The child with the lowest rank is read first while not all are read: see [`Backlog`]. Default:
    /// 0.
    pub rank: u64,
    /// When the child is killed, and how.
    pub deadline: Option<(Instant, Termination)>,
}

impl SpawnOptions {
    /// Sets what to do with output for which there is no room in memory.
    #[must_use]
    pub fn overflow(mut self, policy: OverflowPolicy) -> Self {
        self.overflow = policy;
        self
    }

    /// Sets when output is handed over.
    #[must_use]
    pub fn output_mode(mut self, mode: OutputMode) -> Self {
        self.output_mode = mode;
        self
    }

    /// Sets whether spilled output is handed over as a file.
    #[must_use]
    pub fn spill_as_file(mut self, yes: bool) -> Self {
        self.spill_as_file = yes;
        self
    }

    /// Sets the rank: the child with the lowest rank is read first while not all are read.
    #[must_use]
    pub fn rank(mut self, rank: u64) -> Self {
        self.rank = rank;
        self
    }

    /// Kills the child at `deadline`, in this way.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant, how: Termination) -> Self {
        self.deadline = Some((deadline, how));
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
