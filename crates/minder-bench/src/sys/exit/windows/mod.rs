//! Baselines on Windows. Each has one line in [`BASELINES`].

mod children;
mod scan;
mod thread_each;
mod wait_one;

use std::io;

use super::watcher::ExitWatcher;

type Open = fn() -> io::Result<Box<dyn ExitWatcher>>;

/// The baselines by the names that users type.
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("floor", || Ok(Box::new(wait_one::WaitOne::default()))),
    ("scan", || Ok(Box::new(scan::Scan::default()))),
    ("thread-each", || Ok(Box::new(thread_each::ThreadEach::new()))),
];

/// Numbers of live children at which the costs of mechanisms change. There are no larger ones,
/// since starting a child is slow here.
pub(crate) const SIZES: &[u64] = &[10, 100, 1000];
