//! Child processes of [`minder`] inside tokio.
//!
//! [`output`] and [`status`](status()) run a command to its end, and [`spawn`] starts one whose pipes are
//! streams of tokio. There is no actor, no thread and no task between a child and the task that waits for
//! it: any task of any runtime may use the functions, and many at once.
//!
//! ```
//! # #[cfg(unix)] {
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
//! use minder::{CaptureOptions, Command};
//! use std::time::Duration;
//!
//! let mut sort = Command::new("sort");
//! let options = CaptureOptions::new().input("b\na\n").timeout(Duration::from_secs(60));
//! let output = minder_tokio::output(&mut sort, options).await?;
//! assert!(!output.timed_out && output.stdout == b"a\nb\n");
//! # Ok(()) }
//! # main().unwrap() }
//! ```
//!
//! # Cancellation
//!
//! When a future of [`output`] or [`status`](status()) or a [`Child`] is dropped, the child is killed **with
//! everything that it started**. A task of the runtime reaps it. If the runtime ends first, the drop of
//! that task waits until the child has exited, for 5 s at most.
//!
//! ```
//! # #[cfg(unix)] {
//! # #[tokio::main(flavor = "current_thread")] async fn main() {
//! use minder::{CaptureOptions, Command};
//! use std::time::Duration;
//!
//! let mut command = Command::new("sh");
//! command.args(["-c", "sleep 60; true"]); // the shell and the sleep are killed
//! let output = minder_tokio::output(&command, CaptureOptions::new());
//! assert!(tokio::time::timeout(Duration::from_millis(20), output).await.is_err());
//! # }
//! # main() }
//! ```
//!
//! # The runtime
//!
//! The functions panic outside of a runtime, and without its I/O driver and its timers:
//! `Builder::enable_all`. With a clock that is paused for tests, a time limit is still one of real time.
//! A start takes place on the calling thread, which waits until the program runs, as in `tokio::process`.
//!
//! A command with [`die_with_parent`](Command::die_with_parent) is killed when the thread ends that started
//! it (Linux), which may be a thread of the runtime.
//!
//! # Systems
//!
//! - Linux: one descriptor for each pipe. The exit is read when both outputs have ended; the pidfd is
//!   watched only if the child still runs then.
//! - Other Unix: without pidfds, a child whose outputs have ended is polled every 1 to 10 ms.
//! - Windows: as other Unix, and the pipes are read and written by the threads of the runtime for blocking
//!   work. Compiled, not yet run.

mod sys;
mod exit;
mod kill;
mod room;
mod feed;
mod running;
mod pipes;
mod child;

use minder::{Capture, CaptureOptions, Command, ExitStatus, Output, Result};

pub use crate::child::{Child, spawn};
pub use crate::pipes::{ChildStderr, ChildStdin, ChildStdout};

use crate::running::Running;

/// Runs a command to its end and returns what it wrote, as [`Command::output_with`] does: with the same
/// streams and the same limits. The time limit begins when the child has started.
///
/// If descriptors, processes or memory run out, it waits until another child of this process has ended, and
/// tries again. Dropping the future kills the child with everything that it started.
///
/// ```
/// # #[cfg(unix)] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use minder::{CaptureOptions, Command};
///
/// let tasks: Vec<_> = ["one", "two"]
///     .map(|text| {
///         tokio::spawn(async move {
///             minder_tokio::output(Command::new("echo").arg(text), CaptureOptions::new()).await
///         })
///     })
///     .into();
/// for task in tasks {
///     assert!(task.await??.stdout.ends_with(b"\n"));
/// }
/// # Ok(()) }
/// # main().unwrap() }
/// ```
///
/// # Errors
/// As [`Command::output_with`]. [`Exhausted`](minder::ErrorKind::Exhausted) only if it is so twice, with a
/// pause of 100 ms between, while no other `output` or `status` runs.
pub async fn output(command: &Command, mut options: CaptureOptions) -> Result<Output> {
    let (running, _place) = room::start(|| Running::new(Capture::start(command, &mut options)?)).await?;
    running.await
}

/// Runs a command to its end and returns how it exited. Its streams are those of this process unless they
/// are set.
///
/// If descriptors, processes or memory run out, it waits as [`output`] does. Dropping the future kills the
/// child with everything that it started.
///
/// ```
/// # #[cfg(unix)] {
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), minder::Error> {
/// assert!(minder_tokio::status(&minder::Command::new("true")).await?.success());
/// # Ok(()) }
/// # main().unwrap() }
/// ```
///
/// # Errors
/// As [`spawn`] and [`Child::wait`].
pub async fn status(command: &Command) -> Result<ExitStatus> {
    let (mut child, _place) = room::start(|| spawn(command)).await?;
    Ok(child.wait().await?.status)
}

/// The README, whose examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
