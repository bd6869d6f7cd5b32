//! `--pipe` and `--pipe-part`: standard input, or files, cut into blocks for the jobs.
//!
//! A block never ends within a record. One thread reads and cuts, and stays little ahead of the
//! jobs.

mod regexp;
mod config;
mod pattern;
mod record_bounds;
mod chunker;
mod header;
mod column;
mod buffer;
mod timed_read;
mod file_range;
mod input_splitter;
mod reader;
mod file_reader;
mod stdin_feed;
#[cfg(test)]
mod tests;

pub use self::{
    column::Column,
    config::{BLOCK, BlockSize, Distribution, SplitterConfig, SplitterSource, StreamSource},
    header::Header,
};
pub(crate) use self::{
    input_splitter::{InputBlock, InputSplitter, JobInput},
    stdin_feed::StdinFeeder,
};
