//! Run one child, or a pipeline of several, to the end.
//!
//! [`run`] does the work, by a [`ChildSet`](crate::ChildSet) for each call: outputs are read while the
//! input is written, so that neither side waits for the other for ever. [`direct`] does it with less
//! for one child without an input, and [`steps`] for one in the event loop of a program.

mod options;
mod read_order;
mod captured;
mod output_buffer;
mod input_feed;
mod direct;
mod run;
mod output;
mod pipeline;
mod steps;

pub use self::options::{CaptureInput, CaptureOptions, Truncate};
pub use self::output::Output;
pub(crate) use self::output::output;
pub use self::pipeline::{Pipeline, PipelineOutput, StageOutput};
pub use self::steps::{Capture, CaptureStep};
