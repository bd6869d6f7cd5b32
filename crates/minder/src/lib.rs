//! Start, watch, time and schedule thousands of child processes.
//!
//! A start copies no memory and leaks no descriptor. One loop waits for all children, and its cost does
//! not grow with their number. Output is read within a memory limit. A kill reaches everything that a
//! child started.
//!
//! [Coming from std, tokio or duct](coming_from) compares the calls. The sections here are in the order
//! in which a program grows:
//!
//! 1. [One command](#one-command)
//! 2. [Many children](#many-children)
//! 3. [Killing safely](#killing-safely)
//! 4. [Children that live long](#children-that-live-long)
//! 5. [Messages](#messages)
//! 6. [Inside tokio, smol or mio](#inside-tokio-smol-or-mio)
//! 7. [From an editor or an interpreter](#from-an-editor-or-an-interpreter)
//! 8. [Scheduling](#scheduling)
//! 9. [Waiting for other things](#waiting-for-other-things)
//! 10. [The whole process](#the-whole-process)
//! 11. [Systems](#systems), [limits](#limits), [features](#features)
//!
//! The directory `examples` has programs to start from, each at most 60 lines: `build_tool`, `supervisor`,
//! `ci_agent`, `language_server` and `multiplexer`.
//!
//! # One command
//!
//! [`Command`] describes what to start. [`Command::status`] runs it to its end and returns its
//! [`ExitStatus`]; [`Command::output`] returns what it wrote, too:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::Command;
//!
//! assert!(Command::new("true").status()?.success());
//! let output = Command::new("echo").arg("text").output()?;
//! assert!(output.status.success() && output.stdout == b"text\n");
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! [`CaptureOptions`] adds a time limit, an input, and one pipe for both outputs, so that they arrive in
//! the order of their writes:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{CaptureOptions, Command};
//! use std::time::Duration;
//!
//! let mut command = Command::new("sh");
//! command.args(["-c", "sort; echo done >&2"]);
//! let options = CaptureOptions::new().input("b\na\n").merge_stderr(true);
//! let output = command.output_with(options.timeout(Duration::from_secs(60)))?;
//! assert!(!output.timed_out && output.stdout == b"a\nb\ndone\n");
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! A [`Pipeline`] connects commands, and returns the status of each:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{Command, Pipeline};
//!
//! let mut echo = Command::new("echo");
//! echo.arg("text");
//! let output = Pipeline::new(echo).pipe(Command::new("cat")).output()?;
//! assert!(output.success() && output.stdout == b"text\n");
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! A child that fails is not an error: its status says so. An [`Error`] names the operation that failed,
//! its subject and the reason.
//!
//! # Many children
//!
//! A [`ChildSet`] is many children with one wait, on one thread. It reports each [`Event`]: output, the
//! end of an output, an exit, and [`Event::Done`] when nothing more can come:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{ChildSet, ChildSetOptions, Command, Event, NextEvent, SpawnOptions, Stdio};
//!
//! let mut set = ChildSet::new(ChildSetOptions::new())?;
//! for text in ["one", "two"] {
//!     let mut command = Command::new("echo");
//!     command.arg(text).stdin(Stdio::null()).stdout(Stdio::piped());
//!     set.spawn(&command, SpawnOptions::new())?;
//! }
//! let mut bytes_read = 0;
//! while let NextEvent::Event(event) = set.next_event(None)? {
//!     match event {
//!         Event::Output { chunk, .. } => bytes_read += chunk.len(),
//!         Event::Done { outcome, .. } => assert!(outcome.exit.status.success()),
//!         _ => (),
//!     }
//! }
//! assert_eq!(bytes_read, "one\ntwo\n".len());
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! [`ChildSet::wait_all`] is that loop with a time limit. [`ChildSetOptions`] limits the number of
//! children and the output in memory. Where there is no room, a child blocks, its output goes to a file,
//! or its oldest bytes are dropped, as its [`OverflowPolicy`] says:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{ChildSet, ChildSetOptions, Command, Event, OutputMode, OverflowPolicy};
//! use minder::{SpawnOptions, Stdio};
//! use std::time::Duration;
//!
//! let mut set = ChildSet::new(ChildSetOptions::new().max_buffered_bytes(1 << 20).max_children(100))?;
//! let mut command = Command::new("echo");
//! command.arg("text").stdout(Stdio::piped());
//! // The output comes in one piece after the exit; what does not fit into memory waits in a file.
//! let options = SpawnOptions::new().output_mode(OutputMode::AtExit).overflow(OverflowPolicy::Spill);
//! set.spawn(&command, options)?;
//! let all_done = set.wait_all(Some(Duration::from_secs(60)), |event| {
//!     if let Event::Output { chunk, .. } = event {
//!         assert_eq!(*chunk, *b"text\n");
//!     }
//! })?;
//! assert!(all_done);
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! # Killing safely
//!
//! A kill reaches the process tree: the group of the child (on Windows its job object), and the
//! descendants that left it and can be found. A child is reaped last, so no kill hits another process
//! that got its pid. A [`Termination`] says which signals come before the kill, and how long to wait
//! after each:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{Command, Termination};
//! use std::time::Duration;
//!
//! let mut child = Command::new("sh").args(["-c", "sleep 60; true"]).spawn()?;
//! // SIGTERM, and SIGKILL for what is left after five seconds. Returns when the tree is gone.
//! let exit = child.kill_and_wait(Termination::graceful(Duration::from_secs(5)))?;
//! assert_eq!(exit.status.signal(), Some(15));
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! A [`SharedChild`] is one child that several threads wait for and kill at the same time:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{Command, Termination};
//!
//! let child = Command::new("sleep").arg("60").spawn()?.into_shared()?;
//! let waiter = child.clone();
//! let thread = std::thread::spawn(move || waiter.wait());
//! child.kill(Termination::IMMEDIATE)?;
//! assert!(thread.join().is_ok_and(|exit| exit.is_ok_and(|exit| !exit.status.success())));
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! # Children that live long
//!
//! With a [`RestartPolicy`] a set starts a child again after it exited, with delays that double.
//! [`ChildSet::restart`] does that on purpose:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{ChildSet, ChildSetOptions, Command, Event, Restart, RestartPolicy, SpawnOptions};
//! use std::time::Duration;
//!
//! let policy = RestartPolicy::new(Restart::OnFailure).backoff(Duration::from_millis(1));
//! let mut set = ChildSet::new(ChildSetOptions::new())?;
//! set.spawn(&Command::new("false"), SpawnOptions::new().restart(policy.max_restarts(Some(2))))?;
//! let mut pids = Vec::new();
//! set.wait_all(None, |event| {
//!     if let Event::Restarted { pid, .. } = event {
//!         pids.push(pid);
//!     }
//! })?;
//! assert_eq!(pids.len(), 2);
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! # Messages
//!
//! The module [`frame`] makes messages of output that arrives in chunks: lines, NUL-terminated texts,
//! `Content-Length` headers as of language servers, and 4-byte lengths. The size of a message has a limit:
//!
//! ```
//! use minder::frame::{FrameDecoder, FrameFormat};
//!
//! let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).max_frame_bytes(1 << 20);
//! let mut messages = Vec::new();
//! for chunk in ["Content-Length: 8\r\n\r\n{\"id\"", ":1}Content-Length: 2\r\n\r\n{}"] {
//!     let mut rest = chunk.as_bytes(); // from `Event::Output`
//!     while let Some(message) = decoder.next_frame(&mut rest)? {
//!         messages.push(message.to_vec());
//!     }
//! }
//! assert_eq!(messages, [&b"{\"id\":1}"[..], b"{}"]);
//! # Ok::<(), minder::frame::FrameError>(())
//! ```
//!
//! # Inside tokio, smol or mio
//!
//! The crate contains no runtime and depends on none. For tokio there is the crate `minder-tokio`: its
//! `output(&command, options).await` kills the whole tree when its future is dropped. It drives
//! [`Capture`], which runs one child in steps for any event loop.
//!
//! For many children in one task, [`ChildSet::poll_handle`] is one descriptor for
//! all children of a set. When it is readable, the set is read without waiting:
//!
//! ```
//! # #[cfg(unix)] {
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use minder::{ChildSet, ChildSetOptions, Command, NextEvent, SpawnOptions};
//! use std::time::Duration;
//! use tokio::io::unix::AsyncFd;
//!
//! let mut set = ChildSet::new(ChildSetOptions::new())?;
//! # #[allow(deprecated)]
//! let handle = AsyncFd::new(set.poll_handle()?.try_clone_to_owned()?)?;
//! set.spawn(&Command::new("true"), SpawnOptions::new())?;
//! while !set.is_empty() {
//!     let mut ready = handle.readable().await?; // other tasks run
//!     while let NextEvent::Event(event) = set.next_event(Some(Duration::ZERO))? {
//!         println!("{event:?}");
//!     }
//!     ready.clear_ready();
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The programs `in_tokio.rs` and `in_mio.rs` of the directory `examples` run a thousand children in this
//! way. On Windows a set has no handle so far, and these programs poll it after a pause. `in_smol.rs`
//! uses a [`BackgroundSet`], whose handle smol watches on every system; tokio and mio watch no handles of
//! Windows. For one child, [`Child::pidfd`](Child#method.pidfd) (Linux) is such a descriptor.
//!
//! # From an editor or an interpreter
//!
//! A [`BackgroundSet`] is a set on a separate thread, for a program that has a loop and may be busy. The
//! thread reads all the time; the program takes the events when a handle is readable, or by a wait:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::{BackgroundSet, BackgroundSetOptions, Command, Event, SpawnOptions, Stdio};
//!
//! let set = BackgroundSet::new(BackgroundSetOptions::new())?;
//! let mut command = Command::new("echo");
//! command.arg("text").stdout(Stdio::piped());
//! set.spawn(&command, SpawnOptions::new())?;
//! let mut events = Vec::new();
//! while !matches!(events.last(), Some(Event::Done { .. })) {
//!     set.wait(None)?; // or the loop of the program watches `set.poll_handle()`
//!     set.drain_events(&mut events, usize::MAX);
//! }
//! assert!(matches!(&events[0], Event::Output { chunk, .. } if **chunk == *b"text\n"));
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! # Scheduling
//!
//! The module [`jobs`] decides which job runs when, and how many at once: order, dependencies, retries,
//! when to stop. [`jobs::Scheduler`] only decides. [`jobs::JobPool`] also runs the jobs, as children, and
//! [`jobs::Executor`] runs them as closures on threads:
//!
//! ```
//! use minder::jobs::{JobResult, NextAction, Scheduler, SchedulerOptions};
//! use std::time::Instant;
//!
//! let mut scheduler = Scheduler::new(SchedulerOptions::new().max_running(2));
//! let compile = scheduler.submit("compile", 0);
//! scheduler.submit_after("test", &[compile], 0)?; // after the first has succeeded
//! let now = Instant::now();
//! let NextAction::Start(attempt, job) = scheduler.next(now) else { panic!() };
//! assert_eq!((job, scheduler.next(now)), ("compile", NextAction::Empty));
//! scheduler.finish(attempt, job, JobResult::Success, now);
//! assert!(matches!(scheduler.next(now), NextAction::Start(_, "test")));
//! # Ok::<(), minder::jobs::DependencyError>(())
//! ```
//!
//! # Waiting for other things
//!
//! A [`Poller`] waits for descriptors, handles, sockets, processes and timers, for programs that have no
//! event loop. It is level-triggered unless an [`Interest`] says otherwise:
//!
//! ```
//! # #[cfg(unix)] {
//! use minder::Command;
//! use minder::poll::{Events, Interest, Poller, Token};
//! use std::time::{Duration, Instant};
//!
//! let poller = Poller::new()?;
//! let mut child = Command::new("true").spawn()?;
//! let registration = poller.register(&child, Token(1), Interest::READABLE)?;
//! poller.add_timer(Token(2), Instant::now() + Duration::from_secs(60), Duration::from_secs(1))?;
//! let mut events = Events::new();
//! poller.wait(&mut events, None)?;
//! assert!(events.iter().all(|event| event.token == Token(1)), "the child has exited");
//! drop(registration);
//! assert!(child.wait()?.status.success());
//! # }
//! # Ok::<(), minder::Error>(())
//! ```
//!
//! The module [`clock`] tells what clocks and sleeps really do. It sleeps until a deadline, never early, and
//! reports ticks that do not drift:
//!
//! ```
//! use minder::clock::{Interval, Sleeper};
//! use std::time::Duration;
//!
//! let late = Sleeper::precise().sleep(Duration::from_micros(100));
//! let mut interval = Interval::new(Duration::from_millis(1));
//! let (first, second) = (interval.tick(), interval.tick());
//! assert_eq!(second.due, first.due + interval.period());
//! println!("{late:?}, {:?} and {:?} late", first.late, second.late);
//! ```
//!
//! # The whole process
//!
//! The library changes nothing that belongs to the whole process: no signal handler, no limit, no
//! subreaper, no timer resolution, no timer slack. A [`ProcessGuard`] does, for a command that *is* the
//! process. It turns signals into a stream. On Linux, no process that the command started outlives it,
//! even after `kill -9`; the documentation of the guard names the exceptions:
//!
//! ```standalone_crate
//! use minder::Command;
//! use minder::guard::{GuardOptions, ProcessGuard};
//!
//! fn main() -> minder::Result<()> {
//!     let guard = ProcessGuard::install(&GuardOptions::new())?; // before any thread
//!     guard.wait_ready()?; // before the first child
//!     # if cfg!(unix) {
//!     assert!(Command::new("true").status()?.success());
//!     # }
//!     guard.exit(0)
//! }
//! ```
//!
//! A host that has threads, or belongs to others, cannot do that. It starts a [`Guardian`], a separate
//! program that ends the guarded children when the host is killed.
//!
//! [`clock::TimerResolution`] is the other exception: it requests a faster timer tick on Windows.
//!
//! # Systems
//!
//! | | Linux | other Unix | Windows |
//! | --- | --- | --- | --- |
//! | tested | x86-64 | compiled, not yet run | x86-64 under Wine |
//! | start | `clone3`, `clone` | `posix_spawn` | `CreateProcessW` |
//! | wait | `epoll`, `io_uring`, `poll` | `kqueue`, `poll` | completion port |
//! | a kill reaches | group, and descendants outside of it | group | job object |
//! | ask to exit | signals | signals | no: killed at once |
//! | suspend a child | yes | its group | no |
//! | [`Group::Terminal`] | yes | macOS, FreeBSD | no |
//! | [`ChildSet::poll_handle`] | yes | yes | no |
//! | [`Command::die_with_parent`] | the child | no | always |
//! | [`Command::timer_slack`] | yes | no | no |
//! | [`Command::uid`], `gid`, `groups`, `limit`, `umask` | yes | no | no |
//! | guardians of [`ProcessGuard`] | yes | no | not needed: job objects |
//! | a [`Guardian`] ends | groups, descendants, tagged processes | groups | not needed: job objects |
//! | [`Guardian::guard`] | yes | yes | no |
//!
//! [`capabilities`] tells what this machine has, and what a sandbox refuses.
//!
//! [`Guardian`]: guard::Guardian
//! [`Guardian::guard`]: guard::Guardian::guard
//! [`Interest`]: poll::Interest
//! [`Poller`]: poll::Poller
//! [`ProcessGuard`]: guard::ProcessGuard
//! [`ProcessGuard::raise_fd_limit`]: guard::ProcessGuard::raise_fd_limit
//!
//! # Limits
//!
//! - A child with two piped outputs takes three descriptors. The usual soft limit of 1024 is reached
//!   at some 340 children; [`ProcessGuard::raise_fd_limit`] raises it. Without a free one a start fails with
//!   [`ErrorKind::Exhausted`], and may succeed later.
//! - A set has at most [`ChildSetOptions::max_children`] children, and at most
//!   [`ChildSetOptions::max_buffered_bytes`] of output in memory.
//! - [`Command::output`] fails with [`ErrorKind::Limit`] above [`CaptureOptions::max_bytes`], unless
//!   [`CaptureOptions::truncate`] says what to keep.
//! - A process that runs as another user (`sudo`) cannot be killed.
//!
//! # Features
//!
//! No feature is for users. `fault-injection` is internal: with it the tests of this workspace make the
//! library slow or short of resources.

