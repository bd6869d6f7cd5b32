//! Windows: nothing is asked yet.

use std::io;

use super::{Disk, Memory, Swaps};

pub(crate) fn load() -> io::Result<f64> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn memory() -> io::Result<Memory> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn swaps() -> io::Result<Swaps> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn disks() -> io::Result<Vec<Disk>> {
    Err(io::ErrorKind::Unsupported.into())
}
