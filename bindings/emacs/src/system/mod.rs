//! The parts that differ between systems: descriptors, limits, signals, and strings as bytes.

#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(crate) use unix::{
    Channel, block_signals, made_high, os_string, prepare_terminal, restore_limit, send_to_group,
};
#[cfg(windows)]
pub(crate) use windows::{
    Channel, block_signals, made_high, os_string, prepare_terminal, restore_limit, send_to_group,
};
