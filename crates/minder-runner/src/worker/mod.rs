//! One worker thread: it prepares, watches, controls and finishes its jobs.
//!
//! [`RunWorker`] has the callbacks of the pool. It passes a job from one owner to the next: a
//! `Preparer` turns it into a command, the `RunningJobs` keep it while it runs, and the `Finisher`
//! records it and gives its output to the committer. These three do not know each other.

mod job_output;
mod running_job;
mod receive;
mod running_jobs;
mod control;
mod live_output;
mod job_values;
mod search_path;
mod prepare;
mod held;
mod finish;
mod start_hint;
mod run_worker;

pub(crate) use self::{held::HELD_FILES_MAX, run_worker::RunWorker};
