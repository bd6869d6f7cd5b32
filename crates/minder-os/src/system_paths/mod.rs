//! Paths that depend on the operating system: its shell, its directory, and the variable for
//! temporary files.

#[cfg(windows)]
mod windows;

use std::path::PathBuf;

/// The environment variable with the directory for temporary files, [`std::env::temp_dir`].
///
/// - Unix: `TMPDIR`.
/// - Windows: `TMP`; GetTempPath2W documents what is used without it.
pub const TEMP_DIR_VARIABLE: &str = if cfg!(windows) { "TMP" } else { "TMPDIR" };

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

#[cfg(windows)]
pub use self::windows::system_dir;
