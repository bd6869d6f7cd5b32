//! Unix: descriptors as sources.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

use crate::child::Child;
use crate::command::Command;
use crate::interest::Interest;
use crate::poll::Source;

impl<'a, F: AsFd> From<&'a F> for Source<'a> {
    fn from(source: &'a F) -> Self {
        Self(crate::sys::wait::Source::descriptor(source))
    }
}

/// The exit of the child.
impl<'a> From<&'a Child> for Source<'a> {
    fn from(child: &'a Child) -> Self {
        Self(child.process().source())
    }
}

impl<'a> Source<'a> {
    /// A socket. On Unix a socket is a descriptor like any other. On Windows it is not, and needs
    /// this function.
    ///
    /// - Windows: reported by the socket driver (AFD), level-triggered or one-shot;
    ///   [`edge`](crate::poll::Interest::edge) is `Unsupported`.
    ///
    /// ```
    /// use minder::poll::{Events, Interest, Poller, Source, Token};
    /// let server = std::net::TcpListener::bind("127.0.0.1:0")?;
    /// let poller = Poller::new()?;
    /// poller.add(Source::socket(&server), Token(1), Interest::READABLE)?;
    /// let client = std::net::TcpStream::connect(server.local_addr()?)?;
    /// assert_eq!(poller.wait(&mut Events::new(), None)?, 1);
    /// poller.delete(Source::socket(&server))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg_attr(docsrs, doc(cfg(true)))] // Each system has it.
    pub fn socket(socket: &'a impl AsFd) -> Self {
        Self::from(socket)
    }
}

pub use crate::sys::wait::PollHandle;

/// See [`super::CommandLineLimit`].
#[derive(Clone, Debug)]
pub(super) struct CommandLineLimit {
    /// The most bytes of the arguments, each with a NUL byte and a pointer.
    max: usize,
}

impl CommandLineLimit {
    pub(super) fn of(command: &Command) -> Self {
        let sum = |variables: &[(OsString, OsString)]| -> usize {
            variables.iter().map(|(name, value)| name.len() + 1 + string_size(value)).sum()
        };
        let inherited = match &command.env.base {
            Some(base) => sum(&base.variables),
            None => sum(&std::env::vars_os().collect::<Vec<_>>()),
        };
        Self { max: exec_max().saturating_sub(inherited + changes_size(command) + HEADROOM) }
    }

    pub(super) fn max_units(&self) -> usize {
        self.max
    }

    pub(super) fn fits(&self, command: &Command) -> bool {
        let strings = || std::iter::once(&command.program).chain(&command.args);
        let is_too_long = |argument: &OsString| cfg!(target_os = "linux") && argument.len() >= STRING_MAX;
        let size: usize = strings().map(|argument| string_size(argument)).sum();
        size + changes_size(command) <= self.max && !strings().any(is_too_long)
    }
}

/// The room for what a start adds: the path of the program, and the ends of both lists.
const HEADROOM: usize = 8 << 10;

/// The longest argument of Linux, with its NUL byte: 32 pages (execve(2)).
const STRING_MAX: usize = 128 << 10;

/// Returns what a string takes of [`exec_max`].
fn string_size(string: &OsStr) -> usize {
    string.len() + 1 + size_of::<*const u8>()
}

/// Returns an upper bound of what the variables that a command sets take of [`exec_max`].
fn changes_size(command: &Command) -> usize {
    let set = command.env.changes.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    set.map(|(name, value)| name.len() + 1 + string_size(value)).sum()
}

/// Returns the most bytes of arguments and environment, with a pointer for each.
///
/// Linux since 4.13: a quarter of the stack limit, at least 128 KiB and at most 6 MiB (execve(2),
/// *Limits on size of arguments and environment*). The strings are on the new stack, and the program needs
/// some of it, too.
#[cfg(target_os = "linux")]
fn exec_max() -> usize {
    let stack = minder_os::limits::stack_limit().unwrap_or(u64::MAX);
    let max = (stack / 4).clamp(128 << 10, 6 << 20).min(stack / 2);
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// NetBSD's `ARG_MAX`, the least of these systems: FreeBSD and OpenBSD have twice as much, macOS four
/// times (their `sys/syslimits.h`).
#[cfg(not(target_os = "linux"))]
fn exec_max() -> usize {
    256 << 10
}

/// See [`crate::Descriptors::inherited`].
pub(super) use crate::sys::spawn::{close_on_exec, inherited as inherited_descriptors};

/// Returns the descriptor number of an open file.
pub(super) fn descriptor_of(file: &File) -> i32 {
    file.as_raw_fd()
}

/// See [`super::wait_ready`].
pub(super) fn wait_ready(
    source: Source<'_>,
    interest: Interest,
    deadline: Option<Instant>,
) -> io::Result<bool> {
    match crate::sys::wait::poll_once(&source.0, interest, deadline) {
        Some(ready) => ready,
        // A process has no descriptor of ours.
        None => super::poller_wait::wait_by_poller(source, interest, deadline),
    }
}

/// See [`super::wants_terminal`].
pub(super) fn wants_terminal(signal: i32) -> bool {
    signal == libc::SIGTTIN || signal == libc::SIGTTOU
}

/// See [`super::supports_graceful_termination`].
pub(super) fn supports_graceful_termination() -> bool {
    true
}

/// See [`super::supports_suspend`].
pub(super) fn supports_suspend() -> bool {
    true
}
