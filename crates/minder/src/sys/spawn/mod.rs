//! From a `Command` to a process and its endpoints, without copying our address space.
//!
//! | mechanism | where | lacks |
//! | --- | --- | --- |
//! | `clone3` | Linux 5.5 on x86-64 and aarch64 | – |
//! | `clone` | Linux where that is refused, as in many containers | – |
//! | `posix_spawn` | other Unix | descriptor limit, death signal, niceness, slack, user, limits |
//! | `CreateProcessW` | Windows | process groups in the sense of Unix |

#[cfg(unix)]
mod kept;
#[cfg(any(windows, test))]
mod quote;
#[cfg(any(windows, test))]
mod cmd_quote;
mod types;
#[cfg(windows)]
mod windows;
#[cfg(unix)]
mod script;
#[cfg(unix)]
mod variables;
#[cfg(unix)]
mod exec_args;
#[cfg(unix)]
mod request;
#[cfg(unix)]
mod null_device;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod clone3;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod attributes;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod clone;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod posix;
mod in_progress;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod guardian;

#[cfg(unix)]
pub(crate) use self::guardian::start as start_guardian;
#[cfg(test)]
pub(crate) use self::in_progress::StartInProgress;
pub(crate) use self::in_progress::is_start_in_progress;
#[cfg(unix)]
pub(crate) use self::kept::{close_on_exec, inherited};
pub(crate) use self::types::{SpawnError, SpawnStep, Spawned};
#[cfg(unix)]
pub(crate) use self::unix::{NO_FILE, NO_PROGRAM, Spawner, is_no_program};
#[cfg(windows)]
pub(crate) use self::windows::{
    CommandLineLimit, NO_FILE, NO_PROGRAM, Spawner, is_no_program, start_guardian,
};
