//! Words that comments, strings and Markdown do not contain; the list is `xtask/words.txt`.
//!
//! Code in backticks and in fences is left out, and so are words that are part of a path or of an
//! assignment. A phrase is found across the end of a line.

use super::{Finding, Tree};
use crate::tree;
use anyhow::{Context, Result};
use std::collections::HashMap;

/// The file of the words.
const WORDS: &str = "xtask/words.txt";

/// Checks the Rust and Markdown files of the tree.
pub(crate) fn check(tree: &Tree) -> Result<Vec<Finding>> {
    let words = Words::parse(&std::fs::read_to_string(tree::root().join(WORDS)).context(WORDS)?);
    let mut found = Vec::new();
    for (file, text) in &tree.texts {
        let hits = if let Some(source) = tree.sources.get(file) {
            words.in_rust(&source.prose)
        } else if file.extension().is_some_and(|extension| extension == "md") {
            words.in_markdown(text)
        } else {
            continue;
        };
        for (line, phrase) in hits {
            let what = format!("`{phrase}`; hint: see *Writing* in CONTRIBUTING.md");
            found.push(Finding::new(file, line, what));
        }
    }
    Ok(found)
}

/// The words of the list.
struct Words {
    /// The entries, by the first word of each.
    entries: HashMap<String, Vec<Entry>>,
}

struct Entry {
    phrase: Vec<String>,
    /// Longer phrases that contain it and are allowed.
    allowed: Vec<Vec<String>>,
}

/// A word with its line; an empty one for what separates sentences and clauses.
type Token<'a> = (usize, &'a str);

impl Words {
    /// Reads the list.
    fn parse(list: &str) -> Self {
        let lines = list.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
        let phrase = |text: &str| text.split_whitespace().map(str::to_lowercase).collect();
        let entry = |line: &str| {
            let (first, allowed) = line.split_once('|').unwrap_or((line, ""));
            let allowed = allowed.split(',').filter(|text| !text.trim().is_empty());
            Entry { phrase: phrase(first), allowed: allowed.map(phrase).collect() }
        };
        let mut entries: HashMap<String, Vec<Entry>> = HashMap::new();
        for entry in lines.filter(|line| !line.is_empty()).map(entry) {
            entries.entry(entry.phrase[0].clone()).or_default().push(entry);
        }
        Self { entries }
    }

    /// Returns every hit in the comments and strings of a Rust file: its line and the phrase.
    fn in_rust(&self, prose: &str) -> Vec<(usize, String)> {
        self.find(&tokens(&prose.to_lowercase()))
    }

    /// Returns every hit in Markdown.
    fn in_markdown(&self, text: &str) -> Vec<(usize, String)> {
        let mut is_code = false;
        let mut prose = String::with_capacity(text.len());
        for line in text.lines() {
            let is_fence = line.trim_start().starts_with("```");
            is_code ^= is_fence;
            let is_indented = line.starts_with("    ") && prose.ends_with("\n\n");
            if !is_code && !is_fence && !is_indented {
                prose.push_str(line);
            }
            prose.push('\n');
        }
        self.find(&tokens(&prose.to_lowercase()))
    }

    fn find(&self, tokens: &[Token<'_>]) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for at in 0..tokens.len() {
            for entry in self.entries.get(tokens[at].1).into_iter().flatten() {
                if starts_with(&tokens[at..], &entry.phrase) && !entry.is_allowed(tokens, at) {
                    found.push((tokens[at].0, entry.phrase.join(" ")));
                }
            }
        }
        found
    }
}

impl Entry {
    /// Returns whether one of the longer phrases is around the phrase at `at`.
    fn is_allowed(&self, tokens: &[Token<'_>], at: usize) -> bool {
        self.allowed.iter().any(|longer| {
            let inside = longer.windows(self.phrase.len()).position(|part| *part == *self.phrase);
            inside
                .and_then(|before| at.checked_sub(before))
                .is_some_and(|start| starts_with(&tokens[start..], longer))
        })
    }
}

fn starts_with(tokens: &[Token<'_>], phrase: &[String]) -> bool {
    tokens.len() >= phrase.len() && tokens.iter().zip(phrase).all(|((_, word), wanted)| word == wanted)
}

/// Splits prose into words. Marks of comments, lists and quotes at the start of a line are left out.
fn tokens(prose: &str) -> Vec<Token<'_>> {
    let mut found: Vec<Token<'_>> = Vec::new();
    let mut in_backticks = false;
    for (number, line) in prose.lines().enumerate() {
        if !line.contains(['/', '`']) && !line.contains(char::is_alphanumeric) {
            // An empty line, or a line of code: a sentence ends there.
            found.push((number + 1, ""));
            in_backticks = false;
        }
        let mut rest = line.trim_start_matches([' ', '/', '!', '>', '*', '#', '-']);
        let mut before = None;
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '\'').unwrap_or(rest.len());
            let length = end.max(first.len_utf8());
            let after = rest[length..].chars().next();
            let is_name = [before, after].into_iter().flatten().any(|c| "=/_$@\\".contains(c));
            if first == '`' {
                in_backticks = !in_backticks;
            }
            if end > 0 && !in_backticks && !is_name {
                found.push((number + 1, &rest[..end]));
            } else if !first.is_whitespace() {
                found.push((number + 1, ""));
            }
            before = rest[..length].chars().next_back();
            rest = &rest[length..];
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIST: &str = "# A remark.\npurple\nbright red\nis green | there is green, is green again\n";

    fn hits(found: &[(usize, String)]) -> Vec<String> {
        found.iter().map(|(line, phrase)| format!("{line} {phrase}")).collect()
    }

    #[test]
    fn phrases_are_found_in_comments_and_strings() {
        let text = "//! A bright\n//! red.\nlet purple = \"Purple\"; // `purple`, USER=purple, bright, red\n";
        let prose = super::super::code::split(text).prose;
        assert_eq!(hits(&Words::parse(LIST).in_rust(&prose)), ["1 bright red", "3 purple"]);
    }

    #[test]
    fn longer_phrases_may_be_allowed() {
        let text = "There is green grass. It is green again. It is green now.\n\n    is green\n\n\
                    ```\npurple\n```\n- purple\n";
        assert_eq!(hits(&Words::parse(LIST).in_markdown(text)), ["1 is green", "8 purple"]);
    }
}
