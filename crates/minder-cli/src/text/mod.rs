//! Functions from text to text, without dependencies on the rest of the command.

mod bytes;
mod escapes;

pub(crate) use self::{
    bytes::format_bytes,
    escapes::{EscapeSet, unescape},
};
