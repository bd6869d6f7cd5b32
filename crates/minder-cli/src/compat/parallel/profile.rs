//! Options from profiles, from `$PARALLEL` and from the first line of a script, and the choice of
//! the shell.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use minder_os::encoding::os_string_from_encoded;

use super::super::warning::warn;
use crate::ui::os_error_text;

/// The profile of all users.
const SYSTEM_PROFILE: &str = "/etc/parallel/config";

/// The file of `--record-env`.
const RECORDED_VARIABLES: &str = "ignored_vars";

/// Returns the arguments in the profiles of these names. Without names, returns those in the
/// profiles that GNU parallel always reads.
///
/// # Errors
/// A profile cannot be read, or has an unterminated quote.
pub(super) fn profile_args(names: &[OsString]) -> Result<Vec<OsString>> {
    let mut args = Vec::new();
    if names.is_empty() {
        let user = parallel_dir().map(|dir| dir.join("config"));
        // The former name of the user's profile.
        let former = std::env::var_os("HOME").map(|home| Path::new(&home).join(".parallelrc"));
        for path in [Some(PathBuf::from(SYSTEM_PROFILE)), former, user].into_iter().flatten() {
            args.extend(read_profile(&path)?.unwrap_or_default());
        }
    }
    for name in names {
        let path = match name.as_encoded_bytes() {
            [b'/', ..] | [b'.', b'/', ..] => PathBuf::from(name),
            _ => parallel_dir()
                .with_context(|| format!("cannot find the profile `{}`: HOME is not set", name.display()))?
                .join(name),
        };
        match read_profile(&path)? {
            Some(more) => args.extend(more),
            // GNU parallel continues as well.
            None => warn(&format!("profile `{}` not found", path.display())),
        }
    }
    Ok(args)
}

/// Returns the arguments in `$PARALLEL`.
///
/// # Errors
/// It has an unterminated quote.
pub(super) fn variable_args() -> Result<Vec<OsString>> {
    let Some(text) = std::env::var_os("PARALLEL") else { return Ok(Vec::new()) };
    split(text.as_encoded_bytes()).context("unterminated quote in `$PARALLEL`")
}

/// Writes the names of all environment variables into a file. GNU parallel does not send these to
/// other machines. minder sends only variables that are named, but GNU parallel may read the same file.
pub(super) fn record_environment() -> Result<()> {
    let dir = parallel_dir().context("cannot record the environment: HOME is not set")?;
    let path = dir.join(RECORDED_VARIABLES);
    let mut text = Vec::new();
    for (name, _) in std::env::vars_os() {
        text.extend_from_slice(name.as_encoded_bytes());
        text.push(b'\n');
    }
    let written = std::fs::create_dir_all(&dir).and_then(|()| std::fs::write(&path, text));
    written.with_context(|| format!("cannot write `{}`", path.display()))
}

/// Returns whether [`record_environment`], or GNU parallel, has written its file.
pub(super) fn has_recorded_environment() -> bool {
    parallel_dir().is_some_and(|dir| dir.join(RECORDED_VARIABLES).is_file())
}

/// Returns the directory of GNU parallel's files.
pub(super) fn parallel_dir() -> Option<PathBuf> {
    let dir = non_empty_variable("PARALLEL_HOME").map(PathBuf::from);
    dir.or_else(|| non_empty_variable("HOME").map(|home| Path::new(&home).join(".parallel")))
}

fn non_empty_variable(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Returns the arguments in a file, or `None` if the file does not exist.
fn read_profile(path: &Path) -> Result<Option<Vec<OsString>>> {
    let text = match std::fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("cannot read the profile `{}`: {}", path.display(), os_error_text(&error)),
    };
    let comment = |line: &&[u8]| line.trim_ascii_start().starts_with(b"#");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(|line| !comment(line)).collect();
    let args = split(&lines.join(&b'\n'));
    args.map(Some).with_context(|| format!("unterminated quote in the profile `{}`", path.display()))
}

