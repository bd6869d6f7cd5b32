//! Objects to wait for, and baselines that wait for one of many: what programs do without a
//! library, and two published designs. They wait without a time-out, as their users do, so that no
//! timer is part of the cost.
//!
//! `types.rs` has the contract; each other file is one mechanism, with one line in [`BASELINES`].

mod objects;
mod types;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod epoll;
#[cfg(unix)]
mod poll;
#[cfg(unix)]
mod select;
#[cfg(unix)]
mod thread_each;
#[cfg(windows)]
mod wfmo;
mod one_call;
mod pool;
#[cfg(windows)]
mod posting_pool;
#[cfg(windows)]
mod scan;
#[cfg(windows)]
mod thread_per_wait;

pub(crate) use self::objects::{Objects, SIZES};
pub(crate) use self::types::WaitBaseline;

use self::types::Open;

/// The baselines of Unix by the names that users type.
#[cfg(unix)]
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("select", |objects| Ok(Box::new(select::Select::open(objects)))),
    ("bare-poll", |objects| Ok(Box::new(poll::Poll::open(objects)))),
    #[cfg(any(target_os = "linux", target_os = "android"))]
    ("bare-epoll", |objects| Ok(Box::new(epoll::Epoll::open(objects)?))),
    ("thread-each", |objects| Ok(Box::new(thread_each::ThreadEach::open(objects)?))),
    ("pool", |objects| Ok(Box::new(pool::Pool::open(objects)?))),
];

/// The baselines of Windows by the names that users type.
#[cfg(windows)]
pub(crate) const BASELINES: &[(&str, Open)] = &[
    ("bare-wfmo", |objects| Ok(Box::new(wfmo::Wfmo::within_one_call(objects)?))),
    ("scan", |objects| Ok(Box::new(scan::Scan::open(objects)))),
    ("threads-at-each-wait", |objects| Ok(Box::new(thread_per_wait::ThreadPerWait::open(objects)?))),
    ("pool", |objects| Ok(Box::new(pool::Pool::open(objects)?))),
    ("posting-pool", |objects| Ok(Box::new(posting_pool::PostingPool::open(objects)?))),
];
