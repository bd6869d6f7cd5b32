//! The decoration of a job's lines: a tag and a color.

use std::ffi::{OsStr, OsString};

use memchr::{memchr, memchr2, memrchr};

use crate::config::OutputView;
use crate::config::RunConfig;
use crate::output::color::LineColorizer;
use crate::output::color::failed_style;
use crate::output::color::job_style;
use crate::text::escape;
use minder_template::{Job, Template};

/// The bytes that start and end a color.
type Style = (Vec<u8>, &'static [u8]);

/// The decoration of each line of a job.
#[derive(Debug)]
pub(crate) struct LineStyle {
    tag: Vec<u8>,
    /// The tag is part of its start.
    color: Option<Style>,
    /// `true` if a last line without a line break gets no color, as with `--line-buffer`: it may be
    /// incomplete.
    bare_end: bool,
    /// `true` if a carriage return ends a line, too, so that the tag is repeated after it.
    splits_at_return: bool,
}

impl LineStyle {
    /// Returns the decoration of a job, or `None` if it has none.
    pub(crate) fn of(config: &RunConfig, job: &Job<'_>) -> Option<Self> {
        if config.view == OutputView::Straight {
            return None;
        }
        let tag = match config.name_of(job.number) {
            Some(name) => Some(format!("{name}\t").into_bytes()),
            None if !config.names.is_empty() => Some(format!("{}\t", job.number).into_bytes()),
            None => config.tag.as_ref().map(|tag| render_tag(tag, job, config.parallel_env)),
        };
        let style = if config.color_jobs {
            Some(job_style(job.number))
        } else {
            // With --color-failed, GNU parallel writes the lines of all jobs like those of failed ones.
            (config.color_failed && config.parallel_env).then(|| (Vec::new(), &b""[..]))
        };
        let style = Self::new(tag, style, config.color_lines)?;
        Some(Self { splits_at_return: config.parallel_env, ..style })
    }

    /// Returns the same decoration in the color of failed jobs.
    pub(crate) fn failed(style: Option<Self>) -> Option<Self> {
        Self::new(style.map(|style| style.tag), Some(failed_style()), false)
    }

    fn new(tag: Option<Vec<u8>>, style: Option<Style>, bare_end: bool) -> Option<Self> {
        if tag.is_none() && style.is_none() {
            return None;
        }
        let tag = tag.unwrap_or_default();
        let color = style.map(|(mut before, after)| {
            before.extend_from_slice(&tag);
            (before, after)
        });
        Some(Self { tag, color, bare_end, splits_at_return: false })
    }

    /// Returns a text of whole lines with the decoration around each.
    pub(crate) fn apply(&self, text: &[u8]) -> Vec<u8> {
        let mut decorator = LineDecorator::default();
        let mut out = Vec::new();
        decorator.push(self, text, &mut out);
        decorator.finish(self, &mut out);
        out
    }
}

/// With `keeps_tabs`, a tab in a value stays a tab, as in GNU parallel.
fn render_tag(tag: &Template, job: &Job<'_>, keeps_tabs: bool) -> Vec<u8> {
    // A line of the job stays one line, whatever its arguments contain.
    let columns: Vec<OsString> = job.columns.iter().map(|column| escape_value(column, keeps_tabs)).collect();
    let job = &Job { columns: &columns, ..*job };
    // A missing column is reported when the command is built.
    let values = tag.argv(job).unwrap_or_default();
    let mut text = values.first().map(|value| value.as_encoded_bytes().to_vec()).unwrap_or_default();
    text.push(b'\t');
    text
}

/// Escapes control characters and characters that change the direction of text. Bytes that are not
/// UTF-8 stay.
fn escape_value(value: &OsStr, keeps_tabs: bool) -> OsString {
    let mut bytes = Vec::with_capacity(value.len());
    for chunk in value.as_encoded_bytes().utf8_chunks() {
        for (at, text) in chunk.valid().split(|c| c == '\t' && keeps_tabs).enumerate() {
            if at > 0 {
                bytes.push(b'\t');
            }
            bytes.extend_from_slice(escape(text.as_bytes()).as_bytes());
        }
        bytes.extend_from_slice(chunk.invalid());
    }
    minder_os::encoding::os_string_from_encoded(bytes)
}

/// The most bytes of a line that are held until its end decides its color.
const HELD_MAX: usize = 1 << 20;

/// Decorates the lines of one stream.
#[derive(Debug, Default)]
pub(crate) struct LineDecorator {
    tagger: TagWriter,
    colorizer: LineColorizer,
    /// An incomplete line, if its end decides its color.
    held: Option<Vec<u8>>,
}

impl LineDecorator {
    /// Creates a decorator for one stream of a job.
    pub(crate) fn new(style: Option<&LineStyle>) -> Self {
        let held = style.is_some_and(|style| style.bare_end && style.color.is_some()).then(Vec::new);
        Self { held, ..Self::default() }
    }

    /// Appends the decorated `bytes` to `out`.
    pub(crate) fn push(&mut self, style: &LineStyle, bytes: &[u8], out: &mut Vec<u8>) {
        let Some((before, after)) = &style.color else {
            return self.tagger.push(style, bytes, out);
        };
        let Some(held) = &mut self.held else {
            return self.colorizer.push((before, after), bytes, out);
        };
        let end = memrchr(b'\n', bytes).map_or(0, |at| at + 1);
        if end > 0 {
            self.colorizer.push((before, after), held, out);
            self.colorizer.push((before, after), &bytes[..end], out);
            held.clear();
        }
        held.extend_from_slice(&bytes[end..]);
        if held.len() > HELD_MAX {
            self.colorizer.push((before, after), held, out);
            self.held = None;
        }
    }

    /// Returns `true` if the next byte starts a line.
    pub(crate) fn starts_line(&self) -> bool {
        !self.tagger.in_line && !self.is_open()
    }

    /// Returns `true` if [`finish`](Self::finish) has something to write.
    pub(crate) fn is_open(&self) -> bool {
        self.colorizer.is_within() || self.held.as_ref().is_some_and(|held| !held.is_empty())
    }

    /// Ends an open line at the end of the stream.
    pub(crate) fn finish(&mut self, style: &LineStyle, out: &mut Vec<u8>) {
        if let Some(held) = self.held.take().filter(|held| !held.is_empty()) {
            out.extend_from_slice(&style.tag);
            out.extend_from_slice(&held);
        }
        if let Some((_, after)) = &style.color {
            self.colorizer.finish(after, out);
        }
    }
}

/// Puts a tag before each line of one stream.
#[derive(Debug, Default)]
struct TagWriter {
    /// `true` if the next byte continues a line.
    in_line: bool,
}

impl TagWriter {
    /// Appends `bytes` to `out`, with the tag before each line that starts in them.
    fn push(&mut self, style: &LineStyle, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while !rest.is_empty() {
            if !self.in_line {
                out.extend_from_slice(&style.tag);
            }
            let end = if style.splits_at_return { memchr2(b'\n', b'\r', rest) } else { memchr(b'\n', rest) };
            let length = end.map_or(rest.len(), |at| at + 1);
            out.extend_from_slice(&rest[..length]);
            self.in_line = end.is_none();
            rest = &rest[length..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the tagged form of output that arrives in these chunks.
    fn tagged(splits_at_return: bool, chunks: &[&str]) -> String {
        let style = LineStyle { tag: b"t\t".to_vec(), color: None, bare_end: false, splits_at_return };
        let mut tagger = TagWriter::default();
        let mut text = Vec::new();
        chunks.iter().for_each(|chunk| tagger.push(&style, chunk.as_bytes(), &mut text));
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn tag_writer_tags_each_line_once_for_any_chunks() {
        let chunks = ["a\nb", "", "c\n", "\n", "d"];
        for splits_at_return in [false, true] {
            assert_eq!(tagged(splits_at_return, &chunks), "t\ta\nt\tbc\nt\t\nt\td");
        }
    }

    #[test]
    fn tag_writer_repeats_the_tag_after_a_carriage_return_on_request() {
        let chunks = ["a\r", "\rb\nc\r"];
        assert_eq!(tagged(true, &chunks), "t\ta\rt\t\rt\tb\nt\tc\r");
        assert_eq!(tagged(false, &chunks), "t\ta\r\rb\nt\tc\r");
    }

    #[test]
    fn escape_value_keeps_tabs_on_request() {
        assert_eq!(escape_value("a\tb\x1bc".as_ref(), true), "a\tb\\x1bc");
        assert_eq!(escape_value("a\tb".as_ref(), false), "a\\tb");
    }

    /// Returns the decorated form of output that arrives in these chunks.
    fn shown(style: &LineStyle, mut decorator: LineDecorator, chunks: &[&str]) -> String {
        let mut out = Vec::new();
        chunks.iter().for_each(|chunk| decorator.push(style, chunk.as_bytes(), &mut out));
        assert_eq!(decorator.is_open(), !chunks.concat().is_empty() && !chunks.concat().ends_with('\n'));
        decorator.finish(style, &mut out);
        assert!(!decorator.is_open());
        String::from_utf8(out).expect("text")
    }

    fn style(tag: Option<&str>, bare_end: bool) -> LineStyle {
        let style: Style = (b"<".to_vec(), b">");
        LineStyle::new(tag.map(|tag| tag.as_bytes().to_vec()), Some(style), bare_end)
            .expect("create line style")
    }

    #[test]
    fn color_encloses_tag_and_line() {
        let chunks = ["a\n", "b", "c\nd"];
        assert_eq!(shown(&style(None, false), LineDecorator::default(), &chunks), "<a>\n<bc>\n<d>\n");
        assert_eq!(
            shown(&style(Some("t\t"), false), LineDecorator::default(), &chunks),
            "<t\ta>\n<t\tbc>\n<t\td>\n"
        );
        let failed = LineStyle::failed(Some(style(Some("t\t"), true))).expect("create line style");
        assert_eq!(failed.apply(b"a\n"), b"\x1b[48;5;196;38;5;231m\x1b[Kt\ta\x1b[m\n");
        assert!(LineStyle::new(None, None, true).is_none());
    }

    #[test]
    fn bare_end_leaves_incomplete_last_line_uncolored() {
        let style = style(Some("t\t"), true);
        let rest = || LineDecorator::new(Some(&style));
        assert_eq!(shown(&style, rest(), &["a", "b\nc", "", "d"]), "<t\tab>\nt\tcd");
        assert_eq!(shown(&style, rest(), &["a\n"]), "<t\ta>\n");
        assert_eq!(shown(&style, rest(), &["a"]), "t\ta");
        // A line that is longer than what is held.
        let long = "x".repeat(HELD_MAX + 1);
        assert_eq!(shown(&style, rest(), &["a\n", &long, "b"]), format!("<t\ta>\n<t\t{long}b>\n"));
        assert_eq!(shown(&style, LineDecorator::default(), &["a", "b"]), "<t\tab>\n");
    }
}
