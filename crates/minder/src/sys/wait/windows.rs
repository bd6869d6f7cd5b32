//! Completion: what a backend must supply on Windows, and the port that is made of one.
//!
//! Everything that is waited for gets into one [completion port](queue): pipes by themselves,
//! sockets by the system's driver for them, and whatever else one can wait for by a *backend*,
//! which hands the signal of a handle over to the port. Backends differ in who waits for the
//! handles; no way has a limit of 64.
//!
//! A handle is told when a wait for it was satisfied, so a telling takes what such a wait takes:
//! the signal of an auto-reset event, one of a semaphore. Some other thread has to wake first, so a
//! signal is told soon, and not always by a poll that follows it at once.

mod backend;
mod completion_port;
mod port_sender;
mod operation;
mod waker;
mod callback;
mod deferred_close;
mod timer;
mod millis;
mod poller_backend;
mod afd;
pub(super) mod iocp;
pub(super) mod wait_pool;
pub(super) mod thread_pool;
pub(super) mod wait_packets;

pub use self::backend::PollHandle;
pub(crate) use self::backend::{Backend, Source, Watched};
pub(crate) use self::completion_port::CompletionPort;
pub(crate) use self::millis::millis;
pub(crate) use self::operation::{Operation, Submission};
pub(crate) use self::poller_backend::PollerBackend;
pub(crate) use self::waker::Waker;
