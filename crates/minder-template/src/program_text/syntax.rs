//! The syntax of each language, and the parts that its program texts may not contain.

use crate::word_list::lists;

/// The syntax of a language of expressions and statements.
#[derive(Debug)]
pub(super) struct Syntax {
    /// The quotes of strings in which only a backslash is special.
    pub(super) quotes: &'static [u8],
    /// The bytes that begin an expansion in its strings and regular expressions.
    pub(super) expanded: &'static [u8],
    pub(super) has_triple_quotes: bool,
    /// `#` begins a comment.
    pub(super) has_comments: bool,
    /// `x["name"]` is a member of `x`, which may be a function.
    pub(super) has_members: bool,
    /// Parts of words that run text, load code, or find functions by their names.
    stems: &'static str,
    /// Words with the same effect that are too short to be searched for as parts.
    words: &'static str,
    /// Texts outside of strings that are not followed.
    pub(super) refused: &'static [&'static str],
    /// The words before which `/` begins a regular expression.
    pub(super) before_regexp: &'static str,
    /// The words after which `/` may be either.
    pub(super) ambiguous: &'static str,
    /// `/` may begin a regular expression.
    pub(super) has_regexps: bool,
    /// The names that a value outside of strings may not be; `None` if it must be a number.
    pub(super) reserved: Option<&'static str>,
}

pub(super) const AWK: Syntax = Syntax {
    quotes: b"\"",
    expanded: b"",
    has_triple_quotes: false,
    has_comments: true,
    has_members: false,
    stems: "system getline",
    words: "",
    // `@` loads code and calls functions by their names. `'` and a backslash begin no token.
    refused: &["@", "'", "\\", "`"],
    before_regexp: "print printf return in else do delete case exit",
    ambiguous: "length",
    has_regexps: true,
    reserved: Some(
        "begin end beginfile endfile function func if else while for do break continue switch case default \
         next nextfile exit return delete in getline print printf length include load namespace eval system \
         close fflush atan2 cos exp int log rand sin sqrt srand asort asorti gensub gsub index match \
         patsplit split sprintf strtonum sub substr tolower toupper mktime strftime systime and compl \
         lshift or rshift xor isarray typeof bindtextdomain dcgettext dcngettext mkbool extension",
    ),
};

pub(super) const PYTHON: Syntax = Syntax {
    quotes: b"'\"",
    expanded: b"",
    has_triple_quotes: true,
    has_comments: true,
    has_members: false,
    stems: "exec eval compile system popen subprocess spawn import_ __ attr importlib runpy ctypes pickle \
            marshal globals locals builtins modules methodcaller sys.path breakpoint timeit doctest input \
            fork zipimport pdb code.",
    words: "pty vars site cffi",
    refused: &["\\", "`"],
    before_regexp: "",
    ambiguous: "",
    has_regexps: false,
    reserved: None,
};

pub(super) const RUBY: Syntax = Syntax {
    quotes: b"'\"",
    expanded: b"@",
    has_triple_quotes: false,
    has_comments: true,
    has_members: false,
    stems: "system exec eval spawn fork open load require send method inject reduce binding kernel __ const \
            process pty marshal erb __end__ syscall to_proc to_sym #{ #$ #@ instance_variable",
    words: "io trap",
    refused: &[
        "`", "\\", "<<", "=begin", ":\"", ":'", "?\"", "?'", "%w", "%W", "%i", "%I", "%q", "%Q", "%r", "%s",
        "%x", "%(", "%[", "%{", "%<", "%|", "%!", "%/", "$\"", "$'", "$/", "$:", "$;", "$,", "$~", "$!",
        "$@", "$&", "$+", "$*", "$<", "$>", "$?", "$.", "$-", "$\\",
    ],
    before_regexp: "if unless and or not when while until in",
    ambiguous: "*",
    has_regexps: true,
    reserved: None,
};

pub(super) const NODE: Syntax = Syntax {
    quotes: b"'\"",
    expanded: b"",
    has_triple_quotes: false,
    has_comments: false,
    has_members: true,
    stems: "exec eval function spawn fork require import process child constructor reflect prototype __ \
            settimeout setinterval",
    words: "vm with",
    refused: &["`", "\\", "#", "//", "/*", "<!--", "-->"],
    before_regexp: "return typeof case in of delete void throw new else do",
    ambiguous: "",
    has_regexps: true,
    reserved: None,
};

impl Syntax {
    /// Returns whether the text contains a word that runs text.
    pub(super) fn runs_text(&self, text: &[u8]) -> bool {
        runs_text(self.stems, self.words, text)
    }
}

/// Returns whether the text contains one of these parts of words, or one of these words. Values join
/// no parts: they stand between them.
pub(super) fn runs_text(stems: &str, words: &str, text: &[u8]) -> bool {
    let text = text.to_ascii_lowercase();
    let has = |stem: &str| text.windows(stem.len()).any(|part| part == stem.as_bytes());
    let is_word_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    stems.split_ascii_whitespace().any(has)
        || text.split(|byte| !is_word_byte(byte)).any(|word| !word.is_empty() && lists(words, word))
}

/// Adds `%` to the bytes that a string may not contain if the program formats text.
pub(super) fn exclude_formats(text: &[u8], mut excluded: Vec<u8>) -> Vec<u8> {
    if text.windows(6).any(|part| part == b"printf") || text.windows(8).any(|part| part == b"strftime") {
        excluded.push(b'%');
    }
    excluded
}
