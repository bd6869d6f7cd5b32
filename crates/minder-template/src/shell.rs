//! Shells: their arguments, their quoting, and which one runs a line.

use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind};
use crate::job::Invocation;
use crate::kinds::{ALL, DASH, ShellSet, base_name};
use crate::placeholder::set::PlaceholderSet;

/// The maximum nesting of commands and expansions.
pub(crate) const NESTING_MAX: usize = 64;

/// The quoting of a shell, and the way in which it receives values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// POSIX quoting. Values are positional parameters.
    Posix,
    /// cmd.exe. Values are environment variables that it expands before it parses the line.
    Cmd,
    /// PowerShell of any version. Values are environment variables.
    PowerShell,
}

/// A shell.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) program: OsString,
    /// Its name without directory, version and `.exe`.
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// The POSIX shells that it may be, or `None` if it is unknown or not a POSIX shell.
    pub(crate) kinds: Option<ShellSet>,
    /// `true` if a pipeline fails if any of its commands does.
    pub(crate) pipefail: bool,
}

const POWERSHELL: [&str; 2] = ["pwsh", "powershell"];

/// The options of `cmd.exe`: `/d` runs no AutoRun command of the registry, `/s` removes the quotes
/// around the line and nothing else, `/v:off` disables delayed expansion (`cmd /?`).
const CMD: [&str; 4] = ["/d", "/s", "/v:off", "/c"];

/// The maximum length of a line for cmd, in UTF-16 units, before and after it expands variables
/// ("Command prompt line string limitation", learn.microsoft.com).
pub(crate) const CMD_LINE_MAX: usize = 8191;

/// Returns whether this is a known shell that quotes as POSIX shells do.
pub fn is_posix(shell: &OsStr) -> bool {
    dialect(&base_name(shell)) == Some(Dialect::Posix)
}

/// Returns whether this is a known shell that is refused, because it does not quote as POSIX shells do.
pub fn is_refused(shell: &OsStr) -> bool {
    ShellSet::is_refused(&base_name(shell))
}

/// Returns the requested shell, or that of the operating system.
pub(crate) fn shell(asked: Option<&OsStr>) -> Shell {
    let program = match asked {
        // `cmd` without a directory is the one of the operating system, whatever PATH contains.
        Some(asked) if !(is_windows() && names_cmd(asked)) => asked.to_owned(),
        _ => minder_os::system_paths::system_shell().into_os_string(),
    };
    let name = base_name(&program);
    let dialect = dialect(&name).unwrap_or(Dialect::Posix);
    let kinds = ShellSet::of(&program, &name);
    Shell { program, name, dialect, kinds, pipefail: false }
}

fn dialect(name: &str) -> Option<Dialect> {
    match name {
        "cmd" => Some(Dialect::Cmd),
        name if POWERSHELL.contains(&name) => Some(Dialect::PowerShell),
        name => ShellSet::named(name).map(|_| Dialect::Posix),
    }
}

fn is_windows() -> bool {
    std::env::consts::FAMILY == "windows"
}

fn names_cmd(shell: &OsStr) -> bool {
    ["cmd", "cmd.exe"].iter().any(|name| shell.eq_ignore_ascii_case(name))
}

impl Shell {
    /// Returns the shell with `-o pipefail`, if that is wanted. Refuses one that may not have it: dash has
    /// it since 0.5.13 only.
    pub(crate) fn with_pipefail(self, is_wanted: bool) -> Result<Self, Error> {
        if is_wanted && !self.kinds.is_some_and(|kinds| kinds.is_within(ALL.without(DASH))) {
            let text = format!(
                "`{}` may have no option `pipefail`: use `--shell` with bash, busybox, zsh, ksh, mksh \
                 or yash",
                self.name
            );
            return Err(Error::new(ErrorKind::Shell, text));
        }
        Ok(Self { pipefail: is_wanted, ..self })
    }

