//! Regular expressions given as flags.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles a regular expression over bytes, in which `^` and `$` match at line breaks.
pub(crate) fn compile(flag: &str, text: &[u8]) -> Result<Regex, String> {
    let Ok(text) = str::from_utf8(text) else {
        return Err(format!("{flag}: invalid regular expression: expected UTF-8"));
    };
    let build = |unicode| RegexBuilder::new(text).multi_line(true).unicode(unicode).build();
    // The input is bytes, so `.` matches any byte. Only a class of non-ASCII characters needs Unicode.
    build(false).or_else(|_| build(true)).map_err(|error| {
        let text = error.to_string();
        let why = text.lines().last().unwrap_or_default();
        format!("{flag}: invalid regular expression: {}", why.strip_prefix("error: ").unwrap_or(why))
    })
}
