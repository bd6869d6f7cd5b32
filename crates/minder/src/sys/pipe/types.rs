//! The result of a read of an endpoint.

/// The result of one read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// This many bytes were appended to the buffer.
    Data(usize),
    /// The last byte was read before.
    Eof,
    /// Nothing for now; a report will come.
    WouldBlock,
}