// docs.rs shows on which systems an item exists, and hides a condition of the standard library.
#![cfg_attr(docsrs, feature(doc_cfg), doc(auto_cfg(hide(no_global_oom_handling))))]

mod random;
mod deadline;
mod backoff;
mod interest;
mod exit_status;
mod backend;
mod environment;
mod process_attributes;
mod group;
mod command;
mod backlog;
mod chunk;
mod sys;
mod error;
mod event;
pub mod poll;
mod child_pipes;
mod termination;
mod child;
mod shared_child;
mod spawn;
mod guardian;
pub mod guard;
mod set;
mod background;
pub mod os;
mod capture;
mod command_run;
mod capabilities;
pub mod jobs;
pub mod frame;
pub mod clock;

pub use crate::{
    backend::Backend,
    background::{BackgroundSet, BackgroundSetOptions},
    backlog::{Backlog, Charge},
    capabilities::{Availability, Capability, capabilities},
    capture::{
        Capture, CaptureInput, CaptureOptions, CaptureStep, Output, Pipeline, PipelineOutput, StageOutput,
        Truncate,
    },
    child::{Child, Kill, KillStep},
    child_pipes::{ChildStderr, ChildStdin, ChildStdout},
    chunk::Chunk,
    command::{Command, Descriptors, Stdio},
    environment::Environment,
    error::{Error, ErrorKind, Operation, Result},
    event::{ChildId, Event, NextEvent, SpillFile, Stream},
    exit_status::{ExitInfo, ExitStatus, Outcome, ResourceUsage, ThreadTimes},
    group::{Group, Size},
    process_attributes::Resource,
    set::{ChildSet, ChildSetOptions, OutputMode, OverflowPolicy, Restart, RestartPolicy, SpawnOptions},
    shared_child::SharedChild,
    sys::signal::Signal,
    termination::Termination,
};

