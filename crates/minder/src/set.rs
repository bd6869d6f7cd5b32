//! `ChildSet`: many children, one wait.
//!
//! In reading order: [`child_set`] and [`control`] have the public methods. [`event_loop`] is one wait: it
//! gives each report of the kernel to the [`Member`](member::Member) that it concerns, a child together with
//! what all children share. `ChildState`, `ChildInput`, `ChildOutput` and `StreamState` decide: their
//! methods change only the child and return what the set has to do. The methods of `Member` do it
//! (`member.rs`, `ending.rs`): they queue events, arm timers and keep the lists. What concerns more than one
//! child is in [`event_loop`].
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
mod output;
mod input;
mod child;
mod exit;
mod read_turns;
mod event_queue;
mod deferred_reads;
mod memory_waiters;
mod shared;
mod member;
mod restart;
mod ending;
mod event_loop;
mod child_set;
mod control;

pub use self::child_set::ChildSet;
pub use self::config::{ChildSetOptions, OutputMode, OverflowPolicy, SpawnOptions};
pub use self::restart_policy::{Restart, RestartPolicy};
