//! The output of jobs: decorated and in order to standard output and standard error, and until then
//! to files.

mod color;
pub(crate) mod decorate;
pub(crate) mod stream;
pub(crate) mod stdio;
pub(crate) mod store;
pub(crate) mod gathered;
pub(crate) mod stored;
pub(crate) mod batch;
pub(crate) mod waiting;
pub(crate) mod sequencer;
pub(crate) mod line_buffer;
