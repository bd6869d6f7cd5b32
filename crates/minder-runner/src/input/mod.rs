//! The arguments of a run: where they come from, how they are cut, how sources are combined, and
//! how many a job gets.
//!
//! Everything is read lazily and in one pass, a record at a time. What has to be read twice waits
//! in a replay buffer, which keeps little in memory. Nothing here knows of threads or jobs.

mod columns;
mod plan;
mod words;
mod word_records;
mod records;
mod replay_buffer;
mod product;
mod batching;
mod reader;
mod order;

pub(crate) use self::order::{Durations, Order, Ordered, fingerprint};
pub(crate) use self::reader::ColumnCount;
pub use self::{
    batching::{CostFn, FitsFn, LineLimit},
    columns::Columns,
    plan::{
        ArgsPerJob, BYTES_MAX, Fill, Header, InputFindings, InputPlan, InvalidArgument, JobArgs, Kind,
        Record, Source, Trim, WordUnit,
    },
    reader::ArgumentReader,
    words::{Separation, Word, WordError, WordSplitter},
};
