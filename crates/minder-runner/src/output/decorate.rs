//! What stands around the lines of a job: a tag, a colour.

use std::ffi::{OsStr, OsString};

use memchr::{memchr, memrchr};

use crate::config::OutputView;
use crate::config::RunConfig;
use crate::output::color::LineColorizer;
use crate::output::color::failed_style;
use crate::output::color::job_style;
use crate::text::escape;
use minder_template::{Job, Template};

/// How a colour begins and ends.
type Style = (Vec<u8>, &'static [u8]);

/// What stands around each line of a job.
#[derive(Debug)]
pub(crate) struct LineStyle {
    tag: Vec<u8>,
    /// With the tag behind its beginning.
    colour: Option<Style>,
    /// Whether a last line without an end has no colour, as with `--line-buffer`: it is not known
    /// to be whole.
    bare_end: bool,
}

impl LineStyle {
    /// The marks of a job, if it has any.
    pub(crate) fn of(plan: &RunConfig, job: &Job<'_>) -> Option<Self> {
        if plan.view == OutputView::Straight {
            return None;
        }
        let tag = plan.tag.as_ref().map(|tag| text_of(tag, job));
        Self::new(tag, plan.color_jobs.then(|| job_style(job.number)), plan.color_lines)
    }

    /// In the colour of jobs that failed.
    pub(crate) fn failed(marks: Option<Self>) -> Option<Self> {
        Self::new(marks.map(|marks| marks.tag), Some(failed_style()), false)
    }

    fn new(tag: Option<Vec<u8>>, style: Option<Style>, bare_end: bool) -> Option<Self> {
        if tag.is_none() && style.is_none() {
            return None;
        }
        let tag = tag.unwrap_or_default();
        let colour = style.map(|(mut before, after)| {
            before.extend_from_slice(&tag);
            (before, after)
        });
        Some(Self { tag, colour, bare_end })
    }

    /// A text of whole lines with the marks around each.
    pub(crate) fn around(&self, text: &[u8]) -> Vec<u8> {
        let (mut marker, mut into) = (LineDecorator::default(), Vec::new());
        marker.push(self, text, &mut into);
        marker.finish(self, &mut into);
        into
    }
}

fn text_of(tag: &Template, job: &Job<'_>) -> Vec<u8> {
    // One line of the job stays one line, whatever a value holds.
    let columns: Vec<OsString> = job.columns.iter().map(|column| tame(column)).collect();
    let job = &Job { columns: &columns, ..*job };
    // A column that is not there is told when the command asks for it.
    let words = tag.argv(job).unwrap_or_default();
    let mut text = words.first().map(|word| word.as_encoded_bytes().to_vec()).unwrap_or_default();
    text.push(b'\t');
    text
}

/// A value with control characters, and those that turn the direction of text, escaped. Bytes that
/// are no text stay.
fn tame(value: &OsStr) -> OsString {
    let mut bytes = Vec::with_capacity(value.len());
    for chunk in value.as_encoded_bytes().utf8_chunks() {
        bytes.extend_from_slice(escape(chunk.valid().as_bytes()).as_bytes());
        bytes.extend_from_slice(chunk.invalid());
    }
    minder_os::encoding::os_string_from_encoded(bytes)
}

/// The most that is held of a line whose end decides about its colour.
const HELD_MAX: usize = 1 << 20;

/// Puts marks around the lines of one stream.
#[derive(Debug, Default)]
pub(crate) struct LineDecorator {
    tagger: TagWriter,
    painter: LineColorizer,
    /// A line whose end is not known yet, where that decides about its colour.
    held: Option<Vec<u8>>,
}

impl LineDecorator {
    /// For all that a job writes, or what it left when it ended.
    pub(crate) fn new(marks: Option<&LineStyle>) -> Self {
        let held = marks.is_some_and(|marks| marks.bare_end && marks.colour.is_some()).then(Vec::new);
        Self { held, ..Self::default() }
    }

    /// Appends `bytes` to `into`, with the marks.
    pub(crate) fn push(&mut self, marks: &LineStyle, bytes: &[u8], into: &mut Vec<u8>) {
        let Some((before, after)) = &marks.colour else {
            return self.tagger.push(&marks.tag, bytes, into);
        };
        let Some(held) = &mut self.held else {
            return self.painter.push((before, after), bytes, into);
        };
        let end = memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        if end > 0 {
            self.painter.push((before, after), held, into);
            self.painter.push((before, after), &bytes[..end], into);
            held.clear();
        }
        held.extend_from_slice(&bytes[end..]);
        if held.len() > HELD_MAX {
            self.painter.push((before, after), held, into);
            self.held = None;
        }
    }

    /// Whether [`finish`](Self::finish) has something to do.
    pub(crate) fn is_open(&self) -> bool {
        self.painter.is_within() || self.held.as_ref().is_some_and(|held| !held.is_empty())
    }

    /// Ends a coloured line: the stream is over.
    pub(crate) fn finish(&mut self, marks: &LineStyle, into: &mut Vec<u8>) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            into.extend_from_slice(&marks.tag);
            into.extend_from_slice(&held);
        }
        if let Some((_, after)) = &marks.colour {
            self.painter.finish(after, into);
        }
    }
}

