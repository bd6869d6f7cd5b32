//! Bounded concurrency: what runs when, and how many at once.
//!
//! One state machine, [`Schedule`], decides: degree, order, dependencies, retries, when to halt.
//! There is no thread, no clock and no child in it, so that it can be tested step by step. A driver
//! carries its decisions out: [`Crew`] with children, one [`ChildSet`](crate::ChildSet) a thread
//! and no thread a job.

mod schedule;
mod crew;

pub use self::{
    crew::{Crew, Launch, Outputs, Supply, Worker},
    schedule::{
        Counts, Halt, HaltOn, Halted, Next, Order, Retry, Rules, Schedule, Start, Threshold, Verdict,
    },
};
