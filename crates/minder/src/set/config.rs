//! What a set may take, and what is to happen when it has taken that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::backlog::Backlog;
use crate::child::Termination;
use crate::{Error, ErrorKind, Result};

/// The bounds of a set. Every queue and every wait in it has one of these.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildSetConfig {
    /// The most children that may live at once. Default: 65,536. The system's limit on descriptors
    /// comes earlier on most machines: a child with two piped outputs takes three.
    pub max_children: usize,
    /// The most bytes of output held in memory, by the set and by the caller's chunks together.
    /// Default: 16 MiB. Each child that is held may exceed it by one read, so that none waits
    /// for ever.
    pub max_buffered_bytes: usize,
    /// The most bytes of output held in memory for one child. Default: 1 MiB.
    pub max_child_bytes: usize,
    /// The size of one read. Default: 64 KiB, the size of a pipe; more brings nothing (measured).
    pub read_buffer_bytes: usize,
    /// How old a child is before its outputs are first looked at, and how long until the second
    /// look; then the time doubles, and from 32 ms on, or from its first byte, it is listened
    /// to. One that ends sooner is heard at its end, by fewer system calls. Default: zero, it
    /// is listened to at once.
    pub read_delay: Duration,
    /// How long an output may be silent after its child's exit before it is closed and the child
    /// marked as *leaked*; `None` waits for its end. Default: 100 ms.
    pub leak_timeout: Option<Duration>,
    /// How often to look for children that were stopped (job control); `None` does not look.
    /// Default: `None`.
    pub stop_poll_interval: Option<Duration>,
    /// The folder for spill files. Default: `None`, the system's folder for temporary files.
    pub spill_dir: Option<PathBuf>,
    /// What the names of spill files begin with; a number follows. Named files outlive this
    /// process, whatever happens to it, and are removed by the caller that takes them; a set
    /// that is dropped removes those that it has not handed over. Default: `None`, they have no
    /// name and vanish with the process.
    pub spill_prefix: Option<String>,
    /// Counts what waits in spill files, and makes few children be read at a time when that is
    /// much: see [`Backlog`]. Default: `None`, all children are always read.
    pub backlog: Option<Arc<Backlog>>,
    /// How many children are then read at a time, at least. As many as the machine can run at once
    /// is a good number: then none is held that could compute. Default: 1.
    pub min_readers: usize,
    /// The wait backend's name; `None` takes the best.
    pub backend: Option<&'static str>,
    /// How many descriptors the backend takes before it says that it is full. For tests.
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

/// What to do with output for which there is no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OverflowPolicy {
    /// Stop reading the child until the caller drops chunks. The child blocks when its pipe is
    /// full: back-pressure.
    #[default]
    Block,
    /// Write it to a private file (see [`ChildSetConfig::spill_prefix`]) and hand it over, in
    /// order, when there is room.
    Spill,
    /// Drop the oldest bytes that were not handed over yet, and count them in
    /// [`Outcome::dropped`](crate::Outcome::dropped).
    DropOldest,
}

/// When output is handed over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputMode {
    /// As it comes.
    #[default]
    Stream,
    /// All of it when the child is over, just before its [`Event::Done`](crate::Event::Done).
    AtExit,
}

/// How a set treats one child.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct SpawnOptions {
    /// What to do with output for which there is no room.
    pub overflow: OverflowPolicy,
    /// When output is handed over.
    pub output_mode: OutputMode,
    /// Whether spilled output is handed over as the file it is in
    /// ([`Event::Spilled`](crate::Event::Spilled)), instead of being read back piece by piece.
    pub spill_as_file: bool,
    /// Which child is read first where not all are, the lowest: see [`Backlog`]. Default: 0.
    pub rank: u64,
    /// When the child's time is over, and how it is ended then.
    pub deadline: Option<(Instant, Termination)>,
}

impl SpawnOptions {
    /// Sets what to do with output for which there is no room.
    #[must_use]
    pub fn overflow(mut self, when_full: OverflowPolicy) -> Self {
        self.overflow = when_full;
        self
    }

    /// Sets when output is handed over.
    #[must_use]
    pub fn output_mode(mut self, delivery: OutputMode) -> Self {
        self.output_mode = delivery;
        self
    }

    /// Sets whether spilled output is handed over as the file it is in.
    #[must_use]
    pub fn spill_as_file(mut self, files: bool) -> Self {
        self.spill_as_file = files;
        self
    }

    /// Sets which child is read first where not all are.
    #[must_use]
    pub fn rank(mut self, rank: u64) -> Self {
        self.rank = rank;
        self
    }

    /// Ends the child at `deadline`, in this way.
    #[must_use]
    pub fn deadline(mut self, deadline: Instant, how: Termination) -> Self {
        self.deadline = Some((deadline, how));
        self
    }

    /// A child that is held until its output is taken, while its output is taken when it ends,
    /// would never end.
    pub(super) fn check(self) -> Result<()> {
        if self.output_mode == OutputMode::AtExit && self.overflow == OverflowPolicy::Block {
            let why = "output that is kept until the end cannot be held back: choose Spill or DropOldest";
            return Err(Error::of_kind(ErrorKind::InvalidInput, "start a child", why));
        }
        Ok(())
    }
}
