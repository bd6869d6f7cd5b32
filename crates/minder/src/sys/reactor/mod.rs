//! The reactor of one set of children: a wait backend, and what the backend cannot wait for.
//!
//! Endpoints ([`pipe`](super::pipe), [`reap`](super::reap)) register with it. On Unix it adds the
//! polling of processes whose exit no descriptor reports. On Windows it owns the completion port.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::Reactor;
#[cfg(windows)]
pub(crate) use self::windows::Reactor;
