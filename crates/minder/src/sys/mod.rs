//! The code that talks to the operating system, and the only code with `unsafe` in it.
//!
//! Each directory is one subject, each file one mechanism. Every operating system supplies the
//! following.
//!
//! | directory | supplies | Linux | other Unix | Windows |
//! | --- | --- | --- | --- | --- |
//! | `error` | classes of errors | `errno` | the same | error codes |
//! | `pid` | what the kernel reports about a pid | `waitid`, pidfd | `waitid` | `OpenProcess` |
//! | `wait` | [backends](wait), [`Waker`][1] | epoll, io_uring, poll | kqueue, poll | completion port |
//! | `reactor` | [`Reactor`][2] of one set | backend, polled pids | the same | completion port |
//! | `pipe` | [`Reader`][3], [`Writer`][4] | pipes, terminals | the same | overlapped named pipes |
//! | `reap` | [`Process`][5], reports its exit | pidfd | `EVFILT_PROC` | process handle |
//! | `process_tree` | signals to all descendants | groups, `/proc` | groups | job objects |
//! | `spawn` | [`Spawner`][6] | `clone3`, `clone` | `posix_spawn` | `CreateProcessW` |
//! | `guard` | the end of the tree with this process | guardians | none | job objects |
//! | `guardian` | the list of children that outlive no host | a socket | the same | none |
//! | `guardian_program` | the program that has the list | groups, `/proc` | groups | none |
//! | `jobserver` | tokens of GNU make | pipes | pipes | semaphores |
//! | `capabilities` | probes for `minder doctor` | system calls | the same | the same |
//! | `signal` | [`Signal`](signal::Signal): names and numbers | POSIX | the same | those of Linux |
//! | `thread` | small threads | no signals | no signals | |
//! | `timer_resolution` | the timer tick | | | `timeBeginPeriod`, `NtSetTimerResolution` |
//! | `clock` | clocks, [ways to sleep](clock::SleepMethod) | timerfd, … | kqueue, … | waitable timers, … |
//!
//! [1]: wait::Waker
//! [2]: reactor::Reactor
//! [3]: pipe::Reader
//! [4]: pipe::Writer
//! [5]: reap::Process
//! [6]: spawn::Spawner
//!
//! An *endpoint* owns what the kernel needs for one stream or process. It is registered with a
//! reactor under a token. The reactor then returns [`Report`](wait::Report)s. The caller gives each
//! report back to the endpoint with that token, which makes progress: bytes, the end, room. Whether
//! the kernel reports readiness or completion is hidden in the endpoint.
//!
//! All functions return `io::Result`. The layer above adds the operation and the subject, once.

pub(crate) mod signal;
#[cfg(windows)]
mod event;
pub(crate) mod thread;
#[cfg(windows)]
mod dynlib;
#[cfg(windows)]
mod last_error;
#[cfg(unix)]
pub(crate) mod time;
pub(crate) mod timer_resolution;
pub(crate) mod clock;
pub(crate) mod error;
#[cfg(unix)]
pub(crate) mod fd;
pub(crate) mod pid;
pub(crate) mod guardian;
pub(crate) mod wait;
pub(crate) mod jobserver;
pub(crate) mod reactor;
pub(crate) mod pipe;
pub(crate) mod reap;
pub(crate) mod process_tree;
pub(crate) mod guard;
pub(crate) mod guardian_program;
pub(crate) mod spawn;
pub(crate) mod capabilities;

pub(crate) use self::error::{is_exhausted, is_no_such_process};