    /// Refuses a shell that is unknown, or that this operating system does not have.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Shell { name, .. } = self;
        if dialect(name).is_none() || (self.dialect == Dialect::Posix && self.kinds.is_none()) {
            let own = if is_windows() { "cmd, pwsh, powershell, " } else { "" };
            let text = format!(
                "`{name}` is not a shell that is known to keep values from becoming code: use `--shell` \
                 with {own}sh, dash, bash, busybox, zsh, ksh, mksh or yash, or give the command as several \
                 words"
            );
            return Err(Error::new(ErrorKind::Shell, text));
        }
        if self.dialect == Dialect::Cmd && !is_windows() {
            return Err(Error::new(ErrorKind::Shell, "`cmd` exists on Windows only: use sh"));
        }
        Ok(())
    }

    /// Returns the program and its options. The line follows them.
    pub(crate) fn head(&self) -> Vec<OsString> {
        let flags: &[&str] = match self.dialect {
            Dialect::Cmd => &CMD,
            Dialect::PowerShell => &["-NoProfile", "-NonInteractive", "-Command"],
            Dialect::Posix => match (self.name == "busybox", self.pipefail) {
                (true, true) => &["sh", "-o", "pipefail", "-c"],
                (true, false) => &["sh", "-c"],
                (false, true) => &["-o", "pipefail", "-c"],
                (false, false) => &["-c"],
            },
        };
        let flags = flags.iter().map(OsString::from);
        [self.program.clone()].into_iter().chain(flags).collect()
    }

    /// Returns the maximum length of a line in bytes, if it is lower than that of the operating
    /// system.
    pub(crate) fn bytes_max(&self) -> Option<usize> {
        (self.dialect == Dialect::Cmd).then_some(CMD_LINE_MAX)
    }

    /// Returns the command that runs this line. The caller is responsible for its content.
    pub(crate) fn invocation(&self, line: &OsStr) -> Result<Invocation, Error> {
        let mut invocation = Invocation { argv: self.head(), ..Invocation::default() };
        if self.dialect != Dialect::Cmd {
            invocation.argv.push(line.to_owned());
            return Ok(invocation);
        }
        if line.as_encoded_bytes().iter().any(|byte| b"\r\n".contains(byte)) {
            return Err(Error::new(ErrorKind::Value, MORE_LINES));
        }
        let units = units(line.as_encoded_bytes());
        if units > CMD_LINE_MAX {
            return Err(Error::new(ErrorKind::Value, too_long(units)));
        }
        invocation.raw_tail = Some(quoted(line));
        Ok(invocation)
    }
}

impl Invocation {
    /// Returns the command that runs `line` unchanged, with `shell` or with the shell of the
    /// operating system. The caller is responsible for its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Value`] if the shell is `cmd.exe` and `line` contains a line end or is too
    /// long.
    pub fn of_line(shell: Option<&OsStr>, line: &OsStr) -> Result<Invocation, Error> {
        self::shell(shell).invocation(line)
    }
}

pub(crate) const MORE_LINES: &str = "the command has more than one line, and cmd reads one: join commands \
                                     with `&`, or put them into a file";

/// Returns the message for a line that is too long for cmd.
pub(crate) fn too_long(units: usize) -> String {
    format!(
        "the line has {units} characters with its values, and cmd takes {CMD_LINE_MAX}: give the command as \
         several words, or each job fewer arguments"
    )
}

/// Returns the line between two quotes. `cmd /s` removes the first and the last quote.
pub(crate) fn quoted(line: &OsStr) -> OsString {
    let mut tail = OsString::from("\"");
    tail.push(line);
    tail.push("\"");
    tail
}

/// Returns the length of a text in UTF-16 units. The bytes may encode lone surrogates.
pub(crate) fn units(text: &[u8]) -> usize {
    let continues = |byte: &&u8| (0x80..0xc0).contains(*byte);
    text.len() - text.iter().filter(continues).count() + text.iter().filter(|byte| **byte >= 0xf0).count()
}

/// Returns whether the only argument of a template is a line for this shell: it contains a
/// character that is not plain, outside of placeholders.
///
/// For cmd, `^` and `%` are special and a backslash is plain: `C:\tools\x.exe` is a program. So is
/// the absolute path of a program with spaces, which is common on Windows.
pub(crate) fn is_line(argument: &[u8], placeholders: &PlaceholderSet, dialect: Dialect) -> bool {
    let plain: &[u8] = match dialect {
        Dialect::Cmd => b"_-./:@+\\~#$[]{}",
        _ => b"_-./:@%+,^",
    };
    if dialect == Dialect::Cmd && is_program_path(argument) {
        return false;
    }
    let mut at = 0;
    while at < argument.len() {
        match placeholders.placeholder_at(&argument[at..]) {
            Some((_, length)) => at += length,
            None if argument[at].is_ascii_alphanumeric()
                || plain.contains(&argument[at])
                || !argument[at].is_ascii() =>
            {
                at += 1
            }
            None => return true,
        }
    }
    false
}

/// Returns whether this is an absolute path of one program and nothing else. It begins with a drive
/// or a server, and contains one `.exe` or `.com`, at its end.
fn is_program_path(path: &[u8]) -> bool {
    let drive = path.first().is_some_and(u8::is_ascii_alphabetic) && path[1..].starts_with(b":\\");
    let rest = match path {
        _ if drive => &path[3..],
        [b'\\', b'\\', rest @ ..] => rest,
        _ => return false,
    };
    if rest.iter().any(|byte| b"\"<>|&%^*?/:".contains(byte) || byte.is_ascii_control()) {
        return false;
    }
    let lower = rest.to_ascii_lowercase();
    let found = |end: &[u8]| lower.windows(end.len()).filter(|part| *part == end).count();
    found(b".exe") + found(b".com") == 1 && (lower.ends_with(b".exe") || lower.ends_with(b".com"))
}
