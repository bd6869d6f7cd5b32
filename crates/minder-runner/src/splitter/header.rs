//! The header: what comes before all records and is repeated for each job.

use regex::bytes::Regex;

use crate::splitter::regexp::compile;

/// The bytes that form the header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Header {
    /// The first lines.
    Lines(u64),
    /// The bytes that a regular expression matches at the beginning.
    Pattern(Vec<u8>),
}

/// Finds a header.
#[derive(Debug)]
pub(super) enum HeaderParser {
    Lines(u64),
    Pattern(Regex),
}

/// The result of a search for the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderMatch {
    At(usize),
    /// There is no header.
    Nowhere,
    /// More input is needed.
    Later,
}

impl HeaderParser {
    pub(super) fn new(header: &Header) -> Result<Self, String> {
        Ok(match header {
            Header::Lines(count) => Self::Lines(*count),
            Header::Pattern(text) => {
                // Compiled alone first, for a clear error.
                compile("--header", text)?;
                let text = format!(r"\A(?:{})", String::from_utf8_lossy(text));
                Self::Pattern(compile("--header", text.as_bytes())?)
            }
        })
    }

    /// Searches the first bytes of the input. `whole` is `true` if there are no more.
    pub(super) fn find(&self, bytes: &[u8], whole: bool) -> HeaderMatch {
        let none = if whole { HeaderMatch::Nowhere } else { HeaderMatch::Later };
        match self {
            Self::Lines(0) => HeaderMatch::At(0),
            Self::Lines(count) => {
                let last = usize::try_from(*count - 1).unwrap_or(usize::MAX);
                memchr::memchr_iter(b'\n', bytes).nth(last).map_or(none, |at| HeaderMatch::At(at + 1))
            }
            Self::Pattern(regex) => match regex.find(bytes) {
                // A match with a complete line after it does not get longer.
                Some(found) if whole || memchr::memchr(b'\n', &bytes[found.end()..]).is_some() => {
                    HeaderMatch::At(found.end())
                }
                _ => none,
            },
        }
    }
}
