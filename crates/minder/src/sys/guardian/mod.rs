//! The host's side of a [`Guardian`](crate::guard::Guardian), and the records that it sends to the program.
//!
//! The host has one end of a socket pair, the program has the other. A socket is used, and not a pipe,
//! because a write to a pipe without a reader raises SIGPIPE, whose disposition belongs to the host.
//!
//! The order of these steps is what makes the list of the program right:
//!
//! 1. A child sends its record before anything else, and executes its program only if that succeeded.
//! 2. The host removes the child from the list before it reaps it. Until then the pid belongs to the
//!    child, so the list never contains the pid of another process.
//! 3. When the host is gone, the program shuts its end down before it reads the last records. A child
//!    that the host started in its last moment is either on the list, or its send fails.
//!
//! A child that other code has started is on the list from the end of [`GuardianLink::guard`]. The host
//! sends its record, with a pidfd of it.
//!
//! Every record is one message. No send blocks: a program that does not read makes the next start fail.
//! Only the list for a program that is started again waits for room in the socket.

mod error;
mod settings;
#[cfg(unix)]
mod record;
#[cfg(unix)]
mod channel;
#[cfg(unix)]
mod link;
#[cfg(windows)]
mod windows;

#[cfg(unix)]
pub(in crate::sys) use self::channel::{Channel, Received, Sender, receive, socket_pair};
pub(crate) use self::error::GuardianError;
#[cfg(unix)]
pub(in crate::sys) use self::error::{PROGRAM, PROGRAM_VARIABLE};
#[cfg(unix)]
pub(in crate::sys) use self::link::WeakRegistration;
#[cfg(unix)]
pub(crate) use self::link::{GuardianLink, Registration};
#[cfg(unix)]
pub(in crate::sys) use self::record::{Kind, Record, VERSION};
pub(crate) use self::settings::GuardianSettings;
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use self::settings::TAG;
#[cfg(windows)]
pub(crate) use self::windows::{GuardianLink, Registration};
