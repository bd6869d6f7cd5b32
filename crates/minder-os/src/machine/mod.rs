//! What distinguishes this machine from others, and from itself before a restart.

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod other;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
use linux as boot;
#[cfg(not(target_os = "linux"))]
use other as boot;
#[cfg(unix)]
use unix as system;
#[cfg(windows)]
use windows as system;

/// Returns the name of the machine, as other machines of its network know it. It may not be unique.
///
/// - Unix: the node name of uname(2).
/// - Windows: the variable `COMPUTERNAME`, which the system sets.
///
/// ```
/// assert!(!minder_os::machine::name().is_empty());
/// ```
pub fn name() -> String {
    let name = system::name();
    if name.is_empty() { "localhost".to_owned() } else { name }
}

/// Returns a text that no other machine has, and this one no more after a restart. `None` where the system
/// has none.
///
/// - Linux: `/proc/sys/kernel/random/boot_id`, see proc_sys_kernel(5).
/// - elsewhere: `None`.
///
/// ```
/// assert_eq!(minder_os::machine::boot_id(), minder_os::machine::boot_id());
/// ```
pub fn boot_id() -> Option<String> {
    boot::boot_id()
}
