//! One worker thread: it prepares, watches, controls and finishes its jobs.

mod control;
mod finish;
mod handler;
mod held;
mod held_queue;
mod job_output;
mod job_values;
mod output;
mod prepare;
pub(crate) mod running_job;
mod running_jobs;
mod search_path;
mod start_cure;
mod state;

pub(crate) use self::{held_queue::HELD_FILES_MAX, state::RunWorker};
