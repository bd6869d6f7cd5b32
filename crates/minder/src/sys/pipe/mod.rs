//! Endpoints of a child's streams: they own what the kernel needs for one stream, and report
//! progress.

#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod sigpipe;
mod types;
#[cfg(windows)]
mod windows;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod splice;
#[cfg(target_os = "linux")]
mod read_now;
#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod poll_outputs;

pub(crate) use self::types::ReadOutcome;
#[cfg(windows)]
pub(crate) use self::windows::{
    CAN_POLL_OUTPUTS, Reader, Writer, eof_byte, is_hung_up, poll_outputs, resize_terminal, signal_foreground,
    write,
};
#[cfg(unix)]
pub(crate) use self::{
    poll_outputs::{CAN_POLL_OUTPUTS, poll_outputs},
    sigpipe::write,
    terminal::{Terminal, eof_byte, is_hung_up, open_terminal, resize_terminal, signal_foreground},
    unix::{Reader, Writer},
};
