//! The header of a `Content-Length` frame: its lines, and the search for the next one.

use memchr::memchr;

/// The most bytes of a header, from the first byte of its first line to the LF of its empty line.
///
/// The header of a language server has less than 100. [`FrameFormat::encode`](super::FrameFormat::encode)
/// writes at most 40.
///
/// ```
/// use minder::frame::{FrameDecoder, FrameErrorKind, FrameFormat, MAX_HEADER_BYTES};
///
/// let mut decoder = FrameDecoder::new(FrameFormat::ContentLength);
/// let header = vec![b'x'; MAX_HEADER_BYTES];
/// let error = decoder.next_frame(&mut &header[..]).unwrap_err();
/// assert_eq!(error.kind(), FrameErrorKind::MalformedHeader);
/// ```
pub const MAX_HEADER_BYTES: usize = 4096;

const NAME: &[u8] = b"Content-Length";

/// The text that [`Search`] looks for, in lower case: a header at the start of a line.
const PATTERN: &[u8] = b"\ncontent-length:";

/// The part of [`PATTERN`] that a search has read when it ends.
pub(super) const FIELD_START: &[u8] = b"Content-Length:";

/// One line of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderLine {
    /// The field `Content-Length`.
    Length(u64),
    /// Another field.
    Other,
    /// The empty line.
    End,
}

/// Reads a line, here without its LF.
///
/// # Errors
///
/// Returns what is wrong with the line.
pub(super) fn parse_line(line: &[u8]) -> Result<HeaderLine, &'static str> {
    let Some(line) = line.strip_suffix(b"\r") else {
        return Err("a line of the header does not end with CR LF");
    };
    if line.is_empty() {
        return Ok(HeaderLine::End);
    }
    let Some(colon) = memchr(b':', line) else {
        return Err("a line of the header has no colon");
    };
    let name = &line[..colon];
    if name.eq_ignore_ascii_case(NAME) {
        let length = parse_length(&line[colon + 1..]);
        return length.map(HeaderLine::Length).ok_or("`Content-Length` is not a decimal number below 2^64");
    }
    if name.is_empty() || !name.iter().copied().all(is_name_byte) {
        return Err("the name of a header field is invalid");
    }
    Ok(HeaderLine::Other)
}

/// Returns whether a byte may occur in the name of a field: a `tchar` of RFC 9110, section 5.6.2.
fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// Returns the number in the value of a field. Spaces and tabs may surround it.
fn parse_length(mut value: &[u8]) -> Option<u64> {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    if value.is_empty() {
        return None;
    }
    value.iter().try_fold(0_u64, |length, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        length.checked_mul(10)?.checked_add(digit)
    })
}

/// The search for `Content-Length:` at the start of a line. It keeps no bytes of the stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Search {
    /// The number of bytes of [`PATTERN`] that were read last.
    matched: usize,
}

impl Search {
    /// Starts a search after a LF, or in the middle of a line.
    pub(super) fn new(at_line_start: bool) -> Self {
        Self { matched: usize::from(at_line_start) }
    }

    /// Returns how many bytes of the input end with the colon, or `None` if the search has to
    /// continue with the input that follows.
    pub(super) fn find(&mut self, input: &[u8]) -> Option<usize> {
        let mut at = 0;
        while at < input.len() {
            if self.matched == 0 {
                at += memchr(b'\n', &input[at..])? + 1;
                self.matched = 1;
                continue;
            }
            let byte = input[at].to_ascii_lowercase();
            at += 1;
            self.matched = match byte {
                byte if byte == PATTERN[self.matched] => self.matched + 1,
                // LF is only at the start of the pattern.
                b'\n' => 1,
                _ => 0,
            };
            if self.matched == PATTERN.len() {
                return Some(at);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_line_accepts_names_in_any_case_and_ignores_other_fields() {
        for line in ["Content-Length: 12\r", "content-length:12\r", "CONTENT-LENGTH: \t0012 \r"] {
            assert_eq!(parse_line(line.as_bytes()), Ok(HeaderLine::Length(12)), "{line:?}");
        }
        assert_eq!(parse_line(b"Content-Length: 18446744073709551615\r"), Ok(HeaderLine::Length(u64::MAX)));
        assert_eq!(
            parse_line(b"Content-Type: application/vscode-jsonrpc; charset=utf-8\r"),
            Ok(HeaderLine::Other)
        );
        assert_eq!(parse_line(b"X-Empty:\r"), Ok(HeaderLine::Other));
        assert_eq!(parse_line(b"\r"), Ok(HeaderLine::End));
    }

    #[test]
    fn parse_line_refuses_what_is_no_field() {
        for line in ["", "Content-Length: 5", "text\r", ": 5\r", "a b: 5\r", " Content-Length: 5\r"] {
            assert!(parse_line(line.as_bytes()).is_err(), "{line:?}");
        }
        for value in ["", " ", "-1", "+1", "1 2", "0x10", "1\r", "1_0", "18446744073709551616", "\u{661}"] {
            let line = format!("Content-Length: {value}\r");
            assert!(parse_line(line.as_bytes()).is_err(), "{line:?}");
        }
    }

    #[test]
    fn search_finds_the_field_at_the_start_of_a_line_wherever_the_input_is_cut() {
        let text = b"xContent-Length: 1\n\n\nContent-\nconTENT-length: 5";
        let found = text.len() - " 5".len();
        for cut in 0..=text.len() {
            let mut search = Search::new(false);
            let end = match search.find(&text[..cut]) {
                Some(end) => end,
                None => cut + search.find(&text[cut..]).expect("the field is in the text"),
            };
            assert_eq!(end, found, "cut at {cut}");
        }
        assert_eq!(Search::new(true).find(b"Content-Length:"), Some(FIELD_START.len()));
        assert_eq!(Search::new(false).find(b"Content-Length:"), None);
    }
}
