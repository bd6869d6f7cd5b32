//! The only code that talks to the operating system, and the only code with `unsafe` in it.
//!
//! One directory a subject, one file a mechanism. What every system supplies, and what the layers
//! above see of it:
//!
//! | directory | supplies | Linux | other Unix | Windows |
//! | --- | --- | --- | --- | --- |
//! | `wait` | [`Port`](wait::Reactor): waits for endpoints; [`Waker`](wait::Waker): wakes it from any thread | epoll, io_uring, poll | kqueue, poll | completion port, by a registered wait, threads of ours or of the operating system |
//! | `pipe` | [`Reader`](pipe::Reader), [`Writer`](pipe::Writer): endpoints of a child's streams | pipes, terminals: readiness | the same | overlapped named pipes: completion |
//! | `reap` | [`Process`](reap::Process): an endpoint that reports an exit | pidfd; sweep | `EVFILT_PROC`; sweep | its handle, by the port's backend |
//! | `spawn` | [`Spawner`](spawn::Spawner): `Command` → process and endpoints | `clone3`; `posix_spawn` | `posix_spawn` | `CreateProcessW` |
//! | `tree` | signals to a process, its group, its descendants | groups, `/proc` | groups | job objects |
//! | `lab` | baselines to measure against; the clock of our CPU | eventfds | pipes | events |
//!
//! An *endpoint* owns whatever the kernel needs for one stream or process. It is armed on a port
//! with a token; the port then hands out [`Report`](wait::Report)s, and a report is given back to
//! the endpoint with that token, which makes progress: bytes, the end, room. Whether the operating system
//! tells of readiness or of completion is the endpoint's own affair.
//!
//! Everything here returns `io::Result`; the layer above adds the operation and the subject, once.

pub(crate) mod error;
#[cfg(unix)]
pub(crate) mod fd;
pub(crate) mod pid;
pub(crate) mod wait;
pub(crate) mod reactor;
pub(crate) mod reap;
pub(crate) mod spawn;
pub(crate) mod pipe;
pub(crate) mod process_tree;
pub(crate) mod thread;
pub(crate) mod timer_resolution;
pub(crate) mod capabilities;
pub(crate) mod jobserver;
#[cfg(windows)]
mod last_error;
#[cfg(windows)]
mod event;
#[cfg(windows)]
mod dynlib;
pub(crate) mod guard;
pub(crate) mod lab;

pub(crate) use self::error::{is_exhausted, is_no_such_process};
