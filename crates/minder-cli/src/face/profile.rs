//! Options that are not typed: files of them, and `$PARALLEL`.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::encoding::os_string_from_encoded;

use crate::report::table::escape;
use crate::report::{message, os_error_text};

/// What GNU parallel reads for every user.
const SYSTEM: &str = "/etc/parallel/config";

/// The words of the profiles of these names; without any, of the files that are always read.
pub(super) fn words(names: &[OsString]) -> Result<Vec<OsString>> {
    let mut words = Vec::new();
    if names.is_empty() {
        let own = home().map(|home| home.join("config"));
        // Its name of old.
        let old = std::env::var_os("HOME").map(|home| Path::new(&home).join(".parallelrc"));
        for path in [Some(PathBuf::from(SYSTEM)), old, own].into_iter().flatten() {
            words.extend(of_file(&path)?.unwrap_or_default());
        }
    }
    for name in names {
        let path = match name.as_encoded_bytes() {
            [b'/', ..] | [b'.', b'/', ..] => PathBuf::from(name),
            _ => home()
                .with_context(|| {
                    format!("there is no folder for the profile `{}`: HOME is not set", name.display())
                })?
                .join(name),
        };
        match of_file(&path)? {
            Some(more) => words.extend(more),
            // GNU parallel goes on, too.
            None => message(&escape(format!("there is no profile `{}`", path.display()).as_bytes())),
        }
    }
    Ok(words)
}

/// The words of `$PARALLEL`.
pub(super) fn environment() -> Result<Vec<OsString>> {
    let Some(text) = std::env::var_os("PARALLEL") else { return Ok(Vec::new()) };
    split(text.as_encoded_bytes()).context("`$PARALLEL` has a quote that does not end")
}

/// Notes the names of the variables that there are, which GNU parallel then does not send to other
/// machines. Jobs here have all of them; but both may read the file.
pub(super) fn record_environment() -> Result<()> {
    let home = home().context("there is no home for the names of variables: HOME is not set")?;
    let path = home.join("ignored_vars");
    let mut text = Vec::new();
    for (name, _) in std::env::vars_os() {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'\n');
    }
    let written = std::fs::create_dir_all(&home).and_then(|()| std::fs::write(&path, text));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

fn home() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PARALLEL_HOME").or_else(|| set("HOME").map(|home| home.join(".parallel")))
}

/// The words of a file; nothing if there is none.
fn of_file(path: &Path) -> Result<Option<Vec<OsString>>> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("cannot read the profile `{}`: {}", path.display(), os_error_text(&error)),
    };
    let comment = |line: &&[u8]| line.trim_ascii_start().starts_with(b"#");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !comment(line)).collect();
    let words = split(&lines.join(&b'\n'));
    words.map(Some).with_context(|| format!("the profile `{}` has a quote that does not end", path.display()))
}

/// The words of a script's first line and of those behind it, where minder is the script's
/// interpreter.
///
/// The system hands over all options of that line as one word. With `--shebang` the script's other
/// lines are the input; with `--shebang-wrap` the last of the line's words is the program that runs
/// the script, once for each argument.
pub(super) fn of_script(args: &[OsString]) -> Option<Vec<OsString>> {
    let (first, rest) = args.split_first()?;
    let bytes = first.as_encoded_bytes();
    if !bytes.starts_with(b"--shebang") && !bytes.starts_with(b"--hashbang") {
        return None;
    }
    let words = split(bytes)?;
    let (mode, line) = words.split_first().filter(|(_, line)| !line.is_empty())?;
    if !["--shebang", "--hashbang", "--shebang-wrap"].iter().any(|known| mode == known) {
        return None;
    }
    let (script, behind) = rest.split_first()?;
    let mut out: Vec<OsString> = Vec::new();
    if mode == "--shebang-wrap" {
        out.extend_from_slice(line);
        out.push(script.clone());
        if !behind.is_empty() {
            out.push(":::".into());
        }
    } else {
        out.extend(["--skip-first-line".into(), "--arg-file".into(), script.clone()]);
        out.extend_from_slice(line);
    }
    out.extend_from_slice(behind);
    Some(out)
}

/// The words of a text as a shell takes it apart, with nothing in it expanded; nothing if a quote
/// does not end.
///
/// Not with a crate: those at hand know UTF-8 only, and take `#` for the beginning of a comment.
fn split(text: &[u8]) -> Option<Vec<OsString>> {
    let mut words = Vec::new();
    let mut word: Option<Vec<u8>> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => words.extend(word.take().map(os_string_from_encoded)),
            b'\\' => word.get_or_insert_default().extend(bytes.next()),
            b'\'' | b'"' => {
                let word = word.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        quote if quote == byte => break,
                        b'\\' if byte == b'"' => word.push(bytes.next()?),
                        other => word.push(other),
                    }
                }
            }
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word.map(os_string_from_encoded));
    Some(words)
}

/// The shell for the jobs: the one that is asked for; else the user's, if values can be handed to
/// it; else the system's.
///
/// GNU parallel also looks for the shell that called it: which that is depends on how it was
/// called.
pub(super) fn shell() -> OsString {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let quotes = |shell: &OsString| minder_template::is_posix_shell(shell.as_os_str());
    set("PARALLEL_SHELL")
        .or_else(|| set("SHELL").filter(quotes))
        .unwrap_or_else(|| minder_os::system_paths::system_shell().into_os_string())
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn texts_are_taken_apart_as_a_shell_does() {
        let said = |text: &str| {
            split(text.as_bytes()).map(|words| {
                words.iter().map(|word| format!("[{}]", word.display())).collect::<Vec<_>>().join("")
            })
        };
        for (text, words) in [
            ("", ""),
            (" -k\t-j1\n--tag ", "[-k][-j1][--tag]"),
            (r"--tagstring a\ b", "[--tagstring][a b]"),
            (r#"-x"a b"c 'd e' '' "f\"g" '\h'"#, r#"[-xa bc][d e][][f"g][\h]"#),
            ("# no $comment ~/*", "[#][no][$comment][~/*]"),
        ] {
            assert_eq!(said(text).as_deref(), Some(words), "{text}");
        }
        assert_eq!((said("-v \""), said("'")), (None, None));
    }

    #[test]
    fn a_script_is_its_own_input_or_is_run() {
        let said = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            of_script(&words).map(|words| words.join(OsStr::new(" ")).display().to_string())
        };
        assert_eq!(
            said(&["--shebang -k echo", "s"]).as_deref(),
            Some("--skip-first-line --arg-file s -k echo")
        );
        assert_eq!(said(&["--shebang-wrap -k sh", "s", "a", "b"]).as_deref(), Some("-k sh s ::: a b"));
        assert_eq!(said(&["--shebang-wrap --pipe sh", "s"]).as_deref(), Some("--pipe sh s"));
        assert_eq!((said(&["--shebang", "echo"]), said(&["-k", "echo"])), (None, None));
    }

    #[test]
    fn comments_in_files_are_passed_over() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("p");
        std::fs::write(&path, "-v\n# foo \"bar\n  # more\n\n--tagstring \"x y\" # z\n").expect("a profile");
        let words = of_file(&path).expect("words").expect("a file");
        assert_eq!(words, ["-v", "--tagstring", "x y", "#", "z"].map(OsString::from));
        assert!(of_file(&folder.path().join("q")).expect("no error").is_none());
    }
}