/// A change of a private field must not take `Send` or `Sync` from a public type.
const _: () = {
    const fn send<T: Send>() {}
    const fn send_and_sync<T: Send + Sync>() {}

    send::<ChildSet>();
    send::<Capture>();
    send::<CaptureOptions>();
    send::<jobs::ChildControl<'_>>();
    send_and_sync::<BackgroundSet>();
    send_and_sync::<BackgroundSetOptions>();
    send_and_sync::<Backlog>();
    send_and_sync::<Capability>();
    send_and_sync::<Child>();
    send_and_sync::<ChildSetOptions>();
    send_and_sync::<ChildStdin>();
    send_and_sync::<ChildStdout>();
    send_and_sync::<Chunk>();
    send_and_sync::<Command>();
    send_and_sync::<Error>();
    send_and_sync::<Event>();
    send_and_sync::<poll::Events>();
    send_and_sync::<guard::GuardedProcess>();
    send_and_sync::<guard::Guardian>();
    send_and_sync::<Output>();
    send_and_sync::<Pipeline>();
    send_and_sync::<PipelineOutput>();
    send_and_sync::<poll::Poller>();
    send_and_sync::<poll::Registration<'_>>();
    send_and_sync::<RestartPolicy>();
    send_and_sync::<SharedChild>();
    send_and_sync::<SpawnOptions>();
    send_and_sync::<Stdio>();
    send_and_sync::<Termination>();
    send_and_sync::<poll::Waker>();
    send_and_sync::<clock::Interval>();
    send_and_sync::<clock::Sleeper>();
    send_and_sync::<clock::TimerResolution>();
    send_and_sync::<frame::FrameDecoder>();
    send_and_sync::<frame::FrameError>();
    send_and_sync::<jobs::JobPool<()>>();
    send_and_sync::<jobs::Scheduler<()>>();
};

#[doc = include_str!("../docs/coming-from.md")]
///
/// # The types of this page
///
/// [`Command`], [`Child`], [`CaptureOptions`], [`Output`], [`Pipeline`], [`ExitStatus`], [`SharedChild`],
/// [`Termination`], [`ChildSet`], [`BackgroundSet`], [`frame::FrameDecoder`],
/// [`poll::Poller`], [`guard::ProcessGuard`], [`Error`]
#[cfg(any(doc, doctest))]
pub mod coming_from {}

/// The README, whose examples compile.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
