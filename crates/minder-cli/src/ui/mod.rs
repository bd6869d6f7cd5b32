//! What a person reads: tables, colours, and how times and sizes are written.

pub(crate) mod color;
pub(crate) mod format;
pub(crate) mod table;
