//! Records of runs: what each job did, in files that survive the runner.
//!
//! A run is a private directory with a random name in the user's state directory. Each process that
//! works on a run makes an *attempt* and appends to its own journal;
//! [`RunState`](run_state::RunState) merges the journals of all attempts. An event is written
//! before its output is shown, and each line has a checksum. A kill or a full disk costs at most
//! the lines that were not yet written.
//!
//! | module | what it has |
//! | --- | --- |
//! | [`store`], [`lookup`] | the directories of runs, their ids and their locks |
//! | [`manifest`] | what a run was asked to do |
//! | [`writer`] | a journal that is being written |
//! | [`reader`], [`run_state`] | journals: all events, and the state after them |
//! | [`agents`], [`merge`] | the journals of agents, and which of their events count |
//! | [`event`], [`codec`], [`append_file`] | events, their lines, files with complete lines only |
//! | [`joblog`] | the table of GNU parallel's `--joblog` |
//! | [`retention`] | which old runs are removed |
//!
//! Times are seconds as `f64`, sizes are bytes. Jobs, attempts and lines are counted from 1.
//! Records are files like any other: readers check names before they open them, follow no links,
//! and limit the length of lines and manifests. The interface of this crate may change with every
//! release.
//!
//! # Example
//!
//! ```
//! use minder_record::event::{JobFinished, JournalEvent};
//! use minder_record::manifest::{InputSource, Manifest};
//! use minder_record::writer::JournalWriter;
//! use minder_record::{codec, reader, store};
//!
//! # let state = std::env::temp_dir().join(format!("minder-record-{}", std::process::id()));
//! // A tool that only reads calls `store::state_root()`.
//! let root = state.as_path();
//! let input = InputSource::Lost { why: "standard input was a pipe".to_owned() };
//! let manifest = Manifest::new(root, &["gzip", "{}"], input);
//! let journal = JournalWriter::create(root, manifest, [""; 0], false)?;
//! let job = JobFinished { job: 1, exit: Some(0), wall: 0.25, ..JobFinished::default() };
//! let mut line = Vec::new();
//! codec::encode(&JournalEvent::JobFinished(job), &mut line);
//! journal.append(&line)?;
//!
//! for entry in store::list(root)? {
//!     let run = reader::read_run(&entry.dir)?;
//!     assert_eq!(run.manifest?.words[0].to_os(), "gzip");
//!     assert!(run.alive && run.jobs[&1].succeeded());
//! }
//! # drop(journal);
//! # std::fs::remove_dir_all(&state)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod append_file;
pub mod job_set;
pub mod agents;
pub mod event;
pub mod codec;
mod error;
pub mod manifest;
pub mod store;
pub mod lookup;
mod journal;
pub mod merge;
pub mod reader;
mod run_number;
pub mod run_state;
pub mod stale_output;
pub mod joblog;
pub mod retention;
pub mod writer;

#[cfg(test)]
mod tests;

pub use error::{Error, ErrorKind, Result};
