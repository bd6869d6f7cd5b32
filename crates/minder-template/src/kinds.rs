//! The shells that may run a line. The line must be safe in each of them.

use std::ffi::OsStr;
use std::ops::BitOr;
use std::path::{Path, PathBuf};

/// A set of shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ShellSet(u8);

pub(crate) const DASH: ShellSet = ShellSet(1);
pub(crate) const BASH: ShellSet = ShellSet(2);
pub(crate) const BUSYBOX: ShellSet = ShellSet(4);
pub(crate) const ZSH: ShellSet = ShellSet(8);
pub(crate) const KSH: ShellSet = ShellSet(16);
pub(crate) const MKSH: ShellSet = ShellSet(32);
pub(crate) const YASH: ShellSet = ShellSet(64);
pub(crate) const ALL: ShellSet = ShellSet(127);
/// The shells that evaluate an arithmetic expression wherever they take a number.
pub(crate) const KORN: ShellSet = ShellSet(8 | 16 | 32);

/// The names of the accepted shells, without version.
const NAMES: &[(&str, ShellSet)] = &[
    ("sh", ALL),
    ("dash", DASH),
    ("ash", ShellSet(1 | 4)),
    ("bash", BASH),
    ("rbash", BASH),
    ("busybox", BUSYBOX),
    ("zsh", ZSH),
    ("ksh", ShellSet(16 | 32)),
    ("mksh", MKSH),
    ("yash", YASH),
];

/// Shells that are refused: minder's tests do not run them, or their quoting is not that of POSIX.
const OTHERS: &[&str] = &[
    "csh", "elvish", "es", "fish", "hush", "lksh", "nu", "oksh", "osh", "pdksh", "posh", "rc", "rksh",
    "scsh", "tcsh", "xonsh", "ysh",
];

impl Default for ShellSet {
    fn default() -> ShellSet {
        ALL
    }
}

impl ShellSet {
    /// Returns whether the sets have a shell in common.
    pub(crate) fn meets(self, other: ShellSet) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether every shell of this set is in the other.
    pub(crate) fn is_within(self, other: ShellSet) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the shells of this set that are not in the other.
    pub(crate) const fn without(self, other: ShellSet) -> ShellSet {
        ShellSet(self.0 & !other.0)
    }

    /// Returns whether this is the name of a shell that is refused.
    pub(crate) fn is_refused(name: &str) -> bool {
        OTHERS.contains(&name)
    }

    /// Returns the shells that have this name.
    pub(crate) fn named(name: &str) -> Option<ShellSet> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds)
    }

    /// Returns the shells that `program`, called by `name`, may be.
    ///
    /// A name such as `sh` or `ksh` is a link on most systems, and the target's name identifies the
    /// shell. If it does not, the rules of all shells apply.
    pub(crate) fn of(program: &OsStr, name: &str) -> Option<ShellSet> {
        let called = ShellSet::named(name)?;
        let real = real(program).map(|path| base_name(path.as_os_str()));
        match real.as_deref() {
            Some(real) if OTHERS.contains(&real) => None,
            Some(real) => Some(ShellSet::named(real).filter(|kinds| *kinds != ALL).unwrap_or(called)),
            None => Some(called),
        }
    }
}

impl ShellSet {
    /// Returns the shells of both sets.
    pub(crate) const fn or(self, other: ShellSet) -> ShellSet {
        ShellSet(self.0 | other.0)
    }
}

impl BitOr for ShellSet {
    type Output = ShellSet;

    fn bitor(self, other: ShellSet) -> ShellSet {
        self.or(other)
    }
}

/// Returns the target of all links.
fn real(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    let found = match path.components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|dir| dir.join(path))
            .find(|path| path.is_file())?,
        _ => path.to_owned(),
    };
    let real = std::fs::canonicalize(found).ok()?;
    // The `sh` of macOS is a program that runs the shell that this link names (sh(1) there).
    let chosen = Path::new("/private/var/select/sh");
    if real == Path::new("/bin/sh") {
        return std::fs::canonicalize(chosen).ok().or(Some(real));
    }
    Some(real)
}

/// Returns the name of a shell without its directory, its version, `-static` and `.exe`.
pub(crate) fn base_name(shell: &OsStr) -> String {
    let bytes = shell.as_encoded_bytes();
    let base = bytes.rsplit(|&b| b == b'/' || b == b'\\').next().unwrap_or(bytes);
    let mut base = String::from_utf8_lossy(base).into_owned();
    if base.to_ascii_lowercase().ends_with(".exe") {
        // On Windows, `BASH.EXE` and `bash.exe` are the same file.
        base.truncate(base.len() - 4);
        base.make_ascii_lowercase();
    }
    let base = base.strip_suffix("-static").unwrap_or(&base);
    base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned()
}
