//! Records by regular expressions: the leftmost match makes a split, and the next match is searched
//! for after it.
//!
//! A match may become longer, or start earlier, when more input arrives: for `[0-9]+`, `12` is a
//! match, and so is `123`. It counts only if no following byte can change it. The automaton of the
//! pattern decides that: it is then in its dead state. The matches themselves come from `regex`,
//! which finds them faster but does not report that state.

use std::ops::Range;

use minder_os::sync::Mutex;
use regex::bytes::Regex;
use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::util::syntax;
use regex_automata::{Input, nfa::thompson};

use crate::splitter::regexp::compile;

/// The separator of records.
#[derive(Debug)]
pub(crate) struct Pattern {
    /// The end, then the start as a named group, if there is one.
    both: Expression,
    /// The start alone, if there are both a start and an end.
    start: Option<Expression>,
    has_end: bool,
    has_start: bool,
    at_start: Option<Regex>,
    at_end: Option<Regex>,
}

/// A match, and where it splits.
#[derive(Debug)]
struct Match {
    range: Range<usize>,
    split: usize,
}

impl Pattern {
    /// Compiles the expressions. `start` or `end` may be empty, but not both.
    ///
    /// # Errors
    /// One line that names the flag.
    pub(crate) fn new(end: &[u8], start: &[u8]) -> Result<Self, String> {
        // Each expression alone first, so that an error names the right flag.
        let _ = (compile("--recend", end)?, compile("--recstart", start)?);
        let end_text = String::from_utf8_lossy(end);
        let start_text = String::from_utf8_lossy(start);
        let edge = |wanted: bool, text: String| {
            if wanted { compile("--regexp", text.as_bytes()).map(Some) } else { Ok(None) }
        };
        let has_end = !end.is_empty();
        let has_start = !start.is_empty();
        let alone = if has_end && has_start { Some(Expression::new(&start_text)?) } else { None };
        Ok(Self {
            // The group is found by its name, so groups of the user before it do not matter.
            both: Expression::new(&format!("(?:{end_text})(?P<minder_start>{start_text})"))?,
            start: alone,
            has_end,
            has_start,
            at_start: edge(has_start, format!(r"\A(?:{start_text})"))?,
            at_end: edge(has_end, format!(r"(?:{end_text})\z"))?,
        })
    }

    /// Returns the first split after `from`, where a record starts. `whole` is `true` if no more
    /// input follows.
    pub(crate) fn next(&self, bytes: &[u8], from: usize, whole: bool) -> Option<usize> {
        let mut begin = from;
        if self.has_start {
            // The start of this record is not the start of the next one.
            let start = self.start.as_ref().unwrap_or(&self.both);
            if let Some(own) = start.regex.find_at(bytes, from).filter(|own| own.start() == from) {
                if !whole && !start.is_final(bytes, from, own.end()) {
                    return None;
                }
                begin = own.end();
            }
        }
        while begin <= bytes.len() {
            let found = self.find(bytes, begin, whole)?;
            if found.split > from {
                return Some(found.split);
            }
            // An empty match.
            begin = found.range.end.max(begin + 1);
        }
        None
    }

    /// Returns the split of the first match that starts at `least` or later, if matches are
    /// searched for from the beginning.
    pub(crate) fn first(&self, bytes: &[u8], least: usize, whole: bool) -> Option<usize> {
        let mut begin = 0;
        while begin <= bytes.len() {
            let found = self.find(bytes, begin, whole)?;
            if found.range.start >= least {
                return Some(found.split);
            }
            begin = found.range.end.max(found.range.start + 1);
        }
        None
    }

    /// Returns the last split of bytes that start with a record and are followed by more.
    pub(crate) fn last(&self, bytes: &[u8]) -> Option<usize> {
        let mut last = None;
        while let Some(at) = self.next(bytes, last.unwrap_or(0), false) {
            last = Some(at);
        }
        last
    }

    /// Returns the first match that starts at `begin` or later, if no further input can change it.
    fn find(&self, bytes: &[u8], begin: usize, whole: bool) -> Option<Match> {
        let (range, split) = if self.has_end && self.has_start {
            let found = self.both.regex.captures_at(bytes, begin)?;
            (found.get(0)?.range(), found.name("minder_start")?.start())
        } else {
            let range = self.both.regex.find_at(bytes, begin)?.range();
            (range.clone(), if self.has_end { range.end } else { range.start })
        };
        (whole || self.both.is_final(bytes, begin, range.end)).then_some(Match { range, split })
    }

    /// Returns the separators in a chunk: between its records, at its beginning and at its end.
    pub(crate) fn separators(&self, chunk: &[u8]) -> Vec<Range<usize>> {
        let edge = |regex: &Option<Regex>| {
            regex.as_ref().and_then(|regex| regex.find(chunk)).map(|found| found.range())
        };
        let first = edge(&self.at_start);
        let from = first.as_ref().map_or(0, |range| range.end);
        let between =
            self.both.regex.find_iter(&chunk[from..]).map(|found| from + found.start()..from + found.end());
        first.into_iter().chain(between).chain(edge(&self.at_end)).collect()
    }
}

/// A pattern and its automaton.
#[derive(Debug)]
struct Expression {
    regex: Regex,
    /// `None` for a pattern whose automaton would be too large. The mutex is for the cache alone:
    /// matching changes it.
    automaton: Option<(DFA, Mutex<Cache>)>,
}

