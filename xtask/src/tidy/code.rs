//! Reads Rust source: removes comments and strings, and lists the paths and items of a file.
//!
//! This is a scanner, not a parser. It never mistakes a comment or a string for code, which is
//! enough for the rules of tidy.

/// One Rust file, taken apart.
#[derive(Debug, Default)]
pub(crate) struct Source {
    /// The text with comments and literals replaced by spaces; lines and columns stay the same.
    pub(crate) code: String,
    /// The comments and literals, each on the lines where they are. A bar stands for code.
    pub(crate) prose: String,
}

/// Takes a Rust file apart.
pub(crate) fn split(text: &str) -> Source {
    let bytes = text.as_bytes();
    let mut source = Source::default();
    let mut code_start = 0;
    let mut at = 0;
    while at < bytes.len() {
        let end = skipped(bytes, at);
        if end == at {
            at += 1;
            continue;
        }
        source.add_code(&text[code_start..at]);
        if is_format_key(&text[..at]) {
            source.add_blank(&text[at..end]);
        } else {
            source.add_prose(&text[at..end]);
        }
        code_start = end;
        at = end;
    }
    source.add_code(&text[code_start..]);
    source
}

impl Source {
    fn add_code(&mut self, code: &str) {
        self.code.push_str(code);
        if !code.trim().is_empty() {
            self.prose.push('|');
        }
        self.prose.extend(code.matches('\n'));
    }

    fn add_prose(&mut self, prose: &str) {
        self.prose.push_str(prose);
        self.add_blank(prose);
    }

    /// Adds spaces to the code, in place of a comment or literal.
    fn add_blank(&mut self, text: &str) {
        self.code.extend(text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
    }
}

/// Returns whether a literal after this text is a key of a file format, which is not prose:
/// `#[serde(rename = "…")]`.
fn is_format_key(before: &str) -> bool {
    before.ends_with("#[serde(rename = ")
}

/// Returns where the comment or literal that starts at `at` ends, or `at` if none starts there.
fn skipped(text: &[u8], at: usize) -> usize {
    let next = text.get(at + 1).copied();
    match text[at] {
        b'/' if next == Some(b'/') => find(text, at, b'\n').unwrap_or(text.len()),
        b'/' if next == Some(b'*') => block_comment(text, at),
        b'"' => string(text, at + 1),
        b'r' if matches!(next, Some(b'"' | b'#')) && !ends_word(&text[..at]) => raw_string(text, at),
        b'\'' => character(text, at),
        _ => at,
    }
}

fn find(text: &[u8], from: usize, wanted: u8) -> Option<usize> {
    text[from..].iter().position(|byte| *byte == wanted).map(|at| from + at)
}

/// Returns whether a name ends here, other than the `b` or `c` that may precede a raw string.
fn ends_word(before: &[u8]) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii();
    let length = before.iter().rev().take_while(|byte| is_part(byte)).count();
    !matches!(&before[before.len() - length..], b"" | b"b" | b"c")
}

fn block_comment(text: &[u8], at: usize) -> usize {
    let mut depth = 0;
    let mut i = at;
    while i + 1 < text.len() {
        match (text[i], text[i + 1]) {
            (b'/', b'*') => depth += 1,
            (b'*', b'/') => depth -= 1,
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
    text.len()
}

fn string(text: &[u8], mut i: usize) -> usize {
    while i < text.len() {
        match text[i] {
            b'\\' => i += 2,
            b'"' => return i + 1,
            _ => i += 1,
        }
    }
    text.len()
}

fn raw_string(text: &[u8], at: usize) -> usize {
    let hashes = text[at + 1..].iter().take_while(|byte| **byte == b'#').count();
    let open = at + 1 + hashes;
    if text.get(open) != Some(&b'"') {
        return at;
    }
    let closes = |i: usize| text[i + 1..].iter().take(hashes).filter(|byte| **byte == b'#').count() == hashes;
    let mut i = open;
    while let Some(quote) = find(text, i + 1, b'"') {
        if closes(quote) {
            return quote + 1 + hashes;
        }
        i = quote;
    }
    text.len()
}

/// Returns where a character literal ends; a lifetime is not a literal.
fn character(text: &[u8], at: usize) -> usize {
    if text.get(at + 1) == Some(&b'\\') {
        return find(text, at + 3, b'\'').map_or(text.len(), |close| close + 1);
    }
    let is_inside = |byte: &&u8| !byte.is_ascii();
    let length = 1 + text[at + 1..]
        .iter()
        .skip(1)
        .take_while(|byte| is_inside(byte) && byte.leading_ones() == 1)
        .count();
    let close = at + 1 + length;
    if text.get(close) == Some(&b'\'') { close + 1 } else { at }
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

/// A `mod` line of a module that has its own file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ModLine {
    /// The line, counted from one.
    pub(crate) line: usize,
    /// The systems that the module is compiled for, if it is compiled for them alone.
    pub(crate) family: Option<Family>,
}

/// The paths and the items of one file.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    /// Every `use`, and every other path of two segments or more.
    pub(crate) mentions: Vec<Mention>,
    /// Every item of the file and of its inline modules: the names of those modules, and its own name.
    pub(crate) items: Vec<(Vec<String>, String)>,
    /// The modules that have their own files.
    pub(crate) modules: Vec<(String, ModLine)>,
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

type Token<'a> = (usize, &'a str);

/// Names, `::`, and single characters, each with its line.
fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut out: Vec<Token<'_>> = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_' || !byte.is_ascii();
            let long = rest.as_bytes().iter().take_while(is_part).count();
            let length = match first {
                _ if long > 0 => long,
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            out.push((number + 1, &rest[..length]));
            rest = rest[length..].trim_start();
        }
    }
    out
}

