//! Rust source with its comments and the insides of its strings blanked out, and the paths that it
//! mentions.
//!
//! Not a parser: a scanner that never mistakes a comment or a string for code, and that is enough
//! for the rules here.

/// The same text, line by line and column by column, with comments and literals turned into blanks.
pub(crate) fn without_comments(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = skipped(&chars, at);
        if end == at {
            out.push(chars[at]);
            at += 1;
        } else {
            out.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        }
    }
    out
}

/// Where the comment or literal that starts at `at` ends; `at` itself if none starts there.
fn skipped(chars: &[char], at: usize) -> usize {
    let next = chars.get(at + 1).copied();
    match chars[at] {
        '/' if next == Some('/') => at + chars[at..].iter().take_while(|c| **c != '\n').count(),
        '/' if next == Some('*') => block_comment(chars, at),
        '"' => string(chars, at + 1),
        'r' if matches!(next, Some('"' | '#')) && !ends_word(chars, at) => raw_string(chars, at),
        '\'' => character(chars, at),
        _ => at,
    }
}

/// Whether what stands before `at` is a name, other than the `b` or `c` that may precede a raw
/// string.
fn ends_word(chars: &[char], at: usize) -> bool {
    let word: String = chars[..at].iter().rev().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
    !matches!(word.as_str(), "" | "b" | "c")
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let (mut depth, mut i) = (0, at);
    while i + 1 < chars.len() {
        match (chars[i], chars[i + 1]) {
            ('/', '*') => depth += 1,
            ('*', '/') => depth -= 1,
            _ => {
                i += 1;
                continue;
            }
        }
        i += 2;
        if depth == 0 {
            return i;
        }
    }
    chars.len()
}

fn string(chars: &[char], mut i: usize) -> usize {
    while i < chars.len() {
        match chars[i] {
            '\\' => i += 2,
            '"' => return i + 1,
            _ => i += 1,
        }
    }
    chars.len()
}

fn raw_string(chars: &[char], at: usize) -> usize {
    let hashes = chars[at + 1..].iter().take_while(|c| **c == '#').count();
    let open = at + 1 + hashes;
    if chars.get(open) != Some(&'"') {
        return at;
    }
    let closes = |i: usize| {
        chars[i] == '"' && chars[i + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes
    };
    (open + 1..chars.len()).find(|i| closes(*i)).map_or(chars.len(), |i| i + 1 + hashes)
}

/// A character literal; a lifetime is left alone.
fn character(chars: &[char], at: usize) -> usize {
    match (chars.get(at + 1), chars.get(at + 2)) {
        (Some('\\'), _) => {
            let close = chars.iter().enumerate().skip(at + 3).find(|(_, c)| **c == '\'');
            close.map_or(chars.len(), |(i, _)| i + 1)
        }
        (Some(_), Some('\'')) => at + 3,
        _ => at,
    }
}

/// A path as it is used in a file: its segments from the left, one use of a group at a time.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// The line, from one.
    pub(crate) line: usize,
    /// The names of the inline modules around it.
    pub(crate) inside: Vec<String>,
    /// The segments, as far as they are names; a macro's last one keeps its `!`.
    pub(crate) path: Vec<String>,
}

/// Every path of two segments or more in the code, with groups of a `use` taken apart.
pub(crate) fn mentions(code: &str) -> Vec<Mention> {
    let tokens = tokens(code);
    let mut walk = Walk { tokens: &tokens, at: 0, open: Vec::new(), found: Vec::new() };
    while walk.at < tokens.len() {
        walk.step();
    }
    walk.found
}

type Token = (usize, String);

/// Names, `::`, and single characters, each with its line.
fn tokens(code: &str) -> Vec<Token> {
    let mut out: Vec<Token> = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let long = rest
                .chars()
                .take_while(|c| c.is_alphanumeric() || *c == '_')
                .map(char::len_utf8)
                .sum::<usize>();
            let length = match first {
                _ if long > 0 => long,
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            out.push((number + 1, rest[..length].to_string()));
            rest = rest[length..].trim_start();
        }
    }
    out
}

/// One pass over the tokens; `open` holds a name for each brace that belongs to a module, and
/// nothing for other braces.
struct Walk<'a> {
    tokens: &'a [Token],
    at: usize,
    open: Vec<Option<String>>,
    found: Vec<Mention>,
}

impl Walk<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |(_, text)| text)
    }

    fn step(&mut self) {
        match self.text(self.at) {
            "mod" if self.text(self.at + 2) == "{" => {
                self.open.push(Some(self.text(self.at + 1).to_string()));
                self.at += 3;
            }
            "{" => {
                self.open.push(None);
                self.at += 1;
            }
            "}" => {
                self.open.pop();
                self.at += 1;
            }
            "use" => {
                self.at += 1;
                self.path(&[], true);
            }
            word if is_name(word) => self.path(&[], false),
            _ => self.at += 1,
        }
    }

    /// Reads a path that continues `before`, and its groups if it is imported.
    fn path(&mut self, before: &[String], imported: bool) {
        let line = self.tokens.get(self.at).map_or(0, |(line, _)| *line);
        let mut path = before.to_vec();
        if self.text(self.at) == "::" {
            self.at += 1;
        }
        loop {
            match self.text(self.at) {
                "{" if imported => return self.group(&path),
                word if is_name(word) => path.push(word.to_string()),
                _ => break,
            }
            self.at += 1;
            if self.text(self.at) != "::" {
                break;
            }
            self.at += 1;
        }
        let is_macro = self.text(self.at) == "!" && self.text(self.at + 1) != "=";
        if let Some(last) = path.last_mut().filter(|_| is_macro) {
            last.push('!');
        }
        if path.len() > 1 || (imported && !path.is_empty()) {
            let inside = self.open.iter().flatten().cloned().collect();
            self.found.push(Mention { line, inside, path });
        }
    }

    fn group(&mut self, before: &[String]) {
        self.at += 1;
        while !matches!(self.text(self.at), "}" | "") {
            if is_name(self.text(self.at)) || self.text(self.at) == "{" {
                self.path(before, true);
            } else {
                self.at += 1;
            }
            if self.text(self.at) == "as" {
                self.at += 2;
            }
        }
        self.at += 1;
    }
}

fn is_name(word: &str) -> bool {
    word.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(code: &str) -> Vec<String> {
        mentions(&without_comments(code)).into_iter().map(|m| m.path.join("::")).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let code = "a /* unsafe /* x */ */ \"b \\\" unsafe\" r#\"unsafe \" \"# 'u' '\\'' 'life // unsafe\nb\"unsafe\"";
        let left = without_comments(code);
        assert!(!left.contains("unsafe"), "{left}");
        assert!(left.contains("'life"));
        assert_eq!(left.chars().count(), code.chars().count());
    }

    #[test]
    fn groups_are_taken_apart() {
        assert_eq!(
            paths("use crate::{a, b::{C, d as e}, f::*};"),
            ["crate::a", "crate::b::C", "crate::b::d", "crate::f"]
        );
        assert_eq!(paths("fn f() { super::g::h(); crate::m!(); x }"), ["super::g::h", "crate::m!"]);
        assert_eq!(paths("use libc;"), ["libc"]);
    }

    #[test]
    fn inline_modules_are_told_apart() {
        let found = mentions("mod tests { fn f() { a::b(); } } fn g() { c::d(); }");
        assert_eq!(found[0].inside, ["tests"]);
        assert!(found[1].inside.is_empty());
    }
}
