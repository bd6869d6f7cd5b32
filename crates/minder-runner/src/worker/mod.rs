//! What one worker thread does with its jobs: prepares, watches, controls, finishes them.

mod control;
mod finish;
mod handler;
pub(crate) mod held;
mod output;
mod prepare;
pub(crate) mod running_job;
mod state;

pub(crate) use self::state::RunWorker;
