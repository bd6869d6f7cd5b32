//! Messages in the words of xargs, so that scripts find the text that they expect.

use crate::ui::write_stderr;
use std::ffi::OsStr;

use minder_os::escape;
use minder_ui::symbols::Symbols;

/// Prints a message to stderr, as `xargs: LINE`. What a terminal would interpret is escaped, except line
/// ends. Write errors are ignored.
pub(crate) fn print_line(line: &[u8]) {
    // One write, so that lines of several programs do not mix.
    let lines: Vec<String> = line.split(|byte| *byte == b'\n').map(escape).collect();
    write_stderr(format!("xargs: {}\n", lines.join("\n")).as_bytes());
}

/// Returns a name in the quotes of GNU programs: ‘name’ if the locale has UTF-8, else 'name'.
pub(crate) fn quoted_name(name: &OsStr) -> String {
    quoted(&name.to_string_lossy(), Symbols::of_gnu_locale())
}

fn quoted(name: &str, symbols: Symbols) -> String {
    match symbols {
        Symbols::Unicode => format!("‘{name}’"),
        Symbols::Ascii => format!("'{}'", name.replace('\'', "\\'")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_are_ascii_without_utf8() {
        assert_eq!(quoted("it's", Symbols::Unicode), "‘it's’");
        assert_eq!(quoted("it's", Symbols::Ascii), r"'it\'s'");
    }
}
