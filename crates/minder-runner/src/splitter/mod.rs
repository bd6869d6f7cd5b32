//! `--pipe` and `--pipe-part`: standard input, or files, cut into blocks for the jobs.
//!
//! A block never ends within a record. One thread reads and cuts (`InputReader`), and stays a
//! little ahead of the jobs. Jobs take the input from a queue (`InputQueue`). A block of input is
//! read into once. Jobs share chunks of it, and it is reused when no chunk is left.

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
mod input_queue;
mod file_cutter;
mod reader;
mod stdin_feed;
#[cfg(test)]
mod tests;

pub use self::{
    column::Column,
    config::{BLOCK, BlockSize, Distribution, SplitterConfig, SplitterSource, StreamSource},
    header::Header,
};
pub(crate) use self::{
    input_queue::{InputBlock, InputQueue, JobInput},
    reader::InputReader,
    stdin_feed::StdinFeeder,
};
