//! Starting children by the standard library, and a parent of a given size.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{BASELINES, BRIEF, Ballast, Baseline};
#[cfg(windows)]
pub(crate) use self::windows::{BASELINES, BRIEF, Ballast, Baseline};
