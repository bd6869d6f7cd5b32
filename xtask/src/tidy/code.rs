//! Reads Rust source: removes comments and strings, and lists the paths and items of a file.
//!
//! This is a scanner, not a parser. It never mistakes a comment or a string for code, which is
//! enough for the rules of tidy.

/// Returns the text with comments and literals replaced by spaces; lines and columns stay the same.
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

/// Returns where the comment or literal that starts at `at` ends, or `at` if none starts there.
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

/// Returns whether a name ends before `at`, other than the `b` or `c` that may precede a raw string.
fn ends_word(chars: &[char], at: usize) -> bool {
    let word: String = chars[..at].iter().rev().take_while(|c| c.is_alphanumeric() || **c == '_').collect();
    !matches!(word.as_str(), "" | "b" | "c")
}

fn block_comment(chars: &[char], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
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

/// Returns where a character literal ends; a lifetime is not a literal.
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

/// A path that a file uses, with groups of a `use` expanded to one path each.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mention {
    /// The line, counted from one.
    pub(crate) line: usize,
    /// The names of the inline modules around it.
    pub(crate) inside: Vec<String>,
    /// The segments, from the left, without generic arguments; the last one of a macro keeps its `!`.
    pub(crate) path: Vec<String>,
    /// The name that a `use` gives to the path; `*` if it imports everything below the path.
    pub(crate) binds: Option<String>,
}

/// The systems that a module is compiled for, as far as its `cfg` says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Family {
    /// Unix systems, or some of them.
    Unix,
    Windows,
}

/// The paths and the items of one file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Every `use`, and every other path of two segments or more.
    pub(crate) mentions: Vec<Mention>,
    /// Every item of the file and of its inline modules: the names of those modules, and its own name.
    pub(crate) items: Vec<(Vec<String>, String)>,
    /// The modules that the file declares for one family of systems.
    pub(crate) families: Vec<(String, Family)>,
}

/// Reads the paths and items of a file; `code` is without comments and strings.
pub(crate) fn scan(code: &str) -> Scan {
    let tokens = tokens(code);
    let mut walk = Walk { tokens: &tokens, at: 0, open: Vec::new(), family: None, found: Scan::default() };
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

/// Keywords that are followed by the name of an item, perhaps after further keywords.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// One pass over the tokens.
struct Walk<'a> {
    tokens: &'a [Token],
    at: usize,
    /// The braces around the current token: the name of an inline module, or `None`.
    open: Vec<Option<String>>,
    /// What the `cfg` before the next item says.
    family: Option<Family>,
    found: Scan,
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
            "mod" if self.text(self.at + 2) == ";" => {
                if let Some(family) = self.family {
                    self.found.families.push((self.text(self.at + 1).to_string(), family));
                }
                self.at += 2;
            }
            "cfg" if self.text(self.at + 1) == "(" => self.cfg(),
            ";" => {
                self.family = None;
                self.at += 1;
            }
            "{" => {
                self.open.push(None);
                self.family = None;
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
            "macro_rules" if self.text(self.at + 1) == "!" => {
                self.item(self.at + 2);
                self.at += 3;
            }
            word if is_name(word) => {
                if ITEMS.contains(&word) {
                    self.item(self.at + 1);
                }
                self.path(&[], false);
            }
            _ => self.at += 1,
        }
    }

    /// Reads the condition of a `cfg`.
    fn cfg(&mut self) {
        let names = self.tokens[self.at..].iter().map(|(_, text)| text.as_str());
        let names: Vec<&str> = names.take_while(|text| *text != "]").collect();
        let is_negated = names.contains(&"not");
        let is_unix = ["unix", "target_os", "target_vendor"].iter().any(|name| names.contains(name));
        let is_windows = names.contains(&"windows");
        if is_windows && is_unix {
            // A condition about both is none about one of them.
        } else if is_windows {
            self.family = Some(if is_negated { Family::Unix } else { Family::Windows });
        } else if is_unix && !is_negated {
            self.family = Some(Family::Unix);
        }
        self.at += 1;
    }

    fn inside(&self) -> Vec<String> {
        self.open.iter().flatten().cloned().collect()
    }

    /// Records the item that is named at `at`, unless it belongs to a block, an `impl` or a trait.
    fn item(&mut self, at: usize) {
        let name = self.text(at);
        if is_name(name) && !ITEMS.contains(&name) && self.open.iter().all(Option::is_some) {
            let item = (self.inside(), name.to_string());
            self.found.items.push(item);
        }
    }

    /// Reads a path that continues `before`, and its groups if it is imported.
    fn path(&mut self, before: &[String], imported: bool) {
        let line = self.tokens.get(self.at).map_or(0, |(line, _)| *line);
        let mut path = before.to_vec();
        let mut binds = None;
        if self.text(self.at) == "::" {
            self.at += 1;
        }
        loop {
            match self.text(self.at) {
                "{" if imported => return self.group(&path),
                "*" if imported => binds = Some("*".to_string()),
                "self" if !path.is_empty() => {}
                word if is_name(word) => path.push(word.to_string()),
                _ => break,
            }
            self.at += 1;
            if self.text(self.at) != "::" {
                break;
            }
            self.at += 1;
        }
        if imported && self.text(self.at) == "as" {
            binds = Some(self.text(self.at + 1).to_string());
            self.at += 2;
        }
        let is_macro = self.text(self.at) == "!" && self.text(self.at + 1) != "=";
        if let Some(last) = path.last_mut().filter(|_| is_macro) {
            last.push('!');
        }
        if imported && binds.is_none() {
            binds = path.last().cloned();
        }
        if path.len() > 1 || (imported && !path.is_empty()) {
            self.found.mentions.push(Mention { line, inside: self.inside(), path, binds });
        }
    }

    fn group(&mut self, before: &[String]) {
        self.at += 1;
        while !matches!(self.text(self.at), "}" | "") {
            if is_name(self.text(self.at)) || matches!(self.text(self.at), "{" | "*") {
                self.path(before, true);
            } else {
                self.at += 1;
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
        scan(&without_comments(code)).mentions.into_iter().map(|m| m.path.join("::")).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let code = "a /* unsafe /* x */ */ \"b \\\" unsafe\" r#\"unsafe \" \"# 'u' '\\'' \
                    'life // unsafe\nb\"unsafe\"";
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
    fn a_use_binds_a_name() {
        let found = scan("use a::{self, b as c, d::*}; use e;");
        let bound: Vec<_> = found.mentions.iter().map(|m| m.binds.as_deref().unwrap_or("")).collect();
        assert_eq!(bound, ["a", "c", "*", "e"]);
    }

    #[test]
    fn modules_of_one_family_are_known() {
        let found = scan(
            "#[cfg(windows)] mod a; mod b; #[cfg(not(windows))] mod c; #[cfg(target_os = x)] use d; mod e;",
        );
        assert_eq!(found.families, [("a".to_string(), Family::Windows), ("c".to_string(), Family::Unix)]);
    }

    #[test]
    fn items_are_those_of_modules() {
        let found =
            scan("fn f() { fn g() {} } impl A { fn h() {} } mod m { pub const fn i() {} } static J: u8 = 0;");
        let names: Vec<String> =
            found.items.iter().map(|(inside, name)| format!("{}:{name}", inside.join("::"))).collect();
        assert_eq!(names, [":f", "m:i", ":J"]);
    }

    #[test]
    fn inline_modules_are_told_apart() {
        let found = scan("mod tests { fn f() { a::b(); } } fn g() { c::d(); }").mentions;
        assert_eq!(found[0].inside, ["tests"]);
        assert!(found[1].inside.is_empty());
    }
}
