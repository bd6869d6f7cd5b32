//! Which shells there are, what each is called with, and which one is meant.

use std::ffi::{OsStr, OsString};

use crate::error::{Error, ErrorKind};
use crate::job::Invocation;
use crate::kinds::{ShellSet, base_name};
use crate::placeholder::set::PlaceholderSet;

/// The deepest nesting of commands and expansions that is followed.
pub(crate) const NESTING_MAX: usize = 64;

/// How a shell quotes, and how values get to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// POSIX quoting; values are positional parameters.
    Posix,
    /// The shell of Windows; values are variables that it expands itself.
    Cmd,
    /// PowerShell of any age; values are variables of the environment.
    PowerShell,
}

/// A shell that is known.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    pub(crate) program: OsString,
    /// Its name without folder, version and `.exe`.
    pub(crate) name: String,
    pub(crate) dialect: Dialect,
    /// Which POSIX shells it may be; `None` if it is none that is known.
    pub(crate) kinds: Option<ShellSet>,
}

const POWERSHELL: [&str; 2] = ["pwsh", "powershell"];

/// What `cmd.exe` is called with: no commands of the registry's before ours, the quotes around the
/// line taken off and nothing else, no second kind of variable (`cmd /?`).
const CMD: [&str; 4] = ["/d", "/s", "/v:off", "/c"];

/// The longest line that cmd takes, in UTF-16 units, before and after variables are expanded
/// ("Command prompt line string limitation", learn.microsoft.com).
pub(crate) const CMD_LINE_MAX: usize = 8191;

/// Whether this shell is known to quote as POSIX shells do.
pub fn is_posix(shell: &OsStr) -> bool {
    dialect(&base_name(shell)) == Some(Dialect::Posix)
}

/// The shell that is asked for; else that of the system.
pub(crate) fn shell(asked: Option<&OsStr>) -> Shell {
    let program = match asked {
        // By its name alone it is the system's, wherever PATH may lead.
        Some(asked) if !(is_windows() && names_cmd(asked)) => asked.to_owned(),
        _ => minder_os::system_paths::system_shell().into_os_string(),
    };
    let name = base_name(&program);
    let dialect = dialect(&name).unwrap_or(Dialect::Posix);
    let kinds = ShellSet::of(&program, &name);
    Shell { program, name, dialect, kinds }
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
    /// Refuses a shell that values cannot be handed to, and one that this system has not.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let Shell { name, .. } = self;
        if dialect(name).is_none() || (self.dialect == Dialect::Posix && self.kinds.is_none()) {
            let own = if is_windows() { "cmd, pwsh, powershell, " } else { "" };
            let text = format!(
                "`{name}` is no shell that is known to keep values from becoming code: use `--shell` with {own}sh, dash, bash, \
                 busybox, zsh, ksh, mksh or yash, or give the command as several words"
            );
            return Err(Error::new(ErrorKind::Shell, text));
        }
        if self.dialect == Dialect::Cmd && !is_windows() {
            return Err(Error::new(
                ErrorKind::Shell,
                "`cmd` is the shell of Windows, and here is none: use sh",
            ));
        }
        Ok(())
    }

    /// The words that the shell is started with; behind them comes the line.
    pub(crate) fn head(&self) -> Vec<OsString> {
        let flags: &[&str] = match self.dialect {
            Dialect::Cmd => &CMD,
            Dialect::PowerShell => &["-NoProfile", "-NonInteractive", "-Command"],
            Dialect::Posix if self.name == "busybox" => &["sh", "-c"],
            Dialect::Posix => &["-c"],
        };
        let flags = flags.iter().map(OsString::from);
        [self.program.clone()].into_iter().chain(flags).collect()
    }

    /// How many bytes a line may have, if the shell takes less than the system.
    pub(crate) fn bytes_max(&self) -> Option<usize> {
        (self.dialect == Dialect::Cmd).then_some(CMD_LINE_MAX)
    }

    /// What runs this line, which the user answers for.
    pub(crate) fn invocation(&self, line: &OsStr) -> Result<Invocation, Error> {
        let mut call = Invocation { words: self.head(), ..Invocation::default() };
        if self.dialect != Dialect::Cmd {
            call.words.push(line.to_owned());
            return Ok(call);
        }
        if line.as_encoded_bytes().iter().any(|byte| b"\r\n".contains(byte)) {
            return Err(Error::new(ErrorKind::Value, MORE_LINES));
        }
        let units = units(line.as_encoded_bytes());
        if units > CMD_LINE_MAX {
            return Err(Error::new(ErrorKind::Value, too_long(units)));
        }
        call.tail = Some(quoted(line));
        Ok(call)
    }
}

impl Invocation {
    /// What runs this line as it is, which the user answers for; by the system's shell if none is
    /// given.
    ///
    /// # Errors
    ///
    /// When it has more than one line, or is too long, for `cmd.exe`.
    pub fn of_line(shell: Option<&OsStr>, line: &OsStr) -> Result<Invocation, Error> {
        self::shell(shell).invocation(line)
    }
}

pub(crate) const MORE_LINES: &str =
    "the command has more than one line, and cmd reads one: join commands with `&`, or put them into a file";

/// Says that a line is longer than cmd takes.
pub(crate) fn too_long(units: usize) -> String {
    format!(
        "the line has {units} characters with its values, and cmd takes {CMD_LINE_MAX}: give the command as several words, \
         or each job fewer arguments"
    )
}

/// The line as cmd takes the quotes off it: one at each end, whatever stands between.
pub(crate) fn quoted(line: &OsStr) -> OsString {
    let mut tail = OsString::from("\"");
    tail.push(line);
    tail.push("\"");
    tail
}

/// How many UTF-16 units a text of these bytes has, lone surrogates counted.
pub(crate) fn units(text: &[u8]) -> usize {
    let continues = |byte: &&u8| (0x80..0xc0).contains(*byte);
    text.len() - text.iter().filter(continues).count() + text.iter().filter(|byte| **byte >= 0xf0).count()
}

/// Says whether a template's only word is a line for this shell: something beside placeholders is
/// not plain.
///
/// To cmd, `^` and `%` mean something and a backslash does not: `C:\tools\x.exe` is a program. So
/// is a whole path of one with blanks, as Windows is full of them.
pub(crate) fn is_line(word: &[u8], placeholders: &PlaceholderSet, dialect: Dialect) -> bool {
    let plain: &[u8] = match dialect {
        Dialect::Cmd => b"_-./:@+\\~#$[]{}",
        _ => b"_-./:@%+,^",
    };
    if dialect == Dialect::Cmd && is_path(word) {
        return false;
    }
    let mut at = 0;
    while at < word.len() {
        match placeholders.placeholder_at(&word[at..]) {
            Some((_, length)) => at += length,
            None if word[at].is_ascii_alphanumeric() || plain.contains(&word[at]) || !word[at].is_ascii() => {
                at += 1
            }
            None => return true,
        }
    }
    false
}

/// Whether this is the path of one program and nothing else: from a drive or a server on, with one
/// `.exe` or `.com`, at its end.
fn is_path(word: &[u8]) -> bool {
    let drive = word.first().is_some_and(u8::is_ascii_alphabetic) && word[1..].starts_with(b":\\");
    let rest = match word {
        _ if drive => &word[3..],
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
