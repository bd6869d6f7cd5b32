//! A shell line of a template, and the sites of its placeholders.

use std::ops::Range;

use crate::placeholder::expression::Placeholder;
use crate::placeholder::site::{PlaceholderSite, Quote};
use crate::size::{CommandLength, Size};

/// A shell line as the user wrote it, with the sites of its placeholders in ascending order.
#[derive(Debug, Clone)]
pub(crate) struct TemplateLine {
    pub(crate) text: Vec<u8>,
    pub(crate) sites: Vec<PlaceholderSite>,
    /// The words that are repeated for each argument.
    pub(crate) spans: Vec<Range<usize>>,
}

/// A part of a line.
pub(crate) enum LineFragment<'a> {
    Text(&'a [u8]),
    /// A placeholder, its index in `sites`, and the indices of the arguments that it stands for.
    Value(&'a PlaceholderSite, usize, Range<usize>),
}

impl TemplateLine {
    pub(crate) fn placeholders(&self) -> impl Iterator<Item = Placeholder> {
        self.sites.iter().map(|site| site.placeholder)
    }

    /// Adds the bytes of the line without any argument. A reference to an argument takes at most
    /// `reference_max` bytes.
    pub(crate) fn measure(&self, reference_max: usize, size: &mut Size) {
        size.once += self.text.len() + 1;
        size.each += self.spans.iter().map(|span| span.len() + 1).sum::<usize>();
        for site in &self.sites {
            let in_span = self.spans.iter().any(|span| span.contains(&site.at));
            size.add_bytes(site.placeholder.repeats() || in_span, reference_max);
            // Without any argument, the reference becomes a pair of quotes.
            size.once += 2;
        }
    }

    /// See [`crate::template::Template::lengths`].
    pub(crate) fn lengths(&self) -> CommandLength {
        let mut lengths = CommandLength { once: self.text.len() + 1, ..CommandLength::default() };
        let mut placeholder_bytes = 0;
        for site in self.sites.iter().filter(|site| site.placeholder.repeats()) {
            lengths.add_value(site.placeholder);
            placeholder_bytes += site.length;
        }
        if self.spans.is_empty() {
            lengths.once -= placeholder_bytes;
            lengths.add_joined(lengths.all_times());
        } else {
            // All placeholders for each argument are in repeated words.
            let spans: usize = self.spans.iter().map(|span| span.len()).sum();
            lengths.once -= spans;
            lengths.each = spans.saturating_sub(placeholder_bytes);
            lengths.add_joined(self.spans.len());
        }
        lengths
    }

    /// Returns whether the placeholder is a whole word.
    pub(crate) fn is_word(&self, site: &PlaceholderSite) -> bool {
        let is_boundary = |byte: Option<&u8>| byte.is_none_or(|b| b" \t\n;&|()".contains(b));
        let before = site.at.checked_sub(1).and_then(|at| self.text.get(at));
        is_boundary(before) && is_boundary(self.text.get(site.at + site.length))
    }

    /// Returns whether the site at `index` is in a word that consists only of placeholders for columns
    /// that a job with this many columns lacks.
    pub(crate) fn is_missing_word(&self, index: usize, columns: usize) -> bool {
        let end = |site: &PlaceholderSite| site.at + site.length;
        let touches =
            |left: usize| self.sites.get(left + 1).is_some_and(|next| next.at == end(&self.sites[left]));
        let mut first = index;
        while first > 0 && touches(first - 1) {
            first -= 1;
        }
        let mut last = index;
        while touches(last) {
            last += 1;
        }
        let sites = &self.sites[first..=last];
        let is_missing = |site: &PlaceholderSite| {
            site.quote == Quote::Bare && !site.is_required && site.placeholder.is_missing(columns)
        };
        let whole = PlaceholderSite { length: end(&sites[sites.len() - 1]) - sites[0].at, ..sites[0] };
        sites.iter().all(is_missing) && self.is_word(&whole)
    }

    /// Returns whether a redirection follows the placeholder. A value of digits would become its
    /// descriptor.
    pub(crate) fn is_before_redirection(&self, site: &PlaceholderSite) -> bool {
        matches!(self.text.get(site.at + site.length), Some(b'<' | b'>'))
    }

    /// Returns whether the shell reads the text around the placeholder as more than text, so that
    /// even a plain value could become part of an expansion: `$x{}`, `{1..{}}`, `~{}`, `{}=x`.
    pub(crate) fn is_joined(&self, site: &PlaceholderSite) -> bool {
        let is_boundary = |byte: &u8| b" \t\n;&|()<>'\"".contains(byte);
        let is_inert =
            |byte: &u8| byte.is_ascii_alphanumeric() || b"_./,:@%+-=".contains(byte) || !byte.is_ascii();
        let site_around =
            |at: usize| self.sites.iter().find(|other| (other.at..other.at + other.length).contains(&at));
        let after = site.at + site.length;
        let mut at = site.at;
        while at > 0 && !is_boundary(&self.text[at - 1]) {
            match site_around(at - 1) {
                Some(other) => at = other.at,
                None if is_inert(&self.text[at - 1]) => at -= 1,
                None => return true,
            }
        }
        let mut at = after;
        while at < self.text.len() && !is_boundary(&self.text[at]) {
            match site_around(at) {
                Some(other) => at = other.at + other.length,
                None if is_inert(&self.text[at]) && self.text[at] != b'=' => at += 1,
                None => return true,
            }
        }
        // `name(` defines a function.
        self.text.get(at) == Some(&b'(')
    }

    /// Returns whether a variable's name ends directly before the placeholder. The value could
    /// extend that name.
    pub(crate) fn follows_variable_name(&self, site: &PlaceholderSite) -> bool {
        let before = &self.text[..site.at];
        let name =
            before.iter().rev().take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'_').count();
        let special = before.last().is_some_and(|byte| b"?!$#@*-".contains(byte));
        let at = before.len() - if special { 1 } else { name };
        (special || name > 0) && at > 0 && before[at - 1] == b'$'
    }

    /// Visits the fragments of the line for a job with `count` arguments.
    pub(crate) fn walk<'a>(&'a self, count: usize, visit: &mut dyn FnMut(LineFragment<'a>)) {
        let mut site = 0;
        let mut at = 0;
        // Without arguments no span is repeated: all text stays as it is.
        let spans = if count > 0 { self.spans.as_slice() } else { &[] };
        for span in spans {
            site = self.walk_range(at..span.start, site, 0..count, visit);
            let first = site;
            for nth in 0..count {
                if nth > 0 {
                    visit(LineFragment::Text(b" "));
                }
                site = self.walk_range(span.clone(), first, nth..nth + 1, visit);
            }
            at = span.end;
        }
        self.walk_range(at..self.text.len(), site, 0..count, visit);
    }

    /// Visits the fragments of a range, whose first site is `first`. Returns the first site after
    /// the range.
    fn walk_range<'a>(
        &'a self,
        range: Range<usize>,
        first: usize,
        arguments: Range<usize>,
        visit: &mut dyn FnMut(LineFragment<'a>),
    ) -> usize {
        let mut at = range.start;
        let mut next = first;
        while let Some(site) = self.sites.get(next)
            && site.at < range.end
        {
            visit(LineFragment::Text(&self.text[at..site.at]));
            let arguments = if site.placeholder.repeats() { arguments.clone() } else { 0..1 };
            visit(LineFragment::Value(site, next, arguments));
            at = site.at + site.length;
            next += 1;
        }
        visit(LineFragment::Text(&self.text[at..range.end]));
        next
    }
}
