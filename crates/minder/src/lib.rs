//! Start, watch, time and schedule thousands of child processes.
//!
//! A program with many children starts each of them by one cheap call that copies no memory and leaks
//! no descriptor. It waits for all of them in one loop, whose cost does not grow with their number. It
//! reads their output within a memory limit, and kills a child with everything that it started.
//!
//! One child, as in the standard library, with a time limit:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::Command;
//! use std::time::Duration;
//!
//! let output = Command::new("echo").arg("text").output_timeout(Duration::from_secs(10))?;
//! assert!(output.status.success() && output.stdout == b"text\n");
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! Many children, with one wait for all of them:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{ChildSet, ChildSetConfig, Command, Event, NextEvent, SpawnOptions, Stdio};
//!
//! let mut set = ChildSet::new(ChildSetConfig::default())?;
//! for text in ["one", "two"] {
//!     let mut command = Command::new("echo");
//!     command.arg(text).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
//!     set.spawn(&command, SpawnOptions::default())?;
//! }
//! let mut bytes_read = 0;
//! while let NextEvent::Event(event) = set.next_event(None)? {
//!     if let Event::Output { chunk, .. } = event {
//!         bytes_read += chunk.len();
//!     }
//! }
//! assert_eq!(bytes_read, "one\ntwo\n".len());
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! In reading order:
//!
//! - [`Command`] describes what to start; [`Event`] is what happens to it. Both are plain data.
//! - [`Command::output`] runs one child to its end; [`Child`] is one that runs.
//! - [`ChildSet`] is many children with one wait, on one thread.
//! - [`BackgroundSet`] is a set on a separate thread, for programs with their own event loop.
//! - [`jobs`] decides which job runs when, and how many at once.
//! - [`Poller`] waits for other descriptors and handles.
//! - [`Error`] names the operation, its subject and the reason.
//!
//! The crate `minder-bench` compares them with other mechanisms.
//!
//! The library changes nothing that belongs to the whole process: no signal handler, no limit, no
//! subreaper, no timer resolution. The exceptions are [`ProcessGuard`] and [`TimerResolution`], which
//! a program creates explicitly.

// docs.rs shows on which systems an item exists, and hides a condition of the standard library.
#![cfg_attr(docsrs, feature(doc_cfg), doc(auto_cfg(hide(no_global_oom_handling))))]

mod backend;
mod command;
mod backlog;
mod chunk;
mod interest;
mod exit_status;
mod event;
mod child_pipes;
mod error;
mod random;
mod backoff;
mod sys;
mod spawn;
mod termination;
mod child;
mod shared_child;
mod poller;
mod timer_resolution;
mod set;
mod background;
mod capture;
pub mod jobs;
mod guard;
mod capabilities;
pub mod os;

pub use crate::{
    backend::Backend,
    background::{BackgroundSet, BackgroundSetConfig},
    backlog::{Backlog, Charge},
    capabilities::{Availability, Capability, capabilities},
    capture::{CaptureOptions, Output, Pipeline, PipelineOutput, StageOutput},
    child::Child,
    child_pipes::{ChildStderr, ChildStdin, ChildStdout},
    chunk::Chunk,
    command::{Command, Descriptors, Group, Size, Stdio},
    error::{Error, ErrorKind, Operation, Result},
    event::{ChildId, Event, NextEvent, SpillFile, Stream},
    exit_status::{ExitInfo, ExitStatus, Outcome, ResourceUsage},
    guard::{ExitMode, GuardOptions, GuardianPids, ProcessGuard, Signal, SignalSource},
    interest::{Interest, Token},
    poller::{Events, EventsIter, Poller, Readiness, Registration, Source, Waker},
    set::{ChildSet, ChildSetConfig, OutputMode, OverflowPolicy, Restart, RestartPolicy, SpawnOptions},
    shared_child::SharedChild,
    termination::Termination,
    timer_resolution::TimerResolution,
};

/// A change of a private field must not take `Send` or `Sync` from a public type.
const _: () = {
    const fn send<T: Send>() {}
    const fn send_and_sync<T: Send + Sync>() {}

    send::<ChildSet>();
    send::<CaptureOptions>();
    send::<jobs::ChildControl<'_>>();
    send_and_sync::<BackgroundSet>();
    send_and_sync::<BackgroundSetConfig>();
    send_and_sync::<Backlog>();
    send_and_sync::<Capability>();
    send_and_sync::<Child>();
    send_and_sync::<ChildSetConfig>();
    send_and_sync::<ChildStdin>();
    send_and_sync::<ChildStdout>();
    send_and_sync::<Chunk>();
    send_and_sync::<Command>();
    send_and_sync::<Error>();
    send_and_sync::<Event>();
    send_and_sync::<Events>();
    send_and_sync::<Output>();
    send_and_sync::<Pipeline>();
    send_and_sync::<PipelineOutput>();
    send_and_sync::<Poller>();
    send_and_sync::<Registration<'_>>();
    send_and_sync::<RestartPolicy>();
    send_and_sync::<SharedChild>();
    send_and_sync::<SpawnOptions>();
    send_and_sync::<Stdio>();
    send_and_sync::<Termination>();
    send_and_sync::<Waker>();
    send_and_sync::<jobs::JobPool<()>>();
    send_and_sync::<jobs::Scheduler<()>>();
};

/// The README, whose examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
