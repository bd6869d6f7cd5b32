//! Systems on which other processes are not looked at.

use std::fs::Metadata;
use std::io;

use super::types::ChildProcess;

pub(super) fn children(_: u32) -> io::Result<Vec<ChildProcess>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn is_running(_: u32, _: u64) -> bool {
    false
}

pub(super) fn start_time(_: u32) -> Option<u64> {
    None
}

pub(super) fn is_stopped(_: u32) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(super) fn has_open(_: u32, _: &Metadata) -> io::Result<bool> {
    Err(io::ErrorKind::Unsupported.into())
}
