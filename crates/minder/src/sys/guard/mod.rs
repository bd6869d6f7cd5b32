//! The contract of the guard: what each system supplies to [`crate::guard`], the only code that
//! changes the process.
//!
//! A system is a type `Guard` with the methods below. [`linux`] implements all of them; the other
//! systems document what they lack.
//!
//! * `install(&GuardConfig)`: takes over the signals and, where the system supports it, forks two
//!   guardians around the process. Once per process.
//! * `guardians()`: the pids of the two, or why there are none.
//! * `kills_descendants()`: whether the descendants of the process are killed with it, by guardians or
//!   by the kernel.
//! * `watchdog()`: the deadline that a guardian watches, if it was asked to.
//! * `wait_ready()`: waits, for a bounded time, until the guardians watch the process.
//! * `signals()`: the source that the event loop of the host waits for. It is readable while
//!   `next_signal` would return a signal.
//! * `next_signal()`: the next pending signal and who sent it; never blocks.
//! * `set_orphaned_flag(flag)`: registers a flag that `next_signal` sets before it kills the tree because
//!   both guardians are dead.
//! * `suspend_self()`: stops the process as Ctrl-Z does, and returns when it was continued.
//! * `stop_self()`: stops the process by a signal that the kernel never ignores.
//! * `orphans()`: the pids and names of processes that jobs left behind.
//! * `exit(status)` and `terminate(ExitMode)`: the two ways to end the process.

mod inherited;
mod signal;
#[cfg(unix)]
mod mask;
#[cfg(target_os = "linux")]
mod silence;
#[cfg(target_os = "linux")]
mod shared_page;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod tree_killer;
mod config;
#[cfg(all(unix, not(target_os = "linux")))]
mod other;
#[cfg(windows)]
mod windows;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{Guard, Watchdog};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use other::Guard;
#[cfg(target_os = "linux")]
pub(in crate::sys) use process::rename;
#[cfg(windows)]
pub(crate) use windows::Guard;

#[cfg(unix)]
pub(crate) use mask::exit_like;
#[cfg(windows)]
pub(crate) use windows::exit_like;

pub use config::SignalSource;
#[cfg(not(target_os = "linux"))]
pub(crate) use config::Watchdog;
pub(crate) use config::{FaultInjection, GuardConfig};
#[cfg(unix)]
pub(crate) use inherited::inherited_nofile;
pub(crate) use inherited::raise_descriptors;
#[cfg(unix)]
pub(in crate::sys) use mask::ignored_by_us;
pub use signal::{ExitMode, SignalSender};
