//! Which shell a line is for: the rules of a line are those of every shell that it may be.

use std::ffi::OsStr;
use std::ops::BitOr;
use std::path::{Path, PathBuf};

/// A set of shells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kinds(u8);

pub(super) const DASH: Kinds = Kinds(1);
pub(super) const BASH: Kinds = Kinds(2);
pub(super) const BUSYBOX: Kinds = Kinds(4);
pub(super) const ZSH: Kinds = Kinds(8);
pub(super) const KSH: Kinds = Kinds(16);
pub(super) const MKSH: Kinds = Kinds(32);
pub(super) const YASH: Kinds = Kinds(64);
pub(super) const ALL: Kinds = Kinds(127);
/// Those that take an expression wherever they want a number.
pub(super) const KORN: Kinds = Kinds(8 | 16 | 32);

/// The names of the shells that are accepted, without version.
const NAMES: &[(&str, Kinds)] = &[
    ("sh", ALL),
    ("dash", DASH),
    ("ash", Kinds(1 | 4)),
    ("bash", BASH),
    ("rbash", BASH),
    ("busybox", BUSYBOX),
    ("zsh", ZSH),
    ("ksh", Kinds(16 | 32)),
    ("mksh", MKSH),
    ("yash", YASH),
];

/// Shells that no value is handed to: minder's tests do not try them, or they quote in a way of their own.
const OTHERS: &[&str] = &[
    "csh", "elvish", "es", "fish", "hush", "lksh", "nu", "oksh", "osh", "pdksh", "posh", "rc", "rksh",
    "scsh", "tcsh", "xonsh", "ysh",
];

impl Default for Kinds {
    fn default() -> Kinds {
        ALL
    }
}

impl Kinds {
    /// Says whether a shell of this set is in the other, too.
    pub(super) fn meets(self, other: Kinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Says whether every shell of this set is in the other.
    pub(super) fn is_within(self, other: Kinds) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns the shells of this set that are not in the other.
    pub(super) const fn without(self, other: Kinds) -> Kinds {
        Kinds(self.0 & !other.0)
    }

    /// Returns the shells that have this name.
    pub(super) fn named(name: &str) -> Option<Kinds> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds)
    }

    /// Returns the shells that `program`, called by `name`, may be.
    ///
    /// A name such as `sh` or `ksh` is a link on most systems, and its end tells which shell it is. Where it does not,
    /// the line is held to the rules of all.
    pub(super) fn of(program: &OsStr, name: &str) -> Option<Kinds> {
        let called = Kinds::named(name)?;
        let real = real(program).map(|path| super::dialect::base_name(path.as_os_str()));
        match real.as_deref() {
            Some(real) if OTHERS.contains(&real) => None,
            Some(real) => Some(Kinds::named(real).filter(|kinds| *kinds != ALL).unwrap_or(called)),
            None => Some(called),
        }
    }
}

impl Kinds {
    /// Returns the shells of both sets.
    pub(super) const fn or(self, other: Kinds) -> Kinds {
        Kinds(self.0 | other.0)
    }
}

impl BitOr for Kinds {
    type Output = Kinds;

    fn bitor(self, other: Kinds) -> Kinds {
        self.or(other)
    }
}

/// Returns the file behind all links.
fn real(program: &OsStr) -> Option<PathBuf> {
    let path = Path::new(program);
    let found = match path.components().count() {
        1 => std::env::split_paths(&std::env::var_os("PATH")?)
            .map(|folder| folder.join(path))
            .find(|path| path.is_file())?,
        _ => path.to_owned(),
    };
    let real = std::fs::canonicalize(found).ok()?;
    // The `sh` of macOS is a program that runs the shell that this link names (sh(1) there).
    let chosen = Path::new("/private/var/select/sh");
    match real == Path::new("/bin/sh") {
        true => std::fs::canonicalize(chosen).ok().or(Some(real)),
        false => Some(real),
    }
}
