//! Records of runs: what each job did, in files that survive the runner.
//!
//! A run is a private directory with a random name in the user's state directory. Each process that
//! works on a run makes an *attempt* and appends to its own journal;
//! [`RunState`](run_state::RunState) merges the journals of all attempts. An event is written
//! before its output is shown, and each line has a checksum. A kill or a full disk costs at most
//! the lines that were not yet written.
//!
//! The interface of this crate may change with every release.

pub mod event;
pub mod codec;
pub mod append_file;
pub mod manifest;
pub mod store;
pub mod reader;
pub mod run_state;
mod run_number;
pub mod writer;
pub mod retention;
pub mod joblog;

#[cfg(test)]
mod tests;
