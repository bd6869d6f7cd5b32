//! `ChildSet`: many children, one wait.
//!
//! In reading order: [`child_set`] has the set and its public methods. [`dispatch`] is one wait: it
//! gives each report of the kernel to the child that it concerns. The methods of `ChildState`
//! (`child.rs`, with `exit.rs` and `output.rs`) and `StreamState` change only that child and return
//! what the set has to do; [`dispatch`] does it. They never call the set, and they know no other
//! child.
//!
//! Events wait in one queue. A queued output event names a stream and holds no bytes. The bytes stay
//! with their child until the caller takes the event, so that they can be limited, spilled or
//! dropped child by child.

mod restart_policy;
mod config;
mod event;
mod slab;
mod timers;
mod suspension;
mod pace;
mod thread_times;
mod read_turn;
mod spill;
mod stream;
mod child;
mod output;
mod exit;
mod read_turns;
mod child_set;
mod deferred_reads;
mod memory;
mod streaming;
mod suspend;
mod restart;
mod dispatch;

pub use self::child_set::ChildSet;
pub use self::config::{ChildSetOptions, OutputMode, OverflowPolicy, SpawnOptions};
pub use self::restart_policy::{Restart, RestartPolicy};
