//! `BackgroundSet`: a set on a separate thread, for programs that have their own event loop.
//!
//! Only the worker thread accesses the set. Handles and worker share one state behind one lock. No
//! code holds the lock while it waits, writes or starts a child. Handles send requests and input to
//! the worker; the worker queues events for the host. The bytes in the event queue count in the
//! memory budget of the set.
//!
//! `docs/design/background.md` gives the reasons.

mod config;
mod request;
mod stdin_queue;
mod event_queue;
mod shared;
mod worker;
mod background_set;

pub use self::background_set::BackgroundSet;
pub use self::config::BackgroundSetOptions;
