//! Start, wait for, hear, time and schedule thousands of child processes.
//!
//! A program that lives with many children starts each by one cheap call that copies no memory and
//! leaks no descriptor, waits for all of them in one loop whose cost does not grow with their
//! number, hears what they write within a bound of memory, and kills a child with everything that
//! it started.
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{ChildSet, Command, Event, Limits, SpawnOptions, Stdio};
//!
//! let mut set = ChildSet::new(Limits::default())?;
//! for word in ["one", "two"] {
//!     let mut command = Command::new("echo");
//!     command.arg(word).stdin(Stdio::Null).stdout(Stdio::Piped).stderr(Stdio::Piped);
//!     set.spawn(&command, SpawnOptions::default())?;
//! }
//! let mut heard = 0;
//! while let Some(event) = set.next(None)? {
//!     if let Event::Output(_child, _stream, bytes) = event {
//!         heard += bytes.len();
//!     }
//! }
//! assert_eq!(heard, "one\ntwo\n".len());
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! The library changes nothing that belongs to the whole process (signals, limits, who adopts
//! orphans, the tick of the clock), but for [`ProcessGuard`] and [`TimerResolution`], which a
//! program takes on purpose.
//!
//! In reading order: [`Command`] and [`Event`] are plain data; [`Child`] is one child; [`ChildSet`]
//! is many, with one wait; [`BackgroundSet`] is a set on a thread of its own; [`jobs`] decides what
//! runs when; [`Poller`] waits for anything else. [`lab`] holds what they are measured against.

mod command;
mod backlog;
mod chunk;
mod event;
mod error;
mod random;
mod sys;
mod spawn;
mod child;
mod poller;
mod timer_resolution;
mod set;
mod background;
pub mod jobs;
mod guard;
mod capabilities;
pub mod os;
pub mod lab;

pub use crate::{
    background::{BackgroundSet, BackgroundSetConfig},
    backlog::{Backlog, Charge},
    capabilities::{Availability, Capability, capabilities},
    child::{Child, Termination},
    chunk::Chunk,
    command::{Command, Descriptors, Group, Size, Stdio},
    error::{Error, ErrorKind, Operation, Result},
    event::{Event, ExitInfo, ExitStatus, Interest, Outcome, ResourceUsage, SpillFile, Stream, Token},
    guard::{ExitMode, GuardOptions, GuardianPids, ProcessGuard, Signal, SignalSource},
    poller::{Events, Poller, Readiness, Source, Waker, backends},
    set::{ChildSet, ChildSetConfig, OutputMode, OverflowPolicy, SpawnOptions},
    timer_resolution::TimerResolution,
};
