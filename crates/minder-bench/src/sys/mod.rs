//! The baselines and all other code that calls the operating system: the only code with `unsafe`
//! and `cfg` in it.
//!
//! | directory | contents | Unix | Windows |
//! | --- | --- | --- | --- |
//! | `cpu_clock` | CPU time of this process and of a thread | `clock_gettime` | `GetProcessTimes` |
//! | `handoff` | blocks one thread until another releases it | mutex and condition variable | an event |
//! | `thread` | small threads that take no signals | signal mask | as in `std` |
//! | `wait` | objects to wait for, and baselines that wait | eventfds, pipes | events |
//! | `exit` | baselines that observe exits | `waitpid`, `SIGCHLD` | handles of processes |
//! | `spawn` | baselines that start a child; a large parent | `std`, `mmap` | `std`, `CreateProcessW` |
//! | `cells` | a heap with the marks in its blocks | `std` | `std` |
//!
//! Everything here returns `io::Result`; the modules above add the operation and its subject.

pub(crate) mod cells;
mod cpu_clock;
mod exhausted;
#[cfg(windows)]
mod last_error;
#[cfg(windows)]
mod event;
mod handoff;
mod thread;
pub(crate) mod exit;
pub(crate) mod spawn;
pub(crate) mod wait;
mod wine;

pub(crate) use self::cpu_clock::{CPU_RESOLUTION, cpu_time, thread_cpu_time};
pub(crate) use self::exhausted::is_exhausted;
pub(crate) use self::wine::is_wine;
