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

/// Returns a name in the quotes of the locale: ‘name’, or 'name' without UTF-8.
pub(crate) fn quoted_name(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    match Symbols::of_locale() {
        Symbols::Unicode => format!("‘{name}’"),
        Symbols::Ascii => format!("'{}'", name.replace('\'', "\\'")),
    }
}