/// Puts a tag before each line of one stream.
#[derive(Debug, Default)]
struct TagWriter {
    /// Whether the next byte belongs to a line that was begun.
    within: bool,
}

impl TagWriter {
    /// Appends `bytes` to `into`, with `tag` before each line that begins in them.
    fn push(&mut self, tag: &[u8], bytes: &[u8], into: &mut Vec<u8>) {
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
        let (mut tagger, mut text) = (TagWriter::default(), Vec::new());
        for piece in ["a\nb", "", "c\n", "\n", "d"] {
            tagger.push(b"t\t", piece.as_bytes(), &mut text);
        }
        assert_eq!(String::from_utf8_lossy(&text), "t\ta\nt\tbc\nt\t\nt\td");
    }

    /// What is shown of an output that comes in such pieces.
    fn shown(marks: &LineStyle, mut marker: LineDecorator, pieces: &[&str]) -> String {
        let mut into = Vec::new();
        pieces.iter().for_each(|piece| marker.push(marks, piece.as_bytes(), &mut into));
        assert_eq!(marker.is_open(), !pieces.concat().is_empty() && !pieces.concat().ends_with('\n'));
        marker.finish(marks, &mut into);
        assert!(!marker.is_open());
        String::from_utf8(into).expect("text")
    }

    fn marks(tag: Option<&str>, bare_end: bool) -> LineStyle {
        let style: Style = (b"<".to_vec(), b">");
        LineStyle::new(tag.map(|tag| tag.as_bytes().to_vec()), Some(style), bare_end).expect("marks")
    }

    #[test]
    fn a_colour_stands_around_the_tag_and_the_line() {
        let pieces = ["a\n", "b", "c\nd"];
        assert_eq!(shown(&marks(None, false), LineDecorator::default(), &pieces), "<a>\n<bc>\n<d>\n");
        assert_eq!(
            shown(&marks(Some("t\t"), false), LineDecorator::default(), &pieces),
            "<t\ta>\n<t\tbc>\n<t\td>\n"
        );
        let failed = LineStyle::failed(Some(marks(Some("t\t"), true))).expect("marks");
        assert_eq!(failed.around(b"a\n"), b"\x1b[48;5;196;38;5;231m\x1b[Kt\ta\x1b[m\n");
        assert!(LineStyle::new(None, None, true).is_none());
    }

    #[test]
    fn with_line_buffer_the_last_line_has_a_colour_only_if_it_is_whole() {
        let marks = marks(Some("t\t"), true);
        let rest = || LineDecorator::new(Some(&marks));
        assert_eq!(shown(&marks, rest(), &["a", "b\nc", "", "d"]), "<t\tab>\nt\tcd");
        assert_eq!(shown(&marks, rest(), &["a\n"]), "<t\ta>\n");
        assert_eq!(shown(&marks, rest(), &["a"]), "t\ta");
        // A line that is too long to wait for its end.
        let long = "x".repeat(HELD_MAX + 1);
        assert_eq!(shown(&marks, rest(), &["a\n", &long, "b"]), format!("<t\ta>\n<t\t{long}b>\n"));
        assert_eq!(shown(&marks, LineDecorator::default(), &["a", "b"]), "<t\tab>\n");
    }
}
