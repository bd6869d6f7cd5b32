//! Baselines of waiting: what a program does without a library, and two designs that were published. They wait for ever,
//! as their users do, so that no timer is part of the cost.

mod select;
mod poll;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
mod thread_each;
mod pool;

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use super::Objects;

/// The contract of a baseline: it was opened for some objects, and knows them by their places. It stays with the thread
/// that waits.
pub(crate) trait Baseline: Debug {
    /// Waits until an object is signalled; says which, or nothing where a wait ended for no reason.
    fn wait(&mut self) -> io::Result<Option<usize>>;

    /// Whether it has reset the object that it tells of.
    fn resets(&self) -> bool {
        false
    }
}

type Open = fn(Arc<Objects>) -> io::Result<Box<dyn Baseline>>;

/// By the names that users type.
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("select", |objects| Ok(Box::new(select::Select::open(objects)))),
    ("bare-poll", |objects| Ok(Box::new(poll::Poll::open(objects)))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("bare-epoll", |objects| Ok(Box::new(epoll::Epoll::open(objects)?))),
    ("thread-each", |objects| Ok(Box::new(thread_each::ThreadEach::open(objects)?))),
    ("pool", |objects| Ok(Box::new(pool::Pool::open(objects)?))),
];
