//! The code that talks to the operating system, and the only code with `unsafe` in it.
//!
//! Each directory is one subject, each file one mechanism. Every operating system supplies the
//! following. The rows are in the order of use: a module uses only modules above it.
//!
//! | directory | supplies | Linux | other Unix | Windows |
//! | --- | --- | --- | --- | --- |
//! | `error` | classes of errors | `errno` | the same | error codes |
//! | `pid` | what the kernel reports about a pid | `waitid`, pidfd | `waitid` | `OpenProcess` |
//! | `wait` | backends; [`Waker`](wait::Waker): ends a wait from any thread | epoll, io_uring, poll | kqueue, poll | completion port, fed by registered waits, threads of this library or the thread pool |
//! | `reactor` | [`Reactor`](reactor::Reactor): waits for the endpoints of one set | backend; polled pids | the same | completion port |
//! | `pipe` | [`Reader`](pipe::Reader), [`Writer`](pipe::Writer): endpoints of a child's streams | pipes, terminals: readiness | the same | overlapped named pipes: completion |
//! | `reap` | [`Process`](reap::Process): an endpoint that reports an exit | pidfd; polled pids | `EVFILT_PROC`; polled pids | process handle |
//! | `process_tree` | signals to a process, its group, its descendants | groups, `/proc` | groups | job objects |
//! | `spawn` | [`Spawner`](spawn::Spawner): `Command` → process and endpoints | `clone3`; `posix_spawn` | `posix_spawn` | `CreateProcessW` |
//! | `guard` | kills all descendants when this process dies | guardians | signals only | job object |
//! | `jobserver` | tokens of GNU make | pipes | the same | semaphores |
//! | `capabilities` | probes for `minder doctor` | system calls | the same | the same |
//! | `thread`, `timer_resolution` | small threads, timer ticks | | | `timeBeginPeriod` |
//! | `lab` | baselines to measure against; the CPU clock of this process | eventfds | pipes | events |
//!
//! An *endpoint* owns what the kernel needs for one stream or process. It is registered with a
//! reactor under a token. The reactor then returns [`Report`](wait::Report)s. The caller gives each
//! report back to the endpoint with that token, which makes progress: bytes, the end, room. Whether
//! the kernel reports readiness or completion is hidden in the endpoint.
//!
//! All functions return `io::Result`. The layer above adds the operation and the subject, once.

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
