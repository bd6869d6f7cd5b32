//! Endpoints of a child's streams: they own what the kernel needs for one stream, and report
//! progress.

#[cfg(unix)]
mod unix;
#[cfg(unix)]
mod terminal;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod splice;
#[cfg(windows)]
mod windows;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::splice::enlarge;
#[cfg(windows)]
pub(crate) use self::windows::{Reader, Writer};
#[cfg(unix)]
pub(crate) use self::{
    terminal::{Terminal, open_terminal},
    unix::{Reader, Writer, pair},
};

/// How far a reader came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// This many bytes were appended to the buffer.
    Data(usize),
    /// The last byte was read before.
    Eof,
    /// Nothing for now; a report will come.
    WouldBlock,
}
