//! What one worker thread does with its jobs: prepares, watches, controls, finishes them.

mod control;
mod finish;
mod handler;
mod held;
mod held_queue;
mod job_values;
mod output;
mod prepare;
pub(crate) mod running_job;
mod state;

pub(crate) use self::{held_queue::HELD_FILES_MAX, state::RunWorker};