/// Returns the arguments of a script for which minder is the interpreter, or `None` if `args` are
/// not those of a script.
///
/// The kernel passes all options of the script's first line as one argument. With `--shebang`, the
/// other lines of the script are the input. With `--shebang-wrap`, the line ends in a program that
/// runs the script once for each argument.
pub(super) fn script_args(args: &[OsString]) -> Option<Vec<OsString>> {
    let (first, rest) = args.split_first()?;
    let bytes = first.as_encoded_bytes();
    if !bytes.starts_with(b"--shebang") && !bytes.starts_with(b"--hashbang") {
        return None;
    }
    let options = split(bytes)?;
    let (mode, line) = options.split_first().filter(|(_, line)| !line.is_empty())?;
    if !["--shebang", "--hashbang", "--shebang-wrap"].iter().any(|known| mode == known) {
        return None;
    }
    let (script, args) = rest.split_first()?;
    let mut out: Vec<OsString> = Vec::new();
    if mode == "--shebang-wrap" {
        out.extend_from_slice(line);
        out.push(script.clone());
        if !args.is_empty() {
            out.push(":::".into());
        }
    } else {
        out.extend(["--skip-first-line".into(), "--arg-file".into(), script.clone()]);
        out.extend_from_slice(line);
    }
    out.extend_from_slice(args);
    Some(out)
}

/// Splits a text into arguments as a shell does, without expanding anything. Returns `None` if a
/// quote is unterminated.
///
/// The usual crates for this accept only UTF-8, and treat `#` as the start of a comment.
fn split(text: &[u8]) -> Option<Vec<OsString>> {
    let mut args = Vec::new();
    let mut arg: Option<Vec<u8>> = None;
    let mut bytes = text.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b' ' | b'\t' | b'\n' | b'\r' => args.extend(arg.take().map(os_string_from_encoded)),
            b'\\' => arg.get_or_insert_default().extend(bytes.next()),
            b'\'' | b'"' => {
                let arg = arg.get_or_insert_default();
                loop {
                    match bytes.next()? {
                        quote if quote == byte => break,
                        b'\\' if byte == b'"' => arg.push(bytes.next()?),
                        other => arg.push(other),
                    }
                }
            }
            other => arg.get_or_insert_default().push(other),
        }
    }
    args.extend(arg.map(os_string_from_encoded));
    Some(args)
}

/// Returns the shell that runs the jobs, and prints a warning if it is not the one that GNU parallel
/// takes.
///
/// # Errors
/// A variable names a file that does not exist.
pub(super) fn shell() -> Result<OsString> {
    let asked = non_empty_variable("PARALLEL_SHELL");
    let caller = minder_os::system_paths::parent_program().filter(|program| program.is_file());
    let user = non_empty_variable("SHELL");
    let named = [("PARALLEL_SHELL", asked.clone()), ("SHELL", user.clone())];
    let (shell, refused) = choose_shell(asked, caller.map(PathBuf::into_os_string), user);
    if let Some((variable, Some(shell))) =
        named.into_iter().find(|(_, named)| named.is_some() && *named == shell)
    {
        check_shell(variable, Path::new(&shell))?;
    }
    let shell = shell.unwrap_or_else(|| minder_os::system_paths::system_shell().into_os_string());
    if let Some(refused) = refused {
        warn(&format!(
            "`{}` runs the jobs, because `{}` does not quote as POSIX shells do (PARALLEL_SHELL names the \
             shell of jobs)",
            shell.display(),
            refused.display()
        ));
    }
    Ok(shell)
}

/// # Errors
/// The variable names a path at which no file is. A name without a directory is searched for later.
fn check_shell(variable: &str, shell: &Path) -> Result<()> {
    if shell.components().count() > 1
        && let Err(error) = shell.metadata()
    {
        bail!(
            "cannot run jobs in the shell `{}` of ${variable}: {} (set PARALLEL_SHELL to another one, such \
             as /bin/sh)",
            shell.display(),
            os_error_text(&error)
        );
    }
    Ok(())
}

