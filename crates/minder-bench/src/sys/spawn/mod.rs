//! Baselines that start a child, and memory that makes this process large.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use self::unix::{BASELINES, MappedMemory, SHORT_COMMAND, SpawnBaseline};
#[cfg(windows)]
pub(crate) use self::windows::{BASELINES, MappedMemory, SHORT_COMMAND, SpawnBaseline};