/// Keywords that are followed by the name of an item, perhaps after further keywords.
const ITEMS: [&str; 8] = ["fn", "struct", "enum", "union", "trait", "type", "const", "static"];

/// One pass over the tokens.
struct Walk<'a> {
    tokens: &'a [Token<'a>],
    at: usize,
    /// The braces around the current token: the name of an inline module, or `None`.
    open: Vec<Option<String>>,
    /// The family of systems that the `cfg` before the next item names.
    family: Option<Family>,
    found: Scan,
}

impl Walk<'_> {
    fn text(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |(_, text)| *text)
    }

    fn step(&mut self) {
        match self.text(self.at) {
            "mod" if self.text(self.at + 2) == "{" => {
                self.open.push(Some(self.text(self.at + 1).to_string()));
                self.at += 3;
            }
            "mod" if self.text(self.at + 2) == ";" => {
                let mod_line = ModLine { line: self.tokens[self.at].0, family: self.family };
                let name = self.text(self.at + 1).to_string();
                self.found.modules.push((name, mod_line));
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
        let names = self.tokens[self.at..].iter().map(|(_, text)| *text);
        let names: Vec<&str> = names.take_while(|text| *text != "]").collect();
        let is_negated = names.contains(&"not");
        let is_unix = ["unix", "target_os", "target_vendor"].iter().any(|name| names.contains(name));
        let is_windows = names.contains(&"windows");
        if is_windows && is_unix {
            // A condition about both excludes neither.
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
        if is_macro && let Some(last) = path.last_mut() {
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
        scan(&split(code).code).mentions.into_iter().map(|m| m.path.join("::")).collect()
    }

    #[test]
    fn comments_and_strings_are_no_code() {
        let code = "a /* unsafe /* x */ */ \"b \\\" unsafe\" r#\"unsafe \" \"# 'u' '\\'' \
                    'life // unsafe\nb\"unsafe\"";
        let left = split(code).code;
        assert!(!left.contains("unsafe"), "{left}");
        assert!(left.contains("'life"));
        assert_eq!(left.chars().count(), code.chars().count());
    }

    #[test]
    fn prose_is_comments_and_strings() {
        let source = split("let a = \"b\"; // ü 'c\n\nlet d = 'ü'; /* e */\n");
        assert_eq!(source.prose, "|\"b\"|// ü 'c|\n\n'ü'|/* e */\n");
        assert_eq!(source.code, "let a =    ;        \n\nlet d =    ;        \n");
    }

    #[test]
    fn keys_of_a_format_are_not_prose() {
        let source = split("#[serde(rename = \"b\")]\n");
        assert_eq!(source.prose, "||\n");
        assert_eq!(source.code, "#[serde(rename =    )]\n");
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
            "#[cfg(windows)]\nmod a;\npub mod b;\n#[cfg(not(windows))]\npub(crate) mod c;\n\
             #[cfg(target_os = x)] use d; mod e;",
        );
        let lines = found.modules.iter().map(|(name, mod_line)| (name.as_str(), mod_line.line));
        assert_eq!(lines.collect::<Vec<_>>(), [("a", 2), ("b", 3), ("c", 5), ("e", 6)]);
        let families: Vec<Option<Family>> = found.modules.iter().map(|(_, line)| line.family).collect();
        assert_eq!(families, [Some(Family::Windows), None, Some(Family::Unix), None]);
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
