//! Waiting on Windows: completion.
//!
//! Every event arrives in one completion port ([`CompletionPort`]). Pipes complete into it
//! directly, and sockets complete by way of the socket driver. For all other handles a *backend*
//! posts the signal of the handle to the port. Backends differ in which thread waits for the
//! handles. No backend is limited to 64 handles.
//!
//! A handle is reported when a wait for it was satisfied. The report therefore consumes what such a
//! wait consumes: the signal of an auto-reset event, one count of a semaphore. Another thread has
//! to wake first, so a poll that directly follows a signal may not see it yet.

mod deferred_close;
mod operation;
mod callback;
mod millis;
mod port_sender;
mod timer;
mod waker;
mod completion_port;
mod afd;
mod backend;
pub(super) mod thread_pool;
pub(super) mod iocp;
pub(super) mod wait_pool;

pub(super) use self::afd::{Afd, Poll};
pub use self::backend::PollHandle;
pub(crate) use self::backend::{Source, WaitBackend, Watched};
pub(crate) use self::completion_port::CompletionPort;
pub(super) use self::completion_port::{INTERRUPT_TOKEN, PACKETS_MAX};
pub(crate) use self::millis::millis;
pub(crate) use self::operation::{Operation, Submission};
pub(crate) use self::waker::Waker;
