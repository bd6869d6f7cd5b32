//! The record of a run: what every job did, in a form that outlives the runner.
//!
//! A run is a private folder with a random name under the user's state folder. Every process of the runner that works on
//! it (an attempt) appends lines to a journal of its own; what is true of the run is merged from all of them. A row is
//! written before what it tells of is shown, and each line has its checksum, so that whatever kills the runner, or fills
//! the disk, costs at most the lines that were not yet written.

pub(crate) mod row;
pub(crate) mod line;
pub(crate) mod folder;
pub(crate) mod manifest;
mod order;
pub(crate) mod target;
pub(crate) mod write;
pub(crate) mod read;
pub(crate) mod merge;
pub(crate) mod prune;
pub(crate) mod joblog;

#[cfg(test)]
mod tests;
