//! Baselines of waiting: what a program does without a library, and two designs that were
//! published. They wait for ever, as their users do, so that no timer is part of the cost.

#[cfg(unix)]
mod select;
#[cfg(unix)]
mod poll;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(unix)]
mod thread_each;
#[cfg(windows)]
mod wfmo;
#[cfg(windows)]
mod scan;
#[cfg(windows)]
mod at_each;
mod pool;
#[cfg(windows)]
mod posting;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

/// One call for all objects.
#[cfg(unix)]
use self::poll::{List, Poll as Call};
#[cfg(windows)]
use self::wfmo::{List, Wfmo as Call};
use super::Objects;

/// The contract of a baseline: it was opened for some objects, and knows them by their places. It
/// stays with the thread that waits.
pub(crate) trait Baseline: Debug {
    /// Waits until an object is signalled; says which, or nothing where a wait ended for no reason.
    fn wait(&mut self) -> io::Result<Option<usize>>;

    /// Looks, without waiting, whether an object is signalled.
    fn look(&mut self) -> io::Result<Option<usize>>;

    /// Whether it has reset the object that it tells of.
    fn resets(&self) -> bool {
        false
    }
}

/// How many objects one call takes on Windows; those who are compared with it keep to that
/// elsewhere.
const CALL_MAX: usize = 64;

type Open = fn(Arc<Objects>) -> io::Result<Box<dyn Baseline>>;

/// By the names that users type.
#[cfg(unix)]
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("select", |objects| Ok(Box::new(select::Select::open(objects)))),
    ("bare-poll", |objects| Ok(Box::new(poll::Poll::open(objects)))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("bare-epoll", |objects| Ok(Box::new(epoll::Epoll::open(objects)?))),
    ("thread-each", |objects| Ok(Box::new(thread_each::ThreadEach::open(objects)?))),
    ("pool", |objects| Ok(Box::new(pool::Pool::open(objects)?))),
];

/// By the names that users type.
#[cfg(windows)]
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("bare-wfmo", |objects| Ok(Box::new(wfmo::Wfmo::within_one_call(objects)?))),
    ("scan", |objects| Ok(Box::new(scan::Scan::open(objects)))),
    ("threads-at-each-wait", |objects| Ok(Box::new(at_each::AtEach::open(objects)?))),
    ("pool", |objects| Ok(Box::new(pool::Pool::open(objects)?))),
    ("posting-pool", |objects| Ok(Box::new(posting::Posting::open(objects)?))),
];
