//! Paths that depend on the operating system: its shell, its directory, its empty device, the variable
//! for temporary files, and the program of the parent process.

#[cfg(target_os = "macos")]
mod macos;
#[cfg(windows)]
mod windows;

use std::path::PathBuf;

/// The environment variable with the directory for temporary files, [`std::env::temp_dir`].
///
/// - Unix: `TMPDIR`.
/// - Windows: `TMP`; GetTempPath2W documents what is used without it.
pub const TEMP_DIR_VARIABLE: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

/// The path of the device that is always empty.
///
/// - Unix: `/dev/null`.
/// - Windows: `NUL`.
pub const NULL_DEVICE: &str = if cfg!(windows) { "NUL" } else { "/dev/null" };

/// Returns the absolute path of the shell that every installation of this operating system has. No
/// environment variable and no current directory decides which program that is.
///
/// - Unix: `/bin/sh`.
/// - Windows: `cmd.exe` in `system_dir` (GetSystemDirectoryW).
#[must_use]
pub fn system_shell() -> PathBuf {
    #[cfg(windows)]
    return system_dir().join("cmd.exe");
    #[cfg(unix)]
    PathBuf::from("/bin/sh")
}

/// Returns the path of the program that the parent process runs, if it is known.
///
/// - Linux: `/proc/PID/exe`, which names the program itself, not a link to it.
/// - macOS: `proc_pidpath`.
/// - Other systems: `None`.
#[must_use]
pub fn parent_program() -> Option<PathBuf> {
    #[cfg(target_os = "linux")]
    return std::fs::read_link(format!("/proc/{}/exe", std::os::unix::process::parent_id())).ok();
    #[cfg(target_os = "macos")]
    return macos::program_of(std::os::unix::process::parent_id());
    #[cfg(not(any(target_os = "linux", target_os = "macos")))]
    None
}

#[cfg(windows)]
pub use self::windows::system_dir;
