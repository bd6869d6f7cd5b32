//! The shell form: a line that is fixed at parse time, and the values as its positional parameters.

use std::ffi::{OsStr, OsString};

use super::scan::{Quote, Scanner, Seen};
use super::{Error, ErrorKind, Job, Placeholder, display, os_str};

/// A shell line and what it is started with.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// The shell, `-c`, the line, and what is `$0`.
    head: Vec<OsString>,
    /// `$1`, `$2`, …
    parameters: Vec<Placeholder>,
    /// The line as it was written, and where its placeholders stand.
    written: Vec<u8>,
    seen: Vec<Seen>,
}

/// Shells with POSIX quoting and arithmetic of plain numbers in `[`, by name without version.
const POSIX: [&str; 7] = ["sh", "dash", "ash", "bash", "rbash", "busybox", "posh"];

/// Shells with POSIX quoting that evaluate expressions wherever they want a number.
///
/// Not yash: it drops bytes that are no text in its locale.
const KORN: [&str; 7] = ["ksh", "mksh", "oksh", "lksh", "pdksh", "rksh", "zsh"];

impl Line {
    pub(super) fn parse(line: &OsStr, shell: &OsStr) -> Result<Line, Error> {
        let name = base_name(shell);
        let korn = KORN.contains(&name.as_str());
        if !korn && !POSIX.contains(&name.as_str()) {
            let text = format!(
                "`{name}` is not known to quote as POSIX shells do, a value could become code in it: use \
                 `--shell` with sh, dash, bash, ksh or zsh, or give the command as several words"
            );
            return Err(Error::new(ErrorKind::Shell, text));
        }
        let conditional = korn || name == "bash" || name == "rbash";
        let mut written = line.as_encoded_bytes().to_vec();
        let mut scanned = Scanner::scan(&written, korn, conditional)?;
        if scanned.seen.is_empty() {
            let Some(at) = scanned.tail else {
                return Err(Error::refused(
                    "the line does not end in a simple command, so it is not clear where the value belongs: write `{}` there",
                ));
            };
            written.splice(at..at, *b" {}");
            scanned = Scanner::scan(&written, korn, conditional)?;
        }
        let mut head = vec![shell.to_owned()];
        if name == "busybox" {
            head.push("sh".into());
        }
        head.extend(["-c".into(), os_str(&scanned.line).into_owned(), shell.to_owned()]);
        Ok(Line { head, parameters: scanned.parameters, written, seen: scanned.seen })
    }

    pub(super) fn argv(&self, job: &Job<'_>) -> Result<Vec<OsString>, Error> {
        let mut argv = Vec::with_capacity(self.head.len() + self.parameters.len());
        argv.extend_from_slice(&self.head);
        for parameter in &self.parameters {
            let mut value = OsString::new();
            parameter.push(job, &mut value)?;
            argv.push(value);
        }
        Ok(argv)
    }

    pub(super) fn display(&self, job: &Job<'_>) -> String {
        let mut out = String::new();
        let mut at = 0;
        for seen in &self.seen {
            display::text(&self.written[at..seen.at], &mut out);
            at = seen.at + seen.length;
            let mut value = OsString::new();
            out += &match (seen.placeholder.push(job, &mut value), seen.quote) {
                (Err(_), _) => seen.placeholder.to_string(),
                (_, Quote::Bare) => display::bare(&value),
                (_, Quote::Double) => display::in_double_quotes(&value),
                (_, Quote::Single) => display::in_single_quotes(&value),
            };
        }
        display::text(&self.written[at..], &mut out);
        out
    }
}

/// Says whether a template's only word is a shell line: something beside placeholders is not plain.
pub(super) fn is_line(word: &[u8]) -> bool {
    let mut at = 0;
    while at < word.len() {
        match Placeholder::at(&word[at..]) {
            Some((_, length)) => at += length,
            None if word[at].is_ascii_alphanumeric()
                || b"_-./:@%+,^".contains(&word[at])
                || !word[at].is_ascii() =>
            {
                at += 1
            }
            None => return true,
        }
    }
    false
}

fn base_name(shell: &OsStr) -> String {
    let bytes = shell.as_encoded_bytes();
    let base = bytes.rsplit(|&b| b == b'/' || b == b'\\').next().unwrap_or(bytes);
    let base = String::from_utf8_lossy(base).into_owned();
    let base = base.strip_suffix(".exe").unwrap_or(&base);
    let base = base.strip_suffix("-static").unwrap_or(base);
    base.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-').to_owned()
}
