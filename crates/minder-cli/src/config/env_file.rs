//! Files of variables for `--env-file`.
//!
//! The dialect is what the tools with such files agree on: `NAME=VALUE`, comments, `export`, quotes.
//! Nothing is expanded. The crate `dotenvy` expands: it turns `pa$$word` into `pa`, without a message.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};

/// The largest file: more does not fit into the environment of a program.
const BYTES_MAX: u64 = 1 << 20;

/// Adds the variables of a file. No message shows its text, which may be a secret.
///
/// # Errors
/// The file cannot be read, or a line is not a variable.
pub(crate) fn read(path: &Path, variables: &mut Vec<(OsString, OsString)>) -> Result<()> {
    let cannot = || format!("cannot use --env-file `{}`", path.display());
    let mut bytes = Vec::new();
    let file = File::open(path).with_context(cannot)?;
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).with_context(cannot)?;
    if bytes.len() as u64 > BYTES_MAX {
        bail!("{}: it has more than 1 MiB", cannot());
    }
    let Ok(text) = String::from_utf8(bytes) else { bail!("{}: it is not UTF-8", cannot()) };
    // Windows editors put a byte order mark there.
    for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
        match variable(line) {
            Ok(None) => (),
            Ok(Some((name, value))) => variables.push((name.into(), value.into())),
            Err(why) => bail!("{}: line {}: {why}", cannot(), index + 1),
        }
    }
    Ok(())
}

/// Parses a line. Returns `None` for an empty line and a comment.
fn variable(line: &str) -> Result<Option<(&str, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or("expected NAME=VALUE")?;
    let name = name.trim_end();
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) || name.as_bytes()[0].is_ascii_digit() {
        return Err("expected NAME=VALUE, with a name of letters, digits and `_`");
    }
    let value = value.trim_start();
    if value.contains('\0') {
        return Err("a value has no NUL byte");
    }
    match value.as_bytes().first() {
        Some(quote @ (b'"' | b'\'')) => {
            quoted(&value[1..], char::from(*quote)).map(|value| Some((name, value)))
        }
        _ => Ok(Some((name, unquoted(value).to_owned()))),
    }
}

/// Returns a value without quotes: up to a comment, which follows a blank.
fn unquoted(value: &str) -> &str {
    let is_blank = |before: &str| before.is_empty() || before.ends_with([' ', '\t']);
    let comment = value.match_indices('#').find(|(at, _)| is_blank(&value[..*at]));
    value[..comment.map_or(value.len(), |(at, _)| at)].trim_end()
}

/// Returns a quoted value. In double quotes, `\n`, `\r`, `\t`, `\"`, `\\` and `\$` are escapes.
fn quoted(text: &str, quote: char) -> Result<String, &'static str> {
    let mut value = String::new();
    let mut rest = text.chars();
    loop {
        match rest.next().ok_or("a quote is not closed on its line")? {
            end if end == quote => break,
            '\\' if quote == '"' => match rest.next().ok_or("a quote is not closed on its line")? {
                'n' => value.push('\n'),
                'r' => value.push('\r'),
                't' => value.push('\t'),
                escaped @ ('"' | '\\' | '$') => value.push(escaped),
                other => value.extend(['\\', other]),
            },
            other => value.push(other),
        }
    }
    let after = rest.as_str().trim_start();
    if after.is_empty() || after.starts_with('#') { Ok(value) } else { Err("text follows a quoted value") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_variables() {
        for (line, expected) in [
            ("A=1", ("A", "1")),
            ("  export A = 1  ", ("A", "1")),
            ("A=", ("A", "")),
            ("A=two words", ("A", "two words")),
            ("A=pa$$word # comment", ("A", "pa$$word")),
            ("A=a#b", ("A", "a#b")),
            ("A=#b", ("A", "")),
            ("A=b=c", ("A", "b=c")),
            ("A='x $HOME \\n' # comment", ("A", "x $HOME \\n")),
            (r#"A="x $Z" "#, ("A", "x $Z")),
            (r#"A="a\nb\t\"\\\$\z""#, ("A", "a\nb\t\"\\$\\z")),
            ("A=it's", ("A", "it's")),
        ] {
            assert_eq!(variable(line), Ok(Some((expected.0, expected.1.to_owned()))), "{line}");
        }
        for line in ["", "   ", "# A=1", "\t#"] {
            assert_eq!(variable(line), Ok(None), "{line}");
        }
        for line in ["A", "=1", "A B=1", "1A=x", "A='x", "A=\"x\\", "A='x'y", "$A=1", "A=x\0y"] {
            assert!(variable(line).is_err(), "{line}");
        }
    }
}
