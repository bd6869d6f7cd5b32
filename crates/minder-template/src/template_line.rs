//! A line as it was written, with the places of its placeholders.

use std::ops::Range;

use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::PlaceholderSite;
use crate::size::{CommandLength, Size};

/// See the module.
#[derive(Debug, Clone)]
pub(crate) struct TemplateLine {
    pub(crate) text: Vec<u8>,
    pub(crate) seen: Vec<PlaceholderSite>,
    /// The words that are repeated for each argument.
    pub(crate) spans: Vec<Range<usize>>,
}

/// A part of a line.
pub(crate) enum Part<'a> {
    Text(&'a [u8]),
    /// A placeholder, which of those seen it is, and the arguments that it takes.
    Value(&'a PlaceholderSite, usize, Range<usize>),
}

impl TemplateLine {
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.seen.iter().map(|seen| seen.placeholder)
    }

    /// Adds the bytes of the line without any argument. A reference to an argument takes at most
    /// `reference_max` bytes.
    pub(crate) fn measure(&self, reference_max: usize, size: &mut Size) {
        size.once += self.text.len() + 1;
        size.each += self.spans.iter().map(|span| span.len() + 1).sum::<usize>();
        for seen in &self.seen {
            let repeated =
                seen.placeholder.repeats() || self.spans.iter().any(|span| span.contains(&seen.at));
            size.add_bytes(repeated, reference_max);
            // Without any argument, the reference becomes a pair of quotes.
            size.once += 2;
        }
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let each = self.seen.iter().filter(|seen| seen.placeholder.repeats());
        let (times, written) = each.fold((0, 0), |(times, written), seen| (times + 1, written + seen.length));
        let mut lengths = CommandLength { once: self.text.len() + 1, times, ..CommandLength::default() };
        if self.spans.is_empty() {
            lengths.once -= written;
            lengths.add_joined(times);
        } else {
            // In repeated words stand all placeholders of every argument.
            let spans: usize = self.spans.iter().map(|span| span.len()).sum();
            lengths.once -= spans;
            lengths.each = spans.saturating_sub(written);
            lengths.add_joined(self.spans.len());
        }
        lengths
    }

    /// Whether nothing is joined to a placeholder.
    pub(crate) fn is_word(&self, seen: &PlaceholderSite) -> bool {
        let ends = |byte: Option<&u8>| byte.is_none_or(|b| b" \t\n;&|()".contains(b));
        let before = seen.at.checked_sub(1).and_then(|at| self.text.get(at));
        ends(before) && ends(self.text.get(seen.at + seen.length))
    }

    /// Whether a redirection follows, whose number the value could be.
    pub(crate) fn is_before_redirection(&self, seen: &PlaceholderSite) -> bool {
        matches!(self.text.get(seen.at + seen.length), Some(b'<' | b'>'))
    }

    /// Whether a placeholder stands beside text that the shell reads as more than text, so that a
    /// plain value could be read with it: `$x{}`, `{1..{}}`, `~{}`, `{}=x`.
    pub(crate) fn is_joined(&self, seen: &PlaceholderSite) -> bool {
        let ends = |byte: &u8| b" \t\n;&|()<>'\"".contains(byte);
        let soft =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"_./,:@%+-=".contains(byte) || !byte.is_ascii();
        let value =
            |at: usize| self.seen.iter().find(|other| (other.at..other.at + other.length).contains(&at));
        let after = seen.at + seen.length;
        let mut at = seen.at;
        while at > 0 && !ends(&self.text[at - 1]) {
            match value(at - 1) {
                Some(other) => at = other.at,
                None if soft(&self.text[at - 1]) => at -= 1,
                None => return true,
            }
        }
        let mut at = after;
        while at < self.text.len() && !ends(&self.text[at]) {
            match value(at) {
                Some(other) => at = other.at + other.length,
                None if soft(&self.text[at]) && self.text[at] != b'=' => at += 1,
                None => return true,
            }
        }
        // A function's name.
        self.text.get(at) == Some(&b'(')
    }

    /// Whether a variable's name stands right before a placeholder, which a value could go on with.
    pub(crate) fn is_behind_name(&self, seen: &PlaceholderSite) -> bool {
        let before = &self.text[..seen.at];
        let name =
            before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let special = before.last().is_some_and(|byte| b"?!$#@*-".contains(byte));
        let at = before.len() - if special { 1 } else { name };
        (special || name > 0) && at > 0 && before[at - 1] == b'$'
    }

    /// Goes through the line: its text, and its placeholders with the arguments that each takes.
    pub(crate) fn walk<'a>(&'a self, count: usize, visit: &mut dyn FnMut(Part<'a>)) {
        let mut seen = 0;
        let mut at = 0;
        // Without any argument nothing is repeated: the word stays, as it is.
        for span in self.spans.iter().filter(|_| count > 0) {
            seen = self.walk_part(at..span.start, seen, 0..count, visit);
            let first = seen;
            for nth in 0..count {
                if nth > 0 {
                    visit(Part::Text(b" "));
                }
                seen = self.walk_part(span.clone(), first, nth..nth + 1, visit);
            }
            at = span.end;
        }
        self.walk_part(at..self.text.len(), seen, 0..count, visit);
    }

    fn walk_part<'a>(
        &'a self,
        part: Range<usize>,
        first: usize,
        arguments: Range<usize>,
        visit: &mut dyn FnMut(Part<'a>),
    ) -> usize {
        let mut at = part.start;
        let mut next = first;
        while let Some(seen) = self.seen.get(next).filter(|seen| seen.at < part.end) {
            visit(Part::Text(&self.text[at..seen.at]));
            let arguments = if seen.placeholder.repeats() { arguments.clone() } else { 0..1 };
            visit(Part::Value(seen, next, arguments));
            at = seen.at + seen.length;
            next += 1;
        }
        visit(Part::Text(&self.text[at..part.end]));
        next
    }
}
