//! The error of a frame that cannot be read.

use std::fmt;
use std::io;

use super::header::MAX_HEADER_BYTES;
use crate::error::escape;

/// A frame that cannot be read: of which stream it is, where it begins, and the reason.
///
/// [`Display`](fmt::Display) writes one line in lower case. Programs read [`kind`](Self::kind) and
/// [`offset`](Self::offset) instead of the text.
///
/// ```
/// use minder::frame::{FrameDecoder, FrameErrorKind, FrameFormat};
///
/// let mut decoder = FrameDecoder::new(FrameFormat::ContentLength).label("pyright");
/// let mut bytes: &[u8] = b"Content-Length: 2\r\n\r\n{}Listening on port 80\r\n";
/// assert_eq!(decoder.next_frame(&mut bytes)?.unwrap().bytes(), b"{}");
/// let error = decoder.next_frame(&mut bytes).unwrap_err();
/// assert_eq!(error.kind(), FrameErrorKind::MalformedHeader);
/// assert_eq!((error.label(), error.offset()), (Some("pyright"), 23));
/// assert_eq!(error.reason(), "a line of the header has no colon: `Listening on port 80`");
/// assert!(error.to_string().starts_with("failed to read a frame of `pyright` at byte 23: "));
/// # Ok::<(), minder::frame::FrameError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct FrameError {
    inner: Box<Inner>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Inner {
    label: Option<String>,
    offset: u64,
    reason: Reason,
}

/// Why a frame cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// The end of the message is not within the maximum.
    Unterminated { max: usize },
    /// The length that precedes the message is above the maximum.
    Length { length: u64, max: usize },
    /// A line of the header, or the whole of it, is not valid.
    Header { problem: &'static str, line: Option<String> },
    /// The end of the header is not within [`MAX_HEADER_BYTES`].
    LongHeader,
    /// The stream ended within the frame.
    Truncated { received: u64 },
}

/// The class of a [`FrameError`], for callers that treat some classes differently.
///
/// ```
/// use minder::frame::{FrameDecoder, FrameErrorKind, FrameFormat};
///
/// let mut decoder = FrameDecoder::new(FrameFormat::Lines).max_frame_bytes(3);
/// let error = decoder.next_frame(&mut &b"four\n"[..]).unwrap_err();
/// match error.kind() {
///     FrameErrorKind::Oversized => decoder.resync(),
///     kind => panic!("{kind:?}"),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameErrorKind {
    /// The message is longer than
    /// [`max_frame_bytes`](super::FrameDecoder::max_frame_bytes).
    Oversized,
    /// The header of a [`ContentLength`](super::FrameFormat::ContentLength) frame is not valid, or
    /// longer than [`MAX_HEADER_BYTES`].
    MalformedHeader,
    /// The stream ended within the frame.
    Truncated,
}

impl FrameError {
    pub(super) fn new(label: Option<String>, offset: u64, reason: Reason) -> Self {
        Self { inner: Box::new(Inner { label, offset, reason }) }
    }

    /// Returns the class of this error.
    pub fn kind(&self) -> FrameErrorKind {
        match self.inner.reason {
            Reason::Unterminated { .. } | Reason::Length { .. } => FrameErrorKind::Oversized,
            Reason::Header { .. } | Reason::LongHeader => FrameErrorKind::MalformedHeader,
            Reason::Truncated { .. } => FrameErrorKind::Truncated,
        }
    }

    /// Returns the number of bytes of the stream before the frame, whose header is part of it.
    pub fn offset(&self) -> u64 {
        self.inner.offset
    }

    /// Returns the label that the decoder was given, on one line: control characters are escaped.
    pub fn label(&self) -> Option<&str> {
        self.inner.label.as_deref()
    }

    /// Returns why the frame cannot be read, without label and offset.
    pub fn reason(&self) -> String {
        match &self.inner.reason {
            Reason::Unterminated { max } => {
                format!("no end of the message within {max} bytes, the maximum (`max_frame_bytes`)")
            }
            Reason::Length { length, max } => {
                format!("a message of {length} bytes, the maximum is {max} (`max_frame_bytes`)")
            }
            Reason::Header { problem, line: Some(line) } => format!("{problem}: `{line}`"),
            Reason::Header { problem, line: None } => (*problem).to_owned(),
            Reason::LongHeader => {
                format!("no end of the header within {MAX_HEADER_BYTES} bytes, the maximum")
            }
            Reason::Truncated { received } => format!("the stream ended after {received} bytes of the frame"),
        }
    }
}

/// Returns the start of a line for an error, on one line.
pub(super) fn excerpt(line: &[u8]) -> String {
    const MAX_BYTES: usize = 60;
    let text = escape(&String::from_utf8_lossy(&line[..line.len().min(MAX_BYTES)]));
    if line.len() > MAX_BYTES { text + "…" } else { text }
}

impl fmt::Display for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed to read a frame")?;
        if let Some(label) = self.label() {
            write!(f, " of `{label}`")?;
        }
        write!(f, " at byte {}: {}", self.offset(), self.reason())
    }
}

impl fmt::Debug for FrameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { label, offset, reason } = &*self.inner;
        f.debug_struct("FrameError")
            .field("label", label)
            .field("offset", offset)
            .field("reason", reason)
            .finish()
    }
}

impl std::error::Error for FrameError {}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        let kind = match error.kind() {
            FrameErrorKind::Truncated => io::ErrorKind::UnexpectedEof,
            FrameErrorKind::Oversized | FrameErrorKind::MalformedHeader => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_is_one_line_that_names_label_offset_and_reason() {
        let texts = [
            (
                Reason::Unterminated { max: 10 },
                "no end of the message within 10 bytes, the maximum (`max_frame_bytes`)",
            ),
            (
                Reason::Length { length: 11, max: 10 },
                "a message of 11 bytes, the maximum is 10 (`max_frame_bytes`)",
            ),
            (Reason::Header { problem: "a line", line: Some(excerpt(b"x\n\r")) }, "a line: `x\\n\\r`"),
            (Reason::Header { problem: "no line", line: None }, "no line"),
            (Reason::LongHeader, "no end of the header within 4096 bytes, the maximum"),
            (Reason::Truncated { received: 3 }, "the stream ended after 3 bytes of the frame"),
        ];
        for (reason, text) in texts {
            let error = FrameError::new(None, 7, reason.clone());
            assert_eq!(error.to_string(), format!("failed to read a frame at byte 7: {text}"));
            let error = FrameError::new(Some("child 3".to_owned()), 7, reason);
            assert_eq!(error.to_string(), format!("failed to read a frame of `child 3` at byte 7: {text}"));
        }
    }

    #[test]
    fn excerpt_is_short() {
        assert_eq!(excerpt(&[b'x'; 60]), "x".repeat(60));
        assert_eq!(excerpt(&[b'x'; 4000]), "x".repeat(60) + "…");
    }

    #[test]
    fn io_error_keeps_class_and_text() {
        let error = FrameError::new(None, 0, Reason::Truncated { received: 1 });
        let text = error.to_string();
        let error = io::Error::from(error);
        assert_eq!((error.kind(), error.to_string()), (io::ErrorKind::UnexpectedEof, text));
        let error = FrameError::new(None, 0, Reason::LongHeader);
        assert_eq!(io::Error::from(error).kind(), io::ErrorKind::InvalidData);
    }
}
