//! Facts that the kernel reports about a process, given its pid or a descriptor of it.

#[cfg(any(target_os = "linux", target_os = "android"))]
mod pidfd;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::pidfd::{available as pidfd_available, has_exited, signal_group_of};
#[cfg(unix)]
pub(crate) use self::unix::{
    exists, group_now, is_unreaped_child, open_pidfd, stop_signal, wait_for_exit, wait_id,
};
#[cfg(windows)]
pub(crate) use self::windows::open_process;
