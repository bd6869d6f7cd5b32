//! The text of an operating system error, as a part of a sentence.

use std::io;

/// Returns the text of `error` for use after a colon: in lower case, without its number and the
/// final period. `Too many open files (os error 24)` becomes `too many open files`. An acronym at
/// the start, as in `I/O error`, keeps its case.
pub fn error_text(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text).trim_end_matches('.');
    let mut chars = text.chars();
    match chars.next() {
        Some(first) if chars.clone().next().is_some_and(char::is_lowercase) => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_text_is_lower_case_except_for_acronyms() {
        let text = |text: &str| error_text(&io::Error::other(text.to_owned()));
        assert_eq!(text("Too many open files (os error 24)"), "too many open files");
        assert_eq!(text("The system cannot find the file."), "the system cannot find the file");
        assert_eq!(text("I/O error (os error 5)"), "I/O error");
        assert_eq!(text(""), "");
    }
}
