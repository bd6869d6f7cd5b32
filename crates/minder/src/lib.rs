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
//! orphans, the tick of the clock), but for [`Guard`] and [`TickPeriod`], which a program takes on
//! purpose.
//!
//! In reading order: [`Command`] and [`Event`] are plain data; [`Child`] is one child; [`ChildSet`]
//! is many, with one wait; [`Pump`] is a set on a thread of its own; [`exec`] decides what runs
//! when; [`Poller`] waits for anything else. [`lab`] holds what they are measured against.

mod command;
mod backlog;
mod chunk;
mod event;
mod error;
mod random;
mod sys;
mod spawn;
mod child;
mod wait;
mod clock;
mod set;
mod pump;
pub mod exec;
mod guard;
mod probe;
pub mod os;
pub mod lab;

pub use crate::{
    backlog::{Backlog, Charge},
    child::{Child, Kill},
    chunk::Chunk,
    clock::TickPeriod,
    command::{Command, Descriptors, Group, Size, Stdio},
    error::{Error, ErrorKind, Result},
    event::{Event, Exit, Interest, Outcome, Spilled, Status, Stream, Token, Usage},
    guard::{Ending, Guard, GuardOptions, Guardians, Signal, SignalSource},
    probe::{Mechanism, Presence, mechanisms},
    pump::{Pump, PumpOptions},
    set::{ChildSet, Delivery, Limits, SpawnOptions, WhenFull},
    wait::{Events, Poller, Readiness, Source, Waker, backends},
};
