//! What a read of an endpoint returns.

/// How far a reader came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// This many bytes were appended to the buffer.
    Data(usize),
    /// The last byte was read before.
    Eof,
    /// Nothing for now; a report will come.
    WouldBlock,
}
