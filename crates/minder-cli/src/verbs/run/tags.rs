//! Lines that begin with a tag.

use memchr::memchr;

/// Puts a tag before each line of one stream.
#[derive(Debug, Default)]
pub(super) struct Tagger {
    /// Whether the next byte belongs to a line that was begun.
    within: bool,
}

impl Tagger {
    /// Appends `bytes` to `into`, with `tag` before each line that begins in them.
    pub(super) fn push(&mut self, tag: &[u8], bytes: &[u8], into: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.within {
                into.extend_from_slice(tag);
            }
            let end = memchr(b'\n', rest).map_or(rest.len(), |at| at + 1);
            into.extend_from_slice(&rest[..end]);
            self.within = rest[end - 1] != b'\n';
            rest = &rest[end..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_has_one_tag_wherever_the_pieces_fall() {
        let (mut tagger, mut text) = (Tagger::default(), Vec::new());
        for piece in ["a\nb", "", "c\n", "\n", "d"] {
            tagger.push(b"t\t", piece.as_bytes(), &mut text);
        }
        assert_eq!(String::from_utf8_lossy(&text), "t\ta\nt\tbc\nt\t\nt\td");
    }
}