impl Expression {
    fn new(text: &str) -> Result<Self, String> {
        let regex = compile("--regexp", text.as_bytes())?;
        Ok(Self {
            regex,
            automaton: automaton(text).map(|dfa| (dfa.clone(), Mutex::new(dfa.create_cache()))),
        })
    }

    /// Returns `true` if the first match from `begin` on, which ends at `end`, is the same whatever
    /// follows `bytes`.
    fn is_final(&self, bytes: &[u8], begin: usize, end: usize) -> bool {
        let Some((dfa, cache)) = &self.automaton else { return end < bytes.len() };
        let mut cache = cache.lock();
        // The automaton gives up if it needs too many states, or meets a byte that it does not
        // support.
        run(dfa, &mut cache, bytes, begin, end).unwrap_or(end < bytes.len())
    }
}

/// Builds the automaton with the options of [`compile`].
fn automaton(text: &str) -> Option<DFA> {
    let build = |unicode| {
        DFA::builder()
            .configure(DFA::config().unicode_word_boundary(true))
            .syntax(syntax::Config::new().multi_line(true).unicode(unicode).utf8(false))
            .thompson(thompson::Config::new().utf8(false))
            .build(text)
            .ok()
    };
    build(false).or_else(|| build(true))
}

/// Returns `true` if the automaton, started at `begin`, is dead at the end of `bytes`, or as soon
/// as it reads that they end there. `None` if it gives up.
fn run(dfa: &DFA, cache: &mut Cache, bytes: &[u8], begin: usize, end: usize) -> Option<bool> {
    let mut state = dfa.start_state_forward(cache, &Input::new(bytes).range(begin..)).ok()?;
    for &byte in &bytes[begin..] {
        state = step(dfa, cache, state, byte)?;
        if state.is_dead() {
            return Some(true);
        }
    }
    // The automaton reports a match one byte late. Every possible next byte must report the match,
    // and nothing more.
    let classes: Vec<u8> = dfa.byte_classes().representatives(..).filter_map(|unit| unit.as_u8()).collect();
    for &byte in &classes {
        let next = step(dfa, cache, state, byte)?;
        if end < bytes.len() && !next.is_dead() || end == bytes.len() && !next.is_match() {
            return Some(false);
        }
        if !next.is_match() {
            continue;
        }
        for &byte in &classes {
            if !step(dfa, cache, next, byte)?.is_dead() {
                return Some(false);
            }
        }
    }
    Some(true)
}

fn step(dfa: &DFA, cache: &mut Cache, state: LazyStateID, byte: u8) -> Option<LazyStateID> {
    dfa.next_state(cache, state, byte).ok().filter(|state| !state.is_quit())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns all splits of a complete input.
    fn whole(pattern: &Pattern, bytes: &[u8]) -> Vec<usize> {
        let mut splits = vec![0];
        while let Some(at) = pattern.next(bytes, splits[splits.len() - 1], true) {
            splits.push(at);
        }
        splits
    }

    #[test]
    fn match_is_final_only_if_no_input_can_change_it() {
        let is_final = |text: &str, bytes: &str| {
            let expression = Expression::new(text).expect("parse pattern");
            assert!(expression.automaton.is_some());
            let end = expression.regex.find(bytes.as_bytes()).expect("match pattern").end();
            expression.is_final(bytes.as_bytes(), 0, end)
        };
        assert!(is_final(";", "a;") && is_final(";", "a;b") && is_final("[0-9]+y", "12y"));
        assert!(!is_final(";+", "a;") && is_final(";+", "a;b"));
        // It becomes longer if a `b` follows, however far away.
        assert!(!is_final("a.*b", "xaxbxx") && is_final("a.*b", "xaxbxx\n"));
        // Another match would start earlier.
        assert!(!is_final("axx|x", "ax") && is_final("axx|x", "axb"));
        assert!(!is_final("x$", "x") && is_final("x$", "x\n"));
        assert!(!is_final(r"x\b", "x") && is_final(r"x\b", "x-"));
    }

    proptest! {
        #[test]
        fn splits_do_not_depend_on_how_much_input_is_there(
            bytes in proptest::collection::vec(proptest::sample::select(b"ab1;\n".to_vec()), 0..40),
            (start, end) in proptest::sample::select(vec![
                ("[0-9]+a", ""), ("a+b", ""), (".*;", ""), ("a.*b|b", ""), ("^.", ""), ("aa", ""), ("a*", ""),
                ("", ";+"), ("", "a.*b|b"), ("", "\n\n+"), ("a+", ";+"), ("[ab]*1", "\n"), ("a$", ""),
                (r"\bb", ""),
            ]),
            there in 0..40_usize,
        ) {
            let pattern = Pattern::new(end.as_bytes(), start.as_bytes()).expect("parse pattern");
            let all = whole(&pattern, &bytes);
            let there = there.min(bytes.len());
            let mut found = vec![0];
            while let Some(at) = pattern.next(&bytes[..there], found[found.len() - 1], false) {
                found.push(at);
            }
            prop_assert_eq!(&all[..found.len()], &found[..], "{:?}", &bytes[..there]);
            prop_assert_eq!(pattern.last(&bytes[..there]), found.last().copied().filter(|at| *at > 0));
        }
    }
}
