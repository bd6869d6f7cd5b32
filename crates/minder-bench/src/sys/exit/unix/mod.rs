//! Baselines on Unix. Each has one line in [`BASELINES`].

#[cfg(any(target_os = "linux", target_os = "android"))]
mod sigchld;
mod thread_each;
mod thread_one;
mod waitpid;

use std::io;

use super::watcher::ExitWatcher;

type Open = fn() -> io::Result<Box<dyn ExitWatcher>>;

/// The baselines by the names that users type. Some need a process without other children.
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("floor", || Ok(Box::new(waitpid::Waitpid))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("sigchld-any", || Ok(Box::new(sigchld::Sigchld::open(sigchld::Sweep::Any)?))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("sigchld-each", || Ok(Box::new(sigchld::Sigchld::open(sigchld::Sweep::Each)?))),
    ("thread-each", || Ok(Box::new(thread_each::ThreadEach::new()))),
    ("thread-one", || Ok(Box::new(thread_one::ThreadOne::open()?))),
];

/// Numbers of live children at which the costs of mechanisms change.
pub(crate) const SIZES: &[u64] = &[10, 100, 1000, 5000];