/// Returns the first of these: the shell that was asked for, the shell that called, the user's shell.
/// Returns none if that one does not quote as POSIX shells do, and the refused one.
fn choose_shell(
    asked: Option<OsString>,
    caller: Option<OsString>,
    user: Option<OsString>,
) -> (Option<OsString>, Option<OsString>) {
    if asked.is_some() {
        return (asked, None);
    }
    let is_shell = |program: &OsString| {
        minder_template::is_posix_shell(program) || minder_template::is_refused_shell(program)
    };
    match caller.filter(is_shell).or(user) {
        Some(shell) if minder_template::is_posix_shell(&shell) => (Some(shell), None),
        refused => (None, refused),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn split_follows_shell_quoting() {
        let split_text = |text: &str| {
            split(text.as_bytes())
                .map(|args| args.iter().map(|arg| format!("[{}]", arg.display())).collect::<String>())
        };
        for (text, expected) in [
            ("", ""),
            (" -k\t-j1\n--tag ", "[-k][-j1][--tag]"),
            (r"--tagstring a\ b", "[--tagstring][a b]"),
            (r#"-x"a b"c 'd e' '' "f\"g" '\h'"#, r#"[-xa bc][d e][][f"g][\h]"#),
            ("# no $comment ~/*", "[#][no][$comment][~/*]"),
        ] {
            assert_eq!(split_text(text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(split_text("-v \""), None);
        assert_eq!(split_text("'"), None);
    }

    #[test]
    fn script_args_depend_on_the_shebang_option() {
        let joined = |args: &[&str]| {
            let args: Vec<OsString> = args.iter().map(OsString::from).collect();
            script_args(&args).map(|args| args.join(OsStr::new(" ")).display().to_string())
        };
        assert_eq!(
            joined(&["--shebang -k echo", "s"]).as_deref(),
            Some("--skip-first-line --arg-file s -k echo")
        );
        assert_eq!(joined(&["--shebang-wrap -k sh", "s", "a", "b"]).as_deref(), Some("-k sh s ::: a b"));
        assert_eq!(joined(&["--shebang-wrap --pipe sh", "s"]).as_deref(), Some("--pipe sh s"));
        assert_eq!(joined(&["--shebang", "echo"]), None);
        assert_eq!(joined(&["-k", "echo"]), None);
    }

    #[test]
    fn choose_shell_prefers_the_caller_to_the_user() {
        let choose = |asked: &str, caller: &str, user: &str| {
            let [asked, caller, user] = [asked, caller, user]
                .map(|shell| Some(OsString::from(shell)).filter(|shell| !shell.is_empty()));
            let (shell, refused) = choose_shell(asked, caller, user);
            [shell, refused].map(|shell| shell.map_or_else(String::new, |shell| shell.display().to_string()))
        };
        assert_eq!(choose("/bin/zsh", "/bin/bash", "/bin/sh"), ["/bin/zsh", ""]);
        assert_eq!(choose("", "/usr/bin/bash", "/bin/sh"), ["/usr/bin/bash", ""]);
        assert_eq!(choose("", "/usr/bin/bash", "/usr/bin/fish"), ["/usr/bin/bash", ""]);
        assert_eq!(choose("", "/usr/bin/make", "/bin/zsh"), ["/bin/zsh", ""]);
        assert_eq!(choose("", "/usr/bin/fish", "/bin/bash"), ["", "/usr/bin/fish"]);
        assert_eq!(choose("", "", "/usr/bin/fish"), ["", "/usr/bin/fish"]);
        assert_eq!(choose("", "/usr/bin/make", ""), ["", ""]);
    }

    #[test]
    fn read_profile_skips_comment_lines() {
        let dir = tempfile::tempdir().expect("create temp dir");
        let path = dir.path().join("p");
        std::fs::write(&path, "-v\n# foo \"bar\n  # more\n\n--tagstring \"x y\" # z\n")
            .expect("write profile");
        let args = read_profile(&path).expect("read profile").expect("profile exists");
        assert_eq!(args, ["-v", "--tagstring", "x y", "#", "z"].map(OsString::from));
        assert!(read_profile(&dir.path().join("q")).expect("look up missing profile").is_none());
    }
}
