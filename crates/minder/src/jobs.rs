//! Bounded concurrency: what runs when, and how many at once.
//!
//! One state machine, [`Scheduler`], decides: degree, order, dependencies, retries, when to halt.
//! There is no thread, no clock and no child in it, so that it can be tested step by step. A driver
//! carries its decisions out: [`JobPool`] with children, one [`ChildSet`](crate::ChildSet) a thread
//! and no thread a job.

mod scheduler;
mod pool;

pub use self::{
    pool::{ChildControl, JobHandler, JobPool, NextJob, SpawnRequest},
    scheduler::{
        Attempt, HaltPolicy, HaltReason, HaltTrigger, JobCounts, JobResult, NextAction, QueueOrder,
        RetryPolicy, Scheduler, SchedulerConfig, Threshold,
    },
};
