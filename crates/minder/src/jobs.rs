//! Bounded concurrency: which job runs when, and how many at once.
//!
//! One state machine, [`Scheduler`], decides: the number of running jobs, their order, dependencies,
//! retries, and when to stop starting jobs. It contains no thread, no clock and no child, so that it
//! can be tested step by step. [`JobPool`] carries its decisions out with children: one
//! [`ChildSet`](crate::ChildSet) for each thread, and no thread for each job. [`Executor`] carries them
//! out with threads of this program: a processor on any thread, a finisher on the caller's.

mod config;
mod dependencies;
mod key_limits;
mod scheduler;
mod handler;
mod start_delay;
mod pool_state;
mod pool;
mod executor;

pub use self::{
    config::{HaltPolicy, HaltReason, HaltTrigger, QueueOrder, RetryPolicy, SchedulerOptions, Threshold},
    dependencies::DependencyError,
    executor::{Executor, GraphError, Summary, Task, TaskPanic},
    handler::{ChildControl, JobHandler, JobSource, NextJob, SpawnRequest},
    pool::JobPool,
    scheduler::{Attempt, JobCounts, JobResult, NextAction, Scheduler},
};
