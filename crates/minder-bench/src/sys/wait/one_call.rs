//! The system call that waits for up to [`CALL_MAX`](super::types::CALL_MAX) objects, for the
//! mechanisms that divide more objects into several calls.

#[cfg(unix)]
pub(super) use super::poll::{List, Poll as OneCall};
#[cfg(windows)]
pub(super) use super::wfmo::{List, Wfmo as OneCall};
