//! The formats of frames, and how a message is written in each.

use std::io::Write;

use crate::error::{Error, ErrorKind, Operation, Result};

/// Says how a stream of bytes is divided into messages.
///
/// ```
/// use minder::frame::FrameFormat;
///
/// let mut bytes = Vec::new();
/// FrameFormat::Lines.encode(b"text", &mut bytes)?;
/// FrameFormat::NulTerminated.encode(b"text", &mut bytes)?;
/// FrameFormat::ContentLength.encode(b"text", &mut bytes)?;
/// FrameFormat::LengthBe32.encode(b"text", &mut bytes)?;
/// FrameFormat::LengthLe32.encode(b"text", &mut bytes)?;
/// assert_eq!(bytes, b"text\ntext\0Content-Length: 4\r\n\r\ntext\0\0\0\x04text\x04\0\0\0text");
///
/// // A message that would be read as two is refused, and nothing is written.
/// let error = FrameFormat::Lines.encode(b"one\ntwo", &mut bytes).unwrap_err();
/// assert_eq!(error.kind(), minder::ErrorKind::InvalidInput);
/// # Ok::<(), minder::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FrameFormat {
    /// A message is a line: it ends with LF and contains none. The last may lack its LF.
    Lines,
    /// A message ends with a NUL byte and contains none, as in the output of `find -print0`. The last may
    /// lack its NUL.
    NulTerminated,
    /// A message follows a header, as in the Language Server Protocol and the Debug Adapter Protocol.
    ///
    /// Each line of the header is a field, `Name: value`, and ends with CR LF. An empty line ends the
    /// header. The field `Content-Length` is the number of bytes of the message; upper and lower case of
    /// its name do not matter. Other fields, such as `Content-Type`, are accepted and ignored.
    ContentLength,
    /// A message follows its length: four bytes, the most significant one first.
    LengthBe32,
    /// A message follows its length: four bytes, the least significant one first.
    LengthLe32,
}

impl FrameFormat {
    /// Appends a frame with this message to `out`.
    ///
    /// # Errors
    ///
    /// Fails with [`InvalidInput`](ErrorKind::InvalidInput) and leaves `out` unchanged if the message
    /// contains the byte that ends it, or is longer than a 4-byte length can say.
    pub fn encode(self, message: &[u8], out: &mut Vec<u8>) -> Result<()> {
        match self {
            Self::Lines | Self::NulTerminated => {
                let terminator = if self == Self::Lines { b'\n' } else { 0 };
                if memchr::memchr(terminator, message).is_some() {
                    let byte =
                        if self == Self::Lines { "a line contains LF" } else { "it contains a NUL byte" };
                    return Err(refused(byte));
                }
                out.reserve(message.len() + 1);
                out.extend_from_slice(message);
                out.push(terminator);
            }
            Self::ContentLength => {
                write!(out, "Content-Length: {}\r\n\r\n", message.len()).expect("a vector takes all bytes");
                out.extend_from_slice(message);
            }
            Self::LengthBe32 => append_prefixed(length_32(message.len())?.to_be_bytes(), message, out),
            Self::LengthLe32 => append_prefixed(length_32(message.len())?.to_le_bytes(), message, out),
        }
        Ok(())
    }
}

fn append_prefixed(prefix: [u8; 4], message: &[u8], out: &mut Vec<u8>) {
    out.reserve(prefix.len() + message.len());
    out.extend_from_slice(&prefix);
    out.extend_from_slice(message);
}

fn length_32(length: usize) -> Result<u32> {
    u32::try_from(length).map_err(|_| refused("a 4-byte length cannot say more than 4294967295 bytes"))
}

fn refused(reason: &'static str) -> Error {
    Error::of_kind(ErrorKind::InvalidInput, "encode a message", reason).during(Operation::Write)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encode_refuses_a_message_with_its_terminator_and_leaves_the_output_unchanged() {
        let mut out = b"before".to_vec();
        let error = FrameFormat::Lines.encode(b"a\nb", &mut out).unwrap_err();
        assert_eq!(error.to_string(), "failed to encode a message: a line contains LF");
        assert_eq!((error.kind(), error.operation()), (ErrorKind::InvalidInput, Operation::Write));
        let error = FrameFormat::NulTerminated.encode(b"a\0", &mut out).unwrap_err();
        assert_eq!(error.to_string(), "failed to encode a message: it contains a NUL byte");
        assert_eq!(out, b"before");
        // The other byte is data.
        FrameFormat::Lines.encode(b"\0\r", &mut out).unwrap();
        FrameFormat::NulTerminated.encode(b"\n", &mut out).unwrap();
        assert_eq!(out, b"before\0\r\n\n\0");
    }

    #[cfg(target_pointer_width = "64")]
    #[test]
    fn encode_refuses_a_length_above_four_bytes() {
        assert_eq!(length_32(0xffff_ffff).unwrap(), u32::MAX);
        let error = length_32(0x1_0000_0000).unwrap_err();
        assert_eq!(error.reason(), "a 4-byte length cannot say more than 4294967295 bytes");
    }
}
