//! The contract of the guard: what each system supplies to [`crate::guard`], the only code that
//! changes the process.
//!
//! A system is a type `Guard` with these methods; [`linux`] has all of them, the others say
//! what they leave out.
//!
//! * `enter(&GuardConfig)`: takes the signals and, where it can, puts two guardians round the process.
//!   Once per process.
//! * `guardians()`: the pids of the two, or why there are none.
//! * `holds_tree()`: whether what descends from the process ends with it, guardians or not.
//! * `armed()`: returns when the guardians watch; bounded.
//! * `source()`: what a host's own loop waits on; readable while `next_signal` has something to
//!   say.
//! * `next_signal()`: never blocks.
//! * `tell_orphaned(flag)`: has a flag set before `next_signal` kills the tree, as it does without
//!   guardians left.
//! * `stop_self()`: stops the process as Ctrl-Z does, returns when it was continued.
//! * `adopted()`: what jobs left behind, by pid and name.
//! * `leave(status)` and `die(Ending)`: the two ends.

mod config;
mod inherited;
mod signal;
#[cfg(unix)]
mod mask;

#[cfg(target_os = "linux")]
mod shared_page;
#[cfg(target_os = "linux")]
mod inner;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod outer;
#[cfg(target_os = "linux")]
mod process;
#[cfg(target_os = "linux")]
mod silence;
#[cfg(target_os = "linux")]
mod tree_killer;
#[cfg(target_os = "linux")]
mod descendants;
#[cfg(target_os = "linux")]
pub(crate) use linux::Guard;

#[cfg(all(unix, not(target_os = "linux")))]
mod other;
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use other::Guard;

#[cfg(windows)]
mod windows;
#[cfg(windows)]
pub(crate) use windows::Guard;

pub use config::SignalSource;
pub(crate) use config::{FaultInjection, GuardConfig};
#[cfg(unix)]
pub(crate) use inherited::inherited_nofile;
pub(crate) use inherited::raise_descriptors;
#[cfg(unix)]
pub(in crate::sys) use mask::ignored_by_us;
pub use signal::{ExitMode, Signal};
