//! Probes of the mechanisms and limits of this machine, without side effects.
//!
//! Each system supplies `refusal` (why a wait backend could not be opened), `children` and
//! `limits`.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod kernel_version;
mod types;
#[cfg(unix)]
mod unix;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
mod other;
#[cfg(windows)]
mod windows;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod cgroup;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;

#[cfg(any(target_os = "linux", target_os = "android"))]
use self::linux as system;
#[cfg(all(unix, not(any(target_os = "linux", target_os = "android"))))]
use self::other as system;
#[cfg(windows)]
use self::windows as system;

pub(crate) use self::system::{children, limits, refusal};
pub use self::types::{Availability, Capability};
