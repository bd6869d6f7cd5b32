//! `--pipe` and `--pipe-part`: standard input, or files, cut into blocks for the jobs.
//!
//! A block never ends within a record. One thread reads and cuts, and stays little ahead of the
//! jobs.

mod buffer;
mod regexp;
mod column;
mod header;
mod config;
mod pattern;
mod record_bounds;
mod chunker;
mod timed_read;
mod file_range;
mod input_splitter;
mod reader;
mod stdin_feed;
mod file_reader;
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
