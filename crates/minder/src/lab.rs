//! Mechanisms to measure, baselines as they were published; for comparison, not for use.
//!
//! `minder bench` is made of this. A program that waits for children wants
//! [`ChildSet`](crate::ChildSet), and one that waits for anything else [`Poller`](crate::Poller).

mod meter;
mod wait;
mod exit;
mod spawn;

pub use self::exit::{Exits, exits, idle};
pub use self::meter::{Meter, Spent, is_wine};
pub use self::spawn::{Ballast, Spawns, brief, spawns};
pub use self::wait::{Objects, Waiting, waits};
