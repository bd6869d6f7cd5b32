//! One worker thread: it prepares, watches, controls and finishes its jobs.

mod job_output;
pub(crate) mod running_job;
mod running_jobs;
mod held_queue;
mod job_values;
mod state;
mod held;
mod control;
mod prepare;
mod output;
mod finish;
mod search_path;
mod start_cure;
mod handler;

pub(crate) use self::{held_queue::HELD_FILES_MAX, state::RunWorker};
